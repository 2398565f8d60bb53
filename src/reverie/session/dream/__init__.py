"""Dreaming: a background agent tidies a copy of the memory folder, and what it made is checked
before it counts.

`branch` is the copy and what is known of a dream, on disk. `run` takes the lock, lets the agent
work and judges the outcome. `landing` merges it with what others wrote and puts it into the folder
as one step. `doors` is what a person can do about it. `watch` asks the gates after each turn.
"""
