"""What Ralph would have opened in the past, and the results: pure, over observers' reports."""
