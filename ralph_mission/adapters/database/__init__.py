"""Read-only access to databases, with limits of time and size, and without connection URLs in any text.

`model` has the nouns, `prisma.schema` reads a Prisma schema, `statements` writes the one SELECT. `sql` (SQLAlchemy) and
`prisma.client` (the Prisma client) send it and implement `model.Database`; `opening` imports the one that is wanted.
"""
