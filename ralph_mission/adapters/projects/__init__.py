"""How the looked-after repository is set up, and by which commands it is checked."""
