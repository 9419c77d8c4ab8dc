"""The files a loop lives by, in `.ralph/` of the work tree."""
