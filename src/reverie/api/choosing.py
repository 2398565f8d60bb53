"""Settings as callers give them: whole, or some values on top of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reverie.errors import SettingsError
from reverie.settings import SETTINGS, Settings
from reverie.settings.values import from_json


def chosen(
    given: Settings | Mapping[str, object] | None, base: Settings, environ: Mapping[str, str]
) -> Settings:
    """The settings that count: those given whole, or what is given on top of `base`."""
    if isinstance(given, Settings):
        return given
    values: dict[str, object] = {}
    for name, raw in (given or {}).items():
        known = SETTINGS.get(name)
        if known is None:
            raise SettingsError("There is no such setting", where=name[:80])
        values[name], reason = from_json(known, raw, environ)
        if reason:
            raise SettingsError(f"The setting cannot have this value: {reason}", where=name)
    return replace(base, **values)  # pyright: ignore[reportArgumentType]
