"""Beside software of others, which `make test-real` downloads: it knows nothing of what we believe."""
