"""Background work past one machine: a plan of jobs, worked by any number of hosts.

On one host `local` works the plan in this process, with a SQLite file and no server. Past it the
jobs go through procrastinate on PostgreSQL (`engine`): the engine schedules and retries, and the
landing in the memory has the last word. Nothing of the extra is imported before it is used.
"""
