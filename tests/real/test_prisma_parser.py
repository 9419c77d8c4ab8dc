"""Our reader of Prisma schemas beside Prisma's own: a large schema over several files is read as the same thing."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ralph_mission.adapters.database.model import Relation, Shape
from ralph_mission.adapters.database.prisma_schema import SCALARS, parse
from tests.adapters.database import world
from tests.adapters.database.prisma_place import NODE, PLACE
from tests.real.prisma_models import FILES, MODELS, schema

pytestmark = pytest.mark.real  # needs Node.js and Prisma

SEEDS = range(4)
# Prisma hands what its own parser understood to whoever generates something from a schema.
LISTENER = """import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    result = None
    if asked["method"] == "getManifest":
        result = {{"manifest": {{"prettyName": "x", "defaultOutput": "out", "requiresEngines": ["queryEngine"]}}}}
    else:
        with open({told!r}, "w") as file:
            json.dump(asked["params"]["dmmf"]["datamodel"], file)
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": result}}), file=sys.stderr, flush=True)
"""
GENERATOR = """generator listener {{
  provider        = "{program}"
  previewFeatures = ["multiSchema", "prismaSchemaFolder", "views"]
}}
"""


def official(folder: Path, files: dict[str, str]) -> dict[str, Any]:
    """What Prisma understands of a schema."""
    places = folder / "schema"
    places.mkdir()
    for name, text in files.items():
        (places / name).write_text(text)
    nothing = folder / "engine"
    nothing.write_text("#!/bin/sh\nexit 1\n")  # engines are named, or they would be downloaded; none is run
    nothing.chmod(0o755)
    environment = {
        "PATH": f"{NODE}:/usr/bin:/bin",
        "HOME": str(folder),
        "DATABASE_URL": "postgresql://nobody@localhost/nothing",
        "PRISMA_CLI_QUERY_ENGINE_TYPE": "binary",
        "PRISMA_QUERY_ENGINE_BINARY": str(nothing),
        "PRISMA_SCHEMA_ENGINE_BINARY": str(nothing),
        "PRISMA_HIDE_UPDATE_MESSAGE": "1",
        "CHECKPOINT_DISABLE": "1",
    }
    command = [str(NODE / "node"), str(PLACE / "node_modules" / "prisma" / "build" / "index.js"), "generate"]
    done = subprocess.run(
        [*command, "--schema", str(places)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said: dict[str, Any] = json.loads((folder / "told.json").read_text())
    return said


def listener(folder: Path) -> str:
    """The block of a generator that writes down what it is told."""
    script, program = folder / "listener.py", folder / "listener"
    script.write_text(LISTENER.format(told=str(folder / "told.json")))
    program.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, str(script)])}\n")  # a path may hold a space
    program.chmod(0o755)
    return GENERATOR.format(program=program)


def by_prisma(said: dict[str, Any]) -> dict[str, Any]:
    """Its description in words that both have."""
    values = {
        one["name"]: tuple((v["name"], v.get("dbName") or v["name"]) for v in one["values"]) for one in said["enums"]
    }
    models = {one["name"]: one for one in said["models"]}
    return {name: _model(one, models, values) for name, one in models.items()}


def _model(model: dict[str, Any], models: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    fields = model["fields"]
    single = tuple(one["name"] for one in fields if one["isId"])
    return {
        "table": model["dbName"] or model["name"],
        "key": tuple(model["primaryKey"]["fields"]) if model["primaryKey"] else single,
        "columns": {one["name"]: _column(one, values) for one in fields if one["kind"] != "object"},
        "relations": {one["name"]: _relation(model, one, models) for one in fields if one["kind"] == "object"},
    }


def _column(one: dict[str, Any], values: dict[str, Any]) -> tuple[Any, ...]:
    kind = "enum" if one["kind"] == "enum" else SCALARS[one["type"]]
    maybe = not one["isRequired"] and not one["isList"]
    return (
        one.get("dbName") or one["name"],
        kind,
        one["isList"],
        maybe,
        one["isId"] or one["isUnique"],
        values.get(one["type"], ()),
    )


def _relation(model: dict[str, Any], one: dict[str, Any], models: dict[str, Any]) -> tuple[Any, ...]:
    """Target, many or not, and by which keys; between two lists, the name of the table between."""
    pairs = tuple(zip(one["relationFromFields"], one["relationToFields"], strict=True))
    if not pairs:
        opposite = next(
            other
            for other in models[one["type"]]["fields"]
            if other.get("relationName") == one["relationName"] and not (model["name"] == one["type"] and other is one)
        )
        pairs = tuple(zip(opposite["relationToFields"], opposite["relationFromFields"], strict=True))
    return one["type"], one["isList"], pairs or f"_{one['relationName']}"


def by_us(shapes: tuple[Shape, ...]) -> dict[str, Any]:
    """Ours in the same words."""
    return {
        shape.name: {
            "table": shape.table,
            "key": shape.key,
            "columns": {
                c.name: (c.column, c.type, c.many, c.nullable and not c.many, c.unique, c.values) for c in shape.columns
            },
            "relations": {one.name: _ours(one) for one in shape.relations},
        }
        for shape in shapes
    }


def _ours(one: Relation) -> tuple[Any, ...]:
    return one.target, one.many, one.through.table if one.through else one.pairs


@pytest.mark.parametrize("seed", SEEDS)
def test_a_large_schema_is_read_as_prisma_reads_it(tmp_path: Path, seed: int) -> None:
    if not (PLACE / "node_modules" / "prisma").is_dir():
        pytest.skip("Prisma is not here: make test-real installs it")
    files = schema(seed, listener(tmp_path))
    ours = parse(files, "schema")
    theirs = by_prisma(official(tmp_path, files))
    assert len(theirs) == len(ours.shapes) == MODELS and len(files) == FILES + 1
    found = by_us(ours.shapes)
    for name, model in theirs.items():
        assert found[name] == model, name
    said = {line.split('"')[1] for text in files.values() for line in text.splitlines() if "@@schema" in line}
    assert {shape.schema for shape in ours.shapes} == said == {"core", "gov"}


def test_the_schema_of_the_other_tests_is_read_as_prisma_reads_it(tmp_path: Path) -> None:
    if not (PLACE / "node_modules" / "prisma").is_dir():
        pytest.skip("Prisma is not here: make test-real installs it")
    start, _, end = world.MAIN.partition("generator client {")
    main = start + listener(tmp_path) + end.partition("}\n")[2]
    files = {"schema.prisma": main, "government.prisma": world.GOVERNMENT}
    assert by_us(parse(files, "schema").shapes) == by_prisma(official(tmp_path, files))
