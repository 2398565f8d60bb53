"""What the simulated provider answers when it refuses.

An `ApiError` has the status, type and text a client sees on the wire; each wire format
puts it into its own envelope. It is a `ProviderError`, so in-process callers meet the
same tree as everywhere. Nothing here decides when to refuse.
"""

from __future__ import annotations

from collections.abc import Mapping

from reverie.errors import ProviderError
from reverie.transcript.blocks import Object

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}
WORDS = {
    429: "This request would exceed your rate limit. Please try again later.",
    500: "Internal server error",
    529: "Overloaded",
}


class ApiError(ProviderError, code="api_error"):
    """The simulated provider refused; `status` and `kind` are those of the wire."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "",
        code: str = "",
        param: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, where=f"{status} {kind or TYPES.get(status, 'api_error')}")
        self.status = status
        self.kind = kind or TYPES.get(status, "api_error")
        self.message = message
        self.wire_code = code
        self.param = param
        self.headers = dict(headers or {})

    def body(self, request_id: str = "") -> Object:
        """The envelope of the Messages API."""
        error: Object = {"type": self.kind, "message": self.message}
        if self.wire_code:
            error["details"] = {"error_code": self.wire_code}
        return {"type": "error", "error": error, "request_id": request_id or None}


class TooLong(ApiError, code="too_long"):
    """The prompt is over the model's window."""

    def __init__(self, needed: int, allowed: int) -> None:
        super().__init__(400, f"prompt is too long: {needed} tokens > {allowed} maximum")
        self.needed = needed
        self.allowed = allowed


def bad(message: str, *, code: str = "", param: str = "") -> ApiError:
    """A request that is wrong in itself."""
    return ApiError(400, message, code=code, param=param)
