# SPDX-License-Identifier: LicenseRef-Undeclared
"""The chart of docs/benchmarks.md: what each piece of work costs beside a peer, from the rows
of a run (or of several, whose rounds are put together)."""
import statistics
from xml.sax.saxutils import escape

# Key of the row, what the chart calls it, and whether the ratio is of rates instead of costs.
BARS = (("get_small_nginx", "cached page, 10 entries · nginx", False),
        ("get_304", "304 Not Modified · nginx", False),
        ("get_once_nginx", "a connection for each request · nginx", False),
        ("get_page", "page of 50,000 entries, 500 KiB · nginx", False),
        ("get_small_library", "cached page · libmicrohttpd alone", False),
        ("cold", "page read, rendered, compressed · zlib alone", False),
        ("bulk", "1,000,000 entries registered · bare SQLite", True),
        ("group_commit", "64 clients registering · bare SQLite", True),
        ("register", "one registration to fresh bytes · full render", False))
LEFT, WIDTH, LINE, TOP = 330, 430, 30, 64
MOST = 2  # times what the peer needs, at the right edge
TICKS = ((0, "0"), (0.5, "half"), (1, "the peer"), (2, "twice"))
LESS, MORE, INK, PALE = "#2f7d4f", "#b4552d", "#1f2328", "#8b93a1"


def place(ratio):
    return LEFT + min(ratio, MOST) / MOST * WIDTH


def costs(runs, key, is_rate):
    """What the work costs in parts of what the peer's costs, one number a round."""
    ratios = [ratio for rows in runs for row in rows if row["key"] == key
              for ratio in row.get("ratios", ())]
    return [1 / ratio for ratio in ratios] if is_rate else ratios


def text(x, y, words, colour=INK, anchor="start", size=13):
    return (f'  <text x="{x:.0f}" y="{y:.0f}" fill="{colour}" text-anchor="{anchor}" font-size="{size}">'
            f"{escape(words)}</text>")


def label(ratio):
    return f"{ratio:.2f}" if ratio >= 0.1 else f"1/{1 / ratio:.0f}"


def bar(y, words, ratios):
    middle = statistics.median(ratios)
    colour = LESS if middle <= 1 else MORE
    low, high = place(min(ratios)), place(max(ratios))
    return [text(LEFT - 12, y + 4, words, anchor="end"),
            f'  <rect x="{LEFT}" y="{y - 7}" width="{max(place(middle) - LEFT, 2):.1f}" height="14" fill="{colour}"/>',
            f'  <path d="M{low:.1f} {y}H{high:.1f}M{low:.1f} {y - 4}v8M{high:.1f} {y - 4}v8" stroke="{INK}"/>',
            text(LEFT + WIDTH + 60, y + 4, label(middle), colour, "end")]


def svg(runs):
    """The picture; None where no row of it was measured."""
    bars = [(words, ratios) for key, words, is_rate in BARS if (ratios := costs(runs, key, is_rate))]
    if not bars:
        return None
    height = TOP + LINE * len(bars) + 22
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 {height}" width="840" height="{height}" '
             'role="img" aria-label="What work costs beside a peer: a bar that ends before '
             'the line costs less, one that crosses it more.">',
             f'  <rect width="840" height="{height}" fill="#ffffff"/>',
             '<g font-family="DejaVu Sans, Verdana, sans-serif">',
             text(16, 24, "What it costs beside a peer", size=16),
             text(LEFT + WIDTH + 60, 24, "shorter is better", PALE, "end")]
    for at, words in TICKS:
        x = place(at)
        lines += [f'  <path d="M{x:.1f} {TOP - 14}V{height - 18}" stroke="{INK if at == 1 else "#d7dbe0"}"/>',
                  text(x, TOP - 20, words, PALE, "middle", 11)]
    for number, (words, ratios) in enumerate(bars):
        lines += bar(TOP + 8 + LINE * number, words, ratios)
    lines += [text(16, height - 6, "bar: median of all rounds; whisker: from the least to the most", PALE, size=11),
              "</g>", "</svg>"]
    return "\n".join(lines) + "\n"
