"""Dates that mean something only on the day they were said: told beside the words.

"Tomorrow", "next week", 下周三: the words stay as they were said, and what they mean stands beside
them with the day they were said on. A bare weekday stays a weekday. Six languages;
only in English and Chinese is the day worked out. Days are those of UTC. Pure.
"""

from __future__ import annotations

import re

from reverie.text.dates import WEEKDAYS, day_of, own, relative

_OF = re.compile(r"(?:on|in)\s+", re.IGNORECASE)
_MONTHS = (
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|ene|abr|ago|dic|mär|mai|okt|dez|fév|avr|juin"
    r"|juil|aoû|déc)[a-zéû]{0,7}"
)
_SAID = re.compile(
    r"\b(?:by|before|until|till|on|due|for|from|after|is|this|coming)\s+(?:mon|tues|wednes|thurs|fri"
    rf"|satur|sun)day\b(?!s)|\btoday\b|\bend\s+of\s+(?:the\s+|this\s+)?(?:day|week|month|quarter|year)"
    rf"|\b(?:by|on|due|until|is|before|from)\s+{_MONTHS}\s+\d{{1,2}}(?:st|nd|rd|th)?\b(?!,?\s*(?:19|20)\d\d)"
    r"|\b(?:by|on|until)\s+the\s+\d{1,2}(?:st|nd|rd|th)\b(?!\s+\w)"
    r"|(?<![每上下这本个])(?:周|星期|礼拜)[一二三四五六日天]|今天|月底|年底|(?<![年\d])\d{1,2}月\d{1,2}[日号]"
    r"|\b(?:heute|morgen|übermorgen|(?:vor)?gestern|(?:nächst|kommend|letzt|diese)\w{0,2}\s+(?:woche"
    r"|monat|jahr)|(?:am|bis|ab)\s+(?:(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch))\b"
    r"|\b(?:hoy|mañana|ayer|(?:el|hasta el)\s+(?:lunes|martes|miércoles|jueves|viernes)"
    r"|próxim[oa]|que\s+viene|aujourd'hui|demain|hier|prochaine?|(?:avant|jusqu'à)\s+\w+di)\b"
    r"|今日|明日|来週|来月|昨日|(?<!毎週)[月火水木金土日]曜日?(?:まで|に)",
    re.IGNORECASE,
)
_DATE = re.compile(
    rf"\d{{1,4}}[-./年月]\d{{1,2}}|\b{_MONTHS}\s+\d"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)?\.?\s+(?:of |de )?{_MONTHS}"
    rf"|\b(?:in|by|until|end of|mid|early|late|from)\s+{_MONTHS}\b|\d{{1,2}}[号日]|[月年]末"
    r"|\b(?:every|each)\s+\w+day|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|\b(?:next|this)\s+(?:week|month|quarter|year)\b|\btomorrow\b|下个?[周月]|明天|后天",
    re.IGNORECASE,
)


def said_on(text: str, at: float, *, once: bool) -> tuple[str, tuple[str, ...]]:
    """Return when a text with a relative date was said and what that date means, to stand beside
    it; and the days that tell it from the same words of another day. Else nothing.

    Where a thing happens `once`, the weekday of another week is another day.
    """
    base = day_of(at)
    if base is None:
        return "", ()
    sure = [(when.words, _OF.sub("", when.meant, count=1)) for when in relative(text, at)]
    plain = _SAID.search(own(text))
    if not sure and plain is None:
        return "", ()
    told = [
        f"said on {base}, {base:%A}",
        *(f"{words}: {meant}" for words, meant in sure if meant != str(base)),
    ]
    named = plain is not None and any(day in plain.group().lower() for day in WEEKDAYS)
    return "; ".join(told), (
        *(meant for _, meant in sure),
        *([str(base)] if once and named else []),
    )


def has_date(text: str) -> bool:
    """Whether a text names a day, a week or a month."""
    return _DATE.search(text) is not None or _SAID.search(text) is not None
