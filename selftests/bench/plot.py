# SPDX-License-Identifier: GPL-2.0
"""Throughput and latency by message size, as SVG."""
import math

COLOURS = {"rdma": "#c1272d", "smc": "#0071bc", "tcp": "#39833c", "tcp-off": "#8cc63f",
           "verbs": "#555555"}
WIDTH, HEIGHT, LEFT, TOP = 420, 300, 60, 40
PANELS = [
    ("Streams, one way, 1 connection: MB/s", "stream one 1 {}",
     [64, 1024, 16384, 65536, 262144, 1048576]),
    ("Round trips alone, median: us", "rtt alone {} median",
     [1, 64, 1024, 4096, 16384, 65536, 1048576]),
]


def size_name(size):
    for unit, name in ((1 << 20, " MiB"), (1 << 10, " KiB")):
        if size >= unit:
            return f"{size // unit}{name}"
    return f"{size} B"


def text(x, y, words, anchor="middle", colour="#000"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def line(points, colour, width):
    where = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{where}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def panel(title, curves, sizes, left):
    """Draw a panel, in which both axes are logarithmic. @curves: pairs of column and points, which
    are pairs of size and value."""
    values = [value for _, points in curves for _, value in points]
    low = math.floor(math.log10(min(values)))
    high = max(math.ceil(math.log10(max(values))), low + 1)
    least, most = math.log2(sizes[0]), math.log2(sizes[-1])

    def at(size, value):
        return (left + (math.log2(size) - least) / (most - least) * WIDTH,
                TOP + HEIGHT - (math.log10(value) - low) / (high - low) * HEIGHT)

    yield text(left + WIDTH / 2, TOP - 15, title)
    for power in range(low, high + 1):
        _, y = at(sizes[0], 10.0 ** power)
        yield line([(left, y), (left + WIDTH, y)], "#ddd", 1)
        yield text(left - 5, y + 4, f"{10.0 ** power:g}", "end")
    for size in sizes:
        x, _ = at(size, 10.0 ** low)
        yield line([(x, TOP), (x, TOP + HEIGHT)], "#eee", 1)
        yield text(x, TOP + HEIGHT + 18, size_name(size))
    for column, points in curves:
        yield line([at(*point) for point in points], COLOURS[column], 2)


def svg_of(median, columns, names):
    parts = []
    left = LEFT
    for title, figure, sizes in PANELS:
        curves = [(column, [(size, median(figure.format(size), column)) for size in sizes
                            if median(figure.format(size), column)]) for column in columns]
        curves = [(column, points) for column, points in curves if points]
        if curves:
            parts.extend(panel(title, curves, sizes, left))
            left += WIDTH + LEFT + 20
    for i, column in enumerate(columns):
        parts.append(text(LEFT + 110 * i, TOP + HEIGHT + 45, names[column], "start",
                          COLOURS[column]))
    return ('<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12" '
            f'width="{max(left, 600):.0f}" height="{TOP + HEIGHT + 60}">\n'
            '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n")
