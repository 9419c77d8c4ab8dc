"""The Prisma client for Python as a backend."""
