"""What a provider of the Messages API says of its tokens, in our form."""

from __future__ import annotations

from collections.abc import Mapping

from reverie.transcript.blocks import Json
from reverie.transcript.records import Usage


def usage_of(value: Mapping[str, Json]) -> Usage:
    """The Messages API's usage in our form."""
    created = value.get("cache_creation")
    long = created.get("ephemeral_1h_input_tokens") if isinstance(created, dict) else 0
    return Usage(
        uncached=count(value.get("input_tokens")),
        read=count(value.get("cache_read_input_tokens")),
        written=count(value.get("cache_creation_input_tokens")),
        output=count(value.get("output_tokens")),
        written_1h=count(long),
    )


def count(value: Json) -> int:
    """A number of tokens, whatever was sent in its place."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
