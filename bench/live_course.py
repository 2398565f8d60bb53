"""What the live course is made of: a small project, a memory in use, and what the user says.

Four facts are said in the first session, one of them at a permission prompt. Later turns need
them. Each fact is looked for by words of its own, which the turns that need it do not say; nothing
here imports what remembers or recalls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from bench.prepared import Note

NEAR = 250  # characters between the words of one fact
BOARD = "shop-web-vitals"
DENIAL = (
    "No, don't change a file before you have shown me the diff here in the chat, because I have "
    "to defend every change in front of the web team."
)


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that was said once: one word of each group, near one another."""

    name: str
    words: tuple[str, ...]  # patterns

    def stands_in(self, text: str) -> bool:
        plain = " ".join(text.split()).casefold()
        first, *others = (re.compile(rf"\b(?:{one})\b") for one in self.words)
        for found in first.finditer(plain):
            near = plain[max(0, found.start() - NEAR) : found.end() + NEAR]
            if all(other.search(near) for other in others):
                return True
        return False


ROLE = Fact("role", ("back-?end|back end", "front-?end|front end"))
DEADLINE = Fact("deadline", (r"2026-03-13|13(?:th)?(?: of)? march|march 13(?:th)?",))
POINTER = Fact("pointer", (BOARD,))
CORRECTION = Fact("correction", ("diffs?", "chat|show(?:n|ing|s|ed)?"))
FACTS = (ROLE, DEADLINE, POINTER, CORRECTION)


@dataclass(frozen=True, slots=True)
class CourseTurn:
    """What the user says, and the facts an answer needs."""

    said: str
    needs: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class CourseSession:
    """One session: its day at noon, its context policy, its turns; a dream may follow."""

    day: str
    policy: str
    turns: tuple[CourseTurn, ...]
    dreams: bool = False


COURSE = (
    CourseSession(
        "2026-03-02",
        "classic",
        (
            CourseTurn(
                "Good morning. I have written backend services for ten years and this is my first "
                "week on the front end of the shop, so explain browser matters to me as you "
                "would explain a service. We freeze the release on Friday next week. What real "
                f"visitors measure is on the Grafana board {BOARD}, in case you need it.\n\n"
                "The check is red. Run `python3 check.py`, then `python3 check.py --trace`, and "
                "tell me which step makes the wrong number, and why."
            ),
            CourseTurn("Good. Fix it."),
            CourseTurn("Yes, that is the change. Make it, and run the check again."),
        ),
    ),
    CourseSession(
        "2026-03-04",
        "classic",
        (
            CourseTurn(
                "The product page feels slow since the release of yesterday. Where do I look at "
                "the numbers of real visitors first? And what is hydration?",
                (POINTER, ROLE),
            ),
            CourseTurn(
                "Does any page under shop/ still format cents by hand and not with `money`? Read "
                "what is there, run `python3 check.py`, and name file and line."
            ),
        ),
        dreams=True,
    ),
    CourseSession(
        "2026-03-09",
        "collapse",
        (
            CourseTurn(
                "Gift wrapping is about three working days of work. Does it still fit in before "
                "the release freeze, and which date is that?",
                (DEADLINE,),
            ),
            CourseTurn(
                "Then begin. A wrapped line costs 250 cents more for each piece: `line_total` in "
                "shop/prices.py gets `wrapped=False`. Go ahead with the change.",
                (CORRECTION,),
            ),
            CourseTurn(
                "Fine, make it so. Then run `python3 check.py` and `python3 check.py --trace`."
            ),
            CourseTurn("How many cases passed, and in which step does the trace round?"),
        ),
    ),
)

# --- the project

PRICES = '''"""Prices, in whole cents."""


def line_total(price: int, count: int, discount: int = 0) -> int:
    """What one line of the cart costs; the discount in per cent."""
    return round(price * count * (100 - discount) / 100)


def cart_total(lines: list[dict]) -> int:
    return sum(line_total(**line) for line in lines)
'''
MONEY = '''"""How amounts are shown."""


def money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d} EUR"
'''
CART_PAGE = '''"""The cart, as the server renders it."""

from shop.money import money
from shop.prices import cart_total


def page(lines: list[dict]) -> str:
    return f"<main><h1>Cart</h1><p class='total'>{money(cart_total(lines))}</p></main>"
'''
PRODUCT_PAGE = '''"""A product, as the server renders it."""


def page(name: str, price: int) -> str:
    shown = "%d.%02d EUR" % (price // 100, price % 100)
    return f"<main><h1>{name}</h1><p class='price'>{shown}</p></main>"
'''
CHECK = '''"""Checks every price in the catalogue. `--trace` tells each step of the sum."""

import sys

from shop.prices import line_total

CASES = 820
ODD = 407


def case(n: int) -> tuple[int, int, int]:
    if n == ODD:
        return 2525, 1, 50
    return 195 + n * 35 % 9000 // 5 * 5, 1 + n % 4, (0, 20)[n % 2]


def check() -> int:
    failed = 0
    for n in range(CASES):
        price, count, discount = case(n)
        expected = (price * count * (100 - discount) + 50) // 100
        got = line_total(price, count, discount)
        word = "ok  " if got == expected else f"FAIL expected {expected}, got {got};"
        failed += got != expected
        print(f"case {n:04d} {word} {price:5d} x {count} less {discount:2d} % = {got:6d} cents")
    print(f"{CASES - failed} of {CASES} cases passed, {failed} failed")
    return 1 if failed else 0


def trace() -> int:
    price, count, discount = case(ODD)
    total = 0
    for step in range(2400):
        if step == 1207:
            exact = price * count * (100 - discount) / 100
            got = line_total(price, count, discount)
            print(f"step {step:04d} ROUNDING {exact} cents become {got}; expected 1263")
            continue
        total += step * 17 % 101
        item = step * 7 % 997
        print(f"step {step:04d} look up item {item:03d} in the catalogue, sum {total:07d}")
    print("2400 steps; the one that rounds is marked ROUNDING")
    return 0


if __name__ == "__main__":
    sys.exit(trace() if "--trace" in sys.argv else check())
'''
FILES = {
    "shop/__init__.py": "",
    "shop/prices.py": PRICES,
    "shop/money.py": MONEY,
    "shop/cart_page.py": CART_PAGE,
    "shop/product_page.py": PRODUCT_PAGE,
    "check.py": CHECK,
    "README.md": "# Shop\n\nThe server renders the pages. `python3 check.py` checks prices.\n",
}


