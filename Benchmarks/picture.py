"""Draws what bench.py and peers.py have kept: events per CPU-second by case, as bars. Readable on light and dark."""
from xml.sax.saxutils import escape

# profile of bench.py → what the picture calls it
CASES = {
    # Kept on 2026-11-23, when the defaults were so.
    "cap 10MiB, 50 a batch, gzip (the defaults)": "the defaults then: gzip, 50 a batch",
    "cap 10MiB, 50 a batch, zstd": "zstd, 50 a batch",
    "the defaults": "the defaults: gzip",
    "zstd, the defaults else": "zstd",
    "cap 1GiB, 3000 a batch, gzip": "gzip, 3,000 a batch",
    "cap 1GiB, 3000 a batch, zstd": "zstd, 3,000 a batch",
}
STYLE = """
text { font: 14px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-weight: 600 }
.small { font-size: 12px; fill: #59636e }
.ours { fill: #0969da } .floor { fill: #8c959f } .peer { fill: #bc4c00 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .small { fill: #9198a1 }
  .ours { fill: #4493f8 } .floor { fill: #656c76 } .peer { fill: #db6d28 }
}
"""
WIDTH, LEFT, BAR, ROW = 940, 320, 500, 24


def rows(results: dict, peers: dict) -> list:
    """Groups of bars: a title, and (kind, label, events per CPU-second) each."""
    groups = []
    for name, title in CASES.items():
        result = results["profiles"].get(name)
        if result:
            floor = result["floor"]
            groups.append((title, [("ours", "Spoolship", result["events_per_cpu_second"]),
                                   ("floor", "the floor, bare C++", floor["events"] / floor["total"])]))
    if peers.get("agents"):
        groups.append(("in one run with others",
                       [("ours" if name.startswith("Spoolship") else "peer", name, result["events_per_cpu_second"])
                        for name, result in peers["agents"].items()]))
    if not groups:
        raise SystemExit("bench: nothing to draw: no results are kept of the cases that the picture shows")
    return groups


def draw(results: dict, peers: dict) -> str:
    """The picture, as SVG."""
    groups = rows(results, peers)
    most = max(value for _, bars in groups for _, _, value in bars)
    lines, y = [], 46
    for title, bars in groups:
        lines.append(f'<text x="10" y="{y}" class="title">{escape(title)}</text>')
        y += 8
        for kind, label, value in bars:
            lines.append(f'<text x="{LEFT - 10}" y="{y + 15}" text-anchor="end" class="small">{escape(label)}</text>')
            length = max(2, BAR * value / most)
            lines.append(f'<rect x="{LEFT}" y="{y + 2}" width="{length:.0f}" height="{ROW - 6}" rx="3" class="{kind}"/>')
            lines.append(f'<text x="{LEFT + length + 8:.0f}" y="{y + 16}" class="small">{round(value, -3):,.0f}</text>')
            y += ROW
        y += 26
    height = y - 10
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
            f'aria-labelledby="t">\n<title id="t">Events per CPU-second, by case</title>\n<style>{STYLE}</style>\n'
            '<text x="10" y="20" class="small">events per second of CPU, user and system; longer is better</text>\n'
            + "\n".join(lines) + "\n</svg>\n")
