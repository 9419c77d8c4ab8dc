"""Stories beside the cycle, over ports."""
