"""Requests in Chinese, written with or without spaces.

The same forms as in English: 读取 FILE · 搜索 WORD · 在 PATH 中搜索 WORD · 列出 DIR · 查找 *.py ·
运行测试 · 运行 COMMAND · 把 "TEXT" 写入 FILE · 把 FILE 中的 "A" 替换为 "B".
What does not fit gives nothing.
"""

from __future__ import annotations

from reverie.embedded.chat.english import edit_ask
from reverie.embedded.forms import (
    TESTS,
    CallAsked,
    glob_ask,
    grep_ask,
    is_glob,
    is_path,
    literal,
    one_line,
    read_ask,
)
from reverie.text.clauses import QUOTES, Word, spans, words

READ = ("读取", "读一下", "读", "打开", "查看", "显示", "看看", "看一下", "看")
SEARCH = ("搜索", "搜一下", "搜", "查找", "找到", "找")
LIST = ("列出", "列一下", "列")
RUN = ("运行", "执行", "跑一下", "跑")
WRITE = ("写入到", "写入", "写到", "写进", "保存到", "保存为")
CREATE = ("创建", "新建")
CHANGE = ("替换为", "替换成", "改成", "改为", "换成")
INSIDE = ("里面", "中", "里", "下")
OPENING = ("把", "将")
TEST_WORDS = ("测试", "所有测试", "全部测试", "单元测试", "一下测试")
BEFORE = (
    "一下",
    "文件",
    "目录",
    "文件夹",
    "这个",
    "所有的",
    "所有",
    "全部",
    "的",
    "关键词",
    "单词",
)
BEHIND = (
    "文件夹里的文件",
    "目录下的文件",
    "的内容",
    "文件",
    "目录",
    "文件夹",
    "吗",
    "吧",
    "里",
    "中",
    "下",
    "的",
)
VERBS = (*READ, *SEARCH, *LIST, *RUN, *CREATE, *OPENING, "在")


def _begin(clause: str, verbs: tuple[str, ...]) -> str | None:
    """What stands behind the verb a clause begins with."""
    verb = next((v for v in sorted(verbs, key=len, reverse=True) if clause.startswith(v)), None)
    return None if verb is None else clause[len(verb) :].strip(" \t:：")


def _pared(text: str) -> str:
    """A name without the words around it, or without its quotes."""
    text = text.strip(" \t:：,，。")
    changed = True
    while changed and text:
        changed = False
        for word in BEFORE:
            if text.startswith(word) and text != word:
                text, changed = text[len(word) :].lstrip(), True
        for word in BEHIND:
            if text.endswith(word) and text != word:
                text, changed = text[: -len(word)].rstrip(), True
    return _unquoted(text)


def _unquoted(text: str) -> str:
    whole = spans(text) == [(0, len(text))]
    return text[1:-1] if whole and len(text) > 1 else text


def _cut(text: str, marks: tuple[str, ...]) -> tuple[str, str] | None:
    """A text before and behind the first of some words that stands in no quotes."""
    quoted = spans(text)
    best: tuple[int, int] | None = None
    for mark in marks:
        at = text.find(mark)
        while at >= 0 and any(low < at < high for low, high in quoted):
            at = text.find(mark, at + 1)
        if at >= 0 and (best is None or at < best[0]):
            best = (at, at + len(mark))
    return None if best is None else (text[: best[0]], text[best[1] :])


def _read(rest: str) -> list[CallAsked]:
    for sign in ("和", "、", ",", "，"):
        rest = rest.replace(sign, " ")
    names = [Word(_pared(one)) for one in rest.split()]
    if len(names) > 1:
        names = [name for name in names if is_path(name)]
    return [read_ask(name.bare) for name in names if is_path(name)]


def _search(rest: str) -> list[CallAsked]:
    place = ""
    if (parted := _cut(rest, ("在",))) is not None and parted[0].strip():
        rest, place = parted[0], _pared(parted[1])
    quoted = [w.text for w in words(rest) if w.quoted]
    pattern = one_line(quoted[0] if quoted else _pared(rest))
    if not pattern:
        return []
    if is_glob(pattern) and not quoted:
        return [glob_ask(pattern, place)]
    return [grep_ask(literal(pattern), place)]


def _search_in(clause: str) -> list[CallAsked]:
    """在 PATH 中搜索 WORD."""
    parted = _cut(clause[1:], SEARCH)
    if parted is None:
        return []
    place = _pared(parted[0])
    return [
        CallAsked(a.tool, {**a.input, "path": place} if place else a.input)
        for a in _search(parted[1])
    ]


def _list(rest: str) -> list[CallAsked]:
    name = _pared(rest)
    here = not name or name in ("文件", "目录", "当前", "当前目录", "这里")
    if not here and not (is_path(Word(name)) or name.isascii()):
        return []
    return [CallAsked("List", {"path": "." if here else one_line(name)})]


def _run(rest: str) -> list[CallAsked]:
    rest = rest.strip()
    if rest.strip(" 吧。") in TEST_WORDS:
        return [CallAsked("Bash", {"command": TESTS}, tests=True)]
    rest = rest.removeprefix("命令").strip(" :：")
    command = _unquoted(rest)
    return [CallAsked("Bash", {"command": command})] if command[:1].isascii() and command else []


def _write(rest: str) -> list[CallAsked]:
    """把 TEXT 写入 FILE, 把 FILE 中的 A 替换为 B."""
    if (parted := _cut(rest, CHANGE)) is not None:
        return _edit(*parted)
    if (parted := _cut(rest, WRITE)) is None:
        return []
    path = Word(_pared(parted[1]))
    if not is_path(path):
        return []
    return [CallAsked("Write", {"file_path": path.bare, "content": _unquoted(parted[0].strip())})]


def _edit(before: str, new: str) -> list[CallAsked]:
    parted = _cut(before, INSIDE)
    if parted is None:
        return []
    path, old = Word(_pared(parted[0])), parted[1].strip().removeprefix("的").strip()
    every = old.startswith("所有")
    old = _unquoted(old.removeprefix("所有").removeprefix("的").strip())
    if not is_path(path) or not old:
        return []
    return [edit_ask(path.bare, old, _unquoted(new.strip()), every)]


def begins(clause: str) -> bool:
    return clause.startswith(VERBS)


def greedy(clause: str) -> bool:
    rest = _begin(clause, RUN)
    if not rest or rest.strip(" 吧。") in TEST_WORDS:
        return False
    return rest[:1] not in QUOTES or len(words(rest)) != 1


def written_file(clause: str) -> str:
    """The file of 创建 FILE or 写入 FILE: its text stands elsewhere."""
    rest = _begin(clause.rstrip(":： "), (*CREATE, *WRITE))
    name = Word(_pared(rest)) if rest else Word("")
    return name.bare if is_path(name) else ""


def asks(clause: str) -> list[CallAsked]:
    """The calls a clause asks for, or none."""
    if clause.startswith("在"):
        return _search_in(clause)
    forms = ((READ, _read), (SEARCH, _search), (LIST, _list), (RUN, _run), (OPENING, _write))
    for verbs, form in forms:
        rest = _begin(clause, verbs)
        if rest is not None:
            return form(rest)
    return []
