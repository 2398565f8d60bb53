"""The secret scanner: what it finds, what it refuses wrongly, and how long it takes.

It is judged by tokens made from its own rules, by a list of secrets people have that was written
before them and by five that were each measured before the rules were changed for them
(`secret_texts`), and by prose without secrets; then beside detect-secrets on the same texts, and
on texts that are made to be slow. Prose needs the shared data (`REVERIE_SHARED`); detect-secrets
runs in an environment of its own.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.figures import QUICK, ROOT_SHARED, Figure, Row, against_peers, at_least, at_most
from bench.peers import MISSING, environment
from bench.secret_texts import Planted, harmless, planted, shapes
from reverie.secrets import TOKEN_FLOOR, TOKENS, mark, remove_secrets, scan

LISTS = ("first", "second", "third", "fourth", "fifth")
LOOK_ALIKES = ("first", "second", "fifth")
SAMPLES = 2 if QUICK else 10
SIZE = 200_000
PIECE = 6  # letters of a secret that would tell it
LIMIT = 0.1
HOSTILE = {
    "`a`": "a" * SIZE,
    "`a.` x 25k": "a." * 25_000,
    "`key` and spaces": "key" + " " * SIZE,
}
MORE = {
    "`key=` over and over": "key=" * (SIZE // 4),
    "escapes": "\\u005c" * (SIZE // 6),
    "lines of one word": "word123\n" * (SIZE // 8),
}


def measure(out: Path) -> Iterator[Figure | Row]:
    del out
    yield own_shapes()
    yield from listed_shapes()
    yield from lists_by_others()
    yield from false_alarms()
    for name, text in HOSTILE.items():
        took = least(lambda text=text: scan(text))
        yield f"200 KB of {name}", f"{1000 * took:.0f} ms", "100 ms", took <= LIMIT
    for name, text in MORE.items():
        took = least(lambda text=text: scan(text))
        yield f"200 KB of {name}", f"{1000 * took:.0f} ms", "", None
    path = ROOT_SHARED / "data" / "memory_docs_dev.jsonl.gz"
    if not path.is_file():
        yield "memory documents", f"not found under {os.fspath(ROOT_SHARED.name)}", "", None
        return
    with gzip.open(path) as file:
        texts: list[str] = [json.loads(line)["body"] for line in file]
    prose = "".join(texts)[:SIZE]
    took, ten = least(lambda: scan(prose)), least(lambda: scan(prose * 10))
    what = "scan of ten times as much text: CPU"
    yield at_most("secrets.growth", what, ten / took, 12.0, "x")
    yield from beside(texts)


def sources() -> dict[str, list[str]]:
    """Texts with a secret each, from people and programs that did not know our rules: lists
    by hand, and strings made from the published patterns of gitleaks."""
    from tests.memory.test_secrets_generator import positives, upstream

    found = {f"{name} list": [one.text for one in planted(name)] for name in LISTS}
    made = [
        f"the value is {secret}\n"
        for rule in upstream(ROOT_SHARED)
        for secret in positives(rule, 1 if QUICK else 3)
    ]
    return found | {"gitleaks patterns": made}


def beside(documents: list[str]) -> Iterator[Figure | Row]:
    """Ours and detect-secrets over the same texts: what is found, refused wrongly, and spent."""
    given = sources()
    peer = theirs(given | {"documents": documents})
    if peer is None:
        yield "detect-secrets", MISSING["detect-secrets"], "", None
    for name, texts in given.items():
        found = sum(bool(scan(text)) for text in texts) / len(texts)
        other = {} if peer is None else {"detect-secrets": peer[name]["found"] / len(texts)}
        key = f"secrets.found.{name.split()[0]}"
        what = f"secrets found, {name}"
        yield against_peers(key, what, found, other, better="higher", unit="share", n=len(texts))
    fourth = [text.text for text in planted("fourth")]
    found = sum(bool(scan(text)) for text in fourth) / len(fourth)
    yield at_least(
        "secrets.bound",
        "secrets found of the list that nothing was fitted to, against our own bound",
        found,
        0.95,
        "share",
        len(fourth),
        why="logins not named as such and passwords without a sign look like any other word",
    )
    blocked = sum(bool(scan(text)) for text in documents) / len(documents)
    other = {} if peer is None else {"detect-secrets": peer["documents"]["found"] / len(documents)}
    what = "clean documents that are refused"
    yield against_peers(
        "secrets.false", what, blocked, other, better="lower", unit="share", n=len(documents)
    )
    if peer is not None:
        ours = least(lambda: [scan(text) for text in documents], times=3)
        what = "CPU to scan the documents, in that of detect-secrets"
        took = peer["documents"]["cpu"]
        yield Figure("secrets.cpu", what, ours / took, 1.0, "detect-secrets", "lower", "x")


THEIRS = """
import json, os, resource, sys, tempfile
from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings
out = {}
with tempfile.TemporaryDirectory() as folder, default_settings():
    for name, texts in json.load(sys.stdin).items():
        files = []
        for n, text in enumerate(texts):
            files.append(os.path.join(folder, f"{len(out)}-{n}.md"))
            with open(files[-1], "w", encoding="utf-8") as file:
                file.write(text)
        best = None
        for _ in range(2 if name == "documents" else 1):
            before = resource.getrusage(resource.RUSAGE_SELF)
            found = sum(bool(list(scan_file(file))) for file in files)
            after = resource.getrusage(resource.RUSAGE_SELF)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            best = cpu if best is None else min(best, cpu)
        out[name] = {"found": found, "cpu": best}
