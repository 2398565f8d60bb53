"""Every number and switch, with its default, its range and what it is for.

`Settings` is a plain value: it reads no file, no environment and no clock, and it
never changes. Where its values come from is the business of `sources`. The window
arithmetic of SPEC §2 stands here too, since it is nothing but these numbers.

Units are part of the names: `_tokens`, `_bytes`, `_characters`, `_seconds`, `_share`
(a fraction between 0 and 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType

from reverie.light import dataclass
from reverie.settings.schema import (
    BYTES,
    COUNT,
    FREE,
    LESS,
    MINUTES,
    MORE,
    SECONDS,
    TOKENS,
    Setting,
    choice,
    folder,
    number,
    share,
    switch,
    text,
    whole,
    window,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one session. `Settings()` is the defaults."""

    # Tokens and window
    # These three have one value: the fold counts with them, and a transcript once folded
    # must count the same everywhere.
    text_bytes_per_token: int = whole(4, "2", "bytes of text counted as one token", 4, 4)
    json_bytes_per_token: int = whole(2, "2", "bytes of JSON counted as one token", 2, 2)
    media_tokens: int = whole(
        2_000, "2", "tokens an image or a document counts, whatever its size", 2_000, 2_000
    )
    default_window: int = whole(
        200_000, "2", "context window where nothing else names one", 1_000, TOKENS
    )
    context_window: int | None = window("2", "context window where the model's own is not known")
    scaling_window: int = whole(
        200_000, "2", "below this window the token budgets shrink in proportion", 1_000, TOKENS
    )
    summary_reserve_tokens: int = whole(
        20_000, "2", "room kept free for a summary, at most", 0, TOKENS
    )
    summary_reserve_share: float = share(0.10, "2", "the same as a share of the window")
    compact_buffer_tokens: int = whole(
        13_000, "2", "distance of the auto-compact threshold from the effective window", 0, TOKENS
    )
    compact_buffer_share: float = share(0.065, "2", "the same as a share of the window")
    provider_retries: int = whole(
        5, "2", "times a failed provider request is repeated", 0, 100, LESS
    )

    # Tool results
    result_characters: int = whole(
        50_000, "3", "longest tool result that stays in the context", 1, BYTES, LESS
    )
    message_result_characters: int = whole(
        200_000, "3", "most characters of results in one user message", 1, BYTES, LESS
    )
    read_whole: int = whole(
        25_000, "3", "tokens of a file read by its path that stay whole (proxy)", 1, TOKENS
    )
    result_preview_bytes: int = whole(
        2_000, "3", "beginning of a stored result that the context shows", 1, BYTES, LESS
    )

    # Microcompaction
    microcompact_idle_minutes: float = number(
        60, "4", "pause after which old results are cleared, if not cold before", 0, MINUTES
    )
    microcompact_kept: int = whole(5, "4", "newest results that are never cleared", 1, COUNT)
    api_clear_trigger_tokens: int = whole(
        180_000, "4", "input tokens at which the provider clears tool uses", 1, TOKENS
    )
    api_clear_at_least_tokens: int = whole(
        140_000, "4", "tokens one such clearing frees at least", 0, TOKENS
    )
    api_clear_margin_tokens: int = whole(
        20_000, "4", "distance of the trigger from a lower auto-compact threshold", 0, TOKENS
    )
    api_clear_share: float = share(0.5, "4", "share of such a moved trigger that is cleared")
    api_thinking_kept_turns: int = whole(
        1, "4", "turns whose thinking the provider keeps", 1, COUNT
    )
    api_thinking_keep_all: bool = switch(False, "4", "let the provider keep all thinking")
    cache_edit_count: int = whole(
        20, "4", "clearable results after which cache editing starts", 1, COUNT
    )
    cache_edit_kept: int = whole(5, "4", "newest results that cache editing keeps", 1, COUNT)

    # Session notes
    notes_first_tokens: int = whole(10_000, "5", "conversation at the first notes", 0, TOKENS, MORE)
    notes_growth_tokens: int = whole(5_000, "5", "growth between two updates", 0, TOKENS, MORE)
    notes_tool_calls: int = whole(3, "5", "tool calls between two updates", 0, COUNT, MORE)
    notes_section_tokens: int = whole(2_000, "5", "budget of one section", 1, TOKENS, LESS)
    notes_total_tokens: int = whole(12_000, "5", "budget of all sections", 1, TOKENS, LESS)
    notes_compact_min_tokens: int = whole(
        10_000, "5", "tokens kept after the notes take over, at least", 0, TOKENS, LESS
    )
    notes_compact_min_messages: int = whole(
        5, "5", "messages with text kept after the notes take over, at least", 0, COUNT, LESS
    )
    notes_compact_max_tokens: int = whole(
        40_000, "5", "tokens kept after the notes take over, at most", 1, TOKENS, LESS
    )
    notes_wait_seconds: float = number(
        15, "5", "longest wait for an update under way", 0, SECONDS, LESS
    )

    # Compaction
    auto_compact_enabled: bool = switch(True, "6", "compact at the threshold, and keep notes", LESS)
    summary_model: str | None = text("6", "model that writes summaries; unset: the session's own")
    compact_tries: int = whole(
        2, "6", "times a summary is asked for in one compaction", 1, 10, LESS
    )
    compact_by_provider: bool = switch(
        False, "6", "let the provider compact by itself, where it can"
    )
    api_context_management: bool = switch(
        False, "4", "let the provider clear old results by itself, where it can"
    )
    compact_breaker_failures: int = whole(
        3, "6", "failures in a row that stop automatic compaction", 1, COUNT, LESS
    )
    compact_too_long_retries: int = whole(
        3, "6", "retries of a summary whose own request is too long", 0, 100, LESS
    )
    compact_dropped_share: float = share(
        0.20, "6", "share of the rounds dropped where the provider names no gap"
    )
    compact_must_free_share: float = share(
        0.20, "B10", "share of the window that a compaction must free to count"
    )
    compact_keep_list_tokens: int = whole(
        2_000, "B10", "budget of what an audit adds to a summary", 0, TOKENS, LESS
    )
    restore_files: int = whole(5, "6", "files restored after compaction", 0, COUNT, LESS)
    restore_file_tokens: int = whole(5_000, "6", "of each restored file", 0, TOKENS, LESS)
    restore_files_tokens: int = whole(50_000, "6", "of all restored files", 0, TOKENS, LESS)
    restore_skill_tokens: int = whole(5_000, "6", "of each restored skill", 0, TOKENS, LESS)
    restore_skills_tokens: int = whole(25_000, "6", "of all restored skills", 0, TOKENS, LESS)

    # Context collapse
    context_policy: str = choice(
        "collapse", "B11", "how a new context is kept small", ("collapse", "classic"), FREE
    )
    collapse_tail: int = whole(40_000, "B11", "tokens of the live tail", 1, TOKENS, LESS)
    collapse_kept: int = whole(1_000, "B11", "tokens kept live at a seal", 0, TOKENS, LESS)
    collapse_offload: int = whole(
        3_000, "B11", "tokens from which a result is stored as it arrives", 100, TOKENS, LESS
    )
    collapse_log: int = whole(
        5_000, "B11", "tokens of sealed lines before they fold", 100, TOKENS, LESS
    )
    collapse_line: int = whole(120, "B11", "characters of one sealed line", 20, COUNT, LESS)
    collapse_reference: int = whole(
        8_000, "B11", "tokens that one reference reads back, at most", 1, TOKENS, LESS
    )

    # Auto memory
    auto_memory_enabled: bool = switch(True, "7", "long-term memory")
    auto_memory_directory: str | None = folder("7", "memory folder in place of the project's own")
    memory_path_override: str | None = folder(
        "7", "full path of the memory folder, before all else", "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE"
    )
    remote_memory_dir: str | None = folder(
        "7", "base folder for memory in place of home", "CLAUDE_CODE_REMOTE_MEMORY_DIR"
    )
    memory_extra_guidelines: str | None = text(
        "7", "text added to the memory prompt", "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES"
    )
    disable_auto_memory: bool = switch(
        False, "7", "no memory of any kind", alias="CLAUDE_CODE_DISABLE_AUTO_MEMORY"
    )
    simple: bool = switch(
        False, "15", "no memory, notes, agent summaries and hooks", alias="CLAUDE_CODE_SIMPLE"
    )
    remote: bool = switch(
        False, "7", "runs on a machine without lasting storage", alias="CLAUDE_CODE_REMOTE"
    )
    team_url: str | None = text("11", "address of the team's memory server")
    team_repository: str | None = text("11", "owner/name in place of what the git remote says")
    team_merge: bool = switch(False, "11", "both sides' words of what both changed are kept")
    team_deletions: bool = switch(False, "11", "deletions of shared memories travel")
    index_lines: int = whole(200, "7", "lines of the index that are sent", 1, COUNT, LESS)
    index_bytes: int = whole(25_000, "7", "bytes of the index that are sent", 1, BYTES, LESS)
    index_line_characters: int = whole(150, "7", "length of one index line", 20, COUNT, LESS)
    extract_rounds: int = whole(5, "7", "rounds of one extraction", 1, 1_000, LESS)
    extract_drain_seconds: float = number(
        60, "7", "wait at exit for an extraction under way", 0, SECONDS, LESS
    )
    extract_idle_seconds: float = number(
        240,
        "7",
        "pause after which turns that were not worth a call alone are looked at",
        0,
        SECONDS,
    )
    extract_every: int = whole(
        1, "7", "extract after every Nth turn; the flag of this name goes first", 1, COUNT, MORE
    )

    # Recall
    selector_model: str | None = text("8", "model that selects memories; unset: embedded")
    selector_milliseconds: float = number(
        30,
        "8",
        "time a request waits for the local selector; a session's first 250",
        0,
        60_000,
        LESS,
    )
    embedding_model: str | None = text(
        "8", "model of meaning: folder, ollama:NAME, NAME@URL; unset: the extra `semantic`; or off"
    )
    recall_min_words: int = whole(2, "8", "words a message needs for recall", 0, COUNT, MORE)
    recall_files: int = whole(5, "8", "memories injected in one turn", 0, COUNT, LESS)
    recall_lines: int = whole(200, "8", "lines of each", 1, COUNT, LESS)
    recall_file_bytes: int = whole(4_096, "8", "bytes of each", 1, BYTES, LESS)
    recall_total_bytes: int = whole(60_000, "8", "bytes in all between compactions", 0, BYTES, LESS)
    recall_manifest_files: int = whole(200, "8", "files in a model's manifest", 1, COUNT, LESS)
    recall_header_lines: int = whole(30, "8", "lines searched for frontmatter", 1, COUNT, LESS)
    recall_output_tokens: int = whole(256, "8", "output of a selecting model", 1, TOKENS, LESS)
    recall_timeout_seconds: float = number(5, "8", "time a selecting model has", 0, SECONDS, LESS)
    recall_caution_days: int = whole(
        2, "8", "age at which a memory carries a caution", 0, COUNT, LESS
    )
    young_tokens: int = whole(2_000, "8", "memories together that are sent whole", 0, TOKENS, LESS)

    # Dreaming
    dream_hours: float = number(24, "9", "time between two dreams", 0, 24 * 366, MORE)
    dream_sessions: int = whole(5, "9", "sessions between two dreams", 0, COUNT, MORE)
    dream_scan_minutes: float = number(10, "9", "time between two looks", 0, MINUTES, MORE)
    dream_stale_lock_minutes: float = number(
        60, "9", "age at which a dream's lock may be taken over", 1, MINUTES
    )
    dream_limit_minutes: float = number(50, "9", "time after which a dream ends", 1, MINUTES, LESS)
    dream_rounds: int = whole(100, "9", "rounds that a dream may take", 1, COUNT, LESS)
    dream_shown_rounds: int = whole(30, "9", "rounds of text shown while it runs", 1, COUNT, LESS)
    dream_grep_hits: int = whole(50, "9", "hits a search of transcripts returns", 1, COUNT, LESS)
    dream_review: bool = switch(False, "B6", "leave a dream's changes for review")

    # Agents
    agent_depth: int = whole(1, "10", "agents below each other; 0 offers none", 0, 1, LESS)
    agents_at_once: int = whole(8, "10", "agents that run at the same time", 1, 64, LESS)
    agent_rounds: int = whole(60, "10", "rounds of one agent", 1, COUNT, LESS)
    agent_minutes: float = number(30, "10", "time after which an agent ends", 0.1, MINUTES, LESS)
    agent_budget_share: float = number(0.25, "10", "of the day's budget, for one agent", 0, 1, LESS)
    agent_summary_seconds: float = number(
        30, "10", "time between two summaries of an agent at work", 1, SECONDS, MORE
    )
    agent_shutdown_seconds: float = number(
        30, "10", "time a teammate has to answer a request to shut down", 0, SECONDS, LESS
    )
    bridge_url: str | None = text("10", "NATS server that carries messages to other machines")
    bridge_name: str | None = text("10", "name there, for `bridge:NAME`; unset: the session's id")

    # Instruction files
    instruction_characters: int = whole(
        40_000, "12", "length at which an instruction file draws a warning", 1, BYTES, LESS
    )
    include_depth: int = whole(5, "12", "depth of includes", 0, 100, LESS)

    # Hooks and tools
    hook_seconds: float = number(60, "13", "time one user hook has", 0, SECONDS)
    tool_seconds: float = number(120, "13", "time one tool call has", 0, SECONDS, LESS)
    max_output_tokens: int = whole(
        32_000,
        "13",
        "tokens one answer may have, or the model's own limit",
        1,
        TOKENS,
        LESS,
    )
    thinking: str = choice(
        "off", "13", "whether a model that can is to think first", ("off", "adaptive", "budget")
    )
    thinking_tokens: int = whole(
        10_000, "13", "tokens it may think, where it has a budget", 1_024, TOKENS, LESS
    )
    effort: str = choice(
        "default",
        "13",
        "how hard a model that can is to work on an answer",
        ("default", "low", "medium", "high", "xhigh", "max"),
    )

    # Prompt cache
    cache_break_share: float = share(0.05, "14", "drop in cache reads that counts as a break")
    cache_break_tokens: int = whole(2_000, "14", "tokens such a drop has at least", 0, TOKENS)
    cache_short_minutes: float = number(5, "14", "short lifetime of a cache entry", 0, MINUTES)
    cache_long_minutes: float = number(60, "14", "long lifetime of a cache entry", 0, MINUTES)

    # Cost of what runs unasked
    background_tokens_per_day: int = whole(
        2_000_000, "B18", "price-weighted tokens a day for what runs unasked", 0, 10**12
    )
    background_calls_per_day: int = whole(
        500, "B18", "requests a day for what runs unasked", 0, 10**9
    )
    background_processes: int = whole(
        4, "B18", "background jobs at once in all processes", 0, 1_000
    )
    background_model: str | None = text(
        "B23",
        "who learns behind plugin and proxy: off, auto, cli:claude, cli:codex or PROVIDER:MODEL; "
        "unset: rules",
    )
    background_key: str | None = text(
        "B23", "environment variable whose key that work may use; unset: none"
    )
    cli_daily_usd: float = number(
        0.25, "B23", "list price of an agent program's background work in a day", 0, 1_000
    )
    cli_daily_calls: int = whole(
        100, "B23", "times a day an agent program is started for it", 0, COUNT
    )
    cli_timeout_seconds: float = number(
        90, "B23", "time one answer of an agent program has", 1, SECONDS
    )
    cli_every_turns: int = whole(
        3, "B23", "turns of a session after which it is asked; at the end always", 1, COUNT
    )
    cli_wait_seconds: float = number(
        20, "B23", "wait for more turns before it is started", 0, SECONDS
    )
    cli_path: str | None = text("B23", "path of the agent program; unset: found on PATH")
    price_read: float = number(0.1, "B18", "weight of a token read from cache", 0, 1_000)
    price_write_short: float = number(
        1.25, "B18", "weight of a token written to the short cache", 0, 1_000
    )
    price_write_long: float = number(
        2.0, "B18", "weight of a token written to the long cache", 0, 1_000
    )
    price_output: float = number(5.0, "B18", "weight of an output token", 0, 1_000)

    # Retention
    retention_days: int = whole(
        90, "18", "age at which transcripts and stored results may be pruned", 1, COUNT
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
    "read_whole",
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
