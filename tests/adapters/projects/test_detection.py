"""What a repository is told to be by its files: package managers by lock file, checks by its own scripts."""

from __future__ import annotations

import json

import pytest

from ralph_mission.adapters.projects.detection import DetectedProject, detect_project


def detected(**files: str) -> DetectedProject:
    """Of files whose names have `__` for `/` and `_` as it is."""
    return of({name.replace("__", "/"): text for name, text in files.items()})


def of(files: dict[str, str]) -> DetectedProject:
    return detect_project(files, lambda path: files.get(path, ""))


def manifest(**sections: object) -> str:
    return json.dumps(sections)


def commands(project: DetectedProject) -> list[str]:
    return [step.command for step in project.steps]


@pytest.mark.parametrize(
    "lock, text, tool, install",
    [
        ("package-lock.json", "{}", "npm", "npm ci --no-audit --no-fund"),
        ("npm-shrinkwrap.json", "{}", "npm", "npm ci --no-audit --no-fund"),
        ("yarn.lock", "# yarn lockfile v1\n", "yarn", "yarn install --frozen-lockfile --non-interactive"),
        ("yarn.lock", "__metadata:\n  version: 8\n", "yarn", "yarn install --immutable"),
        ("pnpm-lock.yaml", "lockfileVersion: '9.0'\n", "pnpm", "pnpm install --frozen-lockfile"),
        ("bun.lock", "{}", "bun", "bun install --frozen-lockfile"),
    ],
)
def test_a_node_project_is_installed_by_the_tool_of_its_lock_file(lock, text, tool, install):
    project = of({"package.json": manifest(), lock: text})
    assert project.tools == (tool,)
    assert commands(project)[-1] == install
    assert not any("npm ci" in command for command in commands(project)) or tool == "npm"


def test_without_a_lock_file_npm_writes_none():
    assert commands(of({"package.json": manifest()})) == ["npm install --no-package-lock --no-audit --no-fund"]


def test_package_manager_field_decides_between_two_lock_files_and_names_the_version():
    files = {"package.json": manifest(packageManager="pnpm@9.1.0+sha256.abc"), "yarn.lock": "", "pnpm-lock.yaml": ""}
    bring, install = commands(of(files))
    assert "pnpm@9.1.0" in bring and "sha256" not in bring
    assert install == "pnpm install --frozen-lockfile"


@pytest.mark.parametrize(
    "files, package",
    [
        ({"yarn.lock": "# yarn lockfile v1\n"}, "yarn@1"),
        ({"yarn.lock": "__metadata:\n"}, "@yarnpkg/cli-dist@4"),
        ({"yarn.lock": "__metadata:\n  version: 8\n  cacheKey: 10\n"}, "@yarnpkg/cli-dist@4"),
        ({"yarn.lock": "__metadata:\n  version: 6\n"}, "@yarnpkg/cli-dist@3"),
        ({"yarn.lock": "__metadata:\n  version: 4\n"}, "@yarnpkg/cli-dist@2"),
        ({"pnpm-lock.yaml": "lockfileVersion: 5.4\n"}, "pnpm@7"),
        ({"pnpm-lock.yaml": "lockfileVersion: '6.0'\n"}, "pnpm@8"),
    ],
)
def test_a_node_tool_that_is_missing_is_brought_in_the_line_of_its_lock_file(files, package):
    bring, _ = commands(of({"package.json": manifest(), **files}))
    assert package in bring and '--prefix "$HOME/.local"' in bring


def test_checks_are_the_scripts_that_the_repository_names_run_by_its_own_tool():
    scripts = {"lint": "eslint .", "type-check": "tsc", "test": "jest", "build": "vite build", "start": "x"}
    project = of({"package.json": manifest(scripts=scripts), "yarn.lock": "# yarn lockfile v1\n"})
    assert [(check.name, check.line) for check in project.checks] == [
        ("lint", "yarn run lint"),
        ("types", "yarn run type-check"),
        ("test", "yarn run test"),
        ("build", "yarn run build"),
    ]


def test_the_placeholder_of_npm_init_is_no_test():
    project = of({"package.json": manifest(scripts={"test": 'echo "Error: no test specified" && exit 1'})})
    assert project.checks == ()


def test_typescript_without_a_script_is_checked_by_its_compiler():
    files = {"package.json": manifest(devDependencies={"typescript": "5"}), "tsconfig.json": "{}"}
    assert [check.line for check in of(files).checks] == ["tsc --noEmit --pretty false"]