print(json.dumps(out))
"""


def theirs(given: dict[str, list[str]]) -> dict[str, dict[str, float]] | None:
    """Texts in which detect-secrets, as it is shipped, sees a secret, and the CPU it takes."""
    python = environment("detect-secrets")
    if not python:
        return None
    done = subprocess.run(
        [python, "-c", THEIRS], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def own_shapes() -> Row:
    """Tokens made from the patterns of our own rules, in every context of the tests."""
    from tests.memory.test_secrets import CONTEXTS
    from tests.memory.test_secrets_generator import Rule, positives

    tried = found = 0
    for rule, pattern, words in TOKENS:
        for secret in positives(Rule(rule, pattern, tuple(words.split(" ")), TOKEN_FLOOR), SAMPLES):
            tried += len(CONTEXTS)
            found += sum(bool(scan(put(secret))) for put in CONTEXTS.values())
    share = found / tried
    what = f"tokens of our {len(TOKENS)} rules, {tried:,} texts"
    return what, f"{share:.2%}", "99.5 %", share >= 0.995


def listed_shapes() -> Iterator[Row]:
    """The list that was written before the rules."""
    every = shapes()
    tried = missed = 0
    short: set[str] = set()
    for shape in every:
        for seed in range(SAMPLES):
            for _, text in shape.texts(seed):
                tried += 1
                if not scan(text):
                    missed += 1
                    short.add(shape.name)
    share = 1 - missed / tried
    what = f"secrets people have, {len(every)} shapes, {tried:,} texts"
    yield what, f"{share:.2%}", "95 %", share >= 0.95
    told = ", ".join(sorted(short)) or "none"
    yield "shapes of which some text was missed", f"{len(short)} ({told})", "", None


def lists_by_others() -> Iterator[Row]:
    """Lists that were each measured once before any rule was changed for what they showed; that
    figure stands in docs/secrets.md. What is measured here is how they do since."""
    for name in LISTS:
        yield from _list(name, list(planted(name)))
    for name in LOOK_ALIKES:
        clean = harmless(name)
        false = sum(bool(scan(text)) for text in clean)
        limit = 0.01 * len(clean) if name == "fifth" else 0
        what = f"{name} list, refused of {len(clean)} texts without secrets"
        yield what, str(false), f"{limit:.0f}", false <= limit


def _list(name: str, texts: list[Planted]) -> Iterator[Row]:
    tried = Counter(text.shape for text in texts)
    found = Counter(text.shape for text in texts if scan(text.text))
    share = found.total() / len(texts)
    what = f"{name} list, {len(tried)} shapes, {len(texts):,} texts"
    yield what, f"{share:.2%} ({found.total():,})", "95 %", share >= 0.95
    left = sum(stays(text.text, text.secret) for text in texts)
    yield f"{name} list, found and not wholly removed", str(left), "0", left == 0
    missed = [shape for shape in tried if found[shape] < tried[shape]]
    told = ", ".join(missed) or "none"
    yield f"{name} list, missed wholly or in part", f"{len(missed)} ({told})", "", None


def stays(text: str, secret: str) -> bool:
    """Whether a piece of a secret that was found stays when the text is to be without it."""
    clean, rules = remove_secrets(text)
    for rule in rules:
        clean = clean.replace(mark(rule), "")
    parts = (secret[at : at + PIECE] for at in range(max(1, len(secret) - PIECE + 1)))
    return bool(rules) and any(part in clean for part in parts)


def false_alarms() -> Iterator[Row]:
    lines = false = 0
    for text in prose(ROOT_SHARED):
        lines += text.count("\n") + 1
        false += len({hit.line for hit in scan(text)})
    if lines:
        what = f"lines refused of {lines:,} of prose"
        yield what, f"{false} ({false / lines:.3%})", "0.1 %", false <= 0.001 * lines


def prose(shared: Path) -> Iterator[str]:
    """Memory documents, instruction files, and what users said in sessions."""
    data = shared / "data"
    for name, key in (("memory_docs_dev", "body"), ("instruction_files_dev", "text")):
        if (data / f"{name}.jsonl.gz").is_file():
            yield from (row[key] for row in _rows(data / f"{name}.jsonl.gz"))
    for path in sorted((data / "sessions_dev").glob("*.jsonl.gz")):
        for row in _rows(path):
            yield from _said(row)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path) as file:
        yield from map(json.loads, file)


def _said(row: dict[str, Any]) -> Iterator[str]:
    message = row.get("message", row)
    if not isinstance(message, dict) or message.get("role") != "user":
        return
    content = message.get("content")
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "text":
            yield block["text"]


def least(work: Callable[[], object], times: int = 5) -> float:
    """CPU seconds, the least of several."""
    work()
    best = float("inf")
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_SELF)
        work()
        after = resource.getrusage(resource.RUSAGE_SELF)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best
