"""How the site is built: `make docs`.

The whole repository is the source, so that a page's links are the same here and on a code host. The
pages load nothing from elsewhere: the theme has no remote fonts or scripts, and a test looks.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

project = "Reverie"
author = "The Reverie authors"
project_copyright = author
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/**.md",
    "examples/**.md",
    "bench/RESULTS.md",
    "bench/labels/README.md",
]
exclude_patterns = [
    ".*", "deploy", "dist", "docs/_build", "docs/site", "locks", "scripts", "src",
    "tests", "bench/out",
]  # fmt: skip
suppress_warnings = ["misc.highlighting_failure"]  # a shortened example is no whole program
myst_heading_anchors = 4
nitpicky = True

html_theme = "furo"
html_title = "Reverie"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["site/static"]
html_css_files = ["reverie.css"]
html_extra_path = ["site/index.html"]
html_theme_options = {"navigation_with_keys": False, "top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
