"""What is taken out of a summary is the whole secret, not the piece that a rule named."""

from __future__ import annotations

from random import Random

import pytest

from reverie.secrets import remove_secrets

pytestmark = [pytest.mark.spec("7.secrets"), pytest.mark.spec("7.secrets-whole")]


def test_of_an_address_that_holds_a_secret_nothing_stays() -> None:
    chance = Random(7)

    def digits(count: int) -> str:
        return "".join(chance.choice("0123456789abcdef") for _ in range(count))

    def unique() -> str:
        return "-".join(digits(count) for count in (8, 4, 4, 4, 12))

    path = f"{unique()}@{unique()}/IncomingWebhook/{digits(32)}/{unique()}"
    text = f"Post to https://acme.webhook.office.com/webhookb2/{path} when done."
    clean, rules = remove_secrets(text)
    assert rules
    assert clean.startswith("Post to [secret removed: ")
    assert clean.endswith("] when done.")
    assert not any(path[at : at + 8] in clean for at in range(len(path) - 8))
