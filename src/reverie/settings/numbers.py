"""Every number and switch, with its default, its range and what it is for.

`Settings` is a plain value: it reads no file, no environment and no clock, and it
never changes. Where its values come from is the business of `sources`. The window
arithmetic of SPEC §2 stands here too, since it is nothing but these numbers.

Units are part of the names: `_tokens`, `_bytes`, `_characters`, `_seconds`, `_share`
(a fraction between 0 and 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType

SettingValue = bool | int | float | str | None

_TOKENS = 100_000_000
_BYTES = 1_000_000_000
_COUNT = 100_000
_MINUTES = 525_600
_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known about one field of `Settings`."""

    kind: str
    """One of switch, whole, number, text, folder, choice."""
    section: str
    about: str
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    trusted_only: bool = False
    alias: str = ""
    """Another name under which the environment may give it."""


def _whole(
    default: int, section: str, about: str, low: int, high: int, trusted_only: bool = False
) -> int:
    known = Setting("whole", section, about, low, high, trusted_only=trusted_only)
    return field(default=default, metadata={"setting": known})


def _window(section: str, about: str) -> int | None:
    known = Setting("whole", section, about, 1_000, _TOKENS)
    return field(default=None, metadata={"setting": known})


def _number(
    default: float, section: str, about: str, low: float, high: float, trusted_only: bool = False
) -> float:
    known = Setting("number", section, about, low, high, trusted_only=trusted_only)
    return field(default=default, metadata={"setting": known})


def _share(default: float, section: str, about: str) -> float:
    return _number(default, section, about, 0.0, 1.0)


def _switch(
    default: bool, section: str, about: str, trusted_only: bool = False, alias: str = ""
) -> bool:
    known = Setting("switch", section, about, trusted_only=trusted_only, alias=alias)
    return field(default=default, metadata={"setting": known})


def _text(section: str, about: str, trusted_only: bool = False, alias: str = "") -> str | None:
    known = Setting("text", section, about, trusted_only=trusted_only, alias=alias)
    return field(default=None, metadata={"setting": known})


def _folder(section: str, about: str, alias: str = "") -> str | None:
    known = Setting("folder", section, about, trusted_only=True, alias=alias)
    return field(default=None, metadata={"setting": known})


