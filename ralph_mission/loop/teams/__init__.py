"""Runs with several roles: Ralplan, Ultrawork, Team."""
