"""Texts with secrets and texts without, drawn at run time from the lists in `secret_lists.json`.

Nothing there is a key: a list holds templates. In the numbered lists `<an:36>` stands for 36
signs of the alphabet `an`, and `«…»` marks the part that must not be kept. None of them is to be
changed to please the rules.

- `first`: blind, written without knowledge of the rules; the shapes are what vendors publish, the
  sentences how people hand such things around.
- `second`: blind too, written after the rules had been changed with the first in view, by somebody
  who had not opened them. Its weight is on the places where secrets stand: settings, commands,
  logs, chat in many languages. Its look-alikes are no secrets.
- `third`: what other people's scanners are tried on, and are told to have missed. Written after the
  rules had last been changed, by the same hand, and for that reason from foreign material; it was
  measured as it is.
- `fourth`: programs, machines and tests that the other three do not speak of. Written after the
  rules were changed a last time with the third in view, and measured once; its figure is the one
  nothing was fitted to.
- `fifth`: keys in the path of an address, headers, session tokens; and look-alikes: object keys
  with an id, fingerprints, public halves, sentences that say where a password is kept. Written by
  somebody who had read the rules and knew which kinds had failed, before any was changed for them.
- `common`: secrets that people have, and the sentences they stand in. Written from what is known of
  the vendors' tokens, before the rules that now stand beside gitleaks', but by the same author, so
  it is no blind judge. Here `{w40}` stands for forty signs of the alphabet `w`, `{w20-40}` for
  twenty to forty.
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.figures import HERE

LISTS: dict[str, Any] = json.loads((HERE / "secret_lists.json").read_text(encoding="utf-8"))

# -- the first list

_LOWER, _UPPER, _DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
_ALPHABETS = {
    "an": _LOWER + _UPPER + _DIGITS, "low": _LOWER + _DIGITS, "up": _UPPER + _DIGITS,
    "az": _LOWER, "dig": _DIGITS, "hex": _DIGITS + "abcdef", "HEX": _DIGITS + "ABCDEF",
    "b64": _LOWER + _UPPER + _DIGITS + "+/", "url": _LOWER + _UPPER + _DIGITS + "-_",
    "b32": _UPPER + "234567", "b32c": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "b58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
}  # fmt: skip
_WORDS = re.findall(
    r"\w+",
    "amber birch copper dahlia ember falcon garnet harbor indigo juniper kestrel lantern marble "
    "nectar orchid pepper quartz raven saffron thistle umber violet walnut yarrow",
)
_SLOT = re.compile(r"<([A-Za-z0-9]+)(?::(\d+))?>")


@dataclass(frozen=True)
class Planted:
    """A text with a secret in it: the shape's name, the text, and the part that is secret."""

    shape: str
    text: str
    secret: str


def _password(rng: random.Random) -> str:
    # What a person makes up: a word or two, digits, a sign.
    word = rng.choice(_WORDS).capitalize()
    return rng.choice(
        [
            f"{word}{rng.randrange(1950, 2026)}{rng.choice('!#$%?*')}",
            f"{word}{rng.choice('-_.')}{rng.choice(_WORDS)}{rng.randrange(10, 99)}",
            "".join(rng.choices(_ALPHABETS["an"], k=14)) + rng.choice("!#$%*"),
        ]
    )


def _lines(rng: random.Random, count: int) -> str:
    rows = ["".join(rng.choices(_ALPHABETS["b64"], k=64)) for _ in range(count)]
    return "\n".join([*rows, "".join(rng.choices(_ALPHABETS["b64"], k=30)) + "=="])


def fill(template: str, rng: random.Random) -> str:
    """The template with every slot drawn anew."""

    def draw(slot: re.Match[str]) -> str:
        kind, size = slot[1], int(slot[2] or 0)
        if kind == "pw":
            return _password(rng)
        if kind == "pem":
            return _lines(rng, size)
        if kind == "basic":
            login = f"{rng.choice(_WORDS)}:{_password(rng)}"
            return base64.b64encode(login.encode()).decode()
        if kind == "words":
            return " ".join(rng.choices(_WORDS, k=size))
        if kind == "uuid":
            return "-".join("".join(rng.choices(_ALPHABETS["hex"], k=k)) for k in (8, 4, 4, 4, 12))
        return "".join(rng.choices(_ALPHABETS[kind], k=size))

    return _SLOT.sub(draw, template)


def _cut(name: str, text: str) -> Planted:
    before, _, rest = text.partition("«")
    secret, _, after = rest.partition("»")
    return Planted(name, before + secret + after, secret)


def _first(rng: random.Random) -> Iterator[Planted]:
    """Every shape in every sentence it stands in, each time a new secret."""
    given = LISTS["first"]
    for name, template in given["tokens"].items():
        marked = template if "«" in template else f"«{template}»"
        for around in given["around tokens"]:
            yield _cut(name, around.format(fill(marked, rng)))
    for name, (variable, template) in given["named"].items():
        words = variable.lower().replace("_", " ")
        for around in given["around named"]:
            value = fill(f"«{template}»", rng)
            yield _cut(name, around.format(value, variable, variable.lower(), words))
    for name, texts in given["whole"].items():
        for text in texts:
            for _ in range(3):
                yield _cut(name, fill(text, rng))


