"""Commands that owners give in a chat."""
