"""Foreign processes: bounded, in a sandbox, with no network but a relay."""
