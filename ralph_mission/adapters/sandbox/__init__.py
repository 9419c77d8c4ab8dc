"""Foreign processes: limited, sandboxed, with a relay as their only network."""
