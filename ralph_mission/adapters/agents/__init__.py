"""The agents of a loop's sessions: any program (`command`), or a script (`scripted`), each a fresh process."""
