"""The prompts of sessions."""
