"""Every number and switch, and the only reader of the environment.

`Settings` holds the values, `load` finds them, `Flags` are the kill switches that act
while the program runs. Nothing here writes a file, and a bad setting never raises: it
becomes a `Problem`, and the next source answers.
"""

from __future__ import annotations

from reverie.lazy import offered
from reverie.settings.flags import Flags, FlagState
from reverie.settings.kinds import Setting, SettingValue, camel
from reverie.settings.numbers import DEFAULTS, SETTINGS, Settings
from reverie.settings.sources import POLICY, Loaded, environment, load, variable
from reverie.settings.switches import FLAGS, Flag, FlagValue, flag_named, parse_flag, with_flag
from reverie.settings.values import Problem, ValueOrigin, folder

__all__ = [
    "DEFAULTS",
    "FLAGS",
    "POLICY",
    "SETTINGS",
    "Flag",
    "FlagState",
    "FlagValue",
    "Flags",
    "Loaded",
    "Problem",
    "Setting",
    "SettingValue",
    "Settings",
    "ValueOrigin",
    "camel",
    "environment",
    "flag_named",
    "folder",
    "load",
    "parse_flag",
    "variable",
    "with_flag",
]

__getattr__ = offered(
    __name__,
    {
        "claude": "claude_settings",
        "numbers": "NOTES SCALED",
        "sources": "ORDERED settings_file",
        "trust": "record_key was_declined",
    },
)
