"""Clients' settings on disk: read, changed with the user's word, and put back.

What was done to a client is kept in home before its file is written, so that a crash in between
leaves a record of nothing rather than a change without a record. A settings file that is a link
is followed to the file it stands for, and that path is shown; one that is read-only, somebody
else's, or has a second name is not touched. A file is replaced whole, only while it still is
what the user was shown, and keeps its mode.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Generator, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from reverie import programs
from reverie.clients import install as plans
from reverie.clients.install import (
    CLIENTS,
    Client,
    Installation,
    InstallPlan,
    RequiredSetting,
    SettingEdit,
)
from reverie.clients.proxy_address import (
    PORT,
    STATUS_SECONDS,
    ProxyAddress,
    forget_token,
    gateways,
    make_token,
    proxy_status,
)
from reverie.errors import InvalidInput, NotFound, PathRefused, StoreError
from reverie.settings.schema import read_object
from reverie.store.files import Folder
from reverie.store.project import Project
from reverie.text.json_spans import TextPatch

_RECORDS = "installed"
_MOST = 4_000_000


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """One file of a client's: as it is, and as it shall be."""

    client: Client
    path: Path
    old: str | None
    plan: InstallPlan
    folders: tuple[str, ...] = ()
    """What was made for it, outermost first."""
    port: int = PORT
    upstreams: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def needed(self) -> bool:
        return self.old != self.plan.text

    def diff(self) -> str:
        return plans.diff(str(self.path), self.old, self.plan.text)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of one user's clients, and what one home keeps of them."""

    project: Project

    # --- there

    def install(self, name: str, port: int = PORT) -> SettingsChange:
        """What installing would change; nothing is written."""
        client = find_client(name)
        address = ProxyAddress(port, make_token(self.project.home), name)
        record = self.record(name)
        path = _target(Path(record["file"]) if record else self._file(client))
        old = _read(path)
        _check_uncommitted(path, address, self.project.environ)
        with _with_file_name(path):
            bare, made = old, _missing(path)
            if record:
                bare = plans.uninstall(client, old, _installation(record)).text
                made = (*record["folders"], *made)
            plan = plans.install(client, bare, client.wishes(address, self.project.home))
            if plan.notes:  # it may not read our folder: an address without its name says so
                plain = ProxyAddress(port, address.token)
                plan = plans.install(client, bare, client.wishes(plain, self.project.home))
        folder, values = self._file(client).parent, plans.values(client, bare)
        found = gateways(name, values, self.project.environ, folder, address.token)
        kept = (record or {}).get("upstreams", {})  # stays until it is taken back
        upstreams = {api: url or kept.get(api, "") for api, url in found.items()}
        others = self.upstreams(port, but=name)
        if any(others.get(api, url) != url for api, url in upstreams.items()):
            what = f"Another client has the proxy on port {port} forward elsewhere"
            raise InvalidInput(what, do=f"Take another port, as in `--port {port + 1}`")
        same = kept == upstreams and self.port(name) == port
        if any(upstreams.values()) and not same and proxy_status(address) is not None:
            what = f"A proxy runs on port {port} that does not forward to the gateway of {name}"
            raise InvalidInput(what, do="Stop it, install again, then start it again")
        return SettingsChange(client, path, old, plan, tuple(dict.fromkeys(made)), port, upstreams)

    def uninstall(self, name: str) -> SettingsChange | None:
        """What taking it back would change; None where nothing was installed."""
        client, record = find_client(name), self.record(name)
        if record is None:
            return None
        path = _target(Path(record["file"]))
        old = _read(path)
        with _with_file_name(path):
            plan = plans.uninstall(client, old, _installation(record))
        return SettingsChange(client, path, old, plan, tuple(record["folders"]))

    # --- writing

    def carry_out(self, change: SettingsChange) -> None:
        """Write what was shown: the record first where something is put in, last where it goes."""
        if change.plan.installation is not None:
            self._keep(change)
            _write(change)
            return
        _write(change)
        for folder in reversed(change.folders):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        self._forget(change.client.name)

    def _keep(self, change: SettingsChange) -> None:
        record = asdict(change.plan.installation) if change.plan.installation else {}
        record |= {"file": str(change.path), "folders": list(change.folders), "port": change.port}
        record["upstreams"] = change.upstreams
        with Folder(self.project.home / _RECORDS) as folder:
            folder.write(f"{change.client.name}.json", json.dumps(record, indent=1).encode())

    def _forget(self, name: str) -> None:
        with Folder(self.project.home / _RECORDS) as folder:
            folder.remove(f"{name}.json")
        with contextlib.suppress(OSError):
            os.rmdir(self.project.home / _RECORDS)

    def sweep(self) -> bool:
        """Remove the proxy's token, and home where nothing else is in it; say whether it stays."""
        forget_token(self.project.home)
        with contextlib.suppress(OSError):
            os.rmdir(self.project.home)
        return self.project.home.exists()

    # --- looking

    def record(self, name: str) -> dict[str, Any] | None:
        """What was done to a client; None where nothing was."""
        path = self.project.home / _RECORDS / f"{name}.json"
        if not path.is_file():
            return None
        found, problem = read_object(path)
        try:
            _installation(found)
            return _with_places(found)
        except (KeyError, TypeError, ValueError):
            told = (
                f"The note of what was installed cannot be read: {problem or 'parts are missing'}"
            )
            do = "Take the proxy's address out of the client's settings by hand; remove the note"
            raise StoreError(told, where=str(path), do=do) from None

    def installed(self) -> Iterator[str]:
        """The clients that have a record, by name."""
        return (
            name for name in CLIENTS if (self.project.home / _RECORDS / f"{name}.json").is_file()
        )

    def in_place(self, name: str, address: ProxyAddress) -> ProxyAddress | None:
        """The address of the proxy that a client's settings still have: with its name, or, where it
        may not read our folder or an older version wrote it, without."""
        client, record = find_client(name), self.record(name)
        text = _read(Path(record["file"]) if record else self._file(client))
        both = (replace(address, client=name), replace(address, client=""))
        wishes = {one: client.wishes(one, self.project.home) for one in both}
        return next((one for one in both if plans.is_in_place(client, text, wishes[one])), None)

    def port(self, name: str) -> int:
        """The port that a client was pointed at."""
        found = (self.record(name) or {}).get("port")
        return found if isinstance(found, int) else PORT

    def upstreams(self, port: int, but: str = "") -> dict[str, str]:
        """Return where the clients of a port have it forward to, by API."""
        found: dict[str, str] = {}
        for name in (one for one in self.installed() if one != but and self.port(one) == port):
            record = self.record(name) or {}
            over = any(str(edit["old"]).startswith("http") for edit in record["edits"])
            if over and "upstreams" not in record:
                what = f"{name} was installed over a gateway by a version that did not keep it"
                raise InvalidInput(what, do=f"Run `reverie install {name}` again")
            found |= record.get("upstreams", {})
        return found

    def _file(self, client: Client) -> Path:
        files = client.files(self.project.environ, Path(self.project.user_home))
        return next((path for path in files if os.path.lexists(path)), files[-1])


