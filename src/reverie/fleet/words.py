"""What the codes of jobs mean, in words, for every door.

The database and `--json` have the code; people get the words. A code that is not known here, of
another version perhaps, is its own word.
"""

from __future__ import annotations

REASONS = {
    # waits
    "held": "another process holds the memory",
    "budget": "no room in the budget until tomorrow (UTC)",
    "unknown-kind": "no worker so far knows this kind of job",
    "worker-gone": "the worker that had it is gone",
    "stopped": "it was stopped, and goes on with the next run",
    "fenced": "a later try has landed",
    # done
    "completed": "completed",
    "waiting": "its changes wait for review",
    "already": "it had landed before",
    "learned": "the session was learned from",
    "replayed": "the session was replayed",
    "fixed": "mended",
    "nothing-to-fix": "there was nothing to mend",
    "synced": "synced",
    # passed over
    "no-memory": "there is no memory",
    "no-session": "its session is gone",
    "transcript-shrank": "its transcript is shorter than when it was planned",
    "not-due": "it is not due any more",
    "not-found": "what it needs is gone",
    "no-team": "no team is set up",
    "cancelled": "somebody cancelled it",
    # failed
    "not-fixed": "it could not be mended",
    "changed-meanwhile": "somebody else wrote meanwhile",
    "dream-failed": "the dream failed",
    "dream-killed": "the dream was stopped",
    "error": "an error that nobody expected",
    # failed with an error of ours, by its name
    "AuthFailed": "the provider does not accept the key, or there is none",
    "Overloaded": "the provider has no room: a rate limit, or its load",
    "Unreachable": "the provider could not be reached",
    "UnknownModel": "the provider has no model of this name",
    "Incomplete": "the model's answer stayed cut off or empty",
    "Refused": "the model refused to answer",
    "PromptTooLong": "the memory is too long for the model's window",
    "ProviderError": "the provider refused or failed",
    "StoreError": "the disk said no",
    "WriteFailed": "the disk did not take a write",
    "PathRefused": "a path in it is not safe",
    "SecretFound": "it holds what looks like a secret",
    "ScanFailed": "nobody can say whether it holds a secret",
    "LaterVersion": "a later version of Reverie wrote it",
    "SettingsError": "a setting cannot be used",
    "InvalidInput": "it was handed something that cannot be used",
    "InvalidMessage": "a message in it cannot be used",
    "ImportFailed": "its session cannot be read",
    "NotAvailable": "this installation cannot do it",
    "ForkRefused": "its dream could not begin",
    "DatabaseAway": "the database did not answer",
}
"""How a try ended, or why a job waits, by its code."""


def in_words(code: str) -> str:
    return REASONS.get(code, code)