def test_prisma_clients_and_types_of_next_are_made_before_anything_is_checked():
    files = {
        "package.json": manifest(dependencies={"next": "14"}, devDependencies={"prisma": "6"}),
        "yarn.lock": "# yarn lockfile v1\n",
        "tsconfig.json": "{}",
        "prisma/schema.prisma": "generator client {\n}\n",
        "prisma/part.prisma": "model A {\n}\n",
    }
    made = commands(of(files))[2:]
    assert len(made) == 2
    assert "prisma generate --schema prisma/schema.prisma" in made[0] and "next-env.d.ts" in made[1]


@pytest.mark.parametrize(
    "files, tool, command",
    [
        ({"uv.lock": "", "pyproject.toml": ""}, "uv", "uv sync --frozen"),
        ({"poetry.lock": "", "pyproject.toml": ""}, "poetry", "poetry install --no-interaction"),
        ({"requirements.txt": "x\n"}, "pip", "-r requirements.txt"),
        ({"Cargo.toml": "", "Cargo.lock": ""}, "cargo", "cargo fetch --locked"),
        ({"go.mod": ""}, "go", "go mod download && { go test -exec true ./... || true; }"),
        ({"pom.xml": "", "mvnw": ""}, "maven", "./mvnw -B"),
        ({"build.gradle": "", "gradlew": ""}, "gradle", "./gradlew --no-daemon"),
        ({"settings.gradle.kts": "", "app/build.gradle.kts": "", "gradlew": ""}, "gradle", "./gradlew --no-daemon"),
        ({"Gemfile": ""}, "bundler", "bundle install"),
        ({"composer.json": "{\"name\": \"a/b\"}"}, "composer", "composer install"),
    ],
)  # fmt: skip  # one row a tool
def test_every_language_has_its_tool(files, tool, command):
    project = of(files)
    assert project.tools[-1] == tool
    assert command in commands(project)[-1]


def test_pip_installs_requirements_the_package_with_its_test_extras_and_groups():
    pyproject = """
    [build-system]
    requires = []
    [project]
    name = "a"
    [project.optional-dependencies]
    test = []
    docs = []
    [dependency-groups]
    dev = []
    """
    (command,) = commands(of({"pyproject.toml": pyproject, "requirements-dev.txt": "", "tests/test_a.py": ""}))
    lists, package = (part.rpartition(" --disable-pip-version-check ")[2] for part in command.split(" && ")[-2:])
    assert lists == "-r requirements-dev.txt"
    assert package == "-e '.[test]' --group dev pytest"  # after a list that may pin a release of the package itself


def test_python_checks_are_those_that_are_configured():
    pyproject = '[tool.ruff]\n[tool.mypy]\nfiles = ["src"]\n[tool.pytest.ini_options]\n'
    locked = '[[package]]\nname = "mypy"\n\n[[package]]\nname = "ruff"\n'
    project = of({"pyproject.toml": pyproject, "uv.lock": locked, "tests/test_a.py": ""})
    assert not any(check.needs for check in project.checks)
    assert [check.line for check in project.checks] == ["ruff check .", "mypy", "python -m pytest -q"]


@pytest.mark.parametrize("files", [{"requirements.txt": "pytest\n"}, {"poetry.lock": '[[package]]\nname = "pytest"\n'}])
def test_pytest_needs_no_settings_where_it_is_among_the_packages(files):
    project = of({**files, "tests/test_a.py": ""})
    assert [check.line for check in project.checks] == ["python -m pytest -q"]


def test_what_a_build_of_gradle_installs_is_decided_by_all_its_scripts():
    (step,) = of({"settings.gradle": "", "app/build.gradle": "", "gradle/libs.versions.toml": "", "a.java": ""}).steps
    assert set(step.inputs) == {"settings.gradle", "app/build.gradle", "gradle/libs.versions.toml"}


