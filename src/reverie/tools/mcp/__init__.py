"""MCP servers of others, as tools of our agent. Loaded where a server is configured."""
