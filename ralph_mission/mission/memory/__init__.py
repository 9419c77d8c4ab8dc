"""The memory file: its value, its text, its position, learning, and the schedule."""
