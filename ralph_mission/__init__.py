"""A repository's caretaker: the model proposes, code disposes."""

__version__ = "0.1.0"
