"""The project of the played course: twelve modules, a patch to look at, a tool to change."""

from __future__ import annotations

import random
from pathlib import Path

from .stage import git

MODULES = ("basket", "billing", "catalog", "coupons", "customers", "freight", "invoices", "ledger",
           "payments", "refunds", "returns", "taxes")  # fmt: skip
SAID = """\
Three things, best done by others beside each other:
1. Find where discounts are rounded, all places.
2. Have patches/retry.diff reviewed against shop/payments.py: is it safe to apply?
3. Let somebody add a --dry-run flag to tools/export.py, in a worktree of its own, committed there.
Then merge the third, if it is fine, and tell me about the other two in a few lines."""
EXPORT = '''"""Writes all invoices to a file."""

import argparse
import json
from pathlib import Path


def export(invoices, target):
    Path(target).write_text(json.dumps(invoices, indent=1))
    return len(invoices)


def main(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    args = parser.parse_args(words)
    count = export([{"id": 1, "total": "9.90"}], args.target)
    print(f"{count} invoices in {args.target}")


if __name__ == "__main__":
    main()
'''
PATCH = """\
--- a/shop/payments.py
+++ b/shop/payments.py
@@ -1,3 +1,14 @@
 \"\"\"The payments module.\"\"\"
+
+
+def charge_with_retry(send, order, attempts=3):
+    for _ in range(attempts):
+        try:
+            return send(order)
+        except (TimeoutError, ConnectionError):
+            continue
+    return None
+
+
 _payments_store = {}
"""
CHARGE = '''

def charge(send, order):
    """Charges an order once. The provider knows a charge by the key in `order["key"]`."""
    reply = send({**order, "key": order.get("key") or _new_key()})
    if reply is None:
        raise RuntimeError("the provider gave no answer; ask it before charging again")
    return reply
'''
ROUNDED = {
    "coupons": "\n\ndef discount_of(price, percent):\n    return round(price * percent / 100, 2)\n",
    "basket": "\n\ndef discounted(total, off):\n    return int((total - off) * 100) / 100\n",
    "invoices": "\n\ndef line_discount(line):\n    return Decimal(line.off).quantize(CENT)\n",
}


def course_project(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "trunk")
    dice = random.Random(11)
    for name in MODULES:
        lines = [f'"""The {name} module."""', f"_{name}_store = {{}}", ""]
        for n in range(70):
            verb = dice.choice(("load", "flush", "find", "keep"))
            lines.append(f"def {name}_{verb}_{n:02d}(key, limit={dice.randrange(90)}):")
            lines.append(f"    return _{name}_store.get(key, {dice.randrange(10**5)}) + limit\n")
        text = "\n".join(lines) + ROUNDED.get(name, "") + (CHARGE if name == "payments" else "")
        _write(folder / f"shop/{name}.py", text)
    _write(folder / "tools/export.py", EXPORT)
    _write(folder / "patches/retry.diff", PATCH)
    git(folder, "config", "user.name", "A")
    git(folder, "config", "user.email", "a@b.example")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "A shop")
    return folder


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
