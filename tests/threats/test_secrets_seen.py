"""Secrets in names, over two lines and encoded: seen without any recorded material."""

from __future__ import annotations

import base64

import pytest

from reverie.errors import SecretFound
from reverie.secrets import check_clean, scan

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_a_secret_in_a_name_is_found_and_not_repeated() -> None:
    assert scan(b"harmless", f"{KEY}.md")
    with pytest.raises(SecretFound) as caught:
        check_clean(b"harmless", f"{KEY}.md")
    assert KEY not in str(caught.value)


def test_a_secret_over_two_lines_is_found() -> None:
    assert scan(f"the token is {KEY[:20]}\n{KEY[20:]} and no more")


def test_a_secret_in_base64_is_found() -> None:
    assert scan(f"data: {base64.b64encode(KEY.encode()).decode()}\n")
