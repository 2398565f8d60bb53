"""The prompt cache in the normal profile: marks, minimums, lifetimes, what keeps apart."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.simulator import (
    ANTHROPIC,
    OPENAI,
    ApiError,
    AutomaticCache,
    CachedBlock,
    Charge,
    Engine,
    PromptCache,
    digest,
    prompt,
)
from reverie.testing import ManualClock
from reverie.transcript import MEDIA_TOKENS

from .talk import KEY, assistant, body, engine, marked, result, text, use, user, words

pytestmark = pytest.mark.spec("14")


def charge(sim: Engine, *messages: Any, **other: Any) -> Charge:
    return sim.respond(body(*messages, **other)).logged.charge


# --- properties


def parts(*numbers: int, marks: dict[int, str], tokens: int = 600) -> list[CachedBlock]:
    chain, end, out = b"", 0, []
    for at, number in enumerate(numbers):
        chain = digest(chain + str(number).encode())
        end += tokens
        out.append(CachedBlock("user", chain, tokens, end, marks.get(at, "")))
    return out


steps = st.lists(
    st.tuples(st.integers(1, 24), st.sampled_from([0, 10, 250, 299, 400, 3_000]), st.booleans()),
    min_size=1,
    max_size=12,
)


@given(steps)
def test_an_append_only_conversation_is_never_dearer_than_no_cache_at_all_plus_one_write(steps):
    """Each block is written at most once while its entry lives, and read for a tenth."""
    cache, now, length = PromptCache(ANTHROPIC), 0.0, 0
    cost = naive = 0.0
    previous = -1
    for more, wait, keep in steps:
        now += wait
        length += more
        marks = {length - 1: "5m"}
        if keep and previous >= 0:
            marks[previous] = "5m"
        row = parts(*range(length), marks=marks)
        got = cache.charge(row, now, 512)
        assert got.read + got.written + got.plain == got.total == 600 * length
        alive = wait <= 300 and previous >= 0
        seen = more < 20 or (keep and previous >= 0)
        assert got.read == (600 * (previous + 1) if alive and seen else 0)
        cost += got.cost(ANTHROPIC, 0)
        naive += got.total * 1.25
        previous = length - 1
    assert cost <= naive


@given(st.integers(1, 45), st.integers(1, 45))
def test_a_mark_looks_back_over_twenty_blocks(first, more):
    cache = PromptCache(ANTHROPIC)
    cache.charge(parts(*range(first), marks={first - 1: "5m"}), 0, 0)
    longer = parts(*range(first + more), marks={first + more - 1: "5m"})
    assert cache.charge(longer, 1, 0).read == (600 * first if more < 20 else 0)


@given(st.integers(2, 30), st.data())
def test_what_is_read_is_a_prefix_that_was_written(length, data):
    cache = PromptCache(ANTHROPIC)
    written: set[bytes] = set()
    for now in range(4):
        changed = data.draw(st.integers(0, length))
        numbers = [n if n < changed else n + 1000 * (now + 1) for n in range(length)]
        places = data.draw(st.sets(st.integers(0, length - 1), max_size=4))
        row = parts(*numbers, marks=dict.fromkeys(places, "5m"))
        got = cache.charge(row, now, 0)
        if got.read:
            end = next(p for p in row if p.end == got.read)
            assert end.chain in written
        written |= {row[at].chain for at in places}
        assert got.read + got.written == max([row[at].end for at in places], default=0)


@given(st.integers(0, 6_000), st.integers(0, 6_000))
def test_automatic_caching_goes_in_steps(before, after):
    cache = AutomaticCache(OPENAI)
    start = "".join(f"{n:04d}" for n in range(before))
    one = prompt({"messages": [user(start + "x")]}, OPENAI)
    cache.charge(one.parts, 0, 1024)
    more = "".join(f"{n:04d}" for n in range(after))
    two = prompt({"messages": [user(start + more)]}, OPENAI)
    got = cache.charge(two.parts, 1, 1024)
    expected = min(before, before + after) // 128 * 128
    assert got.read == (expected if expected >= 1024 else 0)
    assert got.read + got.written + got.plain == got.total == two.tokens
    assert cache.charge(two.parts, 1802, 1024).read == 0


# --- the normal profile


def test_usage_is_split_as_the_api_splits_it():
    sim = engine()
    sim.respond(body(user(text(words(1), "1h")), system=[text(words(0), "1h")]))
    done = sim.respond(
        body(
            user(text(words(1), "1h")),
            assistant("x"),
            user(text(words(2), "5m")),
            system=[text(words(0), "1h")],
        ),
        "y" * 40,
    )
    assert done.response.usage == {
        "input_tokens": 0,
        "cache_creation_input_tokens": 601,
        "cache_read_input_tokens": 1200,
        "cache_creation": {"ephemeral_5m_input_tokens": 601, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"thinking_tokens": 0},
        "service_tier": "standard",
    }
    assert done.logged.cost == 120 + 601 * 1.25 + 50


@pytest.mark.parametrize(
    ("model", "minimum"),
    [("claude-opus-5-5", 512), ("claude-sonnet-5", 1024), ("claude-opus-4-7", 2048),
     ("claude-haiku-4-5", 4096), ("claude-haiku-4-5-20251001", 4096)],
)  # fmt: skip
def test_the_minimum_is_the_models_own(model, minimum):
    sim = engine()
    short = text(words(1, minimum - 2), "5m")
    assert charge(sim, user(short), model=model).written == 0
    enough = text(words(1, minimum), "5m")
    assert charge(sim, user(enough), model=model).written == minimum


def test_a_mark_at_the_top_goes_to_the_last_block_that_takes_one():
    sim = engine()
    control = {"type": "ephemeral"}
    asked = [user(words(1)), assistant(words(2)), user(words(3))]
    assert charge(sim, *asked, cache_control=control).written_5m == 1800
    more = [*asked, assistant("x"), user("y")]
    assert charge(sim, *more, cache_control=control).read == 1800
    four = [user(text(words(n), "5m")) for n in range(4)]
    with pytest.raises(ApiError, match=r"maximum of 4 .* Found 5"):
        charge(sim, *four, user("last"), cache_control=control)
    assert charge(sim, *four, cache_control=control).total == 2400


def test_a_string_is_one_text_block_and_marks_are_no_content():
    sim = engine()
    charge(sim, user(text(words(1), "5m")))
    plain = {"role": "user", "content": words(1)}
    assert charge(sim, plain, assistant("x"), user(text("y", "5m"))).read == 600


def test_messages_of_one_role_in_a_row_are_one_message():
    sim = engine()
    charge(sim, user(words(1)), user(text(words(2), "5m")))
    assert charge(sim, user(words(1), text(words(2), "5m"))).read == 1200


def test_a_mark_inside_a_tool_result_counts():
    sim = engine()
    asked = [user(words(1)), assistant(use("a"))]
    inside = result("a", [text(words(2), "5m")])
    assert charge(sim, *asked, user(inside)).written > 1200
    assert charge(sim, *asked, user({**inside, "content": [text(words(2), "5m")]})).read > 1200


def test_an_input_in_another_order_or_with_other_numerals_is_another_block():
    sim = engine()
    texts = ['{"a":1.0,"b":2}', '{"b":2,"a":1.0}', '{"a":1.00,"b":2}', '{"a":1.0,"b":2}']
    reads = []
    for given_input in texts:
        raw = (
            '{"model":"claude-opus-5-5","max_tokens":9,"messages":['
            '{"role":"user","content":"%s"},'
            '{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"R","input":%s}]},'
            '{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"%s",'
            '"cache_control":{"type":"ephemeral"}}]}]}' % (words(1), given_input, words(2))
        )
        reads.append(sim.respond(raw).logged.charge.read)
    assert [bool(r) for r in reads] == [False, False, False, True]


def test_caches_are_apart_by_model_key_thinking_and_tool_choice():
    sim = engine()
    system = [text(words(0), "1h")]
    asked = [user(text(words(1), "5m"))]
    charge(sim, *asked, system=system)
    assert charge(sim, *asked, system=system).read == 1200
    assert charge(sim, *asked, system=system, model="claude-opus-5").read == 0
    assert sim.respond(body(*asked, system=system), headers=KEY).logged.charge.read == 0
    thinking = {"type": "adaptive"}
    assert charge(sim, *asked, system=system, thinking=thinking).read == 600
    assert charge(sim, *asked, system=system, tool_choice={"type": "none"}).read == 600


def test_pictures_are_flat_and_thinking_is_counted():
    sim = engine()
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * 90_000}}
    assert charge(sim, user(picture, "what?")).total == MEDIA_TOKENS + 2
    first = sim.respond(body(user("go")), [{"type": "thinking", "thinking": words(1)}])
    assert first.response.usage["output_tokens_details"] == {"thinking_tokens": 600}
    back = [b.value for b in first.response.content]
    assert charge(sim, user("go"), assistant(*back, "x"), user("y")).total == 603


def test_a_reminder_shown_until_the_next_user_message_costs_nothing_after_it():
    sim = engine()
    note = {"role": "system", "content": words(9), "clear_at": "next_user_message"}
    assert charge(sim, user(text(words(1), "5m")), note).total == 1200
    later = charge(sim, user(text(words(1), "5m")), note, assistant("x"), user(text("y", "5m")))
    assert (later.read, later.total) == (600, 602)


def test_max_tokens_zero_warms_the_cache():
    sim = engine()
    warm = sim.respond(body(user(text(words(1), "5m")), max_tokens=0), "never said")
    assert (warm.response.content, warm.response.output) == ((), 0)
    assert charge(sim, user(text(words(1), "5m"))).read == 600


# --- cache edits


def edited(*calls: str) -> dict[str, Any]:
    return {"type": "cache_edits", "delete": list(calls)}


def test_cache_edits_take_results_out_of_the_bill_and_keep_the_prefix():
    sim = engine()
    start = [user("go"), assistant(use("a"), use("b"))]
    results = [result("a", words(1, 4000)), result("b", words(2, 4000))]
    first = charge(sim, *start, marked(user(*results)))
    assert first.written > 8000
    second = [*start, user(*results), assistant("x"), user("more", edited("a"), text("z", "5m"))]
    after = charge(sim, *second)
    assert after.read == first.written - 4000
    assert after.total < first.total - 3900
    third = [*second, assistant("y"), user(text("on", "5m"))]
    assert charge(sim, *third).read == after.read + after.written
    without = [*start, user(*results), assistant("x"), user("more", text("z", "5m"))]
    assert charge(sim, *without, assistant("y"), user(text("on", "5m"))).read == first.written


@pytest.mark.parametrize(
    ("edit", "words_of_it"),
    [(edited("zz"), "do not stand before"), ({"type": "cache_edits"}, "Field required"),
     ({"type": "cache_edits", "delete": []}, "Field required")],
)  # fmt: skip
def test_cache_edits_that_name_nothing_are_refused(edit, words_of_it):
    with pytest.raises(ApiError, match=words_of_it):
        charge(engine(), user("go"), assistant(use("a")), user(result("a"), edit))


# --- a whole tool session


def test_sixty_rounds_cost_the_optimum():
    """Every prefix is written once and read on each later request."""
    clock = ManualClock()
    sim = engine(clock=clock)
    head = text(words(0, 8000), "1h")
    messages: list[Any] = [user(words(1))]
    expected = 8000 * 2.0
    known, size = 8000, 8600
    for n in range(60):
        clock.time += 20
        asked = [*messages[:-1], marked(messages[-1])]
        done = sim.respond(body(*asked, system=[head]), [text("ok"), use(f"t{n}")])
        expected += (known * 0.1 if n else 0) + (size - known) * 1.25 + done.logged.output * 5
        known = done.logged.charge.total
        assert done.logged.charge.plain == 0
        messages += [assistant("ok", use(f"t{n}")), user(result(f"t{n}", words(n)))]
        size = known + done.logged.output + 600
    (bill,) = sim.bills.values()
    assert bill.cost == pytest.approx(expected)
    assert bill.hit_rate > 0.9
    assert len(bill.requests) == 60
