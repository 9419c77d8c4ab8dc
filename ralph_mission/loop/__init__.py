"""How larger work gets done: fresh sessions that wear one hat each. Pure, but for `run`, which speaks to ports."""
