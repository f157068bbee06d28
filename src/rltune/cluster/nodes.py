"""Convert a list of nodes, from Slurm or a table, to a cluster's configuration.

Two formats are read, recognised by their first lines:

- ``sinfo --Node --format="%N|%P|%c|%m|%G|%T"``: a row a node and partition, ``|`` or blanks between fields, a header;
- a CSV with a header: name, gpus, and where known cpus, mem_gb, type, partition; a column ``nodes`` gives the number of identical nodes.

Partitions that share nodes are one pool: in Slurm they compete for the same nodes, and pools do not share nodes.
"""

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rltune.config.cluster import ClusterConfig, NodeGroup, Pool
from rltune.errors import DataError
from rltune.traces.gres import gpus as gres_of

SINFO = 'sinfo --Node --format="%N|%P|%c|%m|%G|%T" > nodes.txt'
EXPECTED = f"the output of {SINFO!r}, or a CSV with the columns name, gpus, cpus, mem_gb, type, partition"
GB_PER_MIB = 1048576e-9
CSV_NAMES = {
    "name": ("name", "node", "nodename", "nodelist", "hostname", "host", "machineid", "sn", "machine"),
    "gpus": ("gpus", "gpu", "numberofgpus", "numgpus", "ngpus", "gpunum", "gpucount", "capgpu"),
    "cpus": ("cpus", "cpu", "cores", "numcpus", "ncpus", "capcpu", "cpumilli"),
    "mem_gb": ("memgb", "mem", "memory", "memorygb", "ramgb", "capmem", "memorymib", "memorymb", "memmb"),
    "type": ("type", "gputype", "gpumodel", "model"),
    "partition": ("partition", "partitions", "vc", "pool", "queue"),
    "nodes": ("nodes", "count"),
}
UNITS = {"cpumilli": 1e-3, "memorymib": GB_PER_MIB, "memorymb": 1e-3, "memmb": 1e-3}
"""What turns the numbers of these columns, the first two of Alibaba's list of nodes, into CPUs and GB."""
SINFO_NAMES = {
    "NODELIST": "name",
    "PARTITION": "partition",
    "CPUS": "cpus",
    "MEMORY": "mib",
    "GRES": "gres",
    "STATE": "state",
}
DOWN = ("down", "drain", "fail", "maint", "future", "unknown", "powered_down", "powering_down")
NO_TYPE = "gpu"
"""Type of GPUs where the list names none."""
MOST_SLOTS = 64
"""GPUs, or processors of a CPU cluster, that a node of the simulator can have."""

MOST = 1_000_000
"""The largest number in a list of nodes."""
MOST_GB = 32_768
"""The largest memory of a node, GB."""


@dataclass(frozen=True)
class NodeList:
    """What a list of nodes says."""

    table: pd.DataFrame
    """A row a node: name, gpus, type, cpus, mem_gb (the last two NaN where not known), partitions (tuple), down."""
    source: str
    """The format that it was read as."""
    unused: tuple[str, ...] = ()
    """Columns of a CSV that stand for nothing that is known."""