# -- the second, third and fourth

_NOUNS = re.findall(
    r"\w+",
    "Anchor Biscuit Canyon Dolphin Engine Feather Glacier Hammer Island Jacket Kettle Lemon "
    "Mountain Needle Otter Pirate Quiver Rocket Summer Tiger Umbrella Velvet Winter Yellow Zebra",
)
_SIGNS = "!#$%*+-=?@^_"
_PLACE = re.compile(r"<(pp|weak|drawnsign|safe|phrase|seed|b64pw|totp|uuid|[A-Za-z0-9]+:[0-9]+)>")
_SEED_WORDS = re.findall(
    r"\w+",
    "abandon ability absent acoustic adjust airport almost anchor apology balance bamboo basket "
    "blossom bracket cabbage canvas ceiling cherry cousin crystal dolphin dragon eager elbow "
    "fabric famous gadget garlic harvest hidden icon jacket kangaroo ladder lizard mango",
)
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_OTHERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def _two_words(rng: random.Random) -> str:
    return f"{rng.choice(_NOUNS)}{rng.choice(_NOUNS)}{rng.randrange(10, 10_000)}{rng.choice('!?#')}"


def _word_and_year(rng: random.Random) -> str:
    return f"{rng.choice(_NOUNS)}{rng.randrange(1970, 2027)}{rng.choice(_SIGNS)}"


def _leet(rng: random.Random) -> str:
    word = rng.choice([noun for noun in _NOUNS if len(noun) > 5])
    changed = word.translate(str.maketrans("aeiot", "@3107"))
    return f"{changed}{rng.choice(_SIGNS)}{rng.randrange(100)}"


def _drawn(rng: random.Random) -> str:
    return "".join(rng.choices(_OTHERS, k=11)) + rng.choice(_SIGNS) + rng.choice("0123456789") + "k"


def _plain(rng: random.Random) -> str:
    return "".join(rng.choices(_OTHERS, k=14)) + rng.choice("23456789") + "aK"


def _joined(rng: random.Random) -> str:
    words = [noun.lower() for noun in rng.choices(_NOUNS, k=4)]
    return "-".join(words) + str(rng.randrange(10, 100))


_PASSWORDS: tuple[Callable[[random.Random], str], ...] = (
    _two_words, _word_and_year, _leet, _drawn, _plain, _joined,
)  # fmt: skip


def _weak(rng: random.Random) -> str:
    return f"{rng.choice(_NOUNS).lower()}{rng.randrange(10, 10_000)}"


_OF_A_PASSWORD: dict[str, Callable[[str], str]] = {
    "pp": str,
    "safe": lambda password: re.sub(r"[^\w-]", "", password),  # in an address
    "b64pw": lambda password: base64.b64encode(password.encode()).decode(),
}
_OTHER: dict[str, Callable[[random.Random], str]] = {
    "weak": _weak,
    "drawnsign": lambda rng: _drawn(rng) + _drawn(rng),
    "phrase": lambda rng: " ".join(noun.lower() for noun in rng.choices(_NOUNS, k=5)),
    "seed": lambda rng: " ".join(rng.choices(_SEED_WORDS, k=12)),
    "totp": lambda rng: "".join(rng.choices(_BASE32, k=32)),
}


def fill_place(template: str, rng: random.Random) -> str:
    """The template of a later list with every slot drawn anew."""

    def draw(slot: re.Match[str]) -> str:
        kind = slot[1]
        if kind == "uuid" or ":" in kind:
            return fill(slot[0], rng)
        password = rng.choice(_PASSWORDS)(rng)
        return _OTHER[kind](rng) if kind in _OTHER else _OF_A_PASSWORD[kind](password)

    return _PLACE.sub(draw, template)


DRAWS = {"second": (20_261, 3), "third": (77_003, 2), "fourth": (90_411, 3), "fifth": (43_007, 3)}
"""By list: the seed, and how often each shape is drawn."""


def planted(name: str) -> Iterator[Planted]:
    """Every text of a numbered list, with its secret."""
    if name == "first":
        yield from _first(random.Random(7))
        return
    seed, draws = DRAWS[name]
    rng = random.Random(seed)
    for shape, template in LISTS[name]["shapes"].items():
        for _ in range(draws):
            yield _cut(shape, fill_place(template, rng))


def harmless(name: str) -> list[str]:
    """What looks like a secret and is none: of the first, the second or the fifth list."""
    texts = LISTS[name]["harmless"]
    if name == "first":
        rng = random.Random(7)
        return [fill(text, rng) if "<token>" not in text else text for text in texts]
    rng = random.Random(DRAWS[name][0])
    return [fill_place(text, rng) for text in texts]


# -- the common list

