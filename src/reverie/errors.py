"""One tree of errors.

Every error says what went wrong, where, and what to do about it, in words meant
for the person who reads them; `code` says it to programs, and stays when the words
change. Nothing here prints, logs or exits: a door maps `exit_code` to the process's own.
"""

from __future__ import annotations


class ReverieError(Exception):
    """The root. `what` is one sentence; `where` a path, key or id; `do` the way out."""

    code = "error"
    exit_code = 1

    def __init_subclass__(cls, *, code: str = "") -> None:
        super().__init_subclass__()
        cls.code = code or cls.code

    def __init__(self, what: str, *, where: str = "", do: str = "", code: str = "") -> None:
        self.what = what
        self.where = where
        self.do = do
        self.code = code or self.code
        super().__init__(what)

    def __str__(self) -> str:
        text = f"{self.what} ({self.where})" if self.where else self.what
        return f"{text}. {self.do}" if self.do else text


class InvalidInput(ReverieError, code="invalid_input"):
    """A caller handed in something that cannot be used."""

    exit_code = 2


class SettingsError(InvalidInput, code="settings_error"):
    """A setting or flag is unknown or has a value it cannot take."""


class InvalidMessage(InvalidInput, code="invalid_message"):
    """A message, block or tool result that no valid request could carry."""


class ImportFailed(InvalidInput, code="import_failed"):
    """A recorded session that cannot be read as one."""


class NotFound(InvalidInput, code="not_found"):
    """A session, record, file or reference that does not exist."""


class StoreError(ReverieError, code="store_error"):
    """The disk said no; what was there before is still there."""


class PathRefused(StoreError, InvalidInput, code="path_refused"):
    """A path that leaves its folder, or a name that is not safe on every system."""


class WriteFailed(StoreError, code="write_failed"):
    """A write did not happen; the old contents are intact."""


class SecretFound(StoreError, code="secret_found"):
    """Something that was to be saved or sent holds what looks like a secret; it was not."""


class ScanFailed(StoreError, code="scan_failed"):
    """Nobody can say whether it holds a secret, so it was neither saved nor sent."""


class Held(StoreError, code="held"):
    """Another process holds the session's lock."""

    exit_code = 3


class LaterVersion(StoreError, code="later_version"):
    """A later version wrote what is to be changed; it can be read, and not added to."""


class ForkRefused(ReverieError, code="fork_refused"):
    """A fork that would leave its parent's prefix, or a fork of a fork."""


class BudgetExceeded(ReverieError, code="budget_exceeded"):
    """The day's budget for work that runs unasked is used up."""

    exit_code = 4


class ProviderError(ReverieError, code="provider_error"):
    """A model's provider refused, failed or could not be reached."""

    exit_code = 5


class AuthFailed(ProviderError, code="auth_failed"):
    """No key is configured, or the provider does not accept the one there is."""

    exit_code = 7


class Unreachable(ProviderError, code="unreachable"):
    """No answer came, or none that was whole, however often it was tried."""

    exit_code = 8


class Overloaded(ProviderError, code="overloaded"):
    """The provider has no room for the request now: a rate limit, or its own load."""

    exit_code = 9


class UnknownModel(ProviderError, code="unknown_model"):
    """The provider has no model of this name."""

    exit_code = 10


class Incomplete(ProviderError, code="incomplete"):
    """An answer that stayed cut off or empty, however often it was asked for."""

    exit_code = 8


class Refused(ProviderError, code="refused"):
    """The model refused to answer."""

    exit_code = 11


class PromptTooLong(ProviderError, code="prompt_too_long"):
    """The provider says the request is over its window; it may say by how much."""

    def __init__(
        self,
        what: str,
        *,
        needed: int | None = None,
        allowed: int | None = None,
        where: str = "",
        do: str = "",
    ) -> None:
        super().__init__(what, where=where, do=do)
        self.needed = needed
        self.allowed = allowed


class NotAvailable(ReverieError, code="not_available"):
    """Something that this installation cannot do; says what it would need."""

    exit_code = 6
