"""Old rounds of a long conversation, sealed: the policies `collapse` and `classic`.

What `reverie.fit` does to a list, done to a request after all else was decided; what leaves lies
in files that the client's own tool reads. The same history gives the same bytes, whenever and by
whichever process it is asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any, cast

from reverie.api.fitting import Fitter, Policy
from reverie.middleware import chain
from reverie.middleware.engine import Seal
from reverie.middleware.scanning import LIST
from reverie.transcript.blocks import dump, parse
from reverie.wire.reading import Format

FOLDER = "sealed"
MOST = 24
"""Conversations that are known at once; one that comes back later is read anew."""


def sealing(policy: Policy) -> Seal:
    """How a request's text becomes one whose old rounds are sealed."""
    fitters: OrderedDict[tuple[Path, str, str], Fitter] = OrderedDict()

    def fitter(key: tuple[Path, str, str], tools: list[Any]) -> Fitter:
        found = fitters.pop(key, None) or Fitter(
            model=key[1],
            tools=tools,
            policy=policy,
            store=key[0] / FOLDER,
            via=key[2],
            marks=False,
        )
        fitters[key] = found
        if len(fitters) > MOST:
            fitters.popitem(last=False)[1].close()
        return found

    def seal(form: Format, text: str, reader: str, folder: Path) -> str | None:
        value = chain.as_value(parse(text))
        messages: Any = value[LIST[form]]
        if not isinstance(messages, list):
            return None
        key = (folder, str(value.get("model") or ""), reader)
        made = fitter(key, value.get("tools") or []).fit(cast("list[Any]", messages))
        return dump({**value, LIST[form]: list(made)}) if made.changes else None

    return seal