def find_client(name: str) -> Client:
    if name not in CLIENTS:
        do = f"Known are {', '.join(CLIENTS)}; others take the address that `reverie proxy` prints"
        raise InvalidInput("This client's settings are not known", where=name, do=do)
    return CLIENTS[name]


def _with_places(record: Mapping[str, Any]) -> dict[str, Any]:
    folders: list[object] = list(record["folders"])
    return {**record, "file": str(record["file"]), "folders": [str(one) for one in folders]}


def _installation(record: Mapping[str, Any]) -> Installation:
    return Installation(
        record["client"],
        record["before"],
        record["after"],
        tuple(TextPatch(**one) for one in record["patches"]),
        tuple(_edit(one) for one in record["edits"]),
    )


def _edit(kept: Mapping[str, Any]) -> SettingEdit:
    wish = kept["wish"]
    wished = RequiredSetting(tuple(wish["path"]), wish["value"], wish["add"], wish["optional"])
    return SettingEdit(wished, kept["had"], kept["old"])


@contextlib.contextmanager
def _with_file_name(path: Path) -> Generator[None]:
    """What is wrong with a text is said with the file's name."""
    try:
        yield
    except InvalidInput as error:
        where = f"{path}, {error.where}" if error.where else str(path)
        do = error.do or "Correct the file and try again; it was not touched"
        raise InvalidInput(
            f"The settings cannot be changed: {error.what}", where=where, do=do
        ) from (error)


def _target(path: Path) -> Path:
    """The file that a path stands for, once it is known to be one that may be changed."""
    real = Path(os.path.realpath(path))
    try:
        info = os.lstat(real)
    except FileNotFoundError:
        if path.is_symlink():
            raise _refusal(path, "It is a link to nothing") from None
        return real
    if not stat.S_ISREG(info.st_mode):
        raise _refusal(real, "It is not a regular file")
    if info.st_uid != os.geteuid():
        raise _refusal(real, "It belongs to somebody else")
    if info.st_nlink > 1:
        raise _refusal(real, "It has a second name (a hard link)")
    if not info.st_mode & stat.S_IWUSR:
        raise _refusal(real, "It is read-only")
    if info.st_size > _MOST:
        raise _refusal(real, "It is too large for settings")
    return real


def _check_uncommitted(path: Path, address: ProxyAddress, environ: Mapping[str, str]) -> None:
    """Refuse to write the proxy's token into a file that git would commit."""
    if not any((folder / ".git").exists() for folder in path.parents):
        return
    folder = next(one for one in path.parents if one.is_dir())
    line = ["git", "check-ignore", "-q", str(path)]
    try:
        ignored = programs.run(line, environ, folder, seconds=STATUS_SECONDS).returncode == 0
    except (OSError, programs.TimeoutExpired):
        ignored = False
    if not ignored:
        what = "This file is in a git repository, and the proxy's address holds its token"
        do = "Let git ignore the file, or set the client's base URL in your shell: `reverie proxy` "
        raise PathRefused(what, where=str(path), do=f"{do}prints it (port {address.port})")


def _refusal(path: Path, what: str) -> PathRefused:
    return PathRefused(what, where=str(path), do="Nothing was changed; put that right first")


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise _refusal(path, "It is not UTF-8") from None


def _missing(path: Path) -> tuple[str, ...]:
    return tuple(str(folder) for folder in reversed(path.parents) if not folder.exists())


def _write(change: SettingsChange) -> None:
    path, text = change.path, change.plan.text
    if not change.needed:
        return
    if text is not None:
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
    expect = plans.digest(change.old)
    with Folder(path.parent, create=False) as folder:
        if text is None:
            with contextlib.suppress(NotFound):
                folder.remove(path.name, expect=expect)
            return
        mode = stat.S_IMODE(os.lstat(path).st_mode) if change.old is not None else 0o600
        folder.write(path.name, text.encode(), expect=expect, exclusive=change.old is None)
        os.chmod(path, mode)
