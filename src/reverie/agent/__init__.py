"""What a terminal agent has on top of a session: options, its place, memory and search tools."""