def read_nodes(path: Path | str) -> NodeList:
    """The nodes of a file. Raises DataError where it is not there, is none of the known lists, or names no node."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: {'a folder' if path.is_dir() else 'no such file'}; expected {EXPECTED}")
    text = path.read_text(encoding="utf-8-sig", errors="replace").replace("\r\n", "\n")
    lines = {number: line for number, line in enumerate(text.split("\n"), 1) if line.strip()}
    if not lines:
        raise DataError(f"{path}: the file is empty; expected {EXPECTED}")
    header = next(iter(lines.values())).strip()
    if "NODELIST" in re.split(r"[|\s]+", header.upper()):
        nodes = _sinfo(header, list(lines.items())[1:], path)
    else:
        nodes = _csv(header, lines, path)
    if not len(nodes.table):
        raise DataError(f"{path}: names no node; expected {EXPECTED}")
    return nodes


def gres_gpus(gres: str) -> tuple[int, str]:
    """(GPUs, type) of a node's GRES: ``gpu:a100:8(S:0-1)``, ``gpu:4``, ``gpu:a:2,gpu:b:2``; types are joined by +.

    Raises ValueError where they cannot be read.
    """
    found = gres_of(gres)
    return sum(found.values()), "+".join(filter(None, found)) or NO_TYPE


def _sinfo(header: str, lines: list[tuple[int, str]], path: Path) -> NodeList:
    cut = "|" if "|" in header else None
    names = [SINFO_NAMES.get(field.strip().upper(), field) for field in header.split(cut)]
    missing = [field for field, name in SINFO_NAMES.items() if field != "STATE" and name not in names]
    if missing:
        raise DataError(
            f"{path}: sinfo's columns {', '.join(missing)} are missing; found {header}; make the file with {SINFO}"
        )
    rows: dict[str, dict[str, Any]] = {}
    for number, line in lines:
        cells = [field.strip() for field in line.split(cut)]
        if len(cells) != len(names):
            raise DataError(
                f"{path}:{number}: found {len(cells)} fields, expected {len(names)} as in the header; "
                f"make the file with {SINFO}"
            )
        fields = dict(zip(names, cells, strict=True))
        if _several(fields["name"]):
            raise DataError(
                f"{path}:{number}: found {fields['name']}, several nodes in one line, expected one; make the file with {SINFO}"
            )
        try:
            cpus, mib = float(fields["cpus"].rstrip("+")), float(fields["mib"].rstrip("+"))
            if not (0 <= cpus < np.inf and 0 <= mib * GB_PER_MIB <= MOST_GB):
                raise ValueError
        except ValueError:
            raise DataError(
                f"{path}:{number}: found CPUS {fields['cpus']!r} and MEMORY {fields['mib']!r}, expected numbers, and up to "
                f"{MOST_GB:,} GB"
            ) from None
        try:
            gpus, kind = gres_gpus(fields["gres"])
        except ValueError as error:
            raise DataError(f"{path}:{number}: GRES: {error}") from None
        down = any(word in fields.get("state", "").lower() for word in DOWN)
        row = {
            "name": fields["name"],
            "gpus": gpus,
            "type": kind,
            "cpus": cpus,
            "mem_gb": mib * GB_PER_MIB if mib > 1 else np.nan,  # 1 is Slurm's, where RealMemory is not configured
            "down": down,
        }
        row = rows.setdefault(fields["name"], {**row, "partitions": ()})
        row["partitions"] += (fields["partition"].rstrip("*"),)
    return NodeList(pd.DataFrame(list(rows.values())), "sinfo")


def _several(name: str) -> bool:
    """Whether a name is a range or a list of hosts."""
    return bool(set("[],") & set(name))


def _squeezed(column: object) -> str:
    """The letters of a column's name, small."""
    return re.sub(r"[^a-z]", "", str(column).lower())


def _unnumbered(column: str) -> str:
    return re.sub(r"\.\d+$", "", column)


