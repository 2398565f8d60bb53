"""Where a client's requests go before it is installed: gateways to keep, and what to refuse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reverie.errors import InvalidInput
from reverie.settings.values import read_object
from reverie.upkeep.proxy_address import object_in

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
        past = _past_codex(data, read_object(folder / "auth.json")[0])
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


def _past_codex(data: Mapping[str, Any], login: Mapping[str, object]) -> str:
    """Return what makes Codex pass by the proxy, or its token useless there."""
    profile = object_in(object_in(data, "profiles"), str(data.get("profile")))
    provider = {**data, **profile}.get("model_provider", "openai")
    if provider != "openai":
        return f"model_provider = {provider}"
    key = "apikey" if login.get("OPENAI_API_KEY") or not login.get("tokens") else "chatgpt"
    by = str(login.get("auth_mode") or key)
    told = "its token is not for OpenAI's API (`codex login --with-api-key` sets a key)"
    return "" if by.lower() == "apikey" else f"a login by {by}: {told}"


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
