"""The memory file: its value, its text, where it stands, what it learns, when to look again."""
