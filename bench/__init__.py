"""Benchmarks; see `run.py`."""
