"""The person's own editor, on a copy that lies nowhere afterwards."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from reverie.errors import InvalidInput, WriteFailed
from reverie.settings import environment


def edited(before: bytes, key: str) -> bytes:
    """What a person made of the bytes of a memory in their editor."""
    environ = environment()
    command = environ.get("VISUAL") or environ.get("EDITOR")
    if not command:
        raise InvalidInput("No editor is set", do="Set $VISUAL or $EDITOR, or give --with FILE")
    with tempfile.TemporaryDirectory(prefix="reverie-edit-") as folder:
        copy = Path(folder) / os.path.basename(key)
        copy.write_bytes(before)
        try:
            ended = subprocess.run([*shlex.split(command), str(copy)], check=False)
        except (OSError, ValueError) as error:
            raise InvalidInput(f"The editor cannot be run: {error}", where=command) from error
        if ended.returncode:
            raise WriteFailed("The editor failed; nothing was changed", where=command)
        try:
            return copy.read_bytes()
        except OSError as error:
            raise WriteFailed(
                "The editor left no file; nothing was changed", where=command
            ) from error
