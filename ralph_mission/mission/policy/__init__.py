"""The rules, and the judgement they come to."""
