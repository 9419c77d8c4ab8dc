"""Publishing texts: shown, approved, sent, recorded."""
