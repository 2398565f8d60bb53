"""What the MCP SDK costs: nothing where no server is used."""

from __future__ import annotations

import pytest

from tests.processes import loaded

pytestmark = pytest.mark.spec("18.mcp-client")
SDKS = {"mcp", "mcp_types", "jsonschema", "httpx2", "pydantic", "anthropic"}


def test_no_sdk_is_loaded_before_it_is_used() -> None:
    lines = [
        "import reverie; reverie.Memory",
        "import reverie.agent.agent",
        "import reverie.apps.hook.events",
        "import reverie.apps.cli.app as a; a.build()",
        "import reverie.apps.cli.install, reverie.apps.cli.trust, reverie.apps.cli.servers",
    ]
    assert not loaded("\n".join(lines)) & SDKS
