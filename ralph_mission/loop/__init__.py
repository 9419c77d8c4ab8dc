"""The agent loop: fresh sessions that wear one hat each. Pure, except for what talks to ports."""
