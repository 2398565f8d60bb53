"""What is on disk: confined atomic files, locks that die with their process, the journal.

Everything here is synchronous and knows bytes and names only: no records, no sessions.
"""
