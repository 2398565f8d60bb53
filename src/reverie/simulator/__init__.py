"""A simulated provider: prompt cache, window, thinking binding, faults, three wire formats.

`Engine` is the provider in process, `SimulatedModel` the same as a `world.Model`, and
`reverie.simulator.server` puts it on a local port. It follows the written rules of the
real providers, keeps to the clock it is given, and reaches nothing outside.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "answers": "Answerer Given Script SimulatedAnswer answer call from_model last_text load "
        "script thinking_block",
        "anthropic_api": "messages",
        "context_management": "CLEARED",
        "engine": "Engine",
        "faults": "FaultPlan HttpPayload InjectedFault Plan befallen cut error from_json garbled "
        "page raw slow stream_events",
        "ledger": "Ledger LoggedRequest",
        "model": "SimulatedModel",
        "openai_api": "chat",
        "openai_responses": "responses",
        "profiles": "ANTHROPIC ApiError CACHESIM CATALOGUE LIFETIMES ModelSpec Models OPENAI "
        "TooLong",
        "prompt_cache": "AutomaticCache CachedBlock Charge PromptCache digest prompt",
        "server": "serve serving",
        "validation": "check",
    },
)
