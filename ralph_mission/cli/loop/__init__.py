"""Commands about loops and agents."""
