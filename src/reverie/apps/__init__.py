"""The doors: each turns one way of asking into calls on a session."""
