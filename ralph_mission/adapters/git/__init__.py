"""The only owners of subprocess and, later, of HTTP."""
