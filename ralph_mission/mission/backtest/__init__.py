"""What Ralph would have opened in the past, and what became of it: pure, over what observers report."""
