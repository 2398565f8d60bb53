"""Dates in a text: absolute ones read, relative ones found and made absolute, deadlines passed.

A relative date ("yesterday", "next Friday", "in two weeks") says something only to who knows when
it was written; given that moment, it is replaced by the day, the week, the month or the year it
meant. A word that may mean a time and may not ("now", "recently", "last resort") is left alone.
What stands between backticks or quotes is somebody's example and no date of the memory's own.
English and Chinese; days are those of UTC. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from reverie.light import dataclass
from reverie.text.stems import stem

_MONTHS = "january february march april may june july august september october november december"
_MONTH = {
    short: n
    for n, name in enumerate(_MONTHS.split(), 1)
    for short in (name, name[:3], name[:4] if name == "september" else name)
}
_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_COUNTS = (
    *("a", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_NUMBER = {name: max(n, 1) for n, name in enumerate(_COUNTS)} | {"an": 1}
_WIDE_NUMBER = {name: n for n, name in enumerate("一二三四五六七八九十", 1)} | {"两": 2, "天": 7}
_NAME = "|".join(sorted(_MONTH, key=len, reverse=True))
_DAY = "|".join(_DAYS)
_HOW_MANY = rf"(?:\d{{1,3}}|{'|'.join((*_COUNTS, 'an'))})"

_ABSOLUTE = re.compile(
    r"\b(?P<y>(?:19|20)\d\d)[-/.](?P<m>0?[1-9]|1[0-2])[-/.](?P<d>0?[1-9]|[12]\d|3[01])\b"
    rf"|\b(?P<n1>{_NAME})\.?\s+(?P<d1>[0-3]?\d)(?:st|nd|rd|th)?,?\s+(?P<y1>(?:19|20)\d\d)\b"
    rf"|\b(?P<d2>[0-3]?\d)(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<n2>{_NAME})\.?,?\s+(?P<y2>(?:19|20)\d\d)\b"
    r"|(?P<y3>(?:19|20)\d\d)年(?P<m3>\d{1,2})月(?P<d3>\d{1,2})日",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"\b(?:(?P<day>(?:the\s+)?day\s+before\s+yesterday|(?:the\s+)?day\s+after\s+tomorrow|yesterday"
    r"|tomorrow|tonight|this\s+(?:morning|afternoon|evening))"
    rf"|(?P<which>last|next|this|previous|coming)\s+(?P<unit>week|month|quarter|year|{_DAY})"
    rf"|(?:a\s+couple\s+of|(?P<count>{_HOW_MANY}))\s+(?P<span>days?|weeks?|months?|years?)"
    r"\s+(?P<way>ago|from\s+now)"
    rf"|in\s+(?P<count2>{_HOW_MANY})\s+(?P<span2>days?|weeks?|months?)(?P<way2>['’]?\s+time)?)\b"
    r"(?!['’]s?\s+(?:work|worth))"
    r"|(?P<zh>前天|昨天|昨日|明天|明日|后天|今早|今晚|(?:上|下|这|本)(?:个)?(?:周|星期|月|季度|年)"
    r"(?P<zd>[一二三四五六日天])?|去年|明年|今年|(?P<zn>\d{1,3}|[一二两三四五六七八九十])"
    r"(?:个)?(?P<zu>天|周|星期|月|年)(?P<zw>前|后))",
    re.IGNORECASE,
)
_DEADLINE = re.compile(
    r"(?:\b(?:due|deadline|expir(?:es?|ing|y)|cut-?off|target date)\b[^.;!?。；]{0,90}"
    r"|\b(?:by|until|till|before|no later than|ends? on|closes? on|free[sz]es? (?:on|from|until)"
    r"|ship(?:s|ping)? on|scheduled for|planned for)(?: (?:the|end of))?"
    r"|(?:截止|到期|期限)[^。；]{0,16})[\s:*_(]*\Z",
    re.IGNORECASE,
)
_BEFORE = 140
_YEARS = (1900, 9900)  # of moments that dates are counted from
_PLAN = re.compile(
    r"\b(?:will|due|ends?|starts?|expires?|ships?|launch\w*|leaves?|moves?|is|are|back|happens?)\b"
)
_EXAMPLE = re.compile(r"`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|(?<!\w)'[^'\n]{1,80}'(?!\w)")
_WEEKDAY_NAMES = (
    *(
        "monday mondays montag montags 周一 星期一 礼拜一",
        "tuesday tuesdays dienstag dienstags 周二 星期二 礼拜二",
    ),
    *(
        "wednesday wednesdays mittwoch mittwochs 周三 星期三 礼拜三",
        "thursday thursdays donnerstag donnerstags 周四 星期四 礼拜四",
    ),
    *(
        "friday fridays freitag freitags 周五 星期五 礼拜五",
        "saturday saturdays samstag samstags sonnabend 周六 星期六 礼拜六",
    ),
    "sunday sundays sonntag sonntags 周日 星期日 礼拜日 周天 星期天 礼拜天",
)
WEEKDAYS = {
    word: day
    for day, names in enumerate(_WEEKDAY_NAMES)
    for name in names.split()
    for word in (name, stem(name))
}
"""Names of weekdays, also by their stem, from Monday = 0, in English, German and Chinese."""
_COUNTED = (
    "zero null 零", "one eins ein eine 一", "two zwei 二 两", "three drei 三", "four vier 四",
    "five fünf 五", "six sechs 六", "seven sieben 七", "eight acht 八", "nine neun 九",
    "ten zehn 十", "eleven elf", "twelve zwölf", "thirteen dreizehn", "fourteen vierzehn",
    "fifteen fünfzehn", "sixteen sechzehn", "seventeen siebzehn", "eighteen achtzehn",
    "nineteen neunzehn", "twenty zwanzig",
)  # fmt: skip
_TENS = (
    "thirty dreißig", "forty vierzig", "fifty fünfzig", "sixty sechzig", "seventy siebzig",
    "eighty achtzig", "ninety neunzig", "hundred hundert 百",
)  # fmt: skip
NUMBER_WORDS = {
    word: number
    for rows, first, step in ((_COUNTED, 0, 1), (_TENS, 30, 10))
    for number, names in zip(range(first, 1000, step), rows, strict=False)
    for name in names.split()
    for word in (name, stem(name))
}
"""Numbers written as words, also by their stem."""
_MARKED = re.compile(r"\((?:passed|expired|done|met|completed|over)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RelativeDate:
    """A relative date: where in the text, its words, and what it means written out."""

    start: int
    end: int
    words: str
    meant: str


def absolute(text: str) -> Iterator[tuple[int, int, date]]:
    """Every whole date in a text, with its place."""
    for found in _ABSOLUTE.finditer(text):
        given = found.groupdict()
        year = given["y"] or given["y1"] or given["y2"] or given["y3"]
        name = given["n1"] or given["n2"]
        month = _MONTH[name.lower()] if name else int(given["m"] or given["m3"])
        day = int(given["d"] or given["d1"] or given["d2"] or given["d3"])
        try:
            yield found.start(), found.end(), date(int(year), month, day)
        except ValueError:
            continue


def latest(text: str) -> float | None:
    """The end of the last day that a text names, in seconds."""
    days = [day for _, _, day in absolute(text)]
    return _end(max(days)) if days else None


def _end(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + 86_400


def day_of(seconds: float) -> date | None:
    """The day of a moment; None for one that no memory was written at, or so far off that the
    calendar ends beside it."""
    try:
        day = datetime.fromtimestamp(seconds, UTC).date()
    except (OverflowError, OSError, ValueError):
        return None
    return day if _YEARS[0] <= day.year <= _YEARS[1] else None


def own(text: str) -> str:
    """The text with what it only cites blanked out; every place stays where it is."""
    return _EXAMPLE.sub(lambda found: " " * len(found[0]), text)


def relative(text: str, written: float) -> tuple[RelativeDate, ...]:
    """The relative dates of a text that was written at a moment."""
    base = day_of(written)
    if base is None:
        return ()
    out: list[RelativeDate] = []
    for found in _RELATIVE.finditer(own(text)):
        meant = _date_meaning(found, base)
        if meant and not _is_date_given(text, found.end()):
            out.append(
                RelativeDate(found.start(), found.end(), found[0], _as_said(text, found, meant))
            )
    return tuple(out)


_BEHIND = re.compile(
    r"\b(?:by|before|until|till|on|in|from|since|after|for|of|than|during|about|around)\s+$",
    re.IGNORECASE,
)


def _as_said(text: str, found: re.Match[str], meant: str) -> str:
    """What is meant as its sentence has it: no second preposition, a capital at its head."""
    before, after = text[max(0, found.start() - 12) : found.start()], text[found.end() :][:2]
    if _BEHIND.search(before) or after in ("'s", "’s"):
        meant = re.sub(r"^(?:on|in) ", "", meant)
    return meant[:1].upper() + meant[1:] if found[0][:1].isupper() else meant


def _is_date_given(text: str, end: int) -> bool:
    """Whether the date stands right behind the words, so that nothing is missing."""
    return re.match(r"\s*[(\[（,]\s*(?:on\s+)?(?:19|20)\d\d", text[end : end + 16]) is not None


def _date_meaning(found: re.Match[str], base: date) -> str:
    if found["zh"]:
        return _wide(found, base)
    if found["day"]:
        words = re.sub(r"^the\s+", "", " ".join(found["day"].lower().split()))
        away = {"day before yesterday": -2, "yesterday": -1, "tomorrow": 1, "day after tomorrow": 2}
        return f"on {base + timedelta(away.get(words, 0))}"
    if found["which"]:
        return _unit(found["which"].lower(), found["unit"].lower(), base)
    count = (found["count"] or found["count2"] or "two").lower()
    amount = int(count) if count.isdecimal() else _NUMBER[count]
    span = (found["span"] or found["span2"]).lower().rstrip("s")
    back = (found["way"] or "").lower() == "ago"
    if found["span2"] and not found["way2"] and not _is_plan(found):
        return ""
    meant = _away(-amount if back else amount, span, base)
    about = span == "week" and not back  # nobody means the day
    return f"around {meant.removeprefix('on ')}" if about and meant else meant


def _is_plan(found: re.Match[str]) -> bool:
    """Whether "in two weeks" tells when, and not how long something takes."""
    before = found.string[max(0, found.start() - 60) : found.start()].lower()
    return _PLAN.search(before) is not None and "every" not in before


def _away(amount: int, span: str, base: date) -> str:
    if span in ("day", "week"):
        return f"on {base + timedelta(amount * (7 if span == 'week' else 1))}"
    months = base.year * 12 + base.month - 1 + amount * (12 if span == "year" else 1)
    if months < 12:
        return ""
    return f"in {months // 12:04d}" + (f"-{months % 12 + 1:02d}" if span == "month" else "")


def _unit(which: str, unit: str, base: date) -> str:
    step = {"last": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}[which]
    if unit in _DAYS:
        ahead = (_DAYS.index(unit) - base.weekday()) % 7
        if step < 0:
            return f"on {base + timedelta(ahead - 7)}"
        if which == "next" and base.weekday() + ahead < 7 and ahead:
            return ""  # that of this week to some, of the next to others
        return f"on {base + timedelta(ahead or (7 if step else 0))}"
    if unit == "week":
        monday = base - timedelta(base.weekday()) + timedelta(7 * step)
        return f"in the week of {monday}"
    if unit == "quarter":
        at = base.year * 4 + (base.month - 1) // 3 + step
        return f"in {at // 4}-Q{at % 4 + 1}"
    return _away(step, unit, base)


def _wide(found: re.Match[str], base: date) -> str:
    words = found["zh"]
    near = {
        "前天": -2,
        "昨天": -1,
        "昨日": -1,
        "明天": 1,
        "明日": 1,
        "后天": 2,
        "今早": 0,
        "今晚": 0,
    }
    if words in near:
        return str(base + timedelta(near[words]))
    if words in ("去年", "明年", "今年"):
        return f"{base.year + {'去年': -1, '明年': 1, '今年': 0}[words]}年"
    if found["zn"]:
        count = found["zn"]
        amount = int(count) if count.isdecimal() else _WIDE_NUMBER[count]
        span = {"天": "day", "周": "week", "星期": "week", "月": "month", "年": "year"}[found["zu"]]
        return _away(amount if found["zw"] == "后" else -amount, span, base).partition(" ")[2]
    step = {"上": -1, "下": 1}.get(words[0], 0)
    unit = next(one for one in ("星期", "季度", "周", "月", "年") if one in words)
    if unit in ("周", "星期"):
        monday = base - timedelta(base.weekday()) + timedelta(7 * step)
        if found["zd"]:
            at = _WIDE_NUMBER.get(found["zd"], 7)
            return str(monday + timedelta(at - 1))
        return f"{monday}那一周"
    said = {"季度": "quarter", "月": "month", "年": "year"}[unit]
    return _unit({-1: "last", 0: "this", 1: "next"}[step], said, base).partition(" ")[2]


def expired_deadlines(text: str, now: float) -> tuple[tuple[int, int, date], ...]:
    """Deadlines in a text that have passed and are not marked as such."""
    seen = own(text)
    out: list[tuple[int, int, date]] = []
    for start, end, day in absolute(seen):
        if _end(day) >= now or _MARKED.match(text[end : end + 24].lstrip(" ,")):
            continue
        clause = re.split(r"[.;!?。；]\s", seen[max(0, start - _BEFORE) : start])[-1]
        if _DEADLINE.search(clause):
            out.append((start, end, day))
    return tuple(out)
