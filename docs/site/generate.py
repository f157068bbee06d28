"""Bring the generated parts of the documents up to date: `python docs/site/generate.py` (`make docs` does it first).

The table of docs/reproduction.md from config/expected.yaml; the table of docs/architecture.md and its two pictures from
the sources and the workflow. A test says when one of them is not what this would write.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from pictures import layers_picture, workflow_picture  # noqa: E402
from sources import ROOT  # noqa: E402
from workflow import RULES, Rule, edges  # noqa: E402

from rltune.files import write_text  # noqa: E402
from rltune.report.expected import FILE, expected_text, load_expectations  # noqa: E402

MEND = "python docs/site/generate.py"
"""The command that brings them up to date."""


def reproduction_table() -> str:
    """A row a table or figure of the paper."""
    expectations = load_expectations(ROOT / FILE, ROOT)
    lines = ["| of the paper | make it again | expected on the default data | smaller |", "|---|---|---|---|"]
    for part in expectations.reproduced:
        what = f"**{part.paper}**<br>{part.title}"
        if not part.stage:
            lines.append(f"| {what} | not in this version | {part.note} | – |")
            continue
        command = f"`make notebook STAGE={part.stage}`<br>{expectations.stage_s[part.stage]:.0f} s, {_ids(part.ids)}"
        numbers = [f"{n.says}: {expected_text(n)}" + (f" ({n.why})" if n.why else "") for n in part.numbers]
        lines.append(
            f"| {what} | {command} | {'<br>'.join([*numbers, *([part.note] if part.note else [])])} | {part.shrink} |"
        )
    return "\n".join(lines)


def _ids(ids: list[str]) -> str:
    return ", ".join(f"`{i}`" for i in ids)


def rules_table() -> str:
    """A row a rule of the workflow, in the order in which files include them."""
    lines = ["| rule | once a | what | runs | writes |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(_row(rule) for rule in RULES)])


def _row(rule: Rule) -> str:
    runs = f"`notebooks/{rule.notebook}.ipynb`" if rule.notebook else f"`rltune stage {rule.name}`"
    return f"| `{rule.name}` | {rule.per} | {rule.message} | {runs} | {', '.join(f'`{o}`' for o in rule.outputs)} |"


def generated() -> dict[Path, str]:
    """File → its text with the generated parts as they should be."""
    docs = ROOT / "docs"
    parts = {
        docs / "reproduction.md": {"reproduction": reproduction_table()},
        docs / "architecture.md": {"rules": rules_table()},
    }
    texts = {path: _filled(path, blocks) for path, blocks in parts.items()}
    return {
        **texts,
        docs / "assets" / "layers.svg": layers_picture(),
        docs / "assets" / "workflow.svg": workflow_picture(RULES, edges()),
    }


def _filled(path: Path, blocks: dict[str, str]) -> str:
    text = path.read_text(encoding="utf-8")
    for name, block in blocks.items():
        pattern = rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)"
        text, count = re.subn(pattern, lambda m, b=block: f"{m[1]}\n{b}\n\n{m[2]}", text, flags=re.DOTALL)
        if count != 1:
            raise ValueError(f"{path}: found {count} blocks '<!-- generated: {name} -->' … '<!-- end -->', expected 1")
    return text


def main() -> None:
    for path, text in generated().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            write_text(path, text)
            print(f"written anew: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
