"""How a repository is set up, and the commands that check it."""
