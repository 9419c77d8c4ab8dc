"""The issue agent: labelled issues become pull requests."""
