"""What every door may call: forgetting, moving in and out, retention, the doctor, reports.

It works things out and prints nothing.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "cache": "cache_report place_value",
        "check": "LARGEST set_level",
        "derived": "NAME",
        "doctor": "EXTRAS",
        "forget": "ForgetReport ForgetRun",
        "install": "CLIENTS",
        "installed": "ClientSettings",
        "memory_index": "COUNTED MemoryQuery",
        "memory_transfer": "ImportCandidate exported_files import_file restore",
        "moving_in": "MAX_WAITING exported items_in time_of",
        "plugin": "plugin_files",
        "projects": "find_project home_projects project_key project_name",
        "proxy_address": "ProxyAddress known_token",
        "savings": "Savings",
        "session_index": "PAGE",
        "stats": "project_stats",
        "tasks": "TaskOutcome TaskRun entered",
        "timeline": "KINDS kinds_of",
        "transfer": "lines_of",
    },
)
