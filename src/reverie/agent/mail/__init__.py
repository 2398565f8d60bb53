"""Messages between agents: in one process, by files, by a socket, over a bridge."""
