"""Observes issues, pull requests and how the project fares."""
