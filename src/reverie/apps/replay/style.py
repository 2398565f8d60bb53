"""The style of the page: one sheet, light and dark."""

from __future__ import annotations

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