def _csv(header: str, lines: dict[int, str], path: Path) -> NodeList:
    sep = next((mark for mark in ",;\t|" if mark in header), r"\s+")
    numbers, text = list(lines)[1:], "\n".join(lines.values())
    try:
        raw = pd.read_csv(io.StringIO(text), skipinitialspace=True, sep=sep, engine="python", dtype="str")
    except (ValueError, pd.errors.ParserError, csv.Error) as error:
        raise DataError(
            f"{path}: cannot be read as a table ({' '.join(str(error).split())[:120]}); expected {EXPECTED}"
        ) from None
    if not isinstance(raw.index, pd.RangeIndex):
        found_fields = raw.index.nlevels + len(raw.columns)
        raise DataError(
            f"{path}:{numbers[0]}: found {found_fields} fields, expected {len(raw.columns)} as in the header"
        )
    raw = raw.apply(lambda column: column.str.strip())
    squeezed = {_squeezed(column): column for column in raw.columns}
    found = {
        name: squeezed[alias] for name, aliases in CSV_NAMES.items() for alias in reversed(aliases) if alias in squeezed
    }
    for name, column in found.items():
        # of equal names pandas gives all but the first a number
        alike = [o for o in map(_unnumbered, raw.columns) if o.lower() == _unnumbered(column).lower()]
        if len(alike) > 1:
            raise DataError(f"{path}: found columns {' and '.join(alike)}, expected one column for {name}")
    if "gpus" not in found and "cpus" not in found:
        raise DataError(
            f"{path}: no column of GPUs nor of CPUs; found {', '.join(map(str, raw.columns))}; expected {EXPECTED}"
        )
    table = pd.DataFrame(index=raw.index)
    for name in ("gpus", "cpus", "mem_gb", "nodes"):
        values = pd.to_numeric(raw[found[name]], errors="coerce") if name in found else pd.Series(np.nan, raw.index)
        values *= (factor := UNITS.get(_squeezed(found.get(name)), 1.0))
        whole = "whole numbers from " if name in ("gpus", "nodes") else ""
        most = MOST_GB if name == "mem_gb" else MOST
        bad = ~values.between(0, most) | (values % 1 > 0 if whole else False)
        if name in found and (bad := bad & raw[found[name]].notna()).any():
            line = numbers[bad.to_numpy().argmax()]
            unit = " GB (is it in MB?)" if name == "mem_gb" and factor == 1 and values[bad].iloc[0] > most else ""
            raise DataError(
                f"{path}:{line}: {found[name]}: found {raw[found[name]][bad].iloc[0]!r}, expected {whole}0 to {most / factor:,.0f}{unit}"
            )
        table[name] = values
    table["gpus"] = table["gpus"].fillna(0).round().astype(int)
    table["name"] = [f"node{i}" for i in range(len(raw))]
    if "name" in found:
        table["name"] = raw[found["name"]].fillna(table["name"])
    several = table["name"].map(_several)
    if several.any() and "nodes" not in found:
        line = numbers[several.to_numpy().argmax()]
        raise DataError(
            f"{path}:{line}: found {table['name'][several].iloc[0]}, several nodes in one line, expected one, or a column "
            "nodes with their number"
        )
    table["type"] = raw[found["type"]].fillna(NO_TYPE) if "type" in found else NO_TYPE
    parts = raw[found["partition"]].fillna("") if "partition" in found else pd.Series("", raw.index)
    table["partitions"] = [tuple(p.rstrip("*") for p in re.split(r"\s*[,;+]\s*", text) if p) for text in parts]
    table["down"] = False
    table = table.loc[table.index.repeat(table.pop("nodes").fillna(1).clip(lower=0).astype(int))]
    if table.duplicated("name").any() and "nodes" not in found:
        twice = table.loc[table.duplicated("name"), "name"].iloc[0]
        raise DataError(f"{path}: node {twice!r} is there twice; name each once, its partitions in one field")
    table = table[["name", "gpus", "type", "cpus", "mem_gb", "partitions", "down"]].reset_index(drop=True)
    unused = (str(column) for column in raw.columns if column not in found.values())
    return NodeList(table, "CSV", tuple(name for name in unused if not name.startswith("Unnamed")))


