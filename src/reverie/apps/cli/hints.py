"""What to do about an error, where the command line can say it better than the library.

The library names no commands; here they are, by the error and the command that met it.
"""

from __future__ import annotations

from reverie.errors import Held, NotFound, ReverieError, StoreError
from reverie.store.files import Changed

_SESSIONS = "`reverie sessions list` shows the ids, with `--all` those of every project"
_MEMORIES = "`reverie memory list`, `memory log` and `memory review list` show what there is"
HINTS: dict[tuple[type[ReverieError], str], str] = {
    **{(NotFound, name): _SESSIONS for name in ("sessions", "cache", "replay", "recall", "chat")},
    (NotFound, "memory"): _MEMORIES,
    (NotFound, "dream"): "`reverie dream status` shows the ids",
    (Held, "dream"): "Wait for it, or stop it with `reverie dream kill`",
    **{
        (StoreError, name): "`reverie trust` shows that file and approves it"
        for name in ("off", "on")
    },
    (Changed, "sessions"): "`--force` overwrites what is there",
    (Changed, "memory"): "Try again; with `export`, `--force` overwrites what is there",
}
