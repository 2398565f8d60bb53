"""Between a client and its provider: what the proxy and `reverie.wrap` have in common.

A request that goes out is the client's own bytes with a list of patches on them; beside it a
shadow session takes the conversation in, so that memory works on it as on any other.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "background_learner": "BackgroundLearner beside",
        "decisions": "DecisionLog Decisions FILE MirrorPosition OutgoingRequest SIZE as_value "
        "chain_seed content content_digest credential digest extend_chain normal of_text "
        "position_line reminder_line result_line rule_line session_line",
        "engine": "EngineOptions InterceptionEngine",
        "identity": "Caller caller_of folder_of kind_of prompt_of reader_of",
        "mirror": "MirrorOptions",
        "mirror_pool": "MOST RequestTails",
        "patches": "InterceptedRequest OutgoingPlan ResultLimits plan render_body",
        "scan": "RequestBody ScanCache scan_body",
        "streams": "event joined_stream",
        "wrap": "WrapOptions WrappedClient",
    },
)
