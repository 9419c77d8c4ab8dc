"""The schema that our client is made of: the same tables under names of ours, and nothing that somebody wrote."""

from __future__ import annotations

import re

from ralph_mission.adapters.database.prisma.derived import Names, derive_schema
from ralph_mission.adapters.database.prisma.schema import parse
from tests.adapters.database import world

HOSTILE = '''
datasource db { provider = "postgresql" url = env("OTHER") }
generator evil { provider = "sh -c 'touch here'" output = "../../../etc" }
/// """ + __import__("os").system("true") + """
model class {
  import  Int     @id @default(autoincrement()) /// """ evil
  order_by String? @unique(map: "x") @db.VarChar(20) @default("a } \\" b")
  json    Json    @default("{}")
  parts   def[]
  old     Unsupported("circle")?
  @@index([order_by(ops: raw("text_pattern_ops"))], type: Gin)
}
model def {
  a Int
  b Int
  of class[]
  @@id([a, b], name: "both", map: "pk")
  @@map("strange \\" name")
}
'''


def test_the_tables_stay_the_same():
    text = derive_schema(world.FILES, world.SCHEMA)
    made = parse({"derived": text}, "derived")
    names = Names.of(world.SCHEMA)
    for shape in world.SCHEMA.shapes:
        ours = made.shape(names.model(shape))
        assert (ours.place, len(ours.key)) == (shape.place, len(shape.key))
        for column in shape.columns:
            found = ours.column(names.field(shape, column.name))
            assert (found.column, found.type, found.nullable) == (column.column, column.type, column.nullable)
            assert [stored for _, stored in found.values] == [stored for _, stored in column.values]
        for relation in shape.relations:
            found = ours.relation(names.field(shape, relation.name))
            assert (found.many, found.through) == (relation.many, relation.through)
            assert found.target == names.models[relation.target]


def test_nothing_that_somebody_wrote_is_a_name_or_a_program():
    files = {"schema.prisma": HOSTILE}
    text = derive_schema(files, parse(files, "schema.prisma"))
    assert not re.search(r"system|evil|touch|etc|OTHER|default|index|Unsupported|ops", text)
    unquoted = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert not re.search(r"\b(class|def|import|order_by|json)\b", unquoted)
    assert '@@map("strange \\" name")' in text
    assert "@@id([f000, f001])" in text


def test_equal_schemas_make_equal_texts():
    turned = dict(reversed(world.FILES.items()))
    assert derive_schema(turned, parse(turned, "prisma")) == derive_schema(world.FILES, world.SCHEMA)
