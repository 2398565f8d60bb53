"""Dreaming: a background agent tidies a copy of the memory folder, and what it made is checked
before it counts.

`branch` is the copy and what is known of a dream, on disk. `run` takes the lock, lets the agent
work and judges the outcome. `landing` puts it into the folder in one step that a death cannot
split. `doors` is what a person can do about it. `watch` asks the gates after each turn.
"""
