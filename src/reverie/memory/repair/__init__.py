"""Mending a memory folder: from what a check found to edits, each with its reason."""
