"""What a terminal agent has on top of a session: options, its place, memory and search tools."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "agent": "Agent AgentOptions",
        "builder": "open_agent",
        "mail.abroad": "Abroad own_folder received",
        "mail.lead": "LeadMail",
        "mail.letters": "LeadKeys Letter MAX_TEXT TeammateKeys decode delivered encode",
        "mail.mailbox": "MAX_SET_ASIDE MAX_TAKEN MAX_WAITING Mailbox",
        "mail.nats": "NatsBridge",
        "mail.post": "Post Tray",
        "memory": "AgentMemory open_agent_memory",
        "place": "project_at surroundings thinking_options",
        "recall_tools": "PASSAGE around",
        "subagents.doing": "ASK TAIL doing phrase",
        "subagents.types": "AgentTypes BUILT_IN EXPLORE READ_ONLY find_types is_cheaper",
    },
)
