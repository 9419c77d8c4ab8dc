"""The forges: where issues, pulls and branches live."""
