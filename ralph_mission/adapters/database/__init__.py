"""Databases as they are looked at: never written, within a time and a size, and never by an address in any text.

`shapes` and `queries` are the nouns, `prisma_schema` reads a schema. `sql` (SQLAlchemy) and `prisma` (the Prisma
client) are the two that implement `queries.Database`; `opening` imports the one that is wanted.
"""
