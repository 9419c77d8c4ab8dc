"""The storage of memory: a branch of the repository, written only by git plumbing."""
