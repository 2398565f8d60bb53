"""Every number and switch, and the only reader of the environment.

`Settings` holds the values, `load` finds them, `Flags` are the kill switches that act
while the program runs. Nothing here writes a file, and a bad setting never raises: it
becomes a `Problem`, and the next source answers.
"""

from __future__ import annotations

from reverie.lazy import offered

__getattr__ = offered(
    __name__,
    {
        "catalog": "DEFAULTS NOTES SCALED SETTINGS Settings",
        "flags": "Flags",
        "reference": "page",
        "schema": "camel folder_value",
        "sources": "LoadedSettings ORDERED claude_settings environment git_folder index_names "
        "load record_key settings_file small_text variable was_declined",
        "switches": "FLAGS flag_named parse_flag with_flag",
    },
)
