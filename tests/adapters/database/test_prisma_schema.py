"""Schemas of Prisma as people write them, over several files, with every mapping there is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph_mission.adapters.database.model import Catalog, Column, Relation, Shape, Through, drift
from ralph_mission.adapters.database.prisma_schema import parse
from ralph_mission.errors import UserError

MAIN = r"""
datasource db {
  provider = "postgresql"
  url      = env("DATABASE_URL") // a { brace in a comment
  schemas  = ["public", "chain"]
}
generator client {
  provider        = "prisma-client-js"
  previewFeatures = ["multiSchema", "views"]
}

/// Documented: model Ghost { id Int }
/* model Other {
   id Int } */
model Chain {
  id        Int      @id @default(autoincrement())
  name      String   @unique @db.VarChar(200) // ends with "quotes {"
  note      String   @default("a \"quoted\" // not a comment } @map(\"no\")")
  aprs      Apr[]
  parent    Chain?   @relation("Tree", fields: [parentId], references: [id])
  parentId  Int?     @map("parent_id")
  children  Chain[]  @relation("Tree")
  tags      Tag[]
  watchers  Tag[]    @relation("Watch")
  friends   Chain[]  @relation("Friends")
  friendOf  Chain[]  @relation("Friends")

  @@map("chains")
  @@schema("chain")
}

