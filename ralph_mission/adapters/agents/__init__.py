"""Who plays the sessions of a loop: any program (`command`), or a script (`scripted`), each a fresh process."""
