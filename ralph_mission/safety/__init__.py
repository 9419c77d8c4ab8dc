"""Inspection of patches, text and secrets. Pure; imports nothing of ours."""
