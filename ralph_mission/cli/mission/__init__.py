"""Commands about cycles, memory and the local forge."""
