"""Everything that touches the world, one folder per port."""
