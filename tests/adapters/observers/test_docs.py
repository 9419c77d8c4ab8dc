"""What documentation refers to, and what of it is not there any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph_mission.adapters.git.git import Git
from ralph_mission.adapters.observers.doc_tree import DocTree
from ralph_mission.adapters.observers.docs import BrokenReference, anchors, broken_references, build
from ralph_mission.config.observers import DocsSettings
from ralph_mission.mission.model.mission import Observation
from tests.adapters.observers.place import Place
from tests.helpers import commit, git, make_repo


def make_place(tmp_path: Path) -> Place:
    return Place(make_repo(tmp_path / "repo", {"a.txt": "a\n"}), tmp_path)


def broken(repo: Path) -> list[BrokenReference]:
    opened = Git.open(repo)
    tree = DocTree.of(opened, opened.resolve("HEAD"), ())
    return [one for page in tree.pages for one in broken_references(tree, page)]


def list_broken(repo: Path) -> list[tuple[str, int, str, str]]:
    return [(one.page, one.line, one.text, one.better) for one in broken(repo)]


@pytest.mark.parametrize(
    "page",
    [
        "[a](docs/a.md)",
        "[a](./docs/a.md?plain=1#top-of-it)",
        "[a](docs)",
        "[a](docs/a%20b.md)",
        '<a href="docs/a.md">a</a>',
        "![p](docs/p.png)",
        "[elsewhere](https://example.org/x.md) <mailto:a@b.c> [top](#title)",
        "`[code](gone.md)`\n\n```\n[code](gone.md)\n```",
        "[site](guide/intro)",
        "[built](dist/api.html)",
        "[outside](../other/x.md)",
        "[variable]({{ url }}.md)",
    ],
)
def test_what_leads_somewhere_or_cannot_be_judged_is_left_alone(tmp_path, page):
    files = {
        "docs/a.md": "# Top of it\n",
        "docs/a b.md": "x\n",
        "docs/p.png": b"\x89",
        "README.md": f"# Title\n\n{page}\n",
    }
    assert list_broken(make_repo(tmp_path / "repo", files)) == []


def test_a_link_to_a_file_that_moved_is_told_with_its_new_place(tmp_path):
    repo = make_repo(
        tmp_path / "repo",
        {"docs/old.md": "# Long text\n\nthat stays\n", "README.md": "see\n[o](docs/old.md#long-text)\n"},
    )
    git(repo, "mv", "docs/old.md", "docs/new.md")
    moved = commit(repo, {})
    (one,) = broken(repo)
    assert (one.line, one.better) == (2, "docs/new.md#long-text")
    assert one.why == f"docs/old.md was moved to docs/new.md in {moved[:12]}"
    commit(repo, {"README.md": "see\n[o](docs/old.md#gone)\n"})
    (one,) = broken(repo)
    assert (one.better, "docs/new.md has no heading #gone" in one.why) == ("", True)


def test_a_fix_changes_links_alone_and_writes_them_as_markdown_reads_them(tmp_path):
    page = (
        "We moved docs/old.md (docs/old.md), do `cat docs/old.md now` and `[a](docs/old.md)`,\n"
        "see [one](docs/old.md?plain=1#long) or [two](docs/old.md) and [again](docs/old.md).\n"
        "It is [here](docs/old.md) too,\n\nand [there].\n\n<!-- <a href='docs/old.md'> -->\n\n[there]: docs/old.md\n"
    )
    place = Place(make_repo(tmp_path / "repo", {"docs/old.md": "# Long\n\ntext\n", "README.md": page}), tmp_path)
    git(place.path, "mv", "docs/old.md", "docs/new (guide).md")
    commit(place.path, {})
    (signal,) = build(DocsSettings(), place.git).observe(place.context()).signals
    new = "docs/new%20%28guide%29.md"
    first, second, third, *rest = page.split("\n")
    expected = [first, *(line.replace("docs/old.md", new) for line in (second, third)), *rest]
    expected[-2] = f"[there]: {new}"
    assert signal.patch is not None
    assert signal.patch.changes[0].new == "\n".join(expected).encode()


def test_moves_are_followed_to_where_the_file_is_now(tmp_path):
    repo = make_repo(tmp_path / "repo", {"a/one.md": "text\n", "README.md": "[o](a/one.md)\n"})
    for before, after in (("a/one.md", "a/two.md"), ("a/two.md", "three.md")):
        git(repo, "mv", before, after)
        commit(repo, {})
    assert list_broken(repo) == [("README.md", 1, "a/one.md", "three.md")]


def test_a_link_to_a_file_that_was_removed_names_the_commit(tmp_path):
    repo = make_repo(tmp_path / "repo", {"a.md": "text\n", "README.md": "[o](a.md)\n"})
    gone = commit(repo, {"a.md": None})
    (one,) = broken(repo)
    assert (one.why, one.better) == (f"a.md was removed in {gone[:12]}", "")


def test_a_file_that_never_was_counts_only_beside_others_of_its_kind(tmp_path):
    files = {"docs/a.md": "[b](b.md) [c](c.html)\n", "README.md": "[x](build/x.md)\n"}
    repo = make_repo(tmp_path / "repo", files)
    assert list_broken(repo) == [("docs/a.md", 1, "b.md", "")]


def test_a_name_that_differs_in_case_alone_is_put_right(tmp_path):
    repo = make_repo(tmp_path / "repo", {"docs/Guide.md": "x\n", "docs/a.md": "[g](guide.md)\n"})
    assert list_broken(repo) == [("docs/a.md", 1, "guide.md", "Guide.md")]


@pytest.mark.parametrize(
    "settings",
    [
        "mkdocs.yml",
        "docs/conf.py",
        "docs/en/mkdocs.yml",
        "docs/.vitepress/config.ts",
        "docs/x/.vitepress/config/en.mts",
        ".vuepress/config.js",
        "astro.config.ts",
    ],
)
def test_pages_of_a_site_are_judged_by_what_git_knows_alone(tmp_path, settings):
    files = {settings: "x\n", "docs/a.md": "[b](b.md) [c](#none) [o](old.md)\n", "docs/old.md": "text of it\n"}
    repo = make_repo(tmp_path / "repo", files)
    git(repo, "mv", "docs/old.md", "docs/new.md")
    commit(repo, {})
    assert list_broken(repo) == [("docs/a.md", 1, "old.md", "new.md")]


@pytest.mark.parametrize(
    "page", ["website/blog/2017-tool.md", "CHANGELOG.md", "_posts/a.md", "docs/2024-05-06-news.md"]
)
def test_what_tells_of_the_past_by_example_is_left_alone_but_for_links_that_git_can_put_right(tmp_path, page):
    words = "[a](test.js)\n\n```sh\nnode run.js\n```\n"
    repo = make_repo(tmp_path / "repo", {page: words, str(Path(page).with_name("test.js")): "x\n", "run.js": "y\n"})
    git(repo, "rm", "-q", "run.js", str(Path(page).with_name("test.js")))
    commit(repo, {}, message="Gone")
    assert list_broken(repo) == []
    commit(repo, {page: "[a]((https://example.org/pull/1))\n"}, message="Malformed")
    assert list_broken(repo) == [(page, 1, "(https://example.org/pull/1)", "https://example.org/pull/1")]


def test_an_anchor_without_a_heading_is_told(tmp_path):
    files = {
        "README.md": "# One\n\n[a](#one) [b](#two) [c](docs/a.md#Three) [d](docs/a.md#four)\n",
        "docs/a.md": "## three\n",
    }
    repo = make_repo(tmp_path / "repo", files)
    assert [text for _, _, text, _ in list_broken(repo)] == ["#two", "docs/a.md#four"]


def test_anchors_are_made_as_github_makes_them():
    page = '# A `b` & C!\n\n## Same\n\n## Same\n\n## Ünï_x-1 {#own}\n\n<a name="html"></a>\n\nSetext\n======\n'
    assert {"a-b--c", "same", "same-1", "own", "html", "setext"} <= anchors(page)


def test_anchors_of_html_and_those_that_browsers_and_github_know_lead_somewhere(tmp_path):
    page = (
        '<h1 align="center">\n  <img src="https://example.org/x.png"> My &amp; App\n</h1>\n\n'
        "<h2>Quick <b>start</b></h2>\n\n"
        "<a name=plain></a>\n\n[a](#my--app) [b](#quick-start) [c](#plain) [up](#top) [page](#readme) [none](#none)\n"
    )
    assert [text for _, _, text, _ in list_broken(make_repo(tmp_path / "repo", {"README.md": page}))] == ["#none"]


def test_an_address_with_something_before_it_is_told(tmp_path):
    repo = make_repo(tmp_path / "repo", {"README.md": "([#1](<(https://example.org/1)>))\n"})
    assert [one.why for one in broken(repo)] == ["this is not an address: something stands before it"]


def test_commands_of_a_nested_project_are_not_looked_up_at_the_top(tmp_path):
    files = {
        "Makefile": "serve:\n\ttrue\n",
        "package.json": '{"scripts": {"dev": "a", "build": "b"}}',
        "train.py": "print(1)  # a script\n",
    }
    repo = make_repo(tmp_path / "repo", files)
    git(repo, "rm", "-q", "train.py")
    after = {
        "Makefile": "test:\n\ttrue\n",
        "package.json": '{"scripts": {}}',
        "web/package.json": files["package.json"],
        "web/README.md": "```sh\nnpm run dev\n```\n",
        "srv/Makefile": files["Makefile"],
        "srv/docs/use.md": "```sh\nmake serve\n```\n",
        "examples/train.py": files["train.py"],
        "examples/README.md": "```sh\npython train.py\n```\n",
        "README.md": "```sh\nnpm run build -w web\nnpm run dev --workspace=web\n```\n",
        "docs/web.md": "```sh\ncd web\n```\n\nThen\n\n```sh\nnpm run dev\n```\n",
    }
    commit(repo, after)
    assert list_broken(repo) == []
    commit(repo, {"docs/run.md": "```sh\ncd elsewhere\n```\n\n```sh\nnpm run dev\nmake serve\npython train.py\n```\n"})
    assert [text for _, _, text, _ in list_broken(repo)] == ["npm run dev", "make serve", "python train.py"]


def test_commands_that_are_not_there_any_more_are_told(tmp_path):
    page = "# Build\n\n```sh\n$ make build\nmake test\nnpm run lint\nbash scripts/go.sh\nmake elsewhere\n```\n"
    files = {
        "Makefile": "build:\n\ttrue\ntest:\n\ttrue\n",
        "package.json": '{"scripts": {"lint": "x"}}\n',
        "scripts/go.sh": "true\n",
        "CONTRIBUTING.md": page,
    }
    repo = make_repo(tmp_path / "repo", files)
    assert list_broken(repo) == []
    commit(repo, {"Makefile": "build:\n\ttrue\n", "package.json": '{"scripts": {}}\n', "scripts/go.sh": None})
    assert [(line, text) for _, line, text, _ in list_broken(repo)] == [
        (5, "make test"),
        (6, "npm run lint"),
        (7, "bash scripts/go.sh"),
    ]


@pytest.mark.parametrize("before", ["cd web", "git clone https://example.org/x", "docker run -it x"])
def test_commands_that_play_elsewhere_are_left_alone(tmp_path, before):
    files = {"Makefile": "test:\n\ttrue\n", "README.md": f"```sh\n{before}\nmake test\n```\n"}
    repo = make_repo(tmp_path / "repo", files)
    commit(repo, {"Makefile": "other:\n\ttrue\n"})
    assert list_broken(repo) == []


def test_a_badge_of_a_workflow_that_is_gone_is_told(tmp_path):
    badge = "![ci](https://github.com/o/r/actions/workflows/ci.yml/badge.svg)"
    other = "![ci](https://github.com/o/other/actions/workflows/ci.yml/badge.svg)"
    repo = make_repo(tmp_path / "repo", {"README.md": f"{badge}\n{other}\n", ".github/workflows/x.yml": "on: push\n"})
    git(repo, "remote", "add", "origin", "https://github.com/o/r.git")
    assert [line for _, line, _, _ in list_broken(repo)] == [1]


@pytest.fixture
def seen(tmp_path) -> Observation:
    place = make_place(tmp_path)
    commit(
        place.path,
        {"docs/old.md": "# Long\n\ntext\n", "README.md": "a [o](docs/old.md)\n\n[p](docs/old.md) [q](#none)\n"},
    )
    git(place.path, "mv", "docs/old.md", "docs/new.md")
    head = commit(place.path, {})
    return build(DocsSettings(), place.git).observe(place.context(head=head))


def test_fixes_of_a_page_are_one_change_of_its_links_alone(seen):
    fix = next(signal for signal in seen.signals if signal.patch)
    (change,) = fix.patch.changes
    assert change.new == b"a [o](docs/new.md)\n\n[p](docs/new.md) [q](#none)\n"
    assert (fix.kind, fix.title) == ("dead-link", "2 dead links in README.md")


def test_what_no_rule_can_fix_is_told_by_itself(seen):
    (other,) = [signal for signal in seen.signals if not signal.patch]
    assert (other.kind, other.line) == ("broken-docs", 3)
    assert seen.complete and seen.detail.startswith("2 pages, 3 broken")


def test_what_was_found_in_a_commit_is_known_at_the_next_look(tmp_path, monkeypatch):
    place = make_place(tmp_path)
    head = commit(place.path, {"docs/a.md": "[x](#none)\n"})
    observer = build(DocsSettings(), place.git, tmp_path / "cache")
    first = observer.observe(place.context(head=head))
    monkeypatch.setattr(DocTree, "of", None)
    assert observer.observe(place.context(head=head)) == first and first.signals


def test_excluded_pages_are_not_read(tmp_path):
    place = make_place(tmp_path)
    head = commit(place.path, {"notes/a.md": "[x](#none)\n"})
    assert build(DocsSettings(exclude=("notes/**",)), place.git).observe(place.context(head=head)).signals == ()


def test_an_observer_that_knows_the_past_says_what_a_new_one_says(tmp_path):
    place = make_place(tmp_path)
    page = "[a](docs/a.md)\n[b](docs/b.md)\n\n```sh\nmake check\n```\n"
    text = "# Long text\n\nthat stays as it is\n"
    walk: list[dict[str, str | None]] = [
        {"README.md": page, "docs/a.md": text, "docs/c.md": "c\n", "Makefile": "check:\n\ttrue\n"},
        {"docs/a.md": None, "docs/new.md": text, "Makefile": "test:\n\ttrue\n"},
        {"docs/b.md": "b\n"},
        {"docs/b.md": None},
        {"docs/new.md": None, "docs/newer.md": text},
        {"docs/a.md": "again\n", "Makefile": "check:\n\ttrue\n"},
    ]
    one = build(DocsSettings(), place.git)
    for files in walk:
        commit(place.path, files)
        assert one.observe(place.context()).signals == build(DocsSettings(), place.git).observe(place.context()).signals
