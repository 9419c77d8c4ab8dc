"""How GitHub writes things down as JSON."""
