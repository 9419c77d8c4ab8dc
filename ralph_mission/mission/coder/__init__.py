"""Missions that a coding agent carries out."""
