"""Dates that mean something only on the day they were said: found, and told beside the words.

"By Friday", "next week", "the end of the month", "on March 5", 周五之前, 下周三, 月底: the words
stay as they were said. What repeats ("every Friday"), what is quoted and what may be no date is
left out. English and Chinese, in part German, Spanish and French; days are those of UTC. Pure.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from reverie.text.dates import WEEKDAYS, absolute, day_of, own, relative

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_WIDE_DAYS = "一二三四五六日"
_NAME = "|".join((*_MONTHS, *(name[:3] for name in _MONTHS), "sept"))
_COUNTS = ("a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COMING = re.compile(
    r"\b(?:will|takes?|must|ha(?:s|ve) to|needs? to|going to|due|starts?"
    r"|ends?|releas\w+|ships?|leav\w+"
    r"|mov\w+|launch\w*|expires?|happens?|is|are)\b",
    re.IGNORECASE,
)
_BEFORE = r"by|before|until|till|on|due|for|from|after|is|are|starting|starts|ends?|this|coming"
_PLAIN = re.compile(
    rf"\b(?:{_BEFORE})\s+(?P<day>{'|'.join(_DAYS)})\b(?!s|\s+(?:after|before))"
    r"|\b(?P<now>today|eod)\b|\b(?:the\s+)?end\s+of\s+(?:the\s+|this\s+)?"
    r"(?P<end>day|week|month|quarter|year)\b"
    rf"|\b(?P<m1>{_NAME})\.?\s+(?P<d1>[0-3]?\d)(?:st|nd|rd|th)?\b(?!\s*[:%.]\d|,?\s*(?:19|20)\d\d)"
    rf"|\b(?:the\s+)?(?P<d2>[0-3]?\d)(?:st|nd|rd|th)?\s+(?:of\s+)?"
    rf"(?P<m2>{_NAME})\b(?!\s*,?\s*(?:19|20)\d\d)"
    rf"|\bin\s+(?P<count>\d{{1,3}}|{'|'.join(_COUNTS)})\s+(?P<span>day|week)s?\b(?!\s+of\b)"
    rf"|\b(?:in|by|before|until|till|from|end of|mid|early|late|since)\s+(?P<month>"
    rf"{'|'.join(_MONTHS)})\b"
    r"(?!\s*[\d,])"
    r"|\b(?:by|on|before|until|till)\s+the\s+(?P<d3>[0-3]?\d)(?:st|nd|rd|th)\b(?!\s+\w)",
    re.IGNORECASE,
)
_WIDE = re.compile(
    r"(?P<now>今天|今日)|(?P<end>月底|年底|月末|年末|季度末)"
    r"|(?<![每上下这本个])(?:周|星期|礼拜)(?P<day>[一二三四五六日天])"
    r"|(?<![年\d])(?P<m>\d{1,2})月(?P<d>\d{1,2})[日号]|(?<![月\d])(?P<d3>\d{1,2})号"
)
_OF = re.compile(r"(?:on|in)\s+", re.IGNORECASE)
_ELSEWHERE = re.compile(
    r"\b(?:heute|morgen|übermorgen|(?:vor)?gestern|(?:nächst|kommend|letzt|vorig|diese)\w{0,2}\s+"
    r"(?:woche|monat|quartal|jahr)|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|in\s+\w+\s+(?:tagen|wochen|monaten)"
    r"|hoy|(?:pasado\s+)?mañana|ayer|anteayer|lunes|martes|miércoles|jueves|viernes|sábado|domingo"
    r"|(?:próxim|pasad)[oa]|que\s+viene|(?:en|dentro\s+de)\s+\w+\s+(?:días|semanas|meses)"
    r"|aujourd'hui|demain|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|prochaine?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _DateMatch:
    """A date as it was said: where, what it means in words, and its last day if it is one."""

    start: int
    end: int
    meant: str
    last: date | None = None


def said_on(text: str, at: float, *, once: bool) -> tuple[str, tuple[str, ...]]:
    """Return when a text with a relative date was said and what that date means, to stand beside
    it; and the days that tell it from the same words of another day. Else nothing.

    A weekday stays a weekday, and what may be no date or mean several is not worked out; where a
    thing happens `once`, the weekday of another week is another day.
    """
    base, said = day_of(at), _relative_dates(text, at)
    if base is None or not (said or _ELSEWHERE.search(own(text))):
        return "", ()
    sure = [(when.words, _OF.sub("", when.meant, count=1)) for when in relative(text, at)]
    told = [
        f"said on {base}, {base:%A}",
        *(f"{words}: {meant}" for words, meant in sure if meant != str(base)),
    ]
    weekday = once and any(text[one.start : one.end].lower() in WEEKDAYS for one in said)
    return "; ".join(told), (*(meant for _, meant in sure), *([str(base)] if weekday else []))


def is_ahead(text: str, at: float) -> bool:
    """Whether the text names a day, week or month that had not passed when it was said."""
    base = day_of(at)
    if base is None:
        return False
    days = [day for _, _, day in absolute(own(text))]
    for one in _relative_dates(text, at):
        found = [day for _, _, day in absolute(one.meant)]
        days += [one.last] if one.last else [_week(day, one.meant) for day in found]
        days += _months(one.meant) if not found else []
    return any(day >= base for day in days)


def _week(day: date, meant: str) -> date:
    return day + timedelta(6) if "week" in meant or "周" in meant else day


def _months(meant: str) -> list[date]:
    found = re.search(r"\b(\d{4})-(\d\d)\b", meant)
    return [_month_end(date(int(found[1]), int(found[2]), 1))] if found else []


def _relative_dates(text: str, at: float) -> list[_DateMatch]:
    """Relative dates in their order, none inside another."""
    base = day_of(at)
    if base is None:
        return []
    found = [_DateMatch(one.start, one.end, one.meant) for one in relative(text, at)]
    plain = own(text)
    found += _plain(plain, base)
    found += _wide(plain, base)
    out: list[_DateMatch] = []
    for one in sorted(found, key=lambda said: (said.start, -said.end)):
        if not out or one.start >= out[-1].end:
            out.append(one)
    return out


def _plain(text: str, base: date) -> Iterator[_DateMatch]:
    for found in _PLAIN.finditer(text):
        day, start = None, found.start()
        if found["day"]:
            ahead = (_DAYS.index(found["day"].lower()) - base.weekday()) % 7 or 7
            day, start = base + timedelta(ahead), found.start("day")
        elif found["now"]:
            day = base
        elif found["end"]:
            day = _ending(found["end"].lower(), base)
        elif found["count"] and _COMING.search(text[: found.start()]):
            count = found["count"].lower()
            amount = int(count) if count.isdecimal() else max(_COUNTS.index(count), 1)
            day = base + timedelta(amount * (7 if found["span"].lower() == "week" else 1))
        elif found["d3"]:
            day, start = _this_or_next_month(int(found["d3"]), base), found.start("d3") - 4
        elif (name := found["m1"] or found["m2"]) and not _is_word(name, text, found):
            month = [one[:3] for one in _MONTHS].index(name.lower()[:3]) + 1
            day = _coming(month, int(found["d1"] or found["d2"]), base)
        elif found["month"] and found.group()[:5].lower() != "since":
            day = _month_ahead(_MONTHS.index(found["month"].lower()) + 1, base)
            yield _DateMatch(found.start("month"), found.end(), f"in {day:%Y-%m}", day)
            continue
        if day is not None:
            yield _DateMatch(start, found.end(), f"on {day}", day)


def _month_ahead(month: int, base: date) -> date:
    """The last day of the month of this name that ends next."""
    year = base.year + (month < base.month)
    return _month_end(date(year, month, 1))


def _is_word(name: str, text: str, found: re.Match[str]) -> bool:
    """Whether "may 5" is no month: "it may 5 times"."""
    return name.lower() in ("may", "mar", "sep") and text[found.start()].islower()


def _wide(text: str, base: date) -> Iterator[_DateMatch]:
    for found in _WIDE.finditer(text):
        day = None
        if found["now"]:
            day = base
        elif found["end"]:
            unit = {"月": "month", "年": "year", "季": "quarter"}[found["end"][0]]
            day = _ending(unit, base)
        elif found["day"]:
            which = _WIDE_DAYS.index(found["day"].replace("天", "日"))
            day = base + timedelta((which - base.weekday()) % 7 or 7)
        elif found["m"]:
            day = _coming(int(found["m"]), int(found["d"]), base)
        elif found["d3"]:
            day = _this_or_next_month(int(found["d3"]), base)
        if day is not None:
            yield _DateMatch(found.start(), found.end(), str(day), day)


def _ending(unit: str, base: date) -> date:
    if unit == "day":
        return base
    if unit == "week":
        return base + timedelta((4 - base.weekday()) % 7)
    if unit == "month":
        return _month_end(base)
    if unit == "quarter":
        return _month_end(date(base.year, (base.month - 1) // 3 * 3 + 3, 1))
    return date(base.year, 12, 31)


def _month_end(day: date) -> date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])


def _coming(month: int, day: int, base: date) -> date | None:
    """A day without its year: the one that is nearest ahead, or passed a month ago at most."""
    for year in (base.year, base.year + 1):
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if found >= base - timedelta(31):
            return found
    return None


def _this_or_next_month(day: int, base: date) -> date | None:
    for first in (base.replace(day=1), _month_end(base) + timedelta(1)):
        try:
            found = first.replace(day=day)
        except ValueError:
            continue
        if found >= base:
            return found
    return None
