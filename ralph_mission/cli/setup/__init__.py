"""Commands that set a repository up."""
