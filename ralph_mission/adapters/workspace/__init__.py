"""The workspace of sessions: a clone of the checkout, read by content; judged changes land as a commit."""
