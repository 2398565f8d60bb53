from __future__ import annotations

import pytest

from reverie.providers import (
    PRICES,
    Retries,
    dollars,
    money,
    openai_model,
    price_of,
    table_capabilities,
)
from reverie.testing import ManualClock
from reverie.transcript import Usage

pytestmark = pytest.mark.spec("18.own-key")
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("model", "given", "output", "read"),
    [
        ("claude-sonnet-5", 2, 10, 0.2),
        ("anthropic:claude-sonnet-5-5", 2, 10, 0.2),
        ("claude-opus-5-5", 4, 20, 0.2),
        ("claude-opus-5", 5, 25, 0.5),
        ("claude-opus-5-20260724", 5, 25, 0.5),
        ("claude-haiku-4-5-20251001", 1, 5, 0.1),
        ("openai:gpt-5", 1.25, 10, 0.125),
        ("gpt-5.5-2026-04-23", 5, 30, 0.5),
        ("gpt-5.4", 2.5, 15, 0.25),
        ("gpt-4.1-2025-04-14", 2, 8, 0.5),
    ],
)
def test_what_a_model_costs(model: str, given: float, output: float, read: float) -> None:
    price = price_of(model)
    assert price is not None
    assert (price.input, price.output, price.read) == (given, output, read)


@pytest.mark.parametrize(
    "model", ["gpt-5-mini", "gpt-5.5-pro", "claude-opus-6", "llama", "", "gpt-4o-mini"]
)
def test_no_price_is_guessed(model: str) -> None:
    assert price_of(model) is None
    assert dollars(model, Usage(1, 1, 1, 1)) is None
    assert dollars(model, Usage(1, 1, 1, 1), free=True) == 0


def test_every_kind_of_token_has_its_price() -> None:
    usage = Usage(MILLION, MILLION, 2 * MILLION, MILLION, written_1h=MILLION)
    assert dollars("claude-sonnet-5", usage) == pytest.approx(2 + 0.2 + 2.5 + 4 + 10)
    assert dollars("gpt-5", Usage(MILLION, MILLION, 0, 0)) == pytest.approx(1.375)


def test_a_table_that_makes_sense() -> None:
    for _, price in PRICES:
        assert 0 < price.read < price.input <= price.written <= price.written_1h < price.output


@pytest.mark.parametrize(
    ("amount", "shown"), [(0, "$0.0000"), (0.01234, "$0.0123"), (1, "$1.00"), (1234.5, "$1,234.50")]
)
def test_money_as_people_write_it(amount: float, shown: str) -> None:
    assert money(amount) == shown


@pytest.mark.parametrize(
    ("model", "read", "write", "output"),
    [
        ("claude-sonnet-4-5", 0.1, 1.25, 5),
        ("gpt-4o", 0.5, 1.0, 4),
        ("gpt-5", 0.1, 1.0, 8),
        ("some-model-nobody-knows", 0.1, 1.0, 5),
        ("claude-nobody-knows", 0.1, 1.25, 5),
    ],
)
def test_prices_against_an_input_are_capabilities_of_the_model(
    model: str, read: float, write: float, output: float
) -> None:
    prices = table_capabilities(model).prices
    assert (prices.read, prices.write, prices.output) == (read, write, output)


def test_a_server_on_this_machine_takes_no_money() -> None:
    retries = Retries(0, ManualClock(), lambda: 0.0)
    here, there = (
        openai_model("llama", retries=retries, key="k", base_url=f"http://{host}:1/v1")
        for host in ("localhost", "example.com")
    )
    assert here.capabilities.prices.read == 0.0
    assert there.capabilities.prices.read == 0.1
