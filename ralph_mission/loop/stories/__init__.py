"""User stories: read, converted, checked, judged, and their log."""
