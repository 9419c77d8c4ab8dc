"""Composition roots of what explores code and proves claims about it."""
