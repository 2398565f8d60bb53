"""Whose memory is meant: a project, in it a user, and for either an agent.

An address is the same however it is written down later: a relative path is made whole when it is
given. Parts that are left out are wider. Nothing is opened or made.
"""

from __future__ import annotations

import os

from reverie.errors import InvalidInput
from reverie.light import dataclass


@dataclass(frozen=True, slots=True)
class Address:
    """`folder` is the project's, or "" where the project is a name; without either it is the
    person who runs the process."""

    folder: str = ""
    name: str = ""
    user: str = ""
    agent: str = ""

    @classmethod
    def of(cls, project: str | os.PathLike[str], user: str, agent: str) -> Address:
        """A project is a folder or, where there is none, a name."""
        for part, given in (("user", user), ("agent", agent)):
            if not isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput(
                    f"`{part}` is a text",
                    where=type(given).__name__,
                    do=f"Give its name as {part}=",
                )
        text = os.fspath(project) or "."
        is_path = not isinstance(project, str) or text.startswith(("/", "./", "../"))
        if is_path or text in (".", "..") or os.path.isdir(text):
            return cls(os.path.abspath(text), "", user, agent)
        return cls("", text, user, agent)

    @property
    def scope(self) -> str:
        """The part that makes it narrow."""
        if self.agent or self.user:
            return "agent" if self.agent else "user"
        return "project" if self.folder or self.name else "personal"

    def outwards(self) -> tuple[Address, ...]:
        """This address and those around it, the narrowest first, never one beside it."""
        user = Address(self.folder, self.name, self.user)
        return tuple(dict.fromkeys((self, user, Address(self.folder, self.name))))

    def __str__(self) -> str:
        parts = (self.folder or self.name or "personal", self.user, self.agent)
        return " / ".join(part[:80] for part in parts if part)
