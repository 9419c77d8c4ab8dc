"""Composition roots for exploring code and proving claims about it."""
