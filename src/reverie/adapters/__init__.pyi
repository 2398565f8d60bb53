from reverie.adapters.anthropic import AsyncMemoryTool as AsyncMemoryTool
from reverie.adapters.anthropic import MemoryTool as MemoryTool
from reverie.adapters.claude_agent import with_reverie as with_reverie
from reverie.adapters.langchain import ReverieMiddleware as ReverieMiddleware
from reverie.adapters.langgraph_store import ReverieStore as ReverieStore
from reverie.adapters.openai_agents import ReverieSession as ReverieSession
from reverie.adapters.pydantic_ai import Reverie as Reverie
from reverie.adapters.telemetry import enable as enable