def _choice(default: str, section: str, about: str, choices: tuple[str, ...]) -> str:
    known = Setting("choice", section, about, choices=choices)
    return field(default=default, metadata={"setting": known})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one session. `Settings()` is the defaults."""

    # Tokens and window
    # These three have one value: the fold counts with them, and a transcript once folded
    # must count the same everywhere.
    text_bytes_per_token: int = _whole(4, "2", "bytes of text counted as one token", 4, 4)
    json_bytes_per_token: int = _whole(2, "2", "bytes of JSON counted as one token", 2, 2)
    media_tokens: int = _whole(
        2_000, "2", "tokens an image or a document counts, whatever its size", 2_000, 2_000
    )
    default_window: int = _whole(
        200_000, "2", "context window where nothing else names one", 1_000, _TOKENS
    )
    context_window: int | None = _window("2", "context window where the model's own is not known")
    scaling_window: int = _whole(
        200_000, "2", "below this window the token budgets shrink in proportion", 1_000, _TOKENS
    )
    summary_reserve_tokens: int = _whole(
        20_000, "2", "room kept free for a summary, at most", 0, _TOKENS
    )
    summary_reserve_share: float = _share(0.10, "2", "the same as a share of the window")
    compact_buffer_tokens: int = _whole(
        13_000, "2", "distance of the auto-compact threshold from the effective window", 0, _TOKENS
    )
    compact_buffer_share: float = _share(0.065, "2", "the same as a share of the window")
    provider_retries: int = _whole(5, "2", "times a failed provider request is repeated", 0, 100)

    # Tool results
    result_characters: int = _whole(
        50_000, "3", "longest tool result that stays in the context", 1, _BYTES
    )
    message_result_characters: int = _whole(
        200_000, "3", "most characters of results in one user message", 1, _BYTES
    )
    result_preview_bytes: int = _whole(
        2_000, "3", "beginning of a stored result that the context shows", 1, _BYTES
    )

    # Microcompaction
    microcompact_idle_minutes: float = _number(
        60, "4", "pause after which old tool results are cleared", 0, _MINUTES
    )
    microcompact_kept: int = _whole(5, "4", "newest results that are never cleared", 1, _COUNT)
    api_clear_trigger_tokens: int = _whole(
        180_000, "4", "input tokens at which the provider clears tool uses", 1, _TOKENS
    )
    api_clear_at_least_tokens: int = _whole(
        140_000, "4", "tokens one such clearing frees at least", 0, _TOKENS
    )
    api_clear_margin_tokens: int = _whole(
        20_000, "4", "distance of the trigger from a lower auto-compact threshold", 0, _TOKENS
    )
    api_clear_share: float = _share(0.5, "4", "share of such a moved trigger that is cleared")
    api_thinking_kept_turns: int = _whole(
        1, "4", "turns whose thinking the provider keeps", 1, _COUNT
    )
    api_thinking_keep_all: bool = _switch(False, "4", "let the provider keep all thinking")
    cache_edit_count: int = _whole(
        20, "4", "clearable results after which cache editing starts", 1, _COUNT
    )
    cache_edit_kept: int = _whole(5, "4", "newest results that cache editing keeps", 1, _COUNT)

    # Session notes
    notes_first_tokens: int = _whole(10_000, "5", "conversation at the first notes", 0, _TOKENS)
    notes_growth_tokens: int = _whole(5_000, "5", "growth between two updates", 0, _TOKENS)
    notes_tool_calls: int = _whole(3, "5", "tool calls between two updates", 0, _COUNT)
    notes_section_tokens: int = _whole(2_000, "5", "budget of one section", 1, _TOKENS)
    notes_total_tokens: int = _whole(12_000, "5", "budget of all sections", 1, _TOKENS)
    notes_compact_min_tokens: int = _whole(
        10_000, "5", "tokens kept after the notes take over, at least", 0, _TOKENS
    )
    notes_compact_min_messages: int = _whole(
        5, "5", "messages with text kept after the notes take over, at least", 0, _COUNT
    )
    notes_compact_max_tokens: int = _whole(
        40_000, "5", "tokens kept after the notes take over, at most", 1, _TOKENS
    )
    notes_wait_seconds: float = _number(
        15, "5", "longest wait for an update under way", 0, _SECONDS
    )

    # Compaction
    auto_compact_enabled: bool = _switch(True, "6", "compact at the threshold, and keep notes")
    summary_model: str | None = _text("6", "model that writes summaries; unset: the session's own")
    compact_tries: int = _whole(2, "6", "times a summary is asked for in one compaction", 1, 10)
    compact_by_provider: bool = _switch(
        False, "6", "let the provider compact by itself, where it can"
    )
    api_context_management: bool = _switch(
        False, "4", "let the provider clear old results by itself, where it can"
    )
    compact_breaker_failures: int = _whole(
        3, "6", "failures in a row that stop automatic compaction", 1, _COUNT
    )
    compact_too_long_retries: int = _whole(
        3, "6", "retries of a summary whose own request is too long", 0, 100
    )
    compact_dropped_share: float = _share(
        0.20, "6", "share of the rounds dropped where the provider names no gap"
    )
    compact_must_free_share: float = _share(
        0.20, "B10", "share of the window that a compaction must free to count"
    )
    compact_keep_list_tokens: int = _whole(
        2_000, "B10", "budget of what an audit adds to a summary", 0, _TOKENS
    )
    restore_files: int = _whole(5, "6", "files restored after compaction", 0, _COUNT)
    restore_file_tokens: int = _whole(5_000, "6", "of each restored file", 0, _TOKENS)
    restore_files_tokens: int = _whole(50_000, "6", "of all restored files", 0, _TOKENS)
    restore_skill_tokens: int = _whole(5_000, "6", "of each restored skill", 0, _TOKENS)
    restore_skills_tokens: int = _whole(25_000, "6", "of all restored skills", 0, _TOKENS)

    # Context collapse
    context_policy: str = _choice(
        "classic", "B11", "how the context is kept small", ("classic", "collapse")
    )
    collapse_tail: int = _whole(40_000, "B11", "tokens of the live tail", 1, _TOKENS)
    collapse_kept: int = _whole(4_000, "B11", "tokens kept live at a seal", 0, _TOKENS)
    collapse_offload: int = _whole(
        2_000, "B11", "tokens from which a result is stored as it arrives", 100, _TOKENS
    )
    collapse_log: int = _whole(
        3_000, "B11", "tokens of sealed lines before they fold", 100, _TOKENS
    )
    collapse_line: int = _whole(120, "B11", "characters of one sealed line", 20, _COUNT)
    collapse_reference: int = _whole(
        8_000, "B11", "tokens that one reference reads back, at most", 1, _TOKENS
    )

    # Auto memory
    auto_memory_enabled: bool = _switch(True, "7", "long-term memory", trusted_only=True)
    auto_memory_directory: str | None = _folder("7", "memory folder in place of the project's own")
    memory_path_override: str | None = _folder(
        "7", "full path of the memory folder, before all else", "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"
    )
    remote_memory_dir: str | None = _folder(
        "7", "base folder for memory in place of home", "CLAUDE_CODE_REMOTE_MEMORY_DIR"
    )
    memory_extra_guidelines: str | None = _text(
        "7", "text added to the memory prompt", True, "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES"
    )
    disable_auto_memory: bool = _switch(
        False, "7", "no memory of any kind", True, "CLAUDE_CODE_DISABLE_AUTO_MEMORY"
    )
    simple: bool = _switch(
        False, "15", "no memory, notes, agent summaries and hooks", True, "CLAUDE_CODE_SIMPLE"
    )
    remote: bool = _switch(
        False, "7", "runs on a machine without lasting storage", True, "CLAUDE_CODE_REMOTE"
    )
    index_lines: int = _whole(200, "7", "lines of the index that are sent", 1, _COUNT)
    index_bytes: int = _whole(25_000, "7", "bytes of the index that are sent", 1, _BYTES)
    index_line_characters: int = _whole(150, "7", "length of one index line", 20, _COUNT)
    extract_rounds: int = _whole(5, "7", "rounds of one extraction", 1, 1_000)
    extract_drain_seconds: float = _number(
        60, "7", "wait at exit for an extraction under way", 0, _SECONDS
    )
    extract_every: int = _whole(
        1, "7", "extract after every Nth turn; the flag of this name goes first", 1, _COUNT
    )

    # Recall
    selector_model: str | None = _text("8", "model that selects memories; unset: embedded", True)
    selector_milliseconds: float = _number(
        30, "8", "time the local selector may take while a request is prepared", 0, 60_000
    )
    embedding_model: str | None = _text(
        "8", "model whose vectors `reverie recall` weighs beside words; unset: words alone", True
    )
    recall_min_words: int = _whole(2, "8", "words a message needs for recall", 0, _COUNT)
    recall_files: int = _whole(5, "8", "memories injected in one turn", 0, _COUNT)
    recall_lines: int = _whole(200, "8", "lines of each", 1, _COUNT)
    recall_file_bytes: int = _whole(4_096, "8", "bytes of each", 1, _BYTES)
    recall_total_bytes: int = _whole(60_000, "8", "bytes in all between compactions", 0, _BYTES)
    recall_manifest_files: int = _whole(200, "8", "files in a model's manifest", 1, _COUNT)
    recall_header_lines: int = _whole(30, "8", "lines searched for frontmatter", 1, _COUNT)
    recall_output_tokens: int = _whole(256, "8", "output of a selecting model", 1, _TOKENS)
    recall_timeout_seconds: float = _number(5, "8", "time a selecting model has", 0, _SECONDS)
    recall_caution_days: int = _whole(2, "8", "age at which a memory carries a caution", 0, _COUNT)

    # Dreaming
    dream_hours: float = _number(24, "9", "time between two dreams", 0, 24 * 366)
    dream_sessions: int = _whole(5, "9", "sessions between two dreams", 0, _COUNT)
    dream_scan_minutes: float = _number(10, "9", "time between two looks", 0, _MINUTES)
    dream_stale_lock_minutes: float = _number(
        60, "9", "age at which a dream's lock may be taken over", 1, _MINUTES
    )
    dream_limit_minutes: float = _number(50, "9", "time after which a dream ends", 1, _MINUTES)
    dream_rounds: int = _whole(100, "9", "rounds that a dream may take", 1, _COUNT)
    dream_shown_rounds: int = _whole(30, "9", "rounds of text shown while it runs", 1, _COUNT)
    dream_grep_hits: int = _whole(50, "9", "hits a search of transcripts returns", 1, _COUNT)
    dream_review: bool = _switch(False, "B6", "leave a dream's changes for review", True)

    # Agents
    agent_summary_seconds: float = _number(30, "10", "time between two summaries", 1, _SECONDS)
    agent_summary_min_words: int = _whole(3, "10", "words of a summary, at least", 1, 100)
    agent_summary_max_words: int = _whole(5, "10", "words of a summary, at most", 1, 100)

    # Team memory
    team_batch_bytes: int = _whole(200_000, "11", "size of one push", 1_000, _BYTES)
    team_debounce_seconds: float = _number(
        2, "11", "quiet time after a write before a push", 0, _SECONDS
    )
    team_conflict_retries: int = _whole(5, "11", "tries after a conflict", 0, 100)
    team_secret_rules: int = _whole(
        35, "11", "rules a secret scan must have before anything is pushed", 35, _COUNT, True
    )

    # Instruction files
    instruction_characters: int = _whole(
        40_000, "12", "length at which an instruction file draws a warning", 1, _BYTES
    )
    include_depth: int = _whole(5, "12", "depth of includes", 0, 100)

    # Hooks and tools
    hook_seconds: float = _number(60, "13", "time one user hook has", 0, _SECONDS)
    tool_seconds: float = _number(120, "13", "time one tool call has", 0, _SECONDS)

    # Prompt cache
    cache_break_share: float = _share(0.05, "14", "drop in cache reads that counts as a break")
    cache_break_tokens: int = _whole(2_000, "14", "tokens such a drop has at least", 0, _TOKENS)
    cache_short_minutes: float = _number(5, "14", "short lifetime of a cache entry", 0, _MINUTES)
    cache_long_minutes: float = _number(60, "14", "long lifetime of a cache entry", 0, _MINUTES)

    # Cost of what runs unasked
    background_tokens_per_day: int = _whole(
        2_000_000, "B18", "price-weighted tokens a day for what runs unasked", 0, 10**12, True
    )
    background_calls_per_day: int = _whole(
        500, "B18", "requests a day for what runs unasked", 0, 10**9, True
    )
    background_processes: int = _whole(
        4, "B18", "background jobs at once in all processes", 0, 1_000, True
    )
    price_read: float = _number(0.1, "B18", "weight of a token read from cache", 0, 1_000, True)
    price_write_short: float = _number(
        1.25, "B18", "weight of a token written to the short cache", 0, 1_000, True
    )
    price_write_long: float = _number(
        2.0, "B18", "weight of a token written to the long cache", 0, 1_000, True
    )
    price_output: float = _number(5.0, "B18", "weight of an output token", 0, 1_000, True)

    # Retention
    retention_days: int = _whole(
        90, "18", "age at which transcripts and stored results may be pruned", 1, _COUNT, True
    )

    @property
    def fallback_window(self) -> int:
        """The window where neither the model's name nor its provider tells."""
        return self.default_window if self.context_window is None else self.context_window

    def effective_window(self, window: int) -> int:
        """What of `window` a conversation may fill, with room left for a summary."""
        reserve = int(window * self.summary_reserve_share)
        return max(0, window - min(self.summary_reserve_tokens, reserve))

    def compact_threshold(self, window: int) -> int:
        """The canonical count above which automatic compaction fires."""
        buffer = int(window * self.compact_buffer_share)
        return max(0, self.effective_window(window) - min(self.compact_buffer_tokens, buffer))

    def left_until_compact(self, window: int, used: int) -> int:
        """Tokens left until the threshold; 0 once it is passed."""
        return max(0, self.compact_threshold(window) - used)

    def api_clearing(self, window: int) -> tuple[int, int]:
        """Trigger and least amount for the provider's own clearing (SPEC §4)."""
        threshold = self.compact_threshold(window)
        if self.api_clear_trigger_tokens <= threshold:
            return self.api_clear_trigger_tokens, self.api_clear_at_least_tokens
        margin = self._shrunk(self.api_clear_margin_tokens, window)
        trigger = max(1, threshold - margin)
        return trigger, int(trigger * self.api_clear_share)

    def scaled(self, window: int) -> Settings:
        """These settings for `window`: below `scaling_window` the budgets shrink.

        What compaction restores and what collapse keeps and reads back shrink too:
        they would otherwise not fit the window they are put into. Scale the loaded
        settings, not ones already scaled.
        """
        if window >= self.scaling_window:
            return self
        shrunk = {name: self._shrunk(getattr(self, name), window) for name in SCALED}
        return replace(self, **shrunk)

    def with_notes(self, config: Mapping[str, int]) -> Settings:
        """These settings with the session notes' numbers that a flag gives."""
        return replace(self, **{name: config[name] for name in NOTES if name in config})

    def memory_off(self) -> str:
        """Why auto memory is off, or "" where it is on; asked in the order of SPEC §7."""
        if self.disable_auto_memory:
            return "disable_auto_memory is set"
        if self.simple:
            return "simple mode"
        if self.remote and self.remote_memory_dir is None:
            return "remote without a memory folder"
        return "" if self.auto_memory_enabled else "autoMemoryEnabled is false"

    def _shrunk(self, number: int, window: int) -> int:
        if window >= self.scaling_window:
            return number
        return max(1, number * max(0, window) // self.scaling_window) if number else 0


SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {known.name: known.metadata["setting"] for known in fields(Settings)}
)
"""What is known about each field, in the order of `Settings`."""

