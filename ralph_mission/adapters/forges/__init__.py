"""Forges: they hold issues, pull requests and branches."""
