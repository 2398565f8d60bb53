"""A session's own folder, as the Disk port sees it."""

from __future__ import annotations

from anyio import to_thread

from reverie.errors import NotFound, StoreError
from reverie.store.files import Folder


class SessionDisk:
    """`world.Disk` over one session's folder inside the project's."""

    def __init__(self, folder: Folder, session: str) -> None:
        self._folder = folder
        self._session = session

    async def write(self, key: str, data: bytes) -> str:
        place = f"{self._session}/{key}"
        await to_thread.run_sync(lambda: self._folder.write(place, data))
        return str(self._folder.path(place))

    async def read(self, key: str, limit: int | None = None) -> bytes:
        place = f"{self._session}/{key}"
        return await to_thread.run_sync(lambda: self._folder.read(place, limit))

    def put_blob(self, name: str, text: str) -> None:
        """A part of the request's head, once for each content."""
        place = self._blob(name)
        if not self._folder.exists(place):
            self._folder.write(place, text.encode())

    def get_blob(self, name: str) -> str | None:
        try:
            return self._folder.read(self._blob(name)).decode()
        except (StoreError, NotFound, UnicodeDecodeError):
            return None

    def _blob(self, name: str) -> str:
        return f"{self._session}/blobs/{name}.json"


class NoDisk:
    """`world.Disk` of a private session: it stores nothing."""

    async def write(self, key: str, data: bytes) -> str:
        raise StoreError(f"a private session stores nothing, not {len(data):,} bytes", where=key)

    async def read(self, key: str, limit: int | None = None) -> bytes:
        del limit
        raise NotFound("a private session has no stored files", where=key)

    def put_blob(self, name: str, text: str) -> None:
        """Nothing is kept."""
        del name, text

    def get_blob(self, name: str) -> str | None:
        del name
