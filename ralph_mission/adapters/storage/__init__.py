"""Storage: memory on its branch, and the files of a loop."""
