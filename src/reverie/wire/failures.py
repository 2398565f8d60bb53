"""What went wrong, in one sentence: statuses, error bodies and web pages made into errors.

`from_status` is the one place that reads a provider's refusal. It goes by status, type
and code; text is read only where nothing else is offered (a prompt that is too long). The
provider's own words are quoted short and without control characters. No key reaches this
module.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from reverie.errors import (
    AuthFailed,
    InvalidMessage,
    Overloaded,
    PromptTooLong,
    ProviderError,
    UnknownModel,
    Unreachable,
)
from reverie.light import dataclass
from reverie.text.format import cut_line
from reverie.transcript.blocks import Json, parse

QUOTED = 300
RETRIED = frozenset({408, 409, 425, 429})  # and everything from 500 up
BUSY = frozenset({429, 503, 529})

# the status an error would have had, for errors that come inside a stream
STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "context_length_exceeded": 400,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}

# (pattern, group with what is needed, group with what is allowed); 0 = not said
_TOO_LONG = (
    (r"prompt is too long: ([\d,]+) tokens? > ([\d,]+) maximum", 1, 2),
    (r"context length is ([\d,]+) tokens.{0,80}?\b(?:resulted in|requested|has) ([\d,]+)", 2, 1),
    (r"input token count \(?([\d,]+)\)? exceeds the maximum.{0,40}? \(?([\d,]+)\)?", 1, 2),
    (r"request \(([\d,]+) tokens\) exceeds the available context size \(([\d,]+) tokens", 1, 2),
    (r"exceeds the available context size \(([\d,]+) tokens", 0, 1),
    (r"maximum context length (?:is|of) ([\d,]+)", 0, 1),
    (r"prompt is too long|input is too long for requested model", 0, 0),
    (r"exceeds? the (?:available )?context (?:window|size|length)", 0, 0),
)
_SUM = re.compile(
    r"exceeds? (?:the )?context limit: ([\d,]+) \+ ([\d,]+) > ([\d,]+)", re.IGNORECASE
)
_LENGTHS = tuple((re.compile(p, re.IGNORECASE | re.DOTALL), a, b) for p, a, b in _TOO_LONG)
_LENGTH_CODES = frozenset({"context_length_exceeded", "request_too_large"})


class FailedAttempt(Exception):
    """One try failed: the error to raise, whether another try may help, what wait was asked."""

    def __init__(self, error: ProviderError, *, retry: bool, after: str = "") -> None:
        super().__init__(str(error))
        self.error = error
        self.retry = retry
        self.after = after


@dataclass(frozen=True, slots=True)
class ProviderWords:
    """A provider's own words about a failure."""

    message: str
    kind: str = ""
    code: str = ""
    page: bool = False  # a web page stood where an answer should be


def quote_line(text: str) -> str:
    """Words of a stranger, fit for one line of a terminal."""
    return cut_line("".join(c if c.isprintable() else " " for c in text), QUOTED)


def parse_error_body(body: str) -> ProviderWords:
    """What an error body says, whatever its shape."""
    text = body.strip()
    if text[:1] == "<":
        title = re.search(r"<title[^>]*>(.{0,400}?)</title>", text, re.IGNORECASE | re.DOTALL)
        return ProviderWords(quote_line(html.unescape(title[1])) if title else "", page=True)
    try:
        value = parse(text)
    except InvalidMessage:
        return ProviderWords(quote_line(text))
    return said_in(value)


def said_in(value: Json) -> ProviderWords:
    """The same for a body already read."""
    found = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(found, str):
        return ProviderWords(quote_line(found))
    if not isinstance(found, dict):
        return ProviderWords("")
    details = found.get("details")
    code = details.get("error_code") if isinstance(details, dict) else None
    code = code or found.get("code")
    message, kind = found.get("message"), found.get("type")
    return ProviderWords(
        quote_line(message) if isinstance(message, str) else "",
        kind if isinstance(kind, str) else "",
        code if isinstance(code, str) else "",
    )


