"""Where memory is kept: a branch of the repository, written by git plumbing alone."""
