"""Short forms of subcommands: `npm i` is `npm install`. Only what the programs' own help calls an
alias: `pnpm add` is another thing than `pnpm install`, and stays so. A leaf.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_HELP = {
    "npm": {
        "install": "add i in ins inst insta instal isnt isnta isntal isntall",
        "uninstall": "unlink remove rm r un",
        "update": "u up upgrade udpate",
        "ci": "clean-install ic install-clean isntall-clean",
        "test": "tst t",
        "run": "run-script rum urn",
        "exec": "x",
    },
    "pnpm": {"install": "i", "remove": "rm uninstall un", "update": "up upgrade"},
    "bun": {"install": "i", "add": "a", "remove": "rm"},
    "cargo": {"build": "b", "check": "c", "doc": "d", "run": "r", "remove": "rm", "test": "t"},
}
_SHORT = {
    program: {short: verb for verb, all_short in verbs.items() for short in all_short.split()}
    for program, verbs in _HELP.items()
}


def in_full(program: str, words: Sequence[str]) -> Sequence[str]:
    """A command's words with its subcommand in full; the program's own name stands first."""
    short = _SHORT.get(program)
    if short is None:
        return words
    for at, word in enumerate(words[1:], 1):
        if word in short:
            return [*words[:at], short[word], *words[at + 1 :]]
        before = words[at - 1]
        is_value = before.startswith("-") and "=" not in before  # it may be the option's
        if not word.startswith("-") and not is_value:
            break
    return words
