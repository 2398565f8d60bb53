from reverie.apps.mcp.server import MemoryServer as MemoryServer
from reverie.apps.mcp.transports import BoundedLines as BoundedLines
