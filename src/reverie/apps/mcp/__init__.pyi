from reverie.apps.mcp.server import MemoryServer as MemoryServer
from reverie.apps.mcp.stdio import BoundedLines as BoundedLines
