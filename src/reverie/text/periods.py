"""Times that a question speaks of, absolute and relative, English and Chinese.

`yesterday`, `last week`, `two months ago`, `in May 2023`, `2023-05-07`, 昨天, 上周, 三天前: each
gives a span of days. A month without a year, `in May`, is that month of any year. Nothing here
reads a clock.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta

from reverie.light import dataclass, pattern

MAX = 8
"""Spans that are taken from one query."""

_DAY = 86_400.0
_FADES = 7.0
_MONTHS: tuple[str, ...] = tuple("jan feb mar apr may jun jul aug sep oct nov dec".split())  # noqa: SIM905
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAYS: tuple[str, ...] = tuple(
    "monday tuesday wednesday thursday friday saturday sunday".split()  # noqa: SIM905
)
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "few": 3, "couple": 2,
    "一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9,
    "十": 10,
}  # fmt: skip
_UNITS = {
    "day": 1, "week": 7, "month": 30, "year": 365,
    "天": 1, "日": 1, "周": 7, "星期": 7, "礼拜": 7, "月": 30, "个月": 30, "年": 365,
}  # fmt: skip

_ISO = pattern(r"\b(\d{4})-(\d{1,2})(?:-(\d{1,2}))?\b")
_DAY_FIRST = pattern(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\b\.?,?(?:\s+(\d{{4}}))?", re.IGNORECASE
)
_MONTH_FIRST = pattern(
    rf"\b{_MONTH}\b\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?!:),?(?:\s+(\d{{4}}))?", re.IGNORECASE
)
_ANY_MONTH = pattern(
    r"\b(january|february|march|april|june|july|august|september|october|november|december"
    r"|(?<=in )may|(?<=since )may|(?<=\d )may)\b",
    re.IGNORECASE,
)
_MONTH_YEAR = pattern(rf"\b{_MONTH}\b\.?,?\s+(?:of\s+)?(\d{{4}})\b", re.IGNORECASE)
_AGO = pattern(
    r"\b(\d{1,4}|an?|one|two|three|four|five|six|seven|eight|nine|ten|(?:a\s+)?few"
    r"|a\s+couple(?:\s+of)?)\s+(day|week|month|year)s?\s+ago\b",
    re.IGNORECASE,
)
_LAST = pattern(r"\b(last|past|this|previous)\s+(week|month|year|night)\b", re.IGNORECASE)
_LAST_DAY = pattern(rf"\b(?:last|on|this)\s+({'|'.join(_DAYS)})\b", re.IGNORECASE)
_NAMED = pattern(r"\b(the day before yesterday|yesterday|today|tonight)\b", re.IGNORECASE)
_CHINESE_NAMED = pattern(
    "今天|昨天|前天|大前天|昨晚|上个?(?:周|星期|礼拜|月)|去年|前年|今年|本周|这周|本月"
)
_CHINESE_AGO = pattern(
    "(\\d{1,4}|[一两二三四五六七八九十])(天|日|周|个?星期|个?礼拜|个月|年)(?:之|以)?前"
)
_CHINESE_DATE = pattern(r"(?:(\d{4})年)?(\d{1,2})月(?:(\d{1,2})[日号])?")


@dataclass(frozen=True, slots=True)
class DaySpan:
    """From a day's beginning to another's end, in seconds; `words` is how the query said it."""

    start: float
    end: float
    words: str

    def holds(self, at: float) -> bool:
        return self.start <= at < self.end


def without_dates(text: str, now: float) -> tuple[str, tuple[DaySpan, ...]]:
    """The text without its relative dates, and the spans that its dates mean.

    Written dates stay in the text: a memory may be written with the same words.
    """
    today = _today(now)
    spans: list[DaySpan] = []

    def put(days: tuple[date, date] | None, words: str) -> None:
        if days is not None:
            spans.append(_span(*days, words))

    for rule, read in _RELATIVE:
        for found in rule.finditer(text):
            put(read(found, today), found[0])
        text = rule.sub(" ", text)
    seen = text
    for rule, read in _WRITTEN:
        for found in rule.finditer(seen):
            put(read(found, today), found[0])
        seen = rule.sub(" ", seen)
    return text, tuple(spans[:MAX])


def months(text: str) -> frozenset[int]:
    """Months that a text names, whatever the year: 1 to 12."""
    found = {_of_month(name) for name in _ANY_MONTH.findall(text)}
    found |= {int(number) for _, number, _ in _CHINESE_DATE.findall(text)}
    return frozenset(number for number in found if 1 <= number <= 12)


def closeness(at: float, spans: tuple[DaySpan, ...], named: frozenset[int] = frozenset()) -> float:
    """How well a moment fits the times that were asked for, 0 to 1.

    People tell of a day soon after it, and seldom before it: what was said a week after the span
    still has a third of what was said within it. A month without a year is two thirds.
    """
    best = 0.0
    for span in spans:
        late, early = (at - span.end) / _DAY, (span.start - at) / _DAY
        away = max(late, 3 * early, 0.0)
        best = max(best, math.exp(-away / _FADES) if away < 60 else 0.0)
    if not spans and named and at and _today(at).month in named:
        best = 2 / 3
    return best


def _today(now: float) -> date:
    try:
        return datetime.fromtimestamp(now, UTC).date()
    except (OverflowError, OSError, ValueError):
        return date(1970, 1, 1)


def _span(first: date, last: date, words: str) -> DaySpan:
    start = datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp()
    end = datetime(last.year, last.month, last.day, tzinfo=UTC).timestamp() + 86_400
    return DaySpan(start, end, " ".join(words.split()))


def _back(today: date, days: int) -> date:
    return today - timedelta(min(days, today.toordinal() - 1))


def _day(year: int, month: int, day: int) -> tuple[date, date] | None:
    try:
        found = date(year, month, day)
    except ValueError:
        return None
    return found, found


def _month(year: int, month: int) -> tuple[date, date] | None:
    if not (1 <= month <= 12 and 1 <= year <= 9999):
        return None
    from calendar import monthrange  # due where a text tells of a month

    return date(year, month, 1), date(year, month, monthrange(year, month)[1])


def _number(word: str) -> int:
    word = word.lower().removeprefix("a ").removesuffix(" of").strip()
    return int(word) if word.isdecimal() else _NUMBERS.get(word, 1)


def _of_month(name: str) -> int:
    return _MONTHS.index(name[:3].lower()) + 1


def _ago(found: re.Match[str], today: date) -> tuple[date, date]:
    unit = found[2].lower().removeprefix("个") if found[2] != "个月" else "个月"
    days = _number(found[1]) * _UNITS[unit]
    slack = {1: 0, 7: 4, 30: 16, 365: 190}[_UNITS[unit]]
    return _back(today, days + slack), _back(today, max(days - slack, 0))


def _last(found: re.Match[str], today: date) -> tuple[date, date]:
    which, unit = found[1].lower(), found[2].lower()
    now = which == "this"
    if unit == "night":
        return (today, today) if now else (_back(today, 1), _back(today, 1))
    if unit == "week":
        monday = _back(today, today.weekday())
        return (monday, today) if now else (_back(monday, 7), _back(monday, 1))
    if unit == "month":
        first = today.replace(day=1)
        return (first, today) if now else (_back(first, 1).replace(day=1), _back(first, 1))
    year = today.year if now else max(today.year - 1, 1)
    return date(year, 1, 1), date(year, 12, 31)


def _last_day(found: re.Match[str], today: date) -> tuple[date, date]:
    back = (today.weekday() - _DAYS.index(found[1].lower())) % 7 or 7
    return _back(today, back), _back(today, back)


def _named_day(found: re.Match[str], today: date) -> tuple[date, date]:
    words = found[1].lower()
    back = 2 if words.startswith("the day") else int(words == "yesterday")
    return _back(today, back), _back(today, back)


def _chinese(found: re.Match[str], today: date) -> tuple[date, date]:
    words = found[0]
    days = {"今天": 0, "昨天": 1, "昨晚": 1, "前天": 2, "大前天": 3}.get(words)
    if days is not None:
        return _back(today, days), _back(today, days)
    if words.endswith("年"):
        year = max(today.year - {"去": 1, "前": 2, "今": 0}[words[0]], 1)
        return date(year, 1, 1), date(year, 12, 31)
    monday, first = _back(today, today.weekday()), today.replace(day=1)
    if words[0] in "本这":
        return (first, today) if words.endswith("月") else (monday, today)
    if words.endswith("月"):
        return _back(first, 1).replace(day=1), _back(first, 1)
    return _back(monday, 7), _back(monday, 1)


def _chinese_date(found: re.Match[str], _: date) -> tuple[date, date] | None:
    if not found[1]:
        return None
    year, month = int(found[1]), int(found[2])
    return _day(year, month, int(found[3])) if found[3] else _month(year, month)


def _iso(found: re.Match[str], _: date) -> tuple[date, date] | None:
    year, month = int(found[1]), int(found[2])
    return _day(year, month, int(found[3])) if found[3] else _month(year, month)


def _day_first(found: re.Match[str], _: date) -> tuple[date, date] | None:
    return _day(int(found[3]), _of_month(found[2]), int(found[1])) if found[3] else None


def _month_first(found: re.Match[str], _: date) -> tuple[date, date] | None:
    return _day(int(found[3]), _of_month(found[1]), int(found[2])) if found[3] else None


def _month_year(found: re.Match[str], _: date) -> tuple[date, date] | None:
    return _month(int(found[2]), _of_month(found[1]))


_RELATIVE = (
    (_AGO, _ago),
    (_NAMED, _named_day),
    (_LAST, _last),
    (_LAST_DAY, _last_day),
    (_CHINESE_AGO, _ago),
    (_CHINESE_NAMED, _chinese),
)
_WRITTEN = (
    (_ISO, _iso),
    (_DAY_FIRST, _day_first),
    (_MONTH_FIRST, _month_first),
    (_MONTH_YEAR, _month_year),
    (_CHINESE_DATE, _chinese_date),
)
