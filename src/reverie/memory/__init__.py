"""The public `Memory`, and all that can be done to one."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "agent_memory": "AgentMemory open_agent_memory",
        "async_memory": "AsyncMemory",
        "check": "LARGEST set_level",
        "exports": "items_in read_export time_of",
        "forget": "ForgetReport ForgetRun",
        "importers": "MAX_WAITING",
        "tasks": "TaskOutcome TaskRun enter_memory",
        "transfer": "ImportCandidate exported_files import_file restore",
    },
)