@pytest.mark.parametrize(
    "files, needs",
    [
        ({"pyproject.toml": "[tool.ruff]\n", "requirements.txt": "requests\n"}, ("ruff",)),
        ({"pyproject.toml": "[tool.ruff]\n", "uv.lock": ""}, ("ruff",)),
        ({"pyproject.toml": "[tool.ruff]\n", "requirements-dev.txt": "-r requirements/lint.in # all\n",
          "requirements/lint.in": "Ruff>=0.5\n"}, ()),
        ({"ruff.toml": "", "setup.py": "", "pyproject.toml": "[project]\noptional-dependencies.docs=['ruff']"},
         ("ruff",)),
        ({"ruff.toml": "", "pyproject.toml": "[build-system]\n[project]\nname='a'\n[project.optional-dependencies]\n"
          "dev=['a[lint]']\nlint=['ruff ~= 0.5']"}, ()),
        ({"ruff.toml": "", "pyproject.toml": "[dependency-groups]\ndev=[{include-group='lint'}]\nlint=['ruff']"}, ()),
        ({"ruff.toml": "", "setup.py": "setup(extras_require={'dev': ['ruff==0.5']})"}, ()),
        ({"ruff.toml": "", "setup.py": "", "setup.cfg": "[options.extras_require]\ndev =\n  ruff\n"}, ()),
        ({"ruff.toml": "", "setup.py": "", "setup.cfg": "[ruff\n"}, ("ruff",)),
    ],
)  # fmt: skip  # one row a manifest
def test_a_check_whose_program_no_manifest_installs_says_that_it_needs_it(files, needs):
    (check,) = of(files).checks
    assert (check.command, check.needs) == ("ruff check .", needs)


BUILD = '[build-system]\nrequires = ["hatchling"]\n[project]\nname = "my-proj"\n[tool.ruff]\n'


@pytest.mark.parametrize(
    "files, needs",
    [
        (
            {
                "pyproject.toml": "[project.optional-dependencies]\nlint = ['ruff']\n",
                "requirements-dev.txt": "-e .[lint]",
            },
            (),
        ),
        ({"pyproject.toml": "[project.optional-dependencies]\nx_y = ['ruff']\ndev = ['my_proj[X-Y]']\n"}, ()),
        ({"pyproject.toml": "[dependency-groups]\nLint-It = ['ruff']\ndev = [{include-group = 'lint_it'}]\n"}, ()),
        ({"pyproject.toml": "[project.optional-dependencies]\ndev = ['pytest-ruff']\n"}, ()),
        ({"pyproject.toml": "[project.optional-dependencies]\ndev = [1]\n"}, ("ruff",)),
        ({"pyproject.toml": "[project.optional-dependencies]\nlint = 3\n"}, ("ruff",)),
        ({"pyproject.toml": "[dependency-groups]\ndev = [{x = 'y'}]\n"}, ("ruff",)),
    ],
)
def test_packages_are_found_as_installers_name_them_and_nothing_malformed_ends_it(files, needs):
    (check,) = of(files | {"pyproject.toml": BUILD + files["pyproject.toml"]}).checks
    assert (check.command, check.needs) == ("ruff check .", needs)


@pytest.mark.parametrize("wrong", [3, "x", [1], {"optional-dependencies": 3, "mypy": 3}])
def test_a_section_that_is_no_table_is_ignored(wrong):
    toml = "\n".join(f"{name} = {_inline(wrong)}" for name in ("project", "tool", "dependency-groups"))
    sections = manifest(scripts=wrong, dependencies=wrong, devDependencies=wrong)
    files = {"package.json": sections, "composer.json": sections, "pyproject.toml": toml, "tsconfig.json": "{}"}
    assert of(files).tools == ("npm", "composer")


def _inline(value: object) -> str:
    return f"{{{', '.join(f'{k} = {v}' for k, v in value.items())}}}" if isinstance(value, dict) else json.dumps(value)


@pytest.mark.parametrize("wrong", ["dependencies = 3", "optional-dependencies = [1]", "dependencies = [1]"])
def test_a_malformed_manifest_names_no_package(wrong):
    text = f'[build-system]\nrequires = ["x"]\n[project]\nname = "p"\n{wrong}\n[tool.ruff]\n'
    assert [check.needs for check in of({"pyproject.toml": text}).checks] == [("ruff",)]