def as_cluster(nodes: NodeList, title: str, slots: str = "gpu") -> tuple[ClusterConfig, list[str]]:
    """(The cluster of a list of nodes; remarks on what was left out or assumed, a sentence each).

    ``slots``: ``gpu``: nodes without GPUs are left out; ``cpu``: processors are counted instead of GPUs. Unknown CPUs and
    memory are assumed to be 8 cores and 64 GB a GPU. Raises DataError where no node is left.
    """
    remarks, table = [], nodes.table
    key = "gpus" if slots == "gpu" else "cpus"
    have = table[table[key].fillna(0) >= 1]
    if len(have) < len(table):
        remarks.append(
            f"nodes left out, without {'GPUs' if slots == 'gpu' else 'known CPUs'}: {len(table) - len(have):,}"
        )
    # Rounded up to a tenth of a GB, so that similar nodes form one group; rounded down, a job with all of a node's memory
    # would not fit. sacct may print that with two decimals of GiB, up to 0.006 GB more than there is.
    more_gb = 0.006 if nodes.source == "sinfo" else 0.0
    rounded_gb = np.ceil(((have["mem_gb"] + more_gb) * 10).round(6)) / 10
    have = have.assign(mem_gb=rounded_gb.where(have["mem_gb"] >= 1, have["mem_gb"]))
    if not len(have):
        raise DataError(f"no node of the list has {key}; expected {EXPECTED}")
    if down := int(have["down"].sum()):
        remarks.append(
            f"nodes down or drained when the list was made: {down:,}; they are counted in: delete them if they were "
            "so all the time"
        )
    if (have["type"].str.contains("+", regex=False)).any() and slots == "gpu":
        remarks.append("nodes with GPUs of several types count as a separate type, whose GPUs are all alike")
    if slots == "gpu" and not (have[["cpus", "mem_gb"]] > 0).all(axis=None):
        remarks.append("CPUs or memory of some nodes are not known from the list: 8 cores and 64 GB a GPU are assumed")
    if slots == "cpu" and (have["cpus"] > MOST_SLOTS).any():
        remarks.append(f"nodes of more than {MOST_SLOTS} processors are taken in equal parts of at most that")
    pools = []
    for partitions, mine in _pools(have):
        groups = _groups(mine, slots)
        pools.append(
            Pool(
                name=min(partitions)
                if len(partitions) == 1
                else "all"
                if len(mine) == len(have)
                else "+".join(sorted(partitions))[:60] or "no partition",
                vcs=sorted(partitions),
                groups=groups,
            )
        )
        if len(partitions) > 1:
            remarks.append(
                f"partitions {', '.join(sorted(partitions))} share nodes and are one pool; limits "
                "of a partition on these nodes are not known to the simulator"
            )
    if len(pools) == 1:
        remarks.append("one pool: every job of the log goes there, whatever its partition")
        pools = [Pool(name="all", groups=pools[0].groups)]
    types = {g.gpu_type for p in pools for g in p.groups}
    return ClusterConfig(
        title=title, pools=pools, slots=slots, gpu_types="ignore" if slots == "cpu" or len(types) == 1 else "match"
    ), remarks


def _pools(have: pd.DataFrame) -> list[tuple[set[str], pd.DataFrame]]:
    """Nodes by partitions; partitions that share a node go together. Of a list without partitions: one."""
    sets: list[set[str]] = []
    for partitions in dict.fromkeys(have["partitions"]):
        mine = set(partitions)
        for other in [s for s in sets if s & mine]:
            sets.remove(other)
            mine |= other
        sets.append(mine)
    found = [(s, have[[bool(s & set(p)) or (not s and not p) for p in have["partitions"]]]) for s in sets]
    return sorted(found, key=lambda pool: (-len(pool[1]), sorted(pool[0])))


def _groups(mine: pd.DataFrame, slots: str) -> list[NodeGroup]:
    """Identical nodes together, the largest group first."""
    counted: Counter[tuple] = Counter()
    for _, node in mine.iterrows():
        if slots == "cpu":
            parts = int(np.ceil(node["cpus"] / MOST_SLOTS))
            size = int(node["cpus"] // parts)
            counted["processor", size, float(size), float(size)] += parts
            continue
        cpus = float(node["cpus"]) if node["cpus"] > 0 else 8.0 * node["gpus"]
        mem = float(node["mem_gb"]) if node["mem_gb"] > 0 else 64.0 * node["gpus"]
        counted[str(node["type"]), int(node["gpus"]), cpus, mem] += 1
    if too_many := [k for k in counted if k[1] > MOST_SLOTS]:
        raise DataError(f"a node has {too_many[0][1]} GPUs, at most {MOST_SLOTS} are possible; check the list")
    return [
        NodeGroup(gpu_type=kind, nodes=n, gpus=gpus, cpus=cpus, mem_gb=mem)
        for (kind, gpus, cpus, mem), n in counted.most_common()
    ]
