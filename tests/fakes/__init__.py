"""Stand-ins that behave like the real thing, over loopback, and refuse what they do not know."""
