"""What agents can ask while they work, over a protocol of their own."""
