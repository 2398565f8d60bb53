"""Between a client and its provider: what the proxy and `reverie.wrap` have in common.

A request that goes out is the client's own bytes with a list of patches on them; beside it a
shadow session takes the conversation in, so that memory works on it as on any other.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "callers": "Caller caller_of folder_of kind_of prompt_of reader_of",
        "decisions": "Decisions Position position_line reminder_line result_line rule_line "
        "session_line",
        "engine": "Engine EngineRules Outgoing",
        "following": "Ends MOST",
        "log": "DecisionLog FILE",
        "outgoing": "Asked OutgoingPlan ResultLimits plan written",
        "scanning": "Body Known UnreadableBody scan",
        "shadow": "ShadowRules",
        "streams": "event joined",
    },
)
