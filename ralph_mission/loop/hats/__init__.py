"""Hats and the patterns in which they take turns."""
