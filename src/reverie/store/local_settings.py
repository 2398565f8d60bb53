"""A project's own settings that are not committed, changed at the user's word.

The file is `.reverie/settings.local.json` below the project's root. It is trusted from then on, as
it was before; one that the user has not approved is never added to: that would approve all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reverie.errors import NotFound, StoreError
from reverie.settings.trust import distrust
from reverie.store import trusted
from reverie.store.files import Folder
from reverie.store.plain import digest
from reverie.store.project import Project

FOLDER = ".reverie"
LOCAL = "settings.local.json"


def change(project: Project, edit: Callable[[str], str], refusal: str) -> Path:
    """Put the text that `edit` makes of the file's in its place; an empty one removes the file.
    StoreError says `refusal` where the file is not one that the user approved."""
    home, path = project.home, project.root / FOLDER / LOCAL
    with Folder(project.root, create=False) as above, above.sub(FOLDER) as folder:
        try:
            data = folder.read(LOCAL)
        except NotFound:
            data = None
        if data is not None and (why := distrust(home, path, data)):
            raise StoreError(
                f"{refusal}: {LOCAL} is {why}",
                where=str(path),
                do="Look at that file, and approve it if it is yours",
            )
        text = edit("" if data is None else data.decode("utf-8-sig")).encode()
        if text and data is None:
            folder.write(LOCAL, text, exclusive=True)
        elif text and data is not None:
            folder.write(LOCAL, text, expect=digest(data))
        elif data is not None:
            folder.remove(LOCAL)
    if text:
        trusted.decide(home, path, text, trusted=True)
    elif data is not None:
        trusted.forget(home, path)
    return path
