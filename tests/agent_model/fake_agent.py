"""An agent program for tests that behaves by Claude Code's documented protocol.

`PLAN`, beside it, says what it does; each run with a prompt is a line in `runs.jsonl`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = (
    "--safe-mode --settings --strict-mcp-config --disable-slash-commands --tools --permission-mode "
    "--no-session-persistence --model --effort --max-budget-usd --output-format --system-prompt"
)


def main() -> int:
    plan = json.loads((HERE / "plan.json").read_text())
    words = sys.argv[1:]
    if words[:1] == ["--version"]:
        print(plan.get("version", "9.9.9 (Fake)"))
        return 0
    if words[:1] == ["--help"]:
        print("\n".join(flag for flag in FLAGS.split() if flag != plan.get("unknown")))
        return 0
    if words[:2] == ["auth", "status"]:
        return 0 if plan.get("logged_in", True) else 1
    started = time.time()
    prompt = sys.stdin.buffer.read().decode()
    if plan.get("unknown") in words:
        sys.stderr.write(f"error: unknown option '{plan['unknown']}'\n")
        return 1
    if plan.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(plan.get("seconds", 0))
    run = {
        "words": words,
        "prompt": prompt,
        "environ": dict(os.environ),
        "cwd": os.getcwd(),
        "there": os.listdir(),
        "from": started,
        "to": time.time(),
    }
    log = HERE / "runs.jsonl"
    number = len(log.read_text().splitlines()) if log.exists() else 0
    with log.open("a") as file:
        file.write(json.dumps(run) + "\n")
    result = {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "api_error_status": None,
        "result": "nothing to keep",
        "stop_reason": "end_turn",
        "total_cost_usd": 0.001,
        "usage": {"input_tokens": 1_000, "output_tokens": 10},
        "modelUsage": {"claude-haiku-4-5": {}},
        **plan.get("result", {}),
    }
    if number < len(plan.get("answers", [])):
        result["result"] = plan["answers"][number]
    print(plan["out"] if "out" in plan else json.dumps(result))
    return int(plan.get("code", 0))


if __name__ == "__main__":
    sys.exit(main())
