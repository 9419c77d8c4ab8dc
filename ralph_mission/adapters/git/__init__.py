"""Git: objects, patches, and the repository's server."""
