"""Reviews of our own pull requests by an agent that did not write them."""
