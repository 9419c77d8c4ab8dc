"""The nouns of a loop: frozen values without behaviour."""
