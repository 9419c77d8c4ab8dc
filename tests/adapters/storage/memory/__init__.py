"""Stores: the branch, what is remembered beside it, and the copies kept for replay."""
