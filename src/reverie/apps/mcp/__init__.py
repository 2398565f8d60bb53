"""The MCP server: a project's memory for any client that speaks the Model Context Protocol."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "server": "MemoryServer",
        "transports": "BoundedLines TokenGate serve_http serve_stdio",
    },
)
