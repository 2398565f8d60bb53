from reverie.apps.mcp.server import MemoryServer as MemoryServer
from reverie.apps.mcp.transports import BoundedLines as BoundedLines
from reverie.apps.mcp.transports import TokenGate as TokenGate
from reverie.apps.mcp.transports import serve_http as serve_http
from reverie.apps.mcp.transports import serve_stdio as serve_stdio