_LETTERS = {
    "d": _DIGITS,
    "h": _DIGITS + "abcdef",
    "l": _LOWER + _DIGITS,
    "u": _UPPER + _DIGITS,
    "a": _LOWER + _UPPER + _DIGITS,
    "c": _LOWER + _UPPER,
    "w": _LOWER + _UPPER + _DIGITS + "_-",
    "b": _LOWER + _UPPER + _DIGITS + "+/",
    "t": _UPPER + "234567",
    "p": _LOWER + _UPPER + _DIGITS + "!#%^*?+=",  # a password as a manager makes it
    "q": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
_PART = re.compile(r"\{([a-z])(\d+)(?:-(\d+))?\}")

Put = Callable[[str, str], str]
"""A sentence from the name of a secret and its value."""

NAMED: dict[str, Put] = {
    "export": lambda name, value: f"export {name}='{value}'",
    "JSON": lambda name, value: json.dumps({"env": {name: value}, "debug": False}, indent=2),
    "YAML": lambda name, value: f"services:\n  web:\n    environment:\n      {name}: {value}\n",
    ".env": lambda name, value: f"# staging\n{name}={value}\nPORT=8080\n",
    "named in prose": lambda name, value: f"For CI the {name} is {value}, ask Kim for a new one.",
}
ALONE: dict[str, Put] = {
    "prose": lambda _, value: f"For the demo we use {value}. It runs out in May.",
    "list": lambda _, value: f"- staging: `{value}`\n- prod: ask ops\n",
    "brackets": lambda _, value: f"the shared one (**{value}**), until it is rotated",
    "URL": lambda _, value: f"https://api.example.com/v1/items?access={value}&page=2",
    "log": lambda _, value: (
        f"2026-03-02T10:11:12Z WARN client: rejected {value}: 401 after 3 tries"
    ),
    "quoted": lambda _, value: f'He wrote "{value}", then left.',
}
WHOLE: dict[str, Put] = {
    "plain": lambda _, value: value,
    "after prose": lambda _, value: f"What works on staging:\n\n{value}\n\nDo not change it.\n",
    "fence": lambda _, value: f"Run it like this:\n\n```\n{value}\n```\n",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of secret: how it is made, how it is called, what it stands in."""

    name: str
    template: str
    called: str
    contexts: tuple[str, ...]

    def texts(self, seed: int) -> Iterator[tuple[str, str]]:
        """Each context with a text of its own secret."""
        puts = NAMED | ALONE | WHOLE
        for context in self.contexts:
            chance = random.Random(f"{self.name}/{context}/{seed}")
            yield context, puts[context](self.called, made(self.template, chance))


def made(template: str, chance: random.Random) -> str:
    """A string of the template's shape."""

    def part(found: re.Match[str]) -> str:
        least, most = int(found[2]), int(found[3] or found[2])
        return "".join(chance.choices(_LETTERS[found[1]], k=chance.randint(least, most)))

    for name, make in _SPECIAL.items():
        while name in template:
            template = template.replace(name, make(chance), 1)
    return _PART.sub(part, template)


def _letters(chance: random.Random, size: int) -> str:
    return base64.b64encode(chance.randbytes(size)).decode()


def _jwt(chance: random.Random) -> str:
    def pack(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    claims = {"sub": str(chance.randrange(10**9)), "iat": 1_760_000_000, "role": "service_role"}
    signed = base64.urlsafe_b64encode(chance.randbytes(32)).decode().rstrip("=")
    return f"{pack({'alg': 'HS256', 'typ': 'JWT'})}.{pack(claims)}.{signed}"


def _key_lines(chance: random.Random) -> str:
    body = _letters(chance, 240)
    return "\n".join(body[at : at + 64] for at in range(0, len(body), 64))


def _made_up(chance: random.Random) -> str:
    """A password as people make it up: a word, digits, a sign."""
    words = ("Sommer", "Falcon", "tiger", "Winter", "Dragon", "blue", "Rocket", "monkey", "Kaffee")
    return f"{chance.choice(words)}{chance.randint(10, 9999)}{chance.choice('!?#$%&*+')}"


_SPECIAL: dict[str, Callable[[random.Random], str]] = {
    "<jwt>": _jwt,
    "<lines>": _key_lines,
    "<line>": lambda chance: _letters(chance, 45),
    "<phrase>": _made_up,
    "<pair>": lambda chance: base64.b64encode(f"deploy:{_letters(chance, 12)}".encode()).decode(),
    "<uuid>": lambda _: "{h8}-{h4}-4{h3}-a{h3}-{h12}",
    "<PEM>": lambda _: "PRIVATE " + "KEY-----",
}


def shapes() -> tuple[Shape, ...]:
    """Every shape of the common list."""
    given, everywhere = LISTS["common"], (*NAMED, *ALONE)
    return (
        *(Shape(*row, contexts=everywhere) for row in given["alone"]),
        *(Shape(*row, contexts=tuple(NAMED)) for row in given["named"]),
        *(Shape(name, template, "", tuple(WHOLE)) for name, template in given["whole"]),
    )
