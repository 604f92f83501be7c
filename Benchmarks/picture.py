"""Draws what peers.py has kept: events per CPU-second by case, as bars. Readable on light and dark."""
from xml.sax.saxutils import escape

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


def draw(groups: dict) -> str:
    """The picture, as SVG, of groups of bars by title."""
    most = max(bar["events_per_cpu_second"] for bars in groups.values() for bar in bars)
    lines, y = [], 46
    for title, bars in groups.items():
        lines.append(f'<text x="10" y="{y}" class="title">{escape(title)}</text>')
        y += 8
        for bar in bars:
            kind, label, value = bar["kind"], bar["label"], bar["events_per_cpu_second"]
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
