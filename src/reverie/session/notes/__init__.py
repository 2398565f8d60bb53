"""Layer 3 in a session: notes taken along the way."""
