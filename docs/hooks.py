"""What MkDocs adds to the pages in docs/: the API reference, tables that come from the code, CHANGELOG and CONTRIBUTING."""

import csv
import json
import re
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from measured import MEASURED
from measured.read import table
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from rltune.config.trace import FORMATS
from rltune.environment.features import FEATURE_SETS, FEATURES
from rltune.policies import POLICIES, SYMBOLS
from rltune.report.expected_numbers import FILE, expected_text, load_expectations
from rltune.traces.columns import DTYPES, NULLABLE
from rltune.traces.fields import TABLE

ROOT = Path(__file__).resolve().parents[1]
SCHEMA: dict[str, Any] = json.loads((ROOT / "config" / "schema.json").read_text(encoding="utf-8"))
FROM_ROOT = ("CHANGELOG.md", "CONTRIBUTING.md")


def configuration() -> str:
    """A table for each kind of file in config/, and for each block in it."""
    parts = []
    for name, block in blocks().items():
        if fields := block.get("properties"):
            level = "##" if name in SCHEMA else "###"
            parts += [f"{level} {name}", line(block.get("description")), fields_table(fields)]
    return "\n\n".join(parts)


def blocks() -> dict[str, Any]:
    """Every kind of file in config/, with the types in it behind it, by name."""
    return {n: b for file, model in SCHEMA.items() for n, b in {file: model, **model.get("$defs", {})}.items()}


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
        block = blocks()[name]
        return f"[{name}](#{name.lower()})" if "properties" in block else kind(block)  # its own table
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if options := field.get("anyOf") or field.get("oneOf") or field.get("allOf"):
        return " or ".join(dict.fromkeys(kind(option) for option in options))
    if field.get("type") == "array":
        return f"list of {kind(field.get('items') or field.get('prefixItems', [{}])[0])}"
    return str(field.get("type", "any"))


def line(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def job_table() -> str:
    rows = [
        (
            f"`{c['column']}`",
            DTYPES[c["column"]],
            c["unit"],
            "yes" if c["column"] in NULLABLE else "",
            line(c["meaning"]),
        )
        for c in csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines())
    ]
    return table("column | type | unit | null | meaning", rows)


def raw_fields() -> str:
    rows = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
    formats = [name for name in rows[0] if name not in ("column", "unit", "meaning")]
    head = " | ".join(["column", *(f"[{name}](#{name})" for name in formats)])
    return table(head, [(f"`{c['column']}`", *(line(c[name]) for name in formats)) for c in rows])


def reader(name: str) -> str:
    text = import_module(f"rltune.traces.readers.{name}").__doc__ or ""
    return text.replace("::\n", ":\n").replace("``", "`").strip()


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


GENERATED = {
    "configuration": configuration,
    "features": features,
    "fields": raw_fields,
    "job table": job_table,
    "feature sets": feature_sets,
    "policies": policies,
    "expected numbers": reproduction,
    **{f"reader {name}": partial(reader, name) for name in FORMATS},
    **MEASURED,
}
"""Tables and paragraphs that replace `<!-- generated: NAME -->` in a page."""


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
    markdown = re.sub(r"<!-- generated: (.+?) -->", lambda match: GENERATED[match[1]](), markdown)
    return re.sub(r"\]\((?:\.\./)+(?=(?:workflow|config|src)/)([^)]*)\)", "]", markdown)
