"""From ranked findings to proposals, every text final."""
