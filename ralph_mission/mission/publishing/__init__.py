"""Texts that are published: shown, approved, sent, remembered."""
