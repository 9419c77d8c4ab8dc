"""What `ralph doctor` looks at."""
