"""Layer 5 in a session: what is worth keeping, written down after a turn."""
