"""The house's own promises: what the repository must not contain, and what its documents must keep true."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from importlinter.cli import lint_imports

from ralph_mission.extras import EXTRAS
from tests.helpers import cli_here, make_repo
from tools import surface

THIS_FILE = Path(__file__).resolve()
ROOT = THIS_FILE.parent.parent
PACKAGE = ROOT / "ralph_mission"
LARGE = ("claude", "prisma")
PURE = ("safety", "mission", "loop")
# Written in halves, so that this file may be looked at too.
HOSTS = tuple(
    "".join(halves)
    for halves in (
        ("py", "pi.org"),
        ("python", "hosted.org"),
        ("npm", "js.org"),
        ("npm", "js.com"),
        ("yarn", "pkg.com"),
        ("proxy.go", "lang.org"),
        ("crates", ".io"),
        ("ruby", "gems.org"),
    )
)
RULES = frozenset(
    """mission-cap new-mission-cap thread-cap action-cap auto-pr-cap diff-size protected-path file-mode kind-tier
    human-duplicate spend-cycle spend-day dispatch-day posts-day posts-pause quiet-hours known-finding
    rejected-before branch-name default-branch closing-keyword mention secret workflow-command approval-author
    approval-content approval-head paused scope foreign-commit""".split()
)
PARTICIPLE = re.compile(
    r"\w{2,}ed|told|said|kept|shown|known|found|given|made|done|gone|held|led|left|lost|met|paid|put|sent|sold|spent|taken|taught"
    r"|thought|won|written|worn|begun|born|bound|broken|built|bought|caught|chosen|cut|drawn|forgotten|hidden|seen|split"
)
NO_NOUNS = frozenset("told said asked made held seen kept carried obeyed withheld telling".split())
"""Participles that tell nothing of what a value is."""
LITERARY = frozenset(
    "attendant deed deeds discreet disguise errand errands opinion purse solid trouble troubles wish".split()
)
"""Words for a job, a budget, a problem, a request or a verdict that no engineer would look for."""
STORED = frozenset(
    """CheckResult.said CycleSummary.held Journal.deeds Journal.telling NoteReceipt.kept OpenState.held
    OpenState.obeyed Pull.held RedCheck.said CachedAnswer.asked Remembered.asked RepositoryReport.held RunState.said
    Situation.made""".split()
)
"""Fields whose names stand in files, on the memory branch, in `--json` or in answers of our MCP server: they stay."""
LOCK_LINE = re.compile(
    r"[a-z0-9-]+==\S+(?: ; .+)? \\|    --hash=sha256:[0-9a-f]{64}(?: \\)?|-r requirements(-[a-z]+)?\.lock"
)


@cache
def _nodes(path: Path) -> list[ast.AST]:
    """All that a file consists of, taken apart once for all that look at it."""
    return [*ast.walk(ast.parse(path.read_text()))]


def _ours() -> list[Path]:
    """Every file that is tracked or about to be."""
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")  # nothing is listed there
    return [path for name in listing.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]


def _modules() -> Iterator[tuple[str, set[str]]]:
    """Each module of the package with the top-level names it imports."""
    for path in PACKAGE.rglob("*.py"):
        names = {name for node in _nodes(path) for name in _imported(node)}
        yield path.relative_to(PACKAGE).as_posix(), {name.split(".")[0] for name in names}


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _pins(lock: str) -> dict[str, str]:
    """Name -> version of what a lock file and those that it includes pin."""
    text = (ROOT / lock).read_text()
    included = [_pins(name) for name in re.findall(r"^-r (\S+)$", text, re.MULTILINE)]
    own = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))
    return {name: version for pins in (*included, own) for name, version in pins.items()}


def _named(requirements: Iterable[str]) -> set[str]:
    """The names of requirements as lock files spell them."""
    return {re.split(r"[><=~! \[]", item)[0].lower().replace("_", "-") for item in requirements}


def _holding(pattern: str) -> list[str]:
    wanted = re.compile(pattern.encode(), re.IGNORECASE)
    hits = [(path, wanted.search(path.read_bytes())) for path in _ours()]
    return [f"{path.relative_to(ROOT)}: {hit[0].decode()}" for path, hit in hits if hit]


def test_no_file_names_the_host_of_a_registry() -> None:
    assert _holding("|".join(map(re.escape, HOSTS))) == []


def test_no_file_names_the_folder_of_this_checkout() -> None:
    if len(ROOT.parts) < 3:
        pytest.skip("a name so short may stand anywhere")  # it would find words
    assert _holding(rf"(?<![\w./-]){re.escape(str(ROOT))}(?![\w-])") == []


def test_lock_files_name_no_place() -> None:
    for lock in sorted(path.name for path in ROOT.glob("requirements*.lock")):
        lines = (ROOT / lock).read_text().splitlines()
        assert [line for line in lines if not LOCK_LINE.fullmatch(line)] == []
    assert '"resolved"' not in (ROOT / "tests" / "real" / "node" / "package-lock.json").read_text()


def test_runtime_lock_holds_every_dependency() -> None:
    project = _project()
    wanted = _named(project["project"]["dependencies"]) | _named(project["dependency-groups"]["build"])
    assert wanted <= set(_pins("requirements.lock"))


def test_the_base_stays_small() -> None:
    assert len(_pins("requirements.lock")) <= 35


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_lock_of_an_extra_holds_it_and_agrees_with_all_others(extra: str) -> None:
    pins = _pins(f"requirements-{extra}.lock")
    assert _named(_project()["project"]["optional-dependencies"][extra]) <= pins.keys()
    for lock in ("requirements.lock", "requirements-dev.lock", "requirements-release.lock"):
        others = _pins(lock)
        assert pins.items() >= {(name, others[name]) for name in pins.keys() & others.keys()}


def test_development_has_the_base_and_every_extra_that_brings_no_large_program() -> None:
    pins = _pins("requirements-dev.lock")
    for lock in ("requirements.lock", *(f"requirements-{name}.lock" for name in EXTRAS if name not in LARGE)):
        assert _pins(lock).items() <= pins.items()


def test_extras_are_the_declared_ones_everywhere() -> None:
    declared = _project()["project"]["optional-dependencies"].keys()
    assert set(EXTRAS) == declared
    accepted = re.search(r"^    (acp .*)\) ;;$", (ROOT / "scripts/action/prepare.sh").read_text(), re.MULTILINE)
    assert accepted and set(accepted[1].split(" | ")) == declared


def test_floors_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True) == 0


def test_every_pure_floor_is_under_the_contract() -> None:
    present = {f"ralph_mission.{name}" for name in PURE if (PACKAGE / name / "__init__.py").exists()}
    contracts = _project()["tool"]["importlinter"]["contracts"]
    assert present == {name for one in contracts for name in one.get("source_modules", ())}


def test_frozen_dataclasses_are_the_cheap_ones() -> None:
    # The standard decorator compiles six methods for each class at every start: `values.dataclass` costs a tenth.
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")}
    dear = re.compile(r"^from dataclasses import .*\bdataclass\b", re.MULTILINE)
    frozen = [name for name, text in texts.items() if "@dataclass(frozen=True, slots=True)" in text]
    assert [name for name in frozen if dear.search(texts[name])] == []


SLOW = frozenset(
    "acp claude_agent_sdk feedparser github jinja2 jmespath matplotlib mcp numpy prisma psycopg pydantic_ai "
    "pygments requests rich selectolax semver sqlalchemy textual tweepy twitter_text urllib3".split()
)
"""What takes long to import, and is imported where it is used."""
STARTED = """
import sys
from ralph_mission.cli.main import main
sys.argv = ["ralph", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository after its first cycle."""
    repo = make_repo(tmp_path_factory.mktemp("house") / "repo", {"a.py": "print()\n"})
    cli_here("cycle", "--force", repo=repo)
    return repo


@pytest.mark.parametrize(
    ("line", "most", "also"),
    [
        (("due",), 35, frozenset({"click", "pydantic"})),
        (("status",), 130, frozenset({"packaging"})),
        (("cycle", "--force"), 200, frozenset()),
    ],
    ids=["due", "status", "idle cycle"],
)
def test_a_start_imports_little(lived: Path, line: tuple[str, ...], most: int, also: frozenset[str]) -> None:
    # Most of an idle cycle's time went into imports: this counts them, for a time would depend on the machine.
    started = subprocess.run(
        [sys.executable, "-c", STARTED, *line, "--repo", str(lived)], capture_output=True, text=True, check=False
    )
    names = started.stderr.splitlines()[-1].split()
    assert {name for name in names if name in SLOW | also} == set()
    assert len([name for name in names if name.startswith("ralph_mission")]) <= most


def test_no_modules_import_each_other_in_a_circle_not_even_inside_functions() -> None:
    places = {path.relative_to(ROOT).with_suffix(""): path for path in PACKAGE.rglob("*.py")}
    modules = {".".join(place.parts).removesuffix(".__init__"): path for place, path in places.items()}
    graph = {
        module: {one for node in _nodes(path) for name in _named_by(node) if (one := _within(name, modules)) != module}
        for module, path in modules.items()
    }
    circle = ""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = " <- ".join(error.args[1])
    assert circle == ""


def _named_by(node: ast.AST) -> list[str]:
    """Modules of the product, or names in them, that an import or a table of commands (`module:attribute`) names."""
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        names = [node.value.replace(":", ".")] if re.fullmatch(r"[\w.]+:\w+", node.value) else []
    else:
        names = _imported(node)
    return [name for name in names if name.startswith("ralph_mission.")]


def _within(name: str, modules: Collection[str]) -> str:
    """The module that is named, or that has the name."""
    return name if name in modules else name.rpartition(".")[0]


def test_only_adapters_start_processes() -> None:
    offenders = [name for name, imports in _modules() if "subprocess" in imports and not name.startswith("adapters/")]
    assert offenders == []


def test_the_pure_floors_open_no_file() -> None:
    # Everything else that they must not touch has to be imported, and ruff's banned-api knows it by name.
    sources = [path for floor in PURE for path in (PACKAGE / floor).rglob("*.py")]
    names = {path: {node.id for node in _nodes(path) if isinstance(node, ast.Name)} for path in sources}
    assert [str(path) for path in sources if names[path] & {"open", "input", "eval", "exec", "__import__"}] == []


def test_rules_in_code_are_the_published_ones() -> None:
    from ralph_mission.mission import policy

    assert {rule.id for rule in policy.RULES} <= RULES


@pytest.mark.parametrize("rule", sorted(RULES))
def test_rule_is_documented(rule: str) -> None:
    assert re.search(rf"^### {rule}$", (ROOT / "docs" / "rules.md").read_text(), re.MULTILINE)


def test_architecture_can_be_read_in_one_sitting() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) < 150


def test_every_package_that_the_product_needs_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    names = {re.split(r"[^\w.-]", one)[0].lower() for one in needed}
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## Errors and dependencies\n")[2].lower()
    assert {name for name in names if name not in text} == set()


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "examples/README.md"])
def test_commands_and_links_in_documents_exist(document: str) -> None:
    text = (ROOT / document).read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"^\s*(?:\$ )?make ([a-z-]+)", text, re.MULTILINE)) <= targets
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    assert [link for link in links if not ((ROOT / document).parent / link).exists()] == []


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md"])
def test_files_and_folders_that_documents_name_exist(document: str) -> None:
    """A path stands there from the top of the repository or of the package."""
    folders = {path.name for place in (ROOT, PACKAGE) for path in place.iterdir() if path.is_dir()}
    tops = folders - {"memory", ".git", ".ralph"}
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]*|\w+\.py)`", (ROOT / document).read_text())
    ours = [name for name in named if name.split("/")[0] in tops or name.endswith(".py")]
    assert [name for name in ours if not any((place / name).exists() for place in (ROOT, PACKAGE))] == []


def test_the_glossary_stays_short() -> None:
    assert 20 <= (ROOT / "docs" / "glossary.md").read_text().count("\n- **") <= 40


def test_whoever_silences_a_check_says_why_on_the_same_line() -> None:
    bare = r"# noqa(: [A-Z0-9, ]+)?|# type: ignore(\[[^]]*\])?|# fmt: skip"
    silent = re.compile(rf"({bare}|(pytestmark = |@)pytest\.mark\.(long|real|crash))$")
    found = [
        f"{path.name}:{number}"
        for path in _ours()
        if path.suffix == ".py"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if silent.search(line)
    ]
    assert found == []


def test_no_test_reaches_for_a_private_name() -> None:
    likely = re.compile(  # to parse them all takes seconds
        r"(?<!\bself)(?<!\bcls)\._[a-z]|import .*\b_[a-z]|^\s+_[a-z]\w*(,| as )|['\"]_[a-z]\w*['\"]", re.MULTILINE
    )
    texts = {path.relative_to(ROOT): path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != THIS_FILE}
    reaching = [
        f"{path}: {name}"
        for path, text in texts.items()
        if likely.search(text)
        for name in private_names(ast.parse(text))
    ]
    assert reaching == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from ralph_mission.cli.main import (\n    _run,\n)", ["_run"]),
        ("Remote(git, url)._environment()", ["Remote(git, url)._environment"]),
        ("made.forge._wire.request", ["made.forge._wire"]),
        ("monkeypatch.setattr(api._wire, 'request', answer)", ["api._wire"]),
        ("monkeypatch.setattr(module, '_tell', fails)", ["module, '_tell'"]),
        ("mock.patch.object(wakes.gate, '_run')", ["wakes.gate, '_run'"]),
        ("WAYS = ((Remote, '_run'), (Api, 'change'))", ["Remote, '_run'"]),
        ("@pytest.mark.parametrize('name', ['_tell', 'remove'])\ndef test(name): ...", ["'_tell'"]),
        ("setattr('ralph_mission.adapters.releases._commits', None)", ["'ralph_mission.adapters.releases._commits'"]),
        (
            "SCRIPT = 'import sys; from ralph_mission.cli import main, _run'",
            ["'import sys; from ralph_mission.cli import main, _run'"],
        ),
        ("class A:\n    def b(self): return self._c, cls._d, super()._e, os._exit(0), pair._replace(a=1)", []),
        ("name.endswith('_at') or {'_links': __name__} or there / '_temp' or made.__dict__", []),
    ],
    ids=str,
)
def test_every_way_to_reach_for_a_private_name_is_seen(source: str, names: list[str]) -> None:
    assert list(private_names(ast.parse(source))) == names


PRIVATE = re.compile(r"_[a-z]\w*")
IN_A_TEXT = re.compile(r"\bralph_mission(\.\w+)*\._[a-z]|\bfrom ralph_mission[\w.]* import [^;\n]*\b_[a-z]")
"""A private name of the product in a string: a dotted path, or in a script."""
PUBLIC_ALL_THE_SAME = frozenset(("os._exit", "_replace"))
"""Documented by the standard library: `os._exit`, and `_replace` of a named tuple."""
OWN = ("self", "cls", "super()")


def private_names(tree: ast.AST) -> Iterator[str]:
    """Private names of others that a test imports, asks for, or names in a string in order to replace them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if PRIVATE.fullmatch(alias.name))
        elif isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr):
            whole = ast.unparse(node)
            if ast.unparse(node.value) not in OWN and not PUBLIC_ALL_THE_SAME & {whole, node.attr}:
                yield whole
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and IN_A_TEXT.search(node.value):
            yield repr(node.value)
        elif isinstance(node, ast.Call | ast.Tuple):
            yield from _named_beside_their_owner(node.args if isinstance(node, ast.Call) else node.elts)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("parametrize"):
            strings = (one for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str))
            yield from (repr(one.value) for one in strings if PRIVATE.fullmatch(str(one.value)))