model Apr {
  chainId   Int      @map("chain_id")
  createdAt DateTime @default(dbgenerated("now() AT TIME ZONE 'UTC'")) @map(name: "created_at") @db.Timestamptz(6)
  value     Decimal  @db.Decimal(
    78,
    18
  )
  status    Status   @default(PENDING)
  raw       Json?
  labels    String[]
  search    Unsupported("tsvector")?
  big       BigInt?
  chain     Chain    @relation(
    fields: [chainId],
    references: [id],
    onDelete: Cascade
  )
  proofs    Proof[]

  @@id([chainId, createdAt], map: "apr_pk")
  @@index([value(ops: raw("x"), sort: Desc), status], type: BTree)
  @@map(name: "apr_values")
  @@schema("public")
}
"""
REST = """
enum Status {
  PENDING   @map("pending")
  DONE // over
  @@map("status_t")
  @@schema("public")
}
model Proof {
  id String @id @db.Uuid
  aprChain Int
  aprAt DateTime
  apr Apr @relation(fields: [aprChain, aprAt], references: [chainId, createdAt])
  @@schema("public")
}
model Tag {
  key String @id
  chains Chain[]
  watched Chain[] @relation("Watch")
  @@map("tags")
  @@schema("chain")
}
view Ranking {
  chain Int @unique
  total Decimal?
  @@map("ranking_v")
  @@schema("public")
}
"""


@pytest.fixture(scope="module")
def catalog():
    return parse({"a.prisma": MAIN, "b.prisma": REST}, "prisma/")


def test_models_and_views_are_found_either_way(catalog):
    assert [one.name for one in catalog.shapes] == ["Chain", "Apr", "Proof", "Tag", "Ranking"]
    for name in ("Apr", "apr_values", "public.apr_values"):
        assert catalog.shape(name).place == "public.apr_values"
    with pytest.raises(UserError, match="no model or table aprvalues") as caught:
        catalog.shape("aprvalues")
    assert caught.value.next_step == "did you mean apr_values?"


def test_columns_have_both_names_and_their_type(catalog):
    apr = catalog.shape("Apr")
    assert {one.name: (one.column, one.type) for one in apr.columns} == {
        "chainId": ("chain_id", "int"),
        "createdAt": ("created_at", "time"),
        "value": ("value", "decimal"),
        "status": ("status", "enum"),
        "raw": ("raw", "json"),
        "labels": ("labels", "text"),
        "search": ("search", "other"),
        "big": ("big", "int"),
    }
    assert apr.key == ("chainId", "createdAt")
    assert apr.column("chain_id") is apr.column("chainId")
    assert apr.column("status").values == (("PENDING", "pending"), ("DONE", "DONE"))
    assert [one.name for one in apr.columns if one.many] == ["labels"]
    assert [one.name for one in apr.columns if one.nullable] == ["raw", "search", "big"]
    assert catalog.shape("Ranking").key == ("chain",)


def test_relations_have_their_keys_from_either_side(catalog):
    chain, apr, proof = (catalog.shape(name) for name in ("Chain", "Apr", "Proof"))
    assert apr.relation("chain") == Relation("chain", "Chain", False, (("chainId", "id"),))
    assert chain.relation("aprs") == Relation("aprs", "Apr", True, (("id", "chainId"),))
    assert proof.relation("apr").pairs == (("aprChain", "chainId"), ("aprAt", "createdAt"))
    assert apr.relation("proofs").pairs == (("chainId", "aprChain"), ("createdAt", "aprAt"))
    assert chain.relation("parent") == Relation("parent", "Chain", False, (("parentId", "id"),))
    assert chain.relation("children") == Relation("children", "Chain", True, (("id", "parentId"),))


def test_many_to_many_goes_through_the_table_that_prisma_keeps(catalog):
    chain, tag = catalog.shape("Chain"), catalog.shape("Tag")
    assert chain.relation("tags").through == Through("_ChainToTag", "chain", "A", "B")
    assert tag.relation("chains").through == Through("_ChainToTag", "chain", "B", "A")
    assert tag.relation("chains").pairs == (("key", "id"),)
    assert tag.relation("watched").through.table == "_Watch"
    assert chain.relation("friendOf").through == Through("_Friends", "chain", near="B", far="A")  # the first by name
    assert chain.relation("friends").through == Through("_Friends", "chain", near="A", far="B")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model A {\n id Int @id\n b Bee\n}", "A.b has the unknown type Bee"),
        ("model A {\n id Int @id\n", "line 3: the end of the file"),
        ("model A {\n id Int @id )\n}", r"line 2: \) is not expected"),
        ("model A {\n id Int @id\n}\nmodel A {\n}", "declares A twice"),
        ("model A {\n id Int @id\n b B\n}\nmodel B {\n id Int @id\n}", "A.b has no opposite in B"),
        ("model A {\n id Int @id @x(" + "[" * 100, "not expected"),
        ("model A {\n a A? @relation(fields: [c], references: [id])\n id Int @id\n}", "A.c, which is not a field"),
    ],
)
def test_what_is_wrong_with_a_schema_is_one_line(text, said):
    with pytest.raises(UserError, match=said):
        parse({"s.prisma": text}, "s.prisma")


@given(st.text(alphabet='model A{}()[]@"\\:,?.\n/*i1-', max_size=80))
def test_no_text_does_worse_than_trouble(text):
    try:
        parse({"s": "model A {\n" + text}, "s")
    except UserError as problem:
        assert "\n" not in problem.what


def column(name, kind="int", **more):
    return Column(name, name, kind, **more)


def test_a_schema_and_its_database_that_differ_are_named_on_a_line_each():
    wanted = Catalog(
        (
            Shape("Apr", "aprs", "", (Column("chainId", "chain_id", "int"), column("value", "decimal"))),
            Shape("Chain", "chains", "", (column("id"), column("state", "enum", values=(("ON", "on"),)))),
            Shape("Gone", "gones", "", ()),
        ),
        "schema.prisma",
    )
    actual = Catalog(
        (
            Shape("aprs", "aprs", "public", (column("chainid"), column("value", "text"))),
            Shape("chains", "chains", "public", (column("id"), column("state", "enum", values=(("off", "off"),)))),
        )
    )
    assert list(drift(wanted, actual)) == [
        "schema.prisma: field Apr.chainId is column aprs.chain_id, which the database lacks; did you mean chainid?",
        "schema.prisma: field Apr.value is column aprs.value of type decimal, which in the database is text",
        "schema.prisma: field Chain.state is column chains.state and may be on, which its type in the database lacks",
        "schema.prisma: model Gone is table gones, which the database lacks; known here: aprs, chains",
    ]
    assert not list(drift(actual, actual))
