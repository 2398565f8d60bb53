"""Team memory: what all who work on one repository share.

`sync` decides what a pull and a push do, purely; `client` speaks to a server, `watch` sees when
files change, `git` does without a server. `database` and `store` are the server's side: plain SQL
on SQLite or PostgreSQL. The server itself is a door, `apps/team`.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "backup": "KIND read_backup write_backup",
        "client": "Hostile Offline Permanent ServerAnswer Stale TeamClient",
        "database": "Database DatabaseAway EXCLUSIVE Row SqlValue Sqlite Transaction open_database",
        "folder": "read_files",
        "git": "BRANCH GitRemote",
        "migrations": "STEPS migrate",
        "refusals": "ROWS RefusedRequest",
        "round": "SyncReport",
        "store": "TeamStore TooFast",
        "sync": "SyncMode batches plan",
        "tokens": "Token",
        "values": "BATCH_BYTES BATCH_ENTRIES BEGINNING BODY_BYTES Draft HttpRefusal KeptVersion "
        "RemoteState sha256_of",
        "watch": "changes keep_pushing",
    },
)
