"""A repository's dependencies, their registries and advisories: lock files, indexes, OSV."""
