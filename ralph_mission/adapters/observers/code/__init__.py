"""Observes the code of one commit."""
