"""What the embedded model answers when somebody talks to it."""
