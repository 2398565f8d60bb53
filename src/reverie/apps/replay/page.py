"""The page of a replay.

The page of a replay: one HTML document with everything in it.

It loads nothing, runs nothing and says so in its own content policy: plots are SVG made
here, colours follow the reader's light or dark. It holds ids and figures, no word of what
was said in a session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import accumulate

from reverie.apps.replay.figures import CAVEAT, MeasuredSession, ReplayFigures
from reverie.apps.replay.policies import POLICIES
from reverie.apps.replay.run import Moved, NeedCounts, ReplayRun
from reverie.reports.plots import PlotMark, Series, areas, lines, ratios, shares
from reverie.text.format import plural

NEEDS = (
    ("here", "in the prompt"),
    ("by_reference", "by reference"),
    ("rerun", "by running again"),
    ("lost", "lost"),
)
MOVES: tuple[tuple[Moved, str], ...] = (
    ("announced", "prefix moved, announced"),
    ("unannounced", "prefix moved unannounced"),
)
CACHE = (("read", "read"), ("written", "written"), ("plain", "not cached"))
INTRO = (
    "Recorded sessions, billed by a simulated prompt cache. Costs are in units of one input "
    "token: reading a tenth, writing 1.25 or 2, output 5; thinking is left out but where it is "
    "named. Naive sends every message and has no window."
)
OPEN = 3  # sessions shown open; the others unfold
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page_text(sessions: Sequence[MeasuredSession]) -> str:
    """The whole document; each session should have been played under every policy."""
    figures = [s.figures for s in sessions]
    first = figures[0]
    title = f"Replay: {first.policy}" + (f", tail {first.tail:,}" if _has_tail(first) else "")
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{INTRO}</p>",
        f'<p class="caveat">{escape(CAVEAT)}</p>',
        *_overview(sessions),
        *(part for at, session in enumerate(sessions) for part in _section(session, at < OPEN)),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _has_tail(figures: ReplayFigures) -> bool:
    return figures.policy == "collapse"


def _short(name: str) -> str:
    return name[:8] if len(name) > 12 else name


# --- all sessions


def _overview(sessions: Sequence[MeasuredSession]) -> Iterator[str]:
    yield "<h2>All sessions</h2>"
    if len(sessions) > 1:
        rows = [(_short(s.figures.session), _dots(s)) for s in sessions]
        yield '<div class="grid"><figure class="wide"><figcaption>Everything billed, '
        yield f"against naive {_legend(_keys(POLICIES[1:]))}</figcaption>"
        yield ratios("cost against naive", rows) + "</figure></div>"
    heads = (
        "session",
        "requests",
        "cost",
        "naive",
        "recovery",
        "refind",
        "background",
        "score",
        "hits",
        "peak",
        "breaks",
        "announced",
        "refused",
        "facts",
        "near here",
        "far here",
        "lost",
        "shown",
    )
    rows = [_row(s.figures) for s in sessions]
    rows += [_total([s.figures for s in sessions])] if len(sessions) > 1 else []
    yield _table(heads, rows)


def _dots(session: MeasuredSession) -> list[tuple[str, str, float]]:
    naive = session.figures.naive_cost or 1
    runs = [(name, session.played[name]) for name in POLICIES[1:]]
    return [(name, name, one.bill.total / naive) for name, one in runs]


def _row(f: ReplayFigures) -> list[str]:
    return [
        _short(f.session),
        f"{f.requests:,}",
        f"{f.cost:,}",
        f"{f.naive_cost:,}",
        f"{f.recovery:,}",
        f"{f.refind:,}",
        f"{f.background.cost:,}",
        f"{f.score:.3f}",
        f"{f.hit:.1%}",
        f"{f.peak:,}",
        f"{f.breaks}",
        f"{f.announced}",
        f"{f.thinking.refused}",
        f"{f.facts_here} of {f.facts}",
        _share(f.near),
        _share(f.far),
        f"{f.near.lost + f.far.lost}",
        f"{f.shown_whole:.1%}",
    ]


def _total(all_of: Sequence[ReplayFigures]) -> list[str]:
    def add(name: str) -> int:
        return sum(int(getattr(f, name)) for f in all_of)

    naive = add("naive_cost")
    return [
        "all",
        *(f"{add(name):,}" for name in ("requests", "cost", "naive_cost", "recovery", "refind")),
        f"{sum(f.background.cost for f in all_of):,}",
        f"{add('billed') / naive:.3f}" if naive else "-",
        "",
        f"{max(f.peak for f in all_of):,}",
        f"{add('breaks')}",
        f"{add('announced')}",
        f"{sum(f.thinking.refused for f in all_of)}",
        f"{add('facts_here')} of {add('facts')}",
        _share(*(f.near for f in all_of)),
        _share(*(f.far for f in all_of)),
        f"{sum(f.near.lost + f.far.lost for f in all_of)}",
        "",
    ]


def _share(*met: NeedCounts) -> str:
    total = sum(m.total for m in met)
    return f"{sum(m.here for m in met) / total:.1%}" if total else "-"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(h)}</th>" for h in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody>'
        "</table></div>"
    )


# --- one session


def _section(session: MeasuredSession, is_open: bool) -> Iterator[str]:
    f = session.figures
    yield f"<details{' open' if is_open else ''}><summary><b>{escape(f.session)}</b> "
    requests = plural(f.requests, "request")
    yield f'<span class="dim">{escape(f.program)} · {requests} · '
    yield f"{escape(f.policy)} {f.score:.2f} of naive</span></summary>"
    yield "".join(f'<p class="warn">{escape(told)}.</p>' for told in f.told())
    yield '<div class="grid">'
    yield from _figures(session)
    yield "</div>"
    yield _table(*_policies(session))
    t = f.thinking
    if t.blocks:
        recorded = plural(t.blocks, "recorded thinking block")
        yield f'<p class="dim">With its {recorded} sent and bound: '
        yield f"{escape(f.policy)} {t.billed:,} against {t.naive_cost:,}; "
        yield f"{plural(t.stripped, 'block')} stripped, {plural(t.refused, 'request')} refused.</p>"
    yield "</details>"


def _figures(session: MeasuredSession) -> Iterator[str]:
    f = session.figures
    played = [(name, session.played[name]) for name in POLICIES]
    chosen = session.played[f.policy]
    flags = _flags(chosen)
    names = [name for name, _ in played]
    sizes = [Series(name, name, [r.tokens for r in one.rounds]) for name, one in played]
    costs = [Series(n, n, list(accumulate(r.cost for r in one.rounds))) for n, one in played]
    cache = [Series(told, kind, _each(chosen, kind)) for kind, told in CACHE]
    breaks = [(kind, told) for kind, told in MOVES if chosen.count(kind)]
    yield _figure(
        "Context size by round, tokens", _keys(names), lines("size", sizes, limit=f.window)
    )
    yield _figure("Cost so far, input tokens", _keys(names), lines("cost", costs))
    yield _figure(
        f"Cache by round under {f.policy}, tokens",
        [*CACHE, *breaks],
        areas("cache", cache, flags),
    )
    yield _figure("Names that later steps used, and where they were", NEEDS, _needs(played))


def _each(played: ReplayRun, key: str) -> list[float]:
    return [float(getattr(r, key)) for r in played.rounds]


def _flags(played: ReplayRun) -> list[PlotMark]:
    return [
        PlotMark(at, one.moved, one.why or "the prefix changed and nothing announced it")
        for at, one in enumerate(played.rounds)
        if one.moved
    ]


def _needs(played: Sequence[tuple[str, ReplayRun]]) -> str:
    rows: list[tuple[str, list[tuple[str, str, int]]]] = []
    for name, one in played:
        for distance, met in (("near", one.near), ("far", one.far)):
            parts = [(told, kind, int(getattr(met, kind))) for kind, told in NEEDS]
            rows.append((f"{name} {distance}", parts))
    return shares("needs", rows)


def _keys(names: Sequence[str]) -> list[tuple[str, str]]:
    return [(name, name) for name in names]


def _legend(keys: Sequence[tuple[str, str]]) -> str:
    parts = "".join(f'<span><i class="{kind}"></i>{escape(name)}</span>' for kind, name in keys)
    return f'<span class="legend">{parts}</span>'


def _figure(title: str, keys: Sequence[tuple[str, str]], svg: str) -> str:
    return f"<figure><figcaption>{escape(title)} {_legend(keys)}</figcaption>{svg}</figure>"


def _policies(session: MeasuredSession) -> tuple[Sequence[str], list[list[str]]]:
    heads = ("policy", "cost", "recovery", "refind", "background", "of naive", "hits", "peak")
    heads = (
        *heads,
        "over window",
        "breaks",
        "announced",
        "pairing faults",
        "facts here",
        "shown whole",
    )
    f = session.figures
    rows: list[list[str]] = []
    for name in POLICIES:
        one = session.played[name]
        bill = one.bill
        ratio = bill.total / f.naive_cost if f.naive_cost else 0
        shown = f"{one.shown / one.results:.1%}" if one.results else "-"
        rows.append(
            [
                name,
                f"{bill.requests:,.0f}",
                f"{bill.recovery:,.0f}",
                f"{bill.refind:,.0f}",
                f"{bill.background:,.0f}",
                f"{ratio:.3f}",
                f"{one.hit:.1%}",
                f"{one.peak:,}",
                f"{one.over(f.window):,}",
                f"{one.count('unannounced')}",
                f"{one.count('announced')}",
                f"{one.faults}",
                f"{one.facts_here} of {one.facts}",
                shown,
            ]
        )
    return heads, rows


# --- The style of the page: one sheet, light and dark.


STYLE = """
:root{--bg:#fbfbfa;--ink:#1d2128;--dim:#69707d;--card:#fff;--edge:#e1e3e8;--grid:#e9ebef;
--naive:#868e9b;--classic:#c2701c;--collapse:#2563c9;--read:#7fb2dd;--written:#d98a2b;
--plain:#b8433f;--here:#3d8f63;--by_reference:#8cc3a3;--rerun:#e0ac3f;--lost:#c0403c;
--announced:#8a63c4;--unannounced:#c0403c}
@media(prefers-color-scheme:dark){:root{--bg:#14171c;--ink:#e6e8ec;--dim:#98a0ad;--card:#1c2027;
--edge:#2d323c;--grid:#292e37;--naive:#8b93a1;--classic:#e39a4c;--collapse:#6ba4f5;--read:#3f719c;
--written:#e0973a;--plain:#dd6762;--here:#48a574;--by_reference:#2f6b4c;--rerun:#d3a03a;
--lost:#e0645f;--announced:#ab8ae0;--unannounced:#ff6b66}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main{max-width:1240px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:26px;margin:0 0 8px}h2{font-size:18px;margin:30px 0 10px}
p{margin:6px 0;max-width:78ch}
.dim{color:var(--dim)}
.caveat{border-left:3px solid var(--announced);padding-left:10px}
.warn{border-left:3px solid var(--lost);padding-left:10px}
details{background:var(--card);border:1px solid var(--edge);border-radius:10px;
padding:12px 16px;margin:16px 0}
summary{cursor:pointer;overflow-wrap:anywhere}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(460px,100%),1fr));
gap:18px;margin:14px 0}
figure{margin:0;min-width:0}figure.wide{max-width:640px}
figcaption{font-weight:600;font-size:14px;margin-bottom:4px;display:flex;flex-wrap:wrap;
gap:0 12px}
.legend{font-weight:400;color:var(--dim);font-size:13px;display:inline-flex;flex-wrap:wrap;
gap:2px 12px}
.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:5px;
background:currentColor;vertical-align:-1px}
svg{width:100%;height:auto;display:block}
svg text{fill:var(--dim);font-size:11.5px}
.end{text-anchor:end}.mid{text-anchor:middle}.start{text-anchor:start}
svg .grid{stroke:var(--grid);stroke-width:1;fill:none}
svg .limit{stroke:var(--lost);stroke-width:1;stroke-dasharray:5 4;fill:none}
svg polyline{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}
svg polyline.naive{stroke-width:4;opacity:.45}
svg circle,svg rect,svg .fill,svg g path{fill:currentColor}
svg g .line{fill:none;stroke:currentColor;stroke-width:1;stroke-dasharray:2 3;opacity:.6}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:12.5px;font-variant-numeric:tabular-nums;margin:8px 0}
th,td{padding:4px 6px;border-bottom:1px solid var(--edge);text-align:right;white-space:nowrap}
th{color:var(--dim);font-weight:600}th:first-child,td:first-child{text-align:left}
""" + "".join(
    f".{name}{{color:var(--{name})}}"
    for name in (
        "naive",
        "classic",
        "collapse",
        "read",
        "written",
        "plain",
        "here",
        "by_reference",
        "rerun",
        "lost",
        "announced",
        "unannounced",
    )
)