def from_status(
    status: int, words: ProviderWords, headers: Mapping[str, str], where: str
) -> FailedAttempt:
    """The failure that an answer with an error status stands for."""
    error = _error(status, words, where)
    wish = headers.get("x-should-retry", "")
    retry = status in RETRIED or status >= 500
    if isinstance(error, PromptTooLong) or words.code == "insufficient_quota":
        retry = False
    elif wish in ("true", "false"):
        retry = wish == "true"
    after = headers.get("retry-after", "")
    return FailedAttempt(error, retry=retry, after=after)


def from_event(value: Json, where: str) -> FailedAttempt:
    """The failure that an error inside a stream stands for."""
    words = said_in(value)
    status = STATUS_OF.get(words.code) or STATUS_OF.get(words.kind) or 500
    return from_status(status, words, {}, where)


def malformed_answer(what: str, where: str) -> FailedAttempt:
    """An answer that cannot be read; another try may bring a whole one."""
    error = ProviderError(
        f"the provider's answer cannot be read: {what}",
        where=where,
        do="If it stays so, check the base URL and any proxy in between",
    )
    return FailedAttempt(error, retry=True)


def broken_off(what: str, where: str) -> FailedAttempt:
    """A stream that ended before the answer was whole."""
    error = Unreachable(
        f"the provider's answer broke off: {what}", where=where, do="Try again; nothing was lost"
    )
    return FailedAttempt(error, retry=True)


def unreachable(what: str, where: str, *, retry: bool = True) -> FailedAttempt:
    error = Unreachable(
        f"the provider cannot be reached: {quote_line(what)}",
        where=where,
        do="Check the network and the base URL",
    )
    return FailedAttempt(error, retry=retry)


def _error(status: int, words: ProviderWords, where: str) -> ProviderError:
    if words.page:
        title = f": {words.message}" if words.message else ""
        return ProviderError(
            f"a web page came back where the model's API should answer (HTTP {status}{title})",
            where=where,
            do="Check the base URL and any proxy in between",
        )
    if status in (400, 413, 422, 500):
        long = too_long(status, words, where)
        if long is not None:
            return long
    because = f": {words.message}" if words.message else f" (HTTP {status})"
    if status in (401, 403):
        return AuthFailed(
            f"the provider does not accept the key{because}",
            where=where,
            do="Check the key, and that it may use this model",
        )
    if status == 404:
        return _not_found(words, because, where)
    if status in BUSY:
        do = (
            "Check the account's quota" if words.code == "insufficient_quota" else "Try again later"
        )
        return Overloaded(f"the provider has no room for the request{because}", where=where, do=do)
    if status >= 500:
        return ProviderError(f"the provider failed{because}", where=where, do="Try again later")
    return ProviderError(f"the provider refused the request{because}", where=where)


def _not_found(words: ProviderWords, because: str, where: str) -> ProviderError:
    if words.code == "model_not_found" or "model" in words.message.lower():
        return UnknownModel(
            f"the provider has no such model{because}", where=where, do="Check the model's name"
        )
    return ProviderError(
        f"no model's API answers at this address{because}", where=where, do="Check the base URL"
    )


def too_long(status: int, words: ProviderWords, where: str) -> PromptTooLong | None:
    """The refusal as a prompt that is too long, with what it needs and what is allowed."""
    lengths = _lengths(words.message)
    if lengths is None and status != 413 and words.code not in _LENGTH_CODES:
        return None
    needed, allowed = lengths or (None, None)
    return PromptTooLong(
        f"the request is too long for the model{': ' + words.message if words.message else ''}",
        needed=needed,
        allowed=allowed,
        where=where,
        do="Compact the conversation",
    )


def _lengths(text: str) -> tuple[int | None, int | None] | None:
    total = _SUM.search(text)
    if total:
        first, second, allowed = (_number(g) for g in total.groups())
        return first + second, allowed
    for pattern, needed, allowed in _LENGTHS:
        found = pattern.search(text)
        if found:
            return (
                _number(found[needed]) if needed else None,
                _number(found[allowed]) if allowed else None,
            )
    return None


def _number(text: str) -> int:
    return int(text.replace(",", ""))
