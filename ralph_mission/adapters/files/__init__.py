"""Files as everything of ours writes, locks and finds them."""
