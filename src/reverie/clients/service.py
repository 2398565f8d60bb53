"""A proxy that is there when its clients are: started by a hook, or by systemd.

A client whose settings name the proxy fails without it. Claude Code's plugin starts a proxy that is
missing when a session begins; a systemd user unit keeps one running. Nothing here stops one.
"""

from __future__ import annotations

import shlex
import time

from reverie import programs
from reverie.clients.files import ClientSettings
from reverie.clients.proxy_address import PORT, ProxyAddress, known_token, proxy_status

COMMAND = programs.python("reverie.apps.cli", "proxy")
START_SECONDS = 3.0
LOOK_SECONDS = 0.1
WITHOUT = {
    "claude-code": "repeats each request for about three minutes, then reports ECONNREFUSED",
    "codex": "repeats each request for more than a minute before it reports anything",
    "opencode": "repeats each request for more than a minute before it reports anything",
}
"""What a client does while nothing answers at the address in its settings."""
UNIT = """\
[Unit]
Description=Reverie proxy

[Service]
ExecStart={command}
Restart=on-failure
TimeoutStopSec=620

[Install]
WantedBy=default.target
"""


def unit(options: tuple[str, ...]) -> str:
    """Return a systemd user unit that runs the proxy with these options."""
    return UNIT.format(command=shlex.join((*COMMAND, *options)))


def start_missing(clients: ClientSettings, name: str) -> bool:
    """Start the proxy that a client's settings name, where none answers; say whether one does."""
    if name not in clients.installed():
        return False
    port = clients.port(name)
    address = ProxyAddress(port, known_token(clients.project.home))
    if clients.in_place(name, address) is None:
        return False
    if proxy_status(address) is not None:
        return True
    options = () if port == PORT else ("--port", str(port))
    given = {**clients.project.environ, "REVERIE_HOME": str(clients.project.home)}
    programs.detach([*COMMAND, *options], given)
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        time.sleep(LOOK_SECONDS)
        if proxy_status(address) is not None:
            return True
    return False
