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
        "database": "Database DatabaseAway EXCLUSIVE Row STEPS SqlValue Sqlite Transaction "
        "migrate open_database",
        "folder": "read_files",
        "git_remote": "BRANCH GitRemote",
        "protocol": "BATCH_BYTES BATCH_ENTRIES BEGINNING BODY_BYTES EntryChange EntryVersion "
        "HttpRefusal RemoteState sha256_of",
        "store": "TeamStore TooFast",
        "sync": "SyncMode SyncReport batches plan sync_memory",
        "tokens": "ROWS RefusedRequest Token",
    },
)
