"""The repository that the demo works on: a small project with one fault and long logs.

Made of nothing but the text here, the same bytes every time. Only the folder that is
handed in is written to.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PRICING = '''"""Prices of an order."""


def discount(total, percent):
    """The total after a discount in percent."""
    return total - total * percent / 10


def with_tax(total, rate=0.19):
    return round(total * (1 + rate), 2)
'''
FAULT = "total * percent / 10"
MENDED = "total * percent / 100"
TESTS = '''"""Tests of the prices."""

import unittest

from orders.pricing import discount, with_tax


class Prices(unittest.TestCase):
    def test_a_discount_is_taken_off(self):
        self.assertEqual(discount(200, 15), 170)

    def test_tax_is_added(self):
        self.assertEqual(with_tax(100), 119.0)
'''
README = "# orders\n\nPrices of a small shop. `python -m unittest` runs the tests.\n"
LOG_LINES = 1_500
SERVICES = ("checkout", "billing", "search", "mail", "stock")
SERVICE_CHARACTERS = 45_000
LONGEST = "checkout"  # the one that is stored to make room for the others


def service_log() -> str:
    """A log of more than 50,000 characters in which three lines matter."""
    lines: list[str] = []
    for n in range(LOG_LINES):
        clock = f"{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}"
        if n in (411, 902, 1_307):
            lines.append(f"{clock} ERROR pricing order {n}: discount of 15 % gave a negative total")
        else:
            lines.append(f"{clock} INFO  pricing order {n}: priced in {n * 7 % 40 + 3} ms, sent on")
    return "\n".join(lines) + "\n"


def other_log(name: str) -> str:
    """One of five logs, each below a result's own limit, together above a message's."""
    lines: list[str] = []
    size = n = 0
    while size < SERVICE_CHARACTERS + (1_000 if name == LONGEST else 0):
        slow = "TIMEOUT after 3000 ms" if n % 331 == 330 else f"answered in {n * 11 % 90 + 5} ms"
        lines.append(f"{name} request {n:06}: {slow}")
        size += len(lines[-1]) + 1
        n += 1
    return "\n".join(lines) + "\n"


def make(folder: Path) -> None:
    """Write the repository into an empty folder."""
    files = {
        "README.md": README,
        "orders/__init__.py": "",
        "orders/pricing.py": PRICING,
        "tests/__init__.py": "",
        "tests/test_pricing.py": TESTS,
        "service.log": service_log(),
        **{f"logs/{name}.log": other_log(name) for name in SERVICES},
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git = shutil.which("git")
    if git is not None:
        subprocess.run([git, "init", "-q", str(folder)], check=False, capture_output=True)
