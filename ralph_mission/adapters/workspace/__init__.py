"""Where sessions work: a clone of the checkout, read by content; what was judged in it lands as a commit."""
