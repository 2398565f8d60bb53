"""A session in a temporary home, for tests of the session itself."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from reverie.session import Session, open_session
from reverie.testing import ManualClock, ids, tool_definition

TOOLS = [tool_definition("Read"), tool_definition("Bash")]
LARGE = "a line of the log\n" * 4_000


def opened(home: Path, project: Path, **parts: Any) -> AbstractAsyncContextManager[Session]:
    known: dict[str, Any] = {
        "home": home,
        "environ": {"HOME": str(home.parent)},
        "model": "m1",
        "system": "You help.",
        "tools": TOOLS,
        "context": "# notes",
        "options": {"max_tokens": 100},
        "clock": ManualClock(),
        "new_id": ids(parts.pop("prefix", "id")),
    }
    return open_session(project, **{**known, **parts})
