"""What a terminal agent has on top of a session: options, its place, memory and search tools."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "agent": "Agent AgentOptions",
        "blocking_types": "BlockingAgent BlockingSession",
        "builder": "open_agent",
        "mail.mailbox": "AgentInbox InMemoryQueue LeaderMailboxes MAX_SET_ASIDE MAX_TAKEN "
        "MAX_TAKEN_CHARACTERS MAX_WAITING Mailbox",
        "mail.messages": "AgentMessage LeaderKeys MAX_TEXT TeammateKeys decode delivered_numbers "
        "encode",
        "mail.remote": "NatsBridge RemoteMail own_folder parse_message",
        "subagents.registry": "AgentTypes BUILT_IN EXPLORE MAX_BYTES READ_ONLY find_types "
        "is_cheaper",
        "subagents.runner": "ASK TAIL doing phrase",
        "tools": "recall_tools",
    },
)
