"""What a repository depends on, what its registries have, what is known against it: lock files, indexes, advisories."""
