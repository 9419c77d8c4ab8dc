"""User stories: reading, conversion, checks, judging, and their log."""