DEFAULTS = Settings()

SCALED = (
    "result_characters",
    "message_result_characters",
    "result_preview_bytes",
    "notes_first_tokens",
    "notes_growth_tokens",
    "notes_section_tokens",
    "notes_total_tokens",
    "notes_compact_min_tokens",
    "notes_compact_max_tokens",
    "restore_file_tokens",
    "restore_files_tokens",
    "restore_skill_tokens",
    "restore_skills_tokens",
    "collapse_tail",
    "collapse_kept",
    "collapse_offload",
    "collapse_log",
    "collapse_reference",
)
"""The budgets that shrink with a small window."""

NOTES = tuple(
    name for name, known in SETTINGS.items() if name.startswith("notes_") and known.kind == "whole"
)
"""What the flag `session_memory_config` may change."""

ORDERED = (
    ("result_characters", "message_result_characters"),
    ("result_preview_bytes", "result_characters"),
    ("cache_edit_kept", "cache_edit_count"),
    ("api_clear_at_least_tokens", "api_clear_trigger_tokens"),
    ("notes_section_tokens", "notes_total_tokens"),
    ("notes_compact_min_tokens", "notes_compact_max_tokens"),
    ("restore_file_tokens", "restore_files_tokens"),
    ("restore_skill_tokens", "restore_skills_tokens"),
    ("collapse_kept", "collapse_tail"),
    ("recall_file_bytes", "recall_total_bytes"),
    ("dream_limit_minutes", "dream_stale_lock_minutes"),
    ("agent_summary_min_words", "agent_summary_max_words"),
    ("cache_short_minutes", "cache_long_minutes"),
)
"""Pairs of which the first may not exceed the second."""


def camel(name: str) -> str:
    """The JSON spelling of a field's name."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
