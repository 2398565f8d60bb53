"""Tables of words and patterns that packages carry as data."""

from __future__ import annotations


def read_rows(package: str, name: str) -> list[list[str]]:
    """Read the rows of a package's table `data/<name>.tsv`: the header first, without remarks."""
    from importlib.resources import files

    text = files(package).joinpath("data", f"{name}.tsv").read_text("utf-8")
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return [line.split("\t") for line in lines]
