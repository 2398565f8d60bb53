"""Other programs' settings: installed, restored, and the plugin of Claude Code."""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "files": "ClientSettings",
        "install": "CLIENTS",
        "plugin": "plugin_files",
        "proxy_address": "ProxyAddress known_token proxy_status",
        "service": "start_missing unit",
    },
)
