"""What a person is told the first time: what is stored where, what runs unasked, what
that may cost, and how each is switched off.

Shown once for each home, on stderr, and never again once it has been seen; a session
that records nothing does not record this either.
"""

from __future__ import annotations

from pathlib import Path

from reverie.apps.cli.show import note
from reverie.errors import StoreError
from reverie.settings import Settings
from reverie.store.files import Folder

MARKER = ".reverie-welcomed"


def text(home: Path, settings: Settings) -> str:
    """The notice, with the places and numbers that hold here."""
    tokens, calls = settings.background_tokens_per_day, settings.background_calls_per_day
    return f"""\
Reverie, first run. What you should know:

Stored, for you alone (files 0600, folders 0700), below {home}:
  projects/*/*.jsonl                  every session, word for word
  projects/*/*/tool-results           results too large for the conversation
  projects/*/*/session-memory         notes on a session, kept while it grows
  projects/*/memory, memory-history   long-term memory in plain files, and every version of it
  history.jsonl                       what you typed at the prompt, for the arrow keys
  settings.json, flags.json, usage/   what you set, and what was spent
  `--private` records nothing. `reverie sessions prune`, when you call it, removes sessions
  older than {settings.retention_days} days. Nothing is sent but to the model you use.

Runs unasked:
  storing large tool results          costs disk space alone
  recall of memories that help        local, no model, some milliseconds a turn
  sealing old rounds into lines       no model; nothing is lost (setting contextPolicy)
  under the policy classic instead:
    session notes                     one call to your model each ~5,000 tokens of conversation
                                      (flag session_memory)
    compaction, when the window fills none where the notes suffice, else one call (setting
                                      autoCompactEnabled)
  learning after a turn               one call to your model a turn (flag extract_memories)
  dreams, which tidy the memory       at most one a day; with a paid model the first one is asked
                                      for (flag dream)
  hooks                               only commands that your own settings name; `--bare` leaves
                                      them out
  Work in the background that asks a model counts against one budget a day, before it is sent:
  {tokens:,} price-weighted tokens and {calls:,} calls (settings backgroundTokensPerDay,
  backgroundCallsPerDay; 0 switches it off). `reverie flags` has a switch for each kind of it.

Your own turns cost what your model's provider asks; `--max-cost N` caps them.
Without a key the embedded model answers: no cost, no network.
"""


def welcome(home: Path, settings: Settings, *, private: bool) -> bool:
    """Show the notice if this home has not seen it; says whether it was shown."""
    if (home / MARKER).exists():
        return False
    note(text(home, settings))
    if not private:
        try:
            with Folder(home) as folder:
                folder.write(MARKER, b"")
        except StoreError as error:
            note(f"reverie: this notice will come again: {error}")
    return True
