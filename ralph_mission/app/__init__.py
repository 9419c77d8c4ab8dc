"""The composition roots: from configuration and environment to ports. Only here are adapters combined."""
