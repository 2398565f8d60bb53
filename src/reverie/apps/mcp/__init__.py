"""The MCP server: a project's memory for any client that speaks the Model Context Protocol."""
