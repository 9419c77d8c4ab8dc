"""What to do, and whether it may be done. Pure, but for the story in `cycle` and the effects in `execute`."""
