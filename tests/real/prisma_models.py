"""Large schemas of Prisma as they are found in the wild, made up from a seed: every mapping, over several files."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

MODELS = 70
FILES = 5
HEAD = """datasource db {
  provider = "postgresql"
  url      = env("DATABASE_URL") // a { brace in a comment
  schemas  = ["core", "gov"]
}
"""
TYPES = ("Int", "BigInt", "Float", "Decimal", "String", "Boolean", "DateTime", "Json", "Bytes")
NATIVE = {
    "String": "@db.VarChar(20)",
    "Decimal": "@db.Decimal(38, 18)",
    "DateTime": "@db.Timestamptz(6)",
    "Json": "@db.JsonB",
}
ENUMS = 6
ENUM = """enum Enum{number} {{
  ONE @map("one {number} // x")
  TWO
  T_3 @map("}}")
  @@map("enum_{number}_t")
  @@schema("core")
}}
"""


@dataclass
class _Model:
    number: int
    schema: str
    key: tuple[str, ...]
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        ids = [f'  {name} Int @map("the_{name.lower()}")' for name in self.key]
        whole = [f'  @@id([{", ".join(self.key)}], name: "whole")'] if len(self.key) > 1 else []
        ids = ids if whole else [f"{ids[0]} @id @default(autoincrement())"]
        name = f"Model{self.number}"
        end = [*whole, f'  @@map("model_{self.number}s")', f'  @@schema("{self.schema}")', "}", ""]
        return "\n".join([f"/// {name} {{", f"model {name} {{", *ids, *self.lines, *end])


def schema(seed: int, generator: str) -> dict[str, str]:
    """Texts by the names of files; `generator` is the block of who makes something of it."""
    dice = Random(seed)
    models = [
        _Model(number, dice.choice(("core", "gov")), ("idA", "idB") if dice.random() < 0.3 else ("id",))
        for number in range(MODELS)
    ]
    for one in models:
        one.lines += [_field(dice, place) for place in range(dice.randrange(3, 9))]
    for one in models[1:]:
        _relate(dice, one, models[dice.randrange(one.number)])
    texts = [one.text() for one in models] + [ENUM.format(number=number) for number in range(ENUMS)]
    dice.shuffle(texts)
    return {"schema.prisma": HEAD + generator, **{f"part{n}.prisma": "\n".join(texts[n::FILES]) for n in range(FILES)}}


def _field(dice: Random, place: int) -> str:
    kind = dice.choice((*TYPES, *(f"Enum{number}" for number in range(ENUMS))))
    many = dice.choice(("", "", "?", "[]"))
    said = [f'@map("column_{place}")'] if dice.random() < 0.8 else []
    said += [NATIVE[kind]] if kind in NATIVE and dice.random() < 0.5 else []
    said += [r'@default("a // \" ) @map(\"x\")")'] if kind == "String" and many == "" and dice.random() < 0.5 else []
    said += ["@unique"] if kind in ("Int", "BigInt") and many != "[]" and dice.random() < 0.3 else []
    return f'  field{place}   {kind}{many} {" ".join(said)} // c {{ }} "'


def _relate(dice: Random, one: _Model, other: _Model) -> None:
    """Towards an earlier model: many to many, or many to one by a key of one or two columns."""
    label = f"R{one.number}_{other.number}" if dice.random() < 0.5 else ""
    opposite = f' @relation("{label}")' if label else ""
    if dice.random() < 0.2 and len(one.key) == len(other.key) == 1:
        one.lines.append(f"  many{other.number} Model{other.number}[]{opposite}")
        other.lines.append(f"  many{one.number} Model{one.number}[]{opposite}")
        return
    maybe = dice.choice(("", "?"))
    ours = [f"to{other.number}{name}" for name in other.key]
    one.lines += [f'  {name} Int{maybe} @map("fk_{name.lower()}")' for name in ours]
    named = f'{dice.choice(("name: ", ""))}"{label}", ' if label else ""
    keys = f"{named}fields: [{', '.join(ours)}], references: [{', '.join(other.key)}]"
    rest = f'onDelete: NoAction, onUpdate: NoAction, map: "fk_{one.number}_{other.number}"'
    one.lines.append(f"  to{other.number} Model{other.number}{maybe} @relation({keys}, {rest})")
    other.lines.append(f"  of{one.number} Model{one.number}[]{opposite}")
