"""The two pictures of docs/architecture.md, as SVG: layers with what each imports, and the rules of the workflow."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape

from sources import first_sentence, layer_imports, layers
from workflow import Rule

INK, MUTED, LINE, PAPER = "#1c2733", "#5b6876", "#c9d1da", "#ffffff"
TINTS = ("#e8eefb", "#eef3fb")
FONT = "font-family='Roboto, Helvetica, Arial, sans-serif'"


def _svg(width: int, height: int, title: str, body: Sequence[str]) -> str:
    return "\n".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
            f"{FONT} "
            f"role='img'>",
            f"<title>{escape(title)}</title>",
            "<defs><marker id='arrow' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
            f"<path d='M0,0 L8,4 L0,8 z' fill='{MUTED}'/></marker></defs>",
            f"<rect width='{width}' height='{height}' rx='6' fill='{PAPER}'/>",
            *body,
            "</svg>\n",
        ]
    )


def _text(x: float, y: float, text: str, size: int = 12, colour: str = INK, more: str = "") -> str:
    return f"<text x='{x:g}' y='{y:g}' font-size='{size}' fill='{colour}' {more}>{escape(text)}</text>"


def layers_picture() -> str:
    """A row a layer, top down; a dot for every layer that it imports from, so all dots lie right of the diagonal."""
    order = layers()[::-1]
    imports = layer_imports()
    row, left, cell, top = 40, 580, 22, 96
    width, height = left + cell * len(order) + 16, top + row * len(order) + 12
    body = [
        _text(16, 30, "Layers, from the top down", 16, INK, "font-weight='bold'"),
        _text(
            16, 50, "● the row’s layer imports from the column’s; below the diagonal there is nothing to see", 12, MUTED
        ),
    ]
    for i, name in enumerate(order):
        x = left + cell * i + cell / 2
        body.append(_text(x + 4, top - 8, name, 11, MUTED, f"transform='rotate(-45 {x + 4:g} {top - 8:g})'"))
        y = top + row * i
        body.append(f"<rect x='8' y='{y}' width='{width - 16}' height='{row - 4}' rx='4' fill='{TINTS[i % 2]}'/>")
        body.append(_text(16, y + 22, name, 13, INK, "font-weight='bold'"))
        lines = textwrap.wrap(first_sentence(f"rltune.{name}").replace("`", ""), 82)
        lines = lines if len(lines) < 3 else [lines[0], lines[1] + " …"]
        for k, line in enumerate(lines):
            body.append(_text(110, y + (22 if len(lines) == 1 else 15 + 14 * k), line, 11, INK))
        for k, other in enumerate(order):
            cx, cy = left + cell * k + cell / 2, y + (row - 4) / 2
            if k == i:
                body.append(f"<rect x='{cx - 4:g}' y='{cy - 4:g}' width='8' height='8' fill='{LINE}'/>")
            elif other in imports[name]:
                body.append(f"<circle cx='{cx:g}' cy='{cy:g}' r='5' fill='#3f51b5'/>")
    return _svg(width, height, "The layers of the library and what each imports", body)


def workflow_picture(rules: Sequence[Rule], edges: Sequence[tuple[str, str]]) -> str:
    """A box a rule, below all that it waits for; boxes of notebooks are tinted, those of commands are not."""
    notebook = {rule.name: bool(rule.notebook) for rule in rules}
    per = {rule.name: rule.per for rule in rules}
    before: dict[str, list[str]] = {}
    for a, b in edges:
        before.setdefault(b, []).append(a)

    def depth(name: str) -> int:
        return 1 + max((depth(a) for a in before.get(name, ())), default=-1)

    names = [rule.name for rule in rules if any(rule.name in edge for edge in edges)]
    ranks: list[list[str]] = [[] for _ in range(1 + max(map(depth, names)))]
    aside = []  # what nothing waits for but a rule far below stands in a lane of its own at the right
    for name in names:
        later = [depth(b) for a, b in edges if a == name]
        (aside if later and min(later) > depth(name) + 2 else ranks[depth(name)]).append(name)
    box, high, gap, down = 128, 44, 20, 84
    across = max(len(rank) for rank in ranks) * (box + gap) + 20
    width = across + len(aside) * (box + gap) + 10
    at: dict[str, tuple[float, float]] = {}
    for r, rank in enumerate(ranks):
        placed = {n: [at[a][0] for a in before.get(n, ()) if a in at] for n in rank}
        middle = {n: sum(xs) / len(xs) if xs else across / 2 for n, xs in placed.items()}
        # what the next rank waits for stands together, beside what only a later one does
        near = {n: any(depth(b) == r + 1 for a, b in edges if a == n) for n in rank}
        ordered = sorted(rank, key=lambda n: (near[n], middle[n], n))
        centre = middle[rank[0]] if len(rank) == 1 else across / 2
        for k, name in enumerate(ordered):
            at[name] = centre + (k - (len(rank) - 1) / 2) * (box + gap), 62 + r * down
    for k, name in enumerate(sorted(aside, key=depth, reverse=True)):
        at[name] = across + (k + 0.5) * (box + gap), 62 + depth(name) * down
    body = [
        _text(16, 30, "Rules of the workflow, and what each waits for", 16, INK, "font-weight='bold'"),
        _text(16, 48, "tinted: an executed notebook; plain: a command; below the name: runs once a …", 11, MUTED),
    ]
    for a, b in edges:
        (x0, y0), (x1, y1) = at[a], at[b]
        y0, bend = y0 + high, (down - high) / 2
        straight = y1 - y0 - 2 * bend  # past the ranks between, then over
        curve = f"V{y0 + straight:g} C{x0:g},{y0 + straight + bend:g} {x1:g},{y1 - bend:g} {x1:g},{y1 - 2:g}"
        body.append(
            f"<path d='M{x0:g},{y0:g} {curve}' fill='none' "
            f"stroke='{MUTED}' stroke-width='1.2' marker-end='url(#arrow)'/>"
        )
    for name, (x, y) in at.items():
        tint = "#fdeccd" if notebook[name] else "#eceff1"
        body.append(
            f"<rect x='{x - box / 2:g}' y='{y:g}' width='{box}' height='{high}' rx='5' fill='{tint}' stroke='{MUTED}'/>"
        )
        body.append(_text(x, y + 19, name, 13, INK, "text-anchor='middle' font-weight='bold'"))
        body.append(_text(x, y + 34, per[name], 10, MUTED, "text-anchor='middle'"))
    return _svg(int(width), 62 + len(ranks) * down, "The rules of the workflow", body)
