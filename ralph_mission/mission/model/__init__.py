"""The nouns of a cycle: frozen values without behaviour."""
