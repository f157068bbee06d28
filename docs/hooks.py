"""What MkDocs adds to the pages in docs/: the API reference, tables that come from the code, CHANGELOG and CONTRIBUTING."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from rltune.environment.features import FEATURE_SETS, FEATURES
from rltune.policies import POLICIES, SYMBOLS
from rltune.report.expected import FILE, expected_text, load_expectations
from rltune.report.style import scheduler_title

ROOT = Path(__file__).resolve().parents[1]
FROM_ROOT = ("CHANGELOG.md", "CONTRIBUTING.md")
ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):`~?([^`]+)`")
TABLE = re.compile(
    r"^( *=+(?: +=+)+ *\n(?:.+\n)+? *=+(?: +=+)+ *\n(?:(?:.+\n)+? *=+(?: +=+)+ *(?:\n|$))?)", re.MULTILINE
)


class Markdown(griffe.Extension):
    """Shows docstrings' reStructuredText tables as text, and its roles as code."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = TABLE.sub(r"\n```text\n\1\n```\n", ROLE.sub(r"`\1`", obj.docstring.value))


def table(head: str, rows: list[tuple[str, ...]]) -> str:
    columns = head.split(" | ")
    lines = [head, " | ".join("---" for _ in columns), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def configuration() -> str:
    """A table for each kind of file in config/, and for each block in it."""
    parts = []
    for file, model in json.loads((ROOT / "config" / "schema.json").read_text(encoding="utf-8")).items():
        for name, block in {file: model, **model.get("$defs", {})}.items():
            if fields := block.get("properties"):
                parts += [
                    f"{'##' if name == file else '###'} {name}",
                    line(block.get("description")),
                    fields_table(fields),
                ]
    return "\n\n".join(parts)


def fields_table(fields: dict[str, Any]) -> str:
    rows = [
        (f"`{key}`", kind(field), f"`{field['default']}`" if "default" in field else "", line(field.get("description")))
        for key, field in fields.items()
    ]
    return table("key | type | default | meaning", rows)


def kind(field: dict[str, Any]) -> str:
    """The type of a field of the schema, in short."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"  # its own table
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if options := field.get("anyOf") or field.get("oneOf") or field.get("allOf"):
        return " or ".join(dict.fromkeys(kind(option) for option in options))
    if field.get("type") == "array":
        return f"list of {kind(field.get('items', {}))}"
    return str(field.get("type", "any"))


def line(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def features() -> str:
    rows = [
        (f"`{name}`", feature.definition, f"{feature.low:g} … {feature.high:g}", feature.source)
        for name, feature in FEATURES.items()
    ]
    return table("feature | definition | range | source", rows)


def feature_sets() -> str:
    rows = [(f"`{name}`", str(len(columns)), ", ".join(map(str, columns))) for name, columns in FEATURE_SETS.items()]
    return table("set | columns | in order", rows)


def policies() -> str:
    rows = [(f"`{p.name}`", p.formula, "; ".join(filter(None, (p.source, p.remark)))) for p in POLICIES.values()]
    letters = "; ".join(f"*{letter}* {meaning}" for letter, meaning in SYMBOLS.items())
    return f"{letters}; *d* a day.\n\n{table('name | score | source', rows)}"


def reproduction() -> str:
    expectations = load_expectations(ROOT / FILE, ROOT)
    rows = []
    for part in expectations.reproduced:
        numbers = [f"{n.says}: {expected_text(n)}" + (f" ({n.why})" if n.why else "") for n in part.numbers]
        ids = ", ".join(f"`{i}`" for i in part.ids)
        shown = "<br>".join([*numbers, *([part.note] if part.note else [])])
        rows.append((f"**{part.paper}**<br>{part.title}", ids, shown, part.shrink))
    return table("of the paper | artefacts | expected on the default data | to make it smaller", rows)


AGAINST = {
    "strong": "the strong baseline",
    "picked": "the rule picked on validation windows",
    "any": "the best of all rules tried",
    "saf_easy": "SAF + EASY",
    "linear": "the tuned linear score",
    "scheduler": "its scheduler without its network",
}
"""Ends of keys in the output of benchmarks/quality.py → what RLTune is compared with."""


def waits(length: int) -> str:
    """Mean waits in windows of that many jobs, from the output of benchmarks/quality.py."""
    found = json.loads((ROOT / "docs" / "assets" / "results" / "quality.json").read_text(encoding="utf-8"))
    traces = list(dict.fromkeys(log["trace"] for log in found["agents"]))
    chosen = {log["trace"]: log["scheduler"] for log in found["agents"] if log["agent"] == "RLTune"}

    def row(title: str, text: Callable[[str, str], str]) -> tuple[str, ...]:
        return title, *(text(trace, f"{trace}_" + ("" if length == 256 else f"{length}_")) for trace in traces)

    def mean(prefix: str, scheduler: str, named: bool = False) -> str:
        rule = f" ({scheduler_title(*scheduler.split('+'))})" if named else ""
        return f"{found[f'{prefix}wait'][scheduler]:,.0f}{rule}"

    def change(key: str) -> str:
        if key not in found:
            return "–"
        ends = (found[f"{key}_lo"], found[f"{key}_hi"])
        interval = " [{:+.1f}, {:+.1f}]".format(*(100 * end for end in ends)) if None not in ends else ""
        text = f"{100 * found[key]:+.1f}{interval}".replace("-", "−")
        return f"**{text}**" if interval and max(ends) < 0 else text

    def own(trace: str) -> str:
        facts = chosen[trace]
        calibrated = ", calibrated estimates" if facts["uses_calibrated"] else ""
        return scheduler_title(facts["policy"], facts["backfill"]) + calibrated

    rows = [
        row("windows", lambda trace, prefix: str(found[f"{prefix}windows"])),
        row("FIFO without backfilling, mean wait, s", lambda trace, prefix: mean(prefix, "fifo+none")),
        row("strong baseline, s", lambda trace, prefix: mean(prefix, found[f"{prefix}wait_strong"], named=True)),
        row("best of all rules tried, s", lambda trace, prefix: mean(prefix, found[f"{prefix}wait_any"], named=True)),
        row("**RLTune, s**", lambda trace, prefix: f"**{mean(prefix, 'RLTune')}**"),
        row("its scheduler", lambda trace, prefix: own(trace)),
        row("lower bound, s", lambda trace, prefix: f"{found[f'{prefix}bound_s']:,}"),
        *(
            row(f"against {name}, %", lambda trace, prefix, key=key: change(f"{prefix}vs_{key}"))
            for key, name in AGAINST.items()
        ),
        row("completion time, against its strong baseline, %", lambda trace, prefix: change(f"{prefix}jct_vs_strong")),
    ]
    return table(" | ".join([f"windows of {length:,}", *(trace.capitalize() for trace in traces)]), rows)


GENERATED = {
    "configuration": configuration,
    "features": features,
    "feature sets": feature_sets,
    "policies": policies,
    "expected numbers": reproduction,
    "waits in long windows": lambda: waits(1024),
    "waits in short windows": lambda: waits(256),
}
"""Tables that replace `<!-- generated: NAME -->` in a page."""


def layers() -> list[str]:
    """Packages of the library."""
    return sorted(path.parent.name for path in (ROOT / "src" / "rltune").glob("*/__init__.py"))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav.append({"API": ["api/index.md", *({f"rltune.{layer}": f"api/{layer}.md"} for layer in layers())]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = {f"api/{layer}.md": f"# rltune.{layer}\n\n::: rltune.{layer}\n" for layer in layers()}
    pages["api/index.md"] = "# API\n\n" + "\n".join(f"- [rltune.{layer}]({layer}.md)" for layer in layers())
    for name in FROM_ROOT:
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        pages[name.lower()] = text.replace("](CHANGELOG.md)", "](changelog.md)")
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    markdown = re.sub(r"<!-- generated: ([a-z ]+) -->", lambda match: GENERATED[match[1]](), markdown)
    return re.sub(r"\]\((?:\.\./)+(?=(?:workflow|config|src)/)([^)]*)\)", "]", markdown)
