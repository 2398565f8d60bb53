"""Layer 4 in a session: who writes a summary, when, and what is restored behind it."""
