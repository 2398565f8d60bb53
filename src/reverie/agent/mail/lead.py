"""The mail of a lead: the folder of its session's mailboxes, its own among them, and the keys.

The session's master key is made once and kept beside the mailboxes, where its user alone can read:
a letter outlives the process that it was sent in. Who can read that file can sign as anybody.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from reverie.agent.mail.letters import LEAD, LeadKeys, Letter
from reverie.agent.mail.mailbox import Mailbox
from reverie.errors import NotFound
from reverie.store.files import Changed, Folder
from reverie.world import Say

MAIL = "mail"
KEY = "key"
KEY_BYTES = 32


class LeadMail:
    """All mailboxes of one session, as its lead opens them."""

    def __init__(self, session: Path, say: Say) -> None:
        self.folder = Folder(session / MAIL)
        self.keys = LeadKeys(_master(self.folder))
        self.own = Mailbox(self.folder, LEAD, self.keys, say)

    def put(self, letter: Letter) -> Letter:
        """Send to whomever it is for."""
        return Mailbox(self.folder, letter.to, self.keys).put(letter)

    def close(self) -> None:
        self.folder.close()


def is_there(session: Path) -> bool:
    """Whether a session had mail before."""
    return (session / MAIL / KEY).exists()


def _master(folder: Folder) -> bytes:
    made = secrets.token_bytes(KEY_BYTES)
    try:
        found = folder.read(KEY, 2 * KEY_BYTES)
    except NotFound:
        try:
            folder.write(KEY, made, exclusive=True)
            return made
        except Changed:  # somebody else was quicker
            found = folder.read(KEY, 2 * KEY_BYTES)
    if len(found) != KEY_BYTES:  # damaged: what was signed with it is lost either way
        folder.write(KEY, made)
        return made
    return found
