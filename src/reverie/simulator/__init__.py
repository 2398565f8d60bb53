"""A simulated provider: prompt cache, window, thinking binding, faults, three wire formats.

`Engine` is the provider in process, `SimulatedModel` the same as a `world.Model`, and
`reverie.simulator.server` puts it on a local port. It follows the written rules of the
real providers, keeps to the clock it is given, and reaches nothing outside.
"""

from __future__ import annotations

from reverie.lazy import offered
from reverie.simulator.answers import (
    Answerer,
    Script,
    SimulatedAnswer,
    call,
    from_model,
    load,
    script,
    thought,
)
from reverie.simulator.cache import CachedBlock, Charge, PromptCache
from reverie.simulator.catalogue import CATALOGUE, Models, ModelSpec
from reverie.simulator.engine import Answered, Engine
from reverie.simulator.faults import FaultPlan, InjectedFault
from reverie.simulator.ledger import Bill, Ledger, Logged
from reverie.simulator.model import SimulatedModel
from reverie.simulator.profiles import ANTHROPIC, CACHESIM, OPENAI, PROFILES, Profile
from reverie.simulator.refusals import ApiError, TooLong
from reverie.simulator.response import SimulatedResponse

__all__ = [
    "ANTHROPIC",
    "CACHESIM",
    "CATALOGUE",
    "OPENAI",
    "PROFILES",
    "Answered",
    "Answerer",
    "ApiError",
    "Bill",
    "CachedBlock",
    "Charge",
    "Engine",
    "FaultPlan",
    "InjectedFault",
    "Ledger",
    "Logged",
    "ModelSpec",
    "Models",
    "Profile",
    "PromptCache",
    "Script",
    "SimulatedAnswer",
    "SimulatedModel",
    "SimulatedResponse",
    "TooLong",
    "call",
    "from_model",
    "load",
    "script",
    "thought",
]

__getattr__ = offered(
    __name__,
    {
        "answers": "Given answer last_text",
        "cache": "AutomaticCache",
        "checks": "check",
        "edits": "CLEARED",
        "faults": "Plan cut error from_json garbled page raw slow",
        "profiles": "LIFETIMES",
        "prompt": "digest",
        "server": "serve serving",
        "wire": "Sending befallen streamed",
    },
)
