"""Whether a sentence tells the agent how to work: corrections and standing instructions.

A sentence is read as a row of signs (`extraction_tags`), clause by clause, and each piece of
evidence that its row holds has a weight: that a step of the agent's was wrong, that one is ordered
or forbidden beyond this change; and against it, that the program is meant, a thing at hand, or this
moment. The heaviest clauses count. What the agent said before and how it answered add to it, where
they bear it out. What stays below the bar is no memory: in doubt, nothing.

The weights were set by hand on labelled turns and are coarse on purpose. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from reverie.embedded.extraction.tags import NAME, bases, tagged

BAR = 3.0
MAX_CLAUSES = 6
LONG = (16, 36)  # words over which a sentence is likelier a task, and likelier still

_AT = r"(?:^|[,&])"
_ST = rf"{_AT}[h1HEk!]{{0,2}}"
_HELP = r"[aBK]"
_NOT = r"(?:(?:y[aBKd]|[ad]|Kw|[Ka]y|L)n|y?d?a?x)"  # don't, you shouldn't, can you not, never
_MADE = r"[pzOG]"

# The agent's way of working was wrong.
COMPLAINTS: dict[str, tuple[str, float]] = {
    "a step not taken": (r"(?<!f)y[aBKklE.]{0,3}[nxF][lEkgt]*o?[cCjRU]", 3),
    "a piece of work not made": (
        (
            rf"(?<!f)y[aBKklE.]{{0,2}}[nxF][lEkg]*o?[vVJ](?:&[vV])?[^,&]{{0,4}}{_MADE}"
            rf"|{_AT}w(?:Bn|F|x)[lEkg]*o?[cvCV](?:&[cv])?[eY+.]{{0,2}}{_MADE}"
        ),
        2.5,
    ),
    "something forgotten": (rf"y[kag]?F[_reY]{{0,2}}[^,&]{{0,2}}{_MADE}", 2.5),
    "a step not being taken": (rf"(?<!f)yan[lEk]?(?:j|J[^,&]{{0,3}}{_MADE})", 3),
    "can you not": (r"Kny[lE]?c|Kyn[lE]?c", 3),
    "words ignored": (r"[ay]y?F(?:o|.{0,3}i)", 2),
    "did you even": (r"[aB]n?yE.?[cCRj]|[aB]ny[El]?[cCR]|[aB]ygc", 3.5),
    "should have": (r"[yw](?:d|K)a[CVA]|dn[yw]a?[lt]?[cC]|yda[jJ]", 3),
    "why a step": (rf"q_?\.?{_HELP}n?y[^,&]{{0,3}}[cCjR]", 2.5),
    "why something made": (rf"q_?\.?{_HELP}n?y[^,&]{{0,2}}[vVJ]", 1.5),
    "why, of what is mine": (r"q_?\.?By[^,&]{0,2}[cvCV]i", 1),
    "why, as it goes on": (r"q_?\.?ayn?", 0.5),
    "why, as a habit": (rf"q_?\.?{_HELP}n?y[kgEl]", 1),
    "why would you": (r"^qK", 0.5),
    "why none": (rf"^&?(?:qa\.?|k|qa?)0\.?{_MADE}", 3),
    "why this and not that": (r"^q[jJ].*n", 3.5),
    "why must I say it": (
        rf"^q.?(?:{_HELP}id?|d)[^,&]{{0,2}}[cA][^,]{{0,3}}[kyg]|^{_HELP}id[^,&]?cy|ik.{{0,3}}[jJoc.]y",
        3,
    ),
    "a habit": (r"(?:^|[,&.])y[aB]?[kg][lE]?[cvCVjJRF]|(?:^|,)y[^,&]{0,12}g$", 3),
    "you, without asking": (r"[yq][^,&]{0,10}u[^,&]?[jJAiCr]", 2),
    "without asking": (r"u(?:j|i[A.]|r?O|A|_?O|iO)", 1),
    "again": (r"y[^,&]{0,10}k|" + _AT + r"ky", 1),
    "again, at the end": (r"y[^,&]{1,10}k$", 0.5),
    "a fault by its name": (rf"(?:^|[,&q])(?:{_HELP}n?)?y[^,&]{{0,3}}R", 3),
    "a fault forbidden": (r"(?:[aBKdyw]n|[xsSu])[lE]*R|H[a.]R|[aK]nHR|an[cv][^,&]{0,5}R", 3),
    "I said": (r"[iw][aBk]{0,2}A(?!.?$)", 1),
    "I said before": (r"[iw][alk]{0,2}A.*(?:b$|k)|[iw]a?k+A|f[iw]A", 1.5),
    "I told you to": (r"ia?[lk]*Ay[^,&]{0,2}[noxgk0]", 2.5),
    "I said not to": (r"[iw]a?[lk]*Ay?[,.]?(?:an|x|0|no|s|w)", 2),
    "nobody asked": (r"(?:i[aB]n|ix)(?:A|c[yof])|an\.i[Ac]|[.0]\.?Ayo|[.0]A[yf]", 3),
    "I only asked": (r"il(?:A|\.yo|\.(?:_|p))|iAl", 2),
    "I asked for little": (r"iA[^,&]{0,3}[+l]", 2),
    "more than I asked": (r"m\.{0,2}i[Ac]", 3),
    "not how we": (r"an\.?(?:w[cvC]|Oc|O[cv])", 2),
    "too much of the work": (rf"[mW][^,&]{{0,2}}{_MADE}|{_MADE}[^,&]{{0,3}}[mW]", 1),
    "needless work": (r"[vcjJk]_?W[pz]", 1.5),
    "you, too much": (r"[yr][^,&]{0,5}[mW]", 2),
    "you did": (_AT + r"y[al]{0,2}C", 1),
    "you are doing": (_AT + r"yal?[jJ]", 1.5),
    "your work": (_AT + r"r\.?p", 0.5),
    "not to our norm": (r"an[_.]{0,2}O", 2),
    "that is no fix": (_AT + r"[jJ][^,]*an_?[vJO]", 3),
}

# How work is to be done from here on.
ORDERS: dict[str, tuple[str, float]] = {
    "a step forbidden": (rf"{_ST}{_NOT}[lEg_]*[cjR]", 2),
    "something forbidden": (rf"{_ST}{_NOT}[lEg_]*[vJ]", 0.5),
    "of the work, forbidden": (rf"{_ST}{_NOT}[lEg_]*[cvJj][.reYmo+]{{0,4}}{_MADE}", 1.5),
    "not anything": (_NOT + r"[^,]{0,5}[eY]", 1),
    "do not just": (rf"{_ST}{_NOT}l[cv.]", 1.5),
    "stop": (
        rf"{_ST}(?:[aK]y!?)?s(?:[jJR]|[_r]{{0,2}}[.mW]?[pz])|{_ST}(?:K?w|L)s(?:[jJR]|\.?z)",
        3.5,
    ),
    "not unless I": (r"[nxs0][^,]{0,10}(?:u[^,]*i|uA|u[jJ]|u[r_]?[Op]|f[iy]|b[iy])", 2),
    "not when you have not": (r"[nxs][^,]{0,10}(?:fy[aB]n|by|uj)", 1),
    "what is mine": (r"[cvjJ][^,&H]{0,3}i(?:[VC]|[aB]n)", 1),
    "always": (rf"{_ST}(?:yd?|wd|id)?[gx]+[^,&]?[cv]", 1.5),
    "do it yourself": (rf"{_ST}(?:yd|y?K)?[cv][^,&]{{0,4}}P", 3),
    "always, of the work": (rf"{_ST}(?:yd?|wd|id)?[gx]+[^,&]?[cv][^,&]{{0,4}}{_MADE}", 0.5),
    "always, at the end": (r"[cv][^&]{0,10},g", 2),
    "make sure": (r"M[yo]*[gxt]*[cv]", 1),
    "make sure always": (r"M[yo]*[gx]", 1),
    "make sure not, from now on": (r"M[yo]*an[^&]*h", 3),
    "a step before another": (r"c[^&]{0,8}b(?:[yeYjJ]|_?p)", 2.5),
    "before you": (r"[cv][^&]{0,8}by", 0.5),
    "ask when in doubt": (r"[cs][^,]{0,3}f(?:ya)?Q|f(?:ya)?Q,", 3),
    "something before a step": (r"v[^&]{0,8}b[yeYjJ]", 1.5),
    "when you, do": (
        rf"{_ST}[bfgue](?:ya?|[ejJi])[^,]{{0,8}},(?:[^,n]?[cvkgxMs!]|an|yd)",
        2.5,
    ),
    "after each, do": (rf"{_ST}[bg][eyjJ](?:[^,]{{0,5}}[^,yn])?(?:[cM]|vi)", 2),
    "before you, I want": (r"by[^,]{0,6}[iy]d[cv]", 2.5),
    "when a test fails, do": (rf"{_ST}f[_eY]?p[^,]{{0,4}},(?:s|ci|an|x)", 2.5),
    "from now on": (_AT + r"!?1", 3.5),
    "next time": (_AT + r"!?h,?(?:[cvgxMsly!.w0pz]|an|id)", 2.5),
    "so, from now on": (_ST + r"[gtl]?[cv][^,&]*(?<!b)[h1]", 2.5),
    "if so, stop and tell": (r"f[^,d]{0,10}[,&]*s\.?&[cv]", 4),
    "each time": (
        rf"{_AT}[h1gtl!]?[cv][^,&]{{0,6}}[bf.]e(?!\.[_H])|{_ST}[h1gtl]?[cv][^,&]{{0,6}}(?:g(?!\.?[_H])|ey)",
        2,
    ),
    "each of the work should": (rf"{_ST}e[^,&]{{0,2}}[pOG][^,]{{0,12}}d[acvkngx+]", 2.5),
    "each needs": (rf"{_ST}e[^,&]{{0,2}}p[^,&]{{0,2}}[.a][_.]{{0,2}}p", 2),
    "the work should": (rf"{_ST}[.rw+]?[pzG][^,&]{{0,2}}d(?!a\.(?!\+))", 2),
    "the texts are so": (rf"{_ST}[.rwe]?[Gz]a[^,&]{{0,2}}\+", 3),
    "only what I ask": (r"l[cv][^,]{0,3}i[cA]|[cv]\.i[cA],l", 3),
    "be so": (_ST + r"=", 2),
    "keep it so": (r"kH\+", 2),
    "no need to": (_AT + r"Wo[cv]", 2.5),
    "only this step": (rf"{_AT}(?:yd)?l[cv][^,&]{{0,3}}{_MADE}", 1.5),
    "instead of": (r"S[^,&]?[jJR]", 2),
    "this, not that": (r"[cv][^&]{0,6},n_?[pz.+]", 2),
    "this not that": (rf"{_ST}v[pz.]\.?n[pz.c]|{_ST}[cv]_?p,n_?p", 2),
    "we do": (rf"{_ST}w(?:g|x|an)[cv]", 1.5),
    "we do, of the work": (rf"{_ST}w(?:g|x|an)[cv][^,&]{{0,3}}[pz]", 1),
    "none of a taste": (_ST + r"(?:0|x|0\.)[^,&]?[zj]|" + _AT + r"0[cj]u", 2.5),
    "do we need it": (r"aw(?:\.|d[cv])[^,&]{0,2}(?:z|[mW]\.?p)", 3),
    "not to taste": (r"[nsx][^,&]{0,3}z", 1.5),
    "a taste is bad": (_AT + r"z[^,&]{0,3}an", 2.5),
    "a better text": (r"\+G", 3),
    "all of it": (r"d?a?g\+", 3),
    "tests first": (r"^[pz]t", 2),
    "what you write": (r"pyv", 2),
    "I want you to": (rf"{_ST}i(?:an|a)?d[lgx]?[cv]", 1),
    "I do not want": (rf"{_ST}ian(?:d|\.yo)", 2),
    "you need not": (r"yand[cv]", 1.5),
    "first": (r"[cv][^,&]{0,6}t", 1),
    "you, first": (r"yd[^&]{0,6}t|t,?b", 1.5),
    "in this manner": (
        r"[kvc]_?r?p\+|[kvc]\.?r?\+[^,&_]?[pz]|^\+[pz]!?$|c\.\.?\+,n",
        2,
    ),
    "answer so": (r"^[!h1]?c\.\+!?(?:$|,)", 3),
    "so, please": (r"(?:^|,)\+!?(?:$|,)", 1.5),
    "it is not needed": (r"[cpT.][^,&]{0,3}aW", 2),
    "keep to it": (r"U[_r.+]{0,2}O", 1.5),
    "an order": (rf"{_ST}[gtl]?c", 0.5),
    "you should": (r"yd[^,&]?[cv]", 1),
    "of the work": (_MADE, 1),
}

# The program, a thing at hand, this moment.
AGAINST: dict[str, tuple[str, float]] = {
    "a thing": (r"T", -0.5),
    "things": (r"T.*T", -0.5),
    "a name": (r"N", -0.5),
    "names": (r"N.*N", -1.5),
    "for now": (r"D", -1.5),
    "nothing else now": (r"X", -3),
    "show me": (rf"{_ST}[cv]i(?!b)", -1.5),
    "do this": (rf"{_AT}[lgt]?(?:{_NOT}[lEg]*)?[cv]H(?!V)", -1),
    "this one": (r"H[pT]", -1),
    "that one of the work": (r"[cv]_\.{1,2}p", -1),
    "it should have": (r"[pG]da[.T](?!.*[pzG+C])", -1),
    "could you": (rf"{_ST}[Ka]y(?!n)[cv.]", -2.5),
    "let us": (r"^L(?![gxkUsn])", -1),
    "it should": (rf"{_ST}[_HweT][^,&yipzH]{{0,3}}d", -1),
    "a tool should": (_AT + r"[w_]p[^,&]?dn?[cv]", -1.5),
    "a thing does": (_AT + r"_?\.{0,2}T[^,&H]{0,2}[aBKdxnk]", -2),
    "it does not": (
        rf"{_ST}[_H][^,&yi]{{0,3}}(?:{_HELP}?n|x|k)(?!.?i|[_.]{{0,2}}O)",
        -1,
    ),
    "I, of myself": (r"^i(?!a?[lk]*A|an?d|ld|[aB]nA|an\.y|x|.*by)", -1),
    "if it": (rf"{_ST}f(?:H|_(?!p)|T|\.)", -1),
    "if you have not": (r"^f(?:y[aB]n|yaC|H)", -2),
    "first this, then that": (r"^t[^,]*[,&].*[cv]|^t[cv]", -1),
    "to be written somewhere": (r"Z|v[^,]{0,6}N,[gxcv]", -9),
}
_ASKED, _LONG, _NAMED_AT_LENGTH = -1.5, -0.5, -1.0

_COMPLAINTS, _ORDERS, _AGAINST = (
    [(re.compile(row), weight) for row, weight in table.values()]
    for table in (COMPLAINTS, ORDERS, AGAINST)
)
# A question that complains: asked why, of a lack, of a habit; a request not to.
_BLAMES = re.compile(
    rf"q_?\.?{_HELP}?n?y|q[jJ]|{_HELP}n?y[EgF]|{_HELP}ny|y[aBKklE.]{{0,3}}[nxF]|^[yw]Bn|^q.?{_HELP}i"
    rf"|Ayo|^s|{_ST}(?:[Ka]y)?(?:s|n)[cvjJR]|^&?[kq]a?\.?0|^y|nHR|^aw[.d]"
)
# What before a later clause makes that clause another's.
_SPOKEN_OF = re.compile(
    _AT + r"[_Hwe]?[^,&yip]{0,3}d|" + _AT + r"f|T[^,&]{0,2}[aKd]|Z|v[^,]{0,6}N$"
)
_ORDER = re.compile(r"^[h1HE!o]*(?:[gtlM]*[cvk]|an|[gx]|s|0[pz])")

_OFFERED = re.compile(
    r"\?\s*$|\b(?:shall|should|may|can) i\b|\bwant me to\b|\bi(?:'ll| will|'d| would)\b"
    r"|\b(?:ready|about|going) to\b",
    re.IGNORECASE,
)
_FINISHED = re.compile(
    r"\b(?:done|completed?|finished|implemented|fixed|added|created|updated|works?|working|ready"
    r"|pass(?:es|ed|ing)?|green|all set|committed|pushed|refactored)\b",
    re.IGNORECASE,
)
_NAMED = re.compile(rf"{_ST}{_NOT}[lEg_]*(?P<step>[cv])")
_NONE = re.compile(rf"^[&k]?0\.?{_MADE}[^,]{{0,3}}$")
TAKEN, MISSING = 1.0, 3.5


@dataclass(frozen=True, slots=True)
class Judged:
    """How heavy a sentence weighs, whether as a complaint, and where its clauses begin."""

    weight: float = 0.0
    complains: bool = False
    start: int = 0


@lru_cache(maxsize=256)
def judged(masked: str, before: str = "", *, asks: bool = False) -> Judged:
    """What a sentence weighs; `before` is what the agent said and did last."""
    row = tagged(masked)
    best = Judged()
    for start, end in _clauses(row.signs):
        part = row.signs[start:end]
        wrong, order = _sum(_COMPLAINTS, part), _sum(_ORDERS, part)
        whole = end == len(row.signs) or part[0] in "aBKqd"
        asked = _ASKED if asks and whole and not _BLAMES.search(part) else 0.0
        weight = wrong + order + asked + _sum(_AGAINST, part)
        if weight > best.weight:
            best = Judged(weight, wrong > 0, row.places[start][0] if start else 0)
    weight = best.weight + sum(_LONG for most in LONG if len(row.signs) > most)
    weight += _NAMED_AT_LENGTH if NAME in row.signs and len(row.signs) > LONG[0] else 0.0
    if _NONE.match(row.signs) and asks and _FINISHED.search(before) and not _OFFERED.search(before):
        return Judged(MISSING, complains=True)
    if before and _was_taken(masked, before):
        weight += TAKEN
    return Judged(weight, best.complains, best.start)


def orders(masked: str) -> bool:
    """Whether a sentence begins as an order."""
    return bool(_ORDER.search(tagged(masked).signs))


def reaches(masked: str) -> bool:
    """Whether a sentence says that it holds beyond this task: always, never, each, from now on."""
    return bool(re.search(r"[gx1he]", tagged(masked).signs))


def objects(masked: str) -> bool:
    """Whether a sentence finds fault, asks why, or says what the agent does or should do."""
    return bool(re.search(r"[nxsqFREmWkSA]|y[daBVCK]", tagged(masked).signs))


def _sum(table: list[tuple[re.Pattern[str], float]], part: str) -> float:
    return sum(weight for row, weight in table if row.search(part))


def _clauses(signs: str) -> Iterator[tuple[int, int]]:
    """Runs of clauses: where they begin and end in a row of signs. None begins behind a clause
    that speaks of the program."""
    cuts = [-1, *islice((at for at, sign in enumerate(signs) if sign in ",&"), MAX_CLAUSES)]
    for number, cut in enumerate(cuts):
        if number and _SPOKEN_OF.search(signs[:cut]):
            return
        for end in (*cuts[number + 1 :], len(signs)):
            if end - cut > 2:
                yield cut + 1, end


def _was_taken(masked: str, before: str) -> bool:
    """Whether the agent's last words tell of the forbidden step as taken, not as offered."""
    row = tagged(masked)
    found = _NAMED.search(row.signs)
    if found is None or _OFFERED.search(before):
        return False
    low, high = row.places[found.start("step")]
    verb = masked[low:high].lower()
    taken = "|".join(form for form, base in bases().items() if base == verb and form != verb)
    return bool(taken) and bool(
        re.search(rf"\b(?:{taken})\b|(?m:^)ran .*\b{re.escape(verb)}\b", before, re.IGNORECASE)
    )