def _named_beside_their_owner(values: list[ast.expr]) -> Iterator[str]:
    """As in `setattr(owner, "_name", value)`, or in a table of such pairs."""
    for owner, name in pairwise(values):
        named = isinstance(name, ast.Constant) and isinstance(name.value, str) and PRIVATE.fullmatch(name.value)
        if named and isinstance(owner, ast.Name | ast.Attribute):
            yield f"{ast.unparse(owner)}, {ast.unparse(name)}"


def _definitions(kind: type[ast.AST]) -> list[tuple[str, ast.AST]]:
    """Every definition of that kind in the package, with the module it stands in."""
    places = {path: path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py"))}
    return [(place, node) for path, place in places.items() for node in _nodes(path) if isinstance(node, kind)]


def test_no_folder_holds_more_than_twenty_modules() -> None:
    counts = Counter(path.parent for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")
    assert {str(folder.relative_to(PACKAGE)): number for folder, number in counts.items() if number > 20} == {}


def test_class_names_are_unique() -> None:
    places: dict[str, list[str]] = {}
    for module, node in _definitions(ast.ClassDef):
        places.setdefault(node.name, []).append(module)  # type: ignore[attr-defined]  # a ClassDef has a name
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_functions_are_named_by_a_verb_and_an_object() -> None:
    names = [node.name for _, node in _definitions(ast.FunctionDef)]  # type: ignore[attr-defined]  # as above
    bare = [name for name in names if "_" not in name.strip("_") and PARTICIPLE.fullmatch(name.strip("_"))]
    assert len(bare) <= 0.04 * len(names), sorted(bare)


def test_helpers_with_one_caller_do_not_become_more() -> None:
    """Well-known libraries have fewer; these are the named steps of a function. Do not raise the number."""
    trees = [tree for _, tree in _definitions(ast.Module)]
    functions, helpers = 0, 0
    for tree in trees:
        nodes = list(ast.walk(tree))
        names = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
        loads = (node for node in nodes if isinstance(node, ast.Name | ast.Attribute))
        uses = Counter(node.id if isinstance(node, ast.Name) else node.attr for node in loads)
        functions += len(names)
        helpers += sum(re.match(r"_[a-z]", name) is not None and uses[name] == 1 for name in names)
    assert helpers <= 0.325 * functions


def test_what_a_function_is_documented_to_raise_exists() -> None:
    known = {node.name for _, node in _definitions(ast.ClassDef) if isinstance(node, ast.ClassDef)} | set(dir(builtins))
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    texts = [(module, ast.get_docstring(node) or "") for kind in kinds for module, node in _definitions(kind)]  # type: ignore[arg-type]  # these three have one
    named = r"[Rr]aises? ((?:[A-Z]\w+(?:, | and | or )?)+)"
    found = [
        (module, name)
        for module, text in texts
        for hit in re.finditer(named, text)
        for name in re.findall(r"\w+", hit[1])
    ]
    assert [f"{module}: {name}" for module, name in found if name[0].isupper() and name not in known] == []


def test_local_names_are_nouns() -> None:
    """Variables, constants, arguments and attributes in either case, private or not, and whatever is defined."""
    classes = [node for _, node in _definitions(ast.ClassDef) if isinstance(node, ast.ClassDef)]
    rows = [(f"{node.name}.{row.target.id}", row.target) for node in classes for row in node.body if _is_field(row)]
    stored = {target for name, target in rows if name in STORED}
    kinds = (ast.Name, ast.Attribute, ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = [(module, _bound(node)) for kind in kinds for module, node in _definitions(kind) if node not in stored]
    assert {name for name, _ in rows} >= STORED
    assert [f"{module}: {name}" for module, name in names if name.strip("_").lower() in NO_NOUNS | LITERARY] == []


def _is_field(row: ast.stmt) -> bool:
    return isinstance(row, ast.AnnAssign) and isinstance(row.target, ast.Name)


def _bound(node: ast.AST) -> str:
    """The name that is given here, "" where one is only used."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
    return ""


def test_there_is_little_to_learn() -> None:
    assert len(list(surface.commands())) <= 49
    assert len(surface.options()) <= 130
    assert len(surface.keys()) <= 147
