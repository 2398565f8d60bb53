"""The proxy's address, and gateways it goes through.

Where the proxy listens, the same after every start: clients' settings name it.

The port has a default; the token, which every request must carry as the first part of its path,
is made once and kept for its owner alone. The addresses are secrets like the token in them.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from reverie import programs
from reverie.errors import InvalidInput, NotFound, StoreError
from reverie.store.files import Changed, Folder

PORT = 8786
HOST = "127.0.0.1"
STATUS = "status"
_FOLDER, _TOKEN = "proxy", "token"
_FORM = re.compile(r"[A-Za-z0-9_-]{20,64}", re.ASCII)
_MOST = 65_536
STATUS_SECONDS = 20.0
_API_KEY = re.compile(r"^(?:API key configured|Logged in using an API key)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """The two base URLs that clients are given; those of a `client` that was installed name it."""

    port: int
    token: str
    client: str = ""

    @property
    def base(self) -> str:
        named = f"/{self.client}" if self.client else ""
        return f"http://{HOST}:{self.port}/{self.token}{named}"

    @property
    def anthropic(self) -> str:
        return f"{self.base}/anthropic"

    @property
    def openai(self) -> str:
        return f"{self.base}/openai/v1"

    def value(self) -> dict[str, str]:
        return {"anthropic": self.anthropic, "openai": self.openai}


def make_token(home: Path) -> str:
    """The token of this home; made where there is none."""
    with Folder(home / _FOLDER) as folder:
        with contextlib.suppress(Changed):
            if not folder.exists(_TOKEN):
                folder.write(_TOKEN, secrets.token_urlsafe(24).encode(), exclusive=True)
        found = folder.read(_TOKEN, 100).decode("ascii", "replace").strip()
    if not _FORM.fullmatch(found):
        where = str(home / _FOLDER / _TOKEN)
        raise StoreError(
            "The proxy's token cannot be used", where=where, do="Remove the file: a new one is made"
        )
    return found


def known_token(home: Path) -> str:
    """The token of this home, or "": nothing is made."""
    try:
        with Folder(home / _FOLDER, create=False) as folder:
            return folder.read(_TOKEN, 100).decode("ascii", "replace").strip()
    except NotFound:
        return ""


def forget_token(home: Path) -> None:
    """Remove the token: addresses that hold it are refused once the proxy starts anew."""
    with contextlib.suppress(NotFound), Folder(home / _FOLDER, create=False) as folder:
        folder.remove(_TOKEN)
    with contextlib.suppress(OSError):
        (home / _FOLDER).rmdir()


def proxy_status(address: ProxyAddress, seconds: float = 2.0) -> dict[str, Any] | None:
    """What the proxy at this address says of itself; None where none of ours answers."""
    import http.client

    asked = http.client.HTTPConnection(HOST, address.port, timeout=seconds)
    try:
        asked.request("GET", f"/{address.token}/{STATUS}")
        answer = asked.getresponse()
        found: Any = json.loads(answer.read(_MOST)) if answer.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        asked.close()
    return object_in({"": found}, "") if isinstance(found, dict) else None


def object_in(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object under a name in what somebody else has written; an empty one for all else."""
    found: Any = value.get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


# --- Where a client's requests go before it is installed: gateways to keep, and what to refuse.


_PROVIDERS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com"}
_CLOUDS = re.compile("CLAUDE_CODE_USE_(ANTHROPIC_.*|BEDROCK|FOUNDRY|GATEWAY|MANTLE|VERTEX)")
_OFF = ("", "0", "false", "no", "off")
_GATEWAY = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")


def gateways(
    client: str, data: Mapping[str, Any], environ: Mapping[str, str], folder: Path, token: str
) -> dict[str, str]:
    """Return the upstream of each API that the client uses; "" is the provider's own."""
    past, found = "", dict[str, object]()
    if client == "claude-code":
        env = {**environ, **object_in(data, "env")}  # its settings count for more
        on = [name for name, value in env.items() if str(value).lower() not in _OFF]
        past = next(filter(_CLOUDS.fullmatch, on), "")
        found["anthropic"] = env.get("ANTHROPIC_BASE_URL")
    elif client == "codex":
        past = _past_codex(data) or _codex_login(environ, folder)
        found["openai"] = data.get("openai_base_url")
    else:
        model = str(data.get("model") or "openai")
        past = "" if model.partition("/")[0] in _PROVIDERS else f"model = {model}"
        for api in _PROVIDERS:
            held = object_in(object_in(data, "provider"), api)
            found[api] = object_in(held, "options").get("baseURL")
    if past:
        do = "Use the memory without it: `reverie mcp`; for Claude Code `--plugin`"
        raise InvalidInput(f"The proxy cannot serve {client} with {past}", do=do)
    return {api: _upstream(client, api, url, environ, token) for api, url in found.items()}


def _past_codex(data: Mapping[str, Any]) -> str:
    """Return what makes Codex pass by the proxy."""
    profile = object_in(object_in(data, "profiles"), str(data.get("profile")))
    provider = {**data, **profile}.get("model_provider", "openai")
    return "" if provider == "openai" else f"model_provider = {provider}"


def _codex_login(environ: Mapping[str, str], folder: Path) -> str:
    """Return what makes the token of Codex useless at the proxy, by Codex's own word: the file that
    holds it is not read."""
    remedy = "(`codex login --with-api-key` sets a key)"
    given = {**environ, "CODEX_HOME": str(folder)}
    line = ["codex", "login", "status"]
    try:
        found = programs.run(line, given, "/", seconds=STATUS_SECONDS)
    except FileNotFoundError:
        asked = "a login that cannot be checked: codex is not on PATH"
        return asked if (folder / "auth.json").exists() else ""
    except (OSError, programs.TimeoutExpired) as error:
        return f"a login that cannot be checked: `codex login status`: {type(error).__name__}"
    told = (found.stdout + found.stderr).decode("utf-8", "replace")
    if found.returncode or _API_KEY.search(told):
        return ""  # none yet, or a key
    by = "ChatGPT" if "chatgpt" in told.lower() else "an account"
    return f"a login by {by}: its token is not for OpenAI's API {remedy}"


def _upstream(client: str, api: str, given: object, environ: Mapping[str, str], token: str) -> str:
    url, end = str(given or ""), "" if client == "claude-code" else "/v1"
    if end and not url and token not in (environ.get(f"{api.upper()}_BASE_URL") or token):
        what = f"{api.upper()}_BASE_URL is set, and not every version of {client} reads it"
        raise InvalidInput(what, do="Write that URL into its settings, or unset it")
    if not url or token in url:  # the provider's, or that of the proxy itself
        return ""
    if not _GATEWAY.fullmatch(url) or not url.rstrip("/").endswith(end):
        what = f"The proxy cannot forward to the {api} base URL that {client} has"
        raise InvalidInput(
            what, do=f"It takes an http(s) URL without a query{end and f', to {end}'}"
        )
    base = url.rstrip("/").removesuffix(end)
    return "" if base == _PROVIDERS[api] else base
