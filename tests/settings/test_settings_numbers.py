"""The defaults of SPEC §17 and the window arithmetic of SPEC §2."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.settings import DEFAULTS, NOTES, ORDERED, SCALED, SETTINGS, Settings, camel

pytestmark = pytest.mark.spec("17")

SPEC_17 = {
    "text_bytes_per_token": 4,
    "json_bytes_per_token": 2,
    "media_tokens": 2_000,
    "default_window": 200_000,
    "summary_reserve_tokens": 20_000,
    "summary_reserve_share": 0.10,
    "compact_buffer_tokens": 13_000,
    "compact_buffer_share": 0.065,
    "result_characters": 50_000,
    "message_result_characters": 200_000,
    "read_whole": 25_000,
    "result_preview_bytes": 2_000,
    "microcompact_idle_minutes": 60,
    "microcompact_kept": 5,
    "api_clear_trigger_tokens": 180_000,
    "api_clear_at_least_tokens": 140_000,
    "api_thinking_kept_turns": 1,
    "cache_edit_count": 20,
    "cache_edit_kept": 5,
    "cache_break_share": 0.05,
    "cache_break_tokens": 2_000,
    "notes_first_tokens": 10_000,
    "notes_growth_tokens": 5_000,
    "notes_tool_calls": 3,
    "notes_section_tokens": 2_000,
    "notes_total_tokens": 12_000,
    "notes_compact_min_tokens": 10_000,
    "notes_compact_min_messages": 5,
    "notes_compact_max_tokens": 40_000,
    "notes_wait_seconds": 15,
    "compact_breaker_failures": 3,
    "compact_too_long_retries": 3,
    "compact_dropped_share": 0.20,
    "compact_must_free_share": 0.20,
    "compact_keep_list_tokens": 2_000,
    "collapse_tail": 40_000,
    "collapse_kept": 1_000,
    "collapse_offload": 3_000,
    "collapse_reference": 8_000,
    "selector_milliseconds": 30,
    "hook_seconds": 60,
    "tool_seconds": 120,
    "provider_retries": 5,
    "background_tokens_per_day": 2_000_000,
    "background_calls_per_day": 500,
    "background_processes": 4,
    "price_read": 0.1,
    "price_write_short": 1.25,
    "price_write_long": 2,
    "price_output": 5,
    "retention_days": 90,
    "restore_files": 5,
    "restore_file_tokens": 5_000,
    "restore_files_tokens": 50_000,
    "restore_skill_tokens": 5_000,
    "restore_skills_tokens": 25_000,
    "index_lines": 200,
    "index_bytes": 25_000,
    "index_line_characters": 150,
    "extract_rounds": 5,
    "extract_drain_seconds": 60,
    "extract_every": 1,
    "recall_files": 5,
    "recall_lines": 200,
    "recall_file_bytes": 4_096,
    "recall_total_bytes": 60_000,
    "recall_manifest_files": 200,
    "recall_header_lines": 30,
    "recall_output_tokens": 256,
    "recall_timeout_seconds": 5,
    "dream_hours": 24,
    "dream_sessions": 5,
    "dream_scan_minutes": 10,
    "dream_stale_lock_minutes": 60,
    "dream_limit_minutes": 50,
    "dream_shown_rounds": 30,
    "instruction_characters": 40_000,
    "include_depth": 5,
}

windows = st.integers(min_value=0, max_value=3_000_000)


@pytest.mark.parametrize(("name", "default"), SPEC_17.items())
def test_default_is_the_one_stated(name: str, default: float) -> None:
    assert getattr(DEFAULTS, name) == default


@pytest.mark.parametrize("name", SETTINGS)
def test_default_is_one_that_could_be_given(name: str) -> None:
    known, value = SETTINGS[name], getattr(DEFAULTS, name)
    assert known.about
    assert known.section
    if known.kind in ("whole", "number") and value is not None:
        assert known.low <= value <= known.high
    if known.kind == "choice":
        assert value in known.choices


def test_defaults_stand_in_order() -> None:
    for smaller, larger in ORDERED:
        assert getattr(DEFAULTS, smaller) <= getattr(DEFAULTS, larger), (smaller, larger)


def test_keys_of_the_specification() -> None:
    keys = {camel(name) for name in SETTINGS}
    assert {"autoMemoryEnabled", "autoMemoryDirectory", "autoCompactEnabled"} <= keys
    assert len(keys) == len(SETTINGS)


def test_settings_never_change() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        DEFAULTS.collapse_tail = 1  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("window", "effective", "threshold"),
    [
        (200_000, 180_000, 167_000),
        (1_000_000, 980_000, 967_000),
        (100_000, 90_000, 83_500),
        (32_000, 28_800, 26_720),
        (0, 0, 0),
    ],
)
def test_window_arithmetic(window: int, effective: int, threshold: int) -> None:
    assert DEFAULTS.effective_window(window) == effective
    assert DEFAULTS.compact_threshold(window) == threshold


def test_what_is_left_until_compaction() -> None:
    assert DEFAULTS.left_until_compact(200_000, 100_000) == 67_000
    assert DEFAULTS.left_until_compact(200_000, 180_000) == 0


@given(windows)
def test_threshold_lies_within_the_effective_window(window: int) -> None:
    effective = DEFAULTS.effective_window(window)
    assert 0 <= DEFAULTS.compact_threshold(window) <= effective <= window


@given(windows, windows)
def test_a_larger_window_never_has_a_lower_threshold(one: int, two: int) -> None:
    low, high = sorted((one, two))
    assert DEFAULTS.compact_threshold(low) <= DEFAULTS.compact_threshold(high)


def test_api_clearing_moves_below_the_threshold() -> None:
    assert DEFAULTS.api_clearing(1_000_000) == (180_000, 140_000)
    assert DEFAULTS.api_clearing(200_000) == (147_000, 73_500)


@given(windows)
def test_api_clearing_fires_before_compaction(window: int) -> None:
    trigger, least = DEFAULTS.api_clearing(window)
    assert 0 <= least <= trigger
    assert trigger <= max(1, DEFAULTS.compact_threshold(window))


@given(windows)
def test_budgets_shrink_in_proportion(window: int) -> None:
    scaled = DEFAULTS.scaled(window)
    for name in SETTINGS:
        before, after = getattr(DEFAULTS, name), getattr(scaled, name)
        if name not in SCALED or window >= 200_000:
            assert after == before
        else:
            assert after == max(1, before * window // 200_000)


def test_scaled_budgets_of_a_small_window() -> None:
    scaled = DEFAULTS.scaled(20_000)
    assert scaled.result_characters == 5_000
    assert scaled.message_result_characters == 20_000
    assert scaled.notes_first_tokens == 1_000
    assert scaled.collapse_tail == 4_000
    assert scaled.notes_tool_calls == 3


def test_fallback_window() -> None:
    assert DEFAULTS.fallback_window == 200_000
    assert Settings(context_window=32_000).fallback_window == 32_000


def test_why_memory_is_off_is_asked_in_order() -> None:
    assert DEFAULTS.memory_off() == ""
    assert "disable_auto_memory" in Settings(disable_auto_memory=True, simple=True).memory_off()
    assert "simple" in Settings(simple=True, remote=True).memory_off()
    assert "remote" in Settings(remote=True, auto_memory_enabled=False).memory_off()
    assert Settings(remote=True, remote_memory_dir="/mnt/memory").memory_off() == ""
    assert "autoMemoryEnabled" in Settings(auto_memory_enabled=False).memory_off()


def test_notes_numbers_from_a_flag() -> None:
    changed = DEFAULTS.with_notes({"notes_first_tokens": 7, "collapse_tail": 1})
    assert changed.notes_first_tokens == 7
    assert changed.collapse_tail == DEFAULTS.collapse_tail
    assert "notes_wait_seconds" not in NOTES


def test_import_brings_nothing_heavy() -> None:
    heavy = ("asyncio", "subprocess", "typing", "difflib")
    code = f"import sys, reverie.settings; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
