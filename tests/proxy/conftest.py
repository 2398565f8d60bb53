"""The engine of a proxy, for as long as a test runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from reverie.interception import InterceptionEngine
from tests.proxy.clients import engine


@pytest.fixture
async def through(home: Path) -> AsyncGenerator[InterceptionEngine]:
    made = engine(home)
    yield made
    await made.aclose()
