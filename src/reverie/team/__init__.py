"""Team memory: what all who work on one repository share.

`sync` decides what a pull and a push do, purely; `client` speaks to a server, `watch` sees when
files change, `git` does without a server. `database` and `store` are the server's side: plain SQL
on SQLite or PostgreSQL. The server itself is a door, `apps/team`.
"""