def lay_out(project: Path) -> None:
    """Write the project's files."""
    for name, text in FILES.items():
        place = project / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


# --- what was remembered before: enough that a memory has to be chosen


def _note(file: str, kind: str, name: str, about: str, *body: str) -> Note:
    return Note(file, kind, name, about, "\n\n".join(body))


REMEMBERED = (
    _note(
        "project_search_index.md",
        "project",
        "Search index",
        "The search index is rebuilt at night and lags behind the catalogue by a day",
        "The search index of the shop is rebuilt every night at 02:30. A product that is added "
        "during the day is not found before the next morning. Ines knows of it; it stays like "
        "this until the new cluster is there, which nobody has put a date on.",
        "**Why:** the old cluster cannot index while it serves.\n\n**How to apply:** do not treat "
        "a product that is not found on the day it was added as a fault. Ask when it was added.",
    ),
    _note(
        "project_images.md",
        "project",
        "Product images",
        "Product images come from the bucket of the print department, which owns their sizes",
        "Images of products come from the bucket of the print department. They are delivered in "
        "three widths, 320, 640 and 1280, and nobody in the shop team may add a fourth. Requests "
        "go to Marek, who answers on Tuesdays.",
        "**Why:** the same files are used for the printed catalogue, and a width costs a render "
        "of all 40,000 of them.\n\n**How to apply:** build layouts from the three widths.",
    ),
    _note(
        "feedback_commit_messages.md",
        "feedback",
        "Commit messages",
        "Commit messages begin with the ticket and say why, in one line of at most 72 characters",
        "Begin each commit message with the ticket's key, then say why the change was needed, in "
        "one line of at most 72 characters.",
        "**Why:** the release notes are made from these lines by a script that cuts at 72.\n\n"
        "**How to apply:** for every commit, also for fix-ups.",
    ),
    _note(
        "feedback_no_new_packages.md",
        "feedback",
        "No new packages",
        "No new third-party package without a word from Tomas, who has to license it",
        "Do not add a third-party package to the shop. Say which one would help and what it "
        "would save, and leave the decision.",
        "**Why:** each has to be licensed by Tomas, and the last one took five weeks.\n\n**How "
        "to apply:** solve it with the standard library first; name the package beside it.",
    ),
    _note(
        "reference_translations.md",
        "reference",
        "Translations",
        "Texts of the pages are translated in the tool of the editors, sheet Shop 2026",
        "All texts that visitors read are kept in the editors' tool, sheet Shop 2026. The files "
        "under `locale/` are exported from there each Thursday and overwritten. Changes are made "
        "in the sheet; the person to ask is Yuki.",
    ),
    _note(
        "project_payment.md",
        "project",
        "Payment provider",
        "The payment provider is changed in summer 2026; until then no work on the old one",
        "The shop changes its payment provider in summer 2026. The contract with the old one ends "
        "on 31 August 2026. Nothing but security fixes is done on the old integration.",
        "**Why:** the money for it is spent.\n\n**How to apply:** when something about payments "
        "is asked for, ask whether it can wait for the new provider.",
    ),
    _note(
        "reference_incidents.md",
        "reference",
        "Incidents",
        "Incidents are written up in the wiki under Shop/Incidents, one page each",
        "Each incident has a page in the wiki under Shop/Incidents, with its timeline and what "
        "was learned. Look there before a guess about why something is as it is; the page of "
        "November 2025 explains the odd retry in the basket service.",
    ),
    _note(
        "project_basket_retry.md",
        "project",
        "Basket retry",
        "The basket service tries three times with 700 ms between; it must stay so",
        "The basket service tries a failed write three times, 700 ms apart. The numbers look "
        "arbitrary and are not: the lock of the stock service lives for 600 ms.",
        "**Why:** the incident of November 2025.\n\n**How to apply:** leave both numbers alone; a "
        "change needs Ines and the stock team.",
    ),
    _note(
        "user_reviews.md",
        "user",
        "Reviews",
        "Reviews are read in the evening, from a phone, so small pieces are preferred",
        "Reviews are read in the evening on the way home, from a phone. Small pieces that can be "
        "read in one screen are preferred; a change of more than 150 lines waits for the morning.",
    ),
)
