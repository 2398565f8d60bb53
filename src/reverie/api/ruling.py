"""Rules of memory for a caller's own loop: which of them a call goes against."""

from __future__ import annotations

from anyio import to_thread

from reverie.api.beginning import Begun
from reverie.api.values import MatchedRule
from reverie.memory.rules.match import CompiledRule
from reverie.memory.rules.telling import told
from reverie.session.rules import ProjectRules
from reverie.wire.reply import ToolCall


async def matched(begun: Begun, call: ToolCall) -> list[MatchedRule]:
    """What speaks against a call; nothing where the session has no memory, or rules are off."""
    session, memories = begun.session, begun.memories
    if memories is None or not session.world.flags.get("rules"):
        return []
    rules = ProjectRules(memories, session.root, session.root)
    found = await to_thread.run_sync(lambda: rules.look(call.name, call.arguments))
    return [_value(rule) for rule in found]


def _value(rule: CompiledRule) -> MatchedRule:
    name, level, text, file, source = (
        str(rule.get(key, "")) for key in ("name", "level", "text", "file", "source")
    )
    return MatchedRule(name, level, text, file, source, told([rule]))