@pytest.mark.parametrize(
    "files, command",
    [
        ({"setup.cfg": "[mypy]\n# what\nfiles = src/click, tests/typing\nstrict = true\n"}, "mypy"),
        ({"mypy.ini": "[mypy]\nstrict = true\n[mypy-a]\nfiles = x\n"}, "mypy ."),
        ({"mypy.ini": "[mypy]\n", "tox.ini": "[testenv:typing]\ndeps = mypy\ncommands = mypy\n"}, "mypy"),
        ({"mypy.ini": "[mypy]\n", "tox.ini": "[testenv:typing]\ndeps =\n    mypy\ncommands = mypy src\n"}, "mypy ."),
        ({"mypy.ini": "[mypy]\n", "tox.ini": "[testenv:typing]\ncommands =\n    ruff check\n    mypy\n"}, "mypy"),
        ({"mypy.ini": "[mypy]\n", "noxfile.py": "session.run('mypy')\n"}, "mypy"),
        ({"mypy.ini": "[mypy]\n", "Makefile": "types:\n\tmypy\n"}, "mypy"),
        ({"mypy.ini": "[mypy]\n", "Makefile": "types:\n\tmypy src\n"}, "mypy ."),
    ],
)
def test_mypy_checks_what_the_project_has_it_check(files, command):
    checks = of({"requirements.txt": "mypy\n", **files}).checks
    assert [check.command for check in checks if check.name == "types"] == [command]


def test_a_script_that_changes_files_is_no_check():
    scripts = {"lint": "eslint . --fix", "lint:check": "eslint . --fix-dry-run", "test": "prettier --write . && jest"}
    checks = of({"package.json": manifest(scripts=scripts), "package-lock.json": "{}"}).checks
    assert [check.command for check in checks] == ["npm run --silent lint:check"]


def test_phpunit_tests_where_composer_has_no_script_for_it():
    files = {"composer.json": "{}", "composer.lock": "{}", "phpunit.xml.dist": "<phpunit/>"}
    assert [check.command for check in of(files).checks] == ["vendor/bin/phpunit"]


CASE = "import unittest\n\nclass A(unittest.TestCase):\n    pass\n"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"tests/test_a.py": CASE}, "python3 -m unittest discover -q -s tests"),
        ({"tests/test_a.py": CASE, "tests/__init__.py": ""}, "python3 -m unittest discover -q -s tests -t ."),
        ({"a/tests/test_a.py": CASE, "a/tests/__init__.py": ""}, "python3 -m unittest discover -q -s a/tests"),
        (
            {"a/tests/test_a.py": CASE, "a/tests/__init__.py": "", "a/__init__.py": ""},
            "python3 -m unittest discover -q -s a/tests -t .",
        ),
        ({"scripts/test_a.py": CASE}, ""),
        ({"tests/test_a.py": CASE, "tests/test_b.py": "def test_b():\n    assert 0\n"}, ""),
        ({"test_a.py": CASE}, "python3 -m unittest discover -q"),
        ({"tests/test_a.py": CASE, "Makefile": "test:\n\tx\n"}, "make test"),
        ({"tests/test_a.py": "from unittest.mock import patch\n"}, ""),
        ({"tests/test_a.py": f"import pytest\n{CASE}"}, ""),
        ({"shop/test_a.py": f"from django.test import Client\n{CASE}"}, ""),
        ({"a/test_a.py": CASE, "b/test_b.py": CASE}, ""),
    ],
)
def test_a_project_with_nothing_but_unittest_is_tested_by_it(files, command):
    assert [check.line for check in of(files).checks] == ([command] if command else [])


def test_make_test_is_the_check_where_no_language_names_one():
    assert [check.line for check in of({"Makefile": "all:\n\ntest: all\n\t./t\n"}).checks] == ["make test"]
    assert of({"Makefile": "test := 1\n"}).checks == ()


def test_a_project_below_the_top_with_a_lock_file_of_its_own_is_set_up_in_its_folder():
    files = {"web/package.json": manifest(scripts={"test": "jest"}), "web/package-lock.json": "{}", "go.mod": ""}
    project = of(files)
    assert [(step.tool, step.folder) for step in project.steps] == [("go", ""), ("npm", "web")]
    assert [check.line for check in project.checks if check.folder] == ["cd web && npm run --silent test"]


@pytest.mark.parametrize("folder", ["examples/a", "tests", "node_modules/x", ".hidden", "one/two/three"])
def test_projects_that_are_data_of_another_are_left_alone(folder):
    assert of({f"{folder}/package-lock.json": "{}", f"{folder}/package.json": "{}"}).steps == ()


def test_where_nothing_is_known_one_line_says_so():
    project = of({"README.md": "", "package.json": "[not json", "pyproject.toml": "= broken"})
    assert project.steps == () and project.checks == ()
    assert project.notes == ("no packages to install: no known manifest or lock file",)
