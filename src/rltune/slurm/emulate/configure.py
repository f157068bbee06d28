"""Slurm's configuration files of an emulated cluster, from one of the project's cluster files."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from rltune.cluster.nodes import GB_PER_MIB
from rltune.config.cluster import ClusterConfig
from rltune.errors import SlurmError

NAME = re.compile(r"[^A-Za-z0-9-]+")
LARGEST_U16 = 65000
"""Largest number of seconds that Slurm's 16-bit settings take."""
PARTITION_KEYS = frozenset(
    "OverSubscribe DefaultTime MaxTime DefMemPerCPU DefMemPerNode PriorityTier PriorityJobFactor MaxNodes MinNodes LLN "
    "ExclusiveUser GraceTime QOS TRESBillingWeights".split()
)
"""Settings that stand on the lines of partitions; all others stand on lines of their own."""
TIMEOUTS_S = (2, 10, 20, 60, 120, 300)
"""Slurm's default timeouts; {s120} in a configuration file is the second-last."""


@dataclass(frozen=True)
class Node:
    """An emulated node."""

    name: str
    gpu_type: str
    gpus: int
    cpus: int
    mem_mb: int
    partition: str
    port: int


class Folders:
    """The folders of one emulation; sockets have one of their own, since their paths must be short."""

    def __init__(self, root: Path, sockets: Path) -> None:
        self.root, self.sockets = root, sockets
        self.conf, self.database = root / "slurm.conf", root / "database"
        self.database_conf = root / "mariadb.conf"
        self.logs, self.devices, self.state = root / "log", root / "dev", root / "state"
        self.run, self.spool = root / "run", root / "spool"
        self.munge, self.mysql = sockets / "munge.sock", sockets / "mysql.sock"

    def make(self) -> None:
        """Make the folders. Where root runs Slurm, clients of other users may pass through them but not list them; elsewhere
        their jobs would be this user's."""
        for folder in (self.root, self.sockets, self.logs, self.devices, self.state, self.run, self.spool):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700 if os.getuid() else 0o711)


def nodes_of(cluster: ClusterConfig, ports: list[int]) -> list[Node]:
    """The nodes of a cluster, named by GPU type and number: p100-1, p100-2, k80-1, ...

    Raises SlurmError where the cluster's pools or GPU types cannot be distinguished by the names that Slurm allows.
    """
    partitions = {pool.name: partition_name(pool.name) for pool in cluster.pools}
    types = sorted({group.gpu_type.lower() for pool in cluster.pools for group in pool.groups})
    for what, names in (("pools", list(partitions)), ("GPU types", types)):
        if len({partition_name(name).lower() for name in names}) < len(names):
            raise SlurmError(
                f"{what} {', '.join(names)}: the same once written with letters, digits and - alone, "
                "which Slurm's names are; give them other names"
            )
    nodes: list[Node] = []
    counts: dict[str, int] = {}
    for pool in cluster.pools:
        for group in pool.groups:
            kind = partition_name(group.gpu_type).lower()
            for _ in range(group.nodes):
                counts[kind] = counts.get(kind, 0) + 1
                gpus, cpus = (0, group.gpus) if cluster.slots == "cpu" else (group.gpus, max(1, int(group.cpus)))
                name, mem_mb, port = f"{kind}-{counts[kind]}", max(1, int(group.mem_gb / GB_PER_MIB)), ports[len(nodes)]
                nodes.append(Node(name, kind, gpus, cpus, mem_mb, partitions[pool.name], port))
    return nodes


def slurm_conf(
    cluster: ClusterConfig,
    nodes: list[Node],
    folders: Folders,
    user: str,
    controller_port: int,
    speed: float = 1.0,
    accounting_port: int | None = None,
    settings: Mapping[str, str] | None = None,
    small_first: bool = False,
    partitions: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """The text of slurm.conf. ``settings`` replace lines of the same name, and values on the lines of partitions;
    ``partitions``: more of them on the nodes of each pool, by what is added to the pool's name.

    ``small_first``: Slurm takes nodes with few GPUs before those with many, so that large jobs find room.
    """
    given = dict(settings or {})
    partition = {"MaxTime": "INFINITE", "State": "UP", "OverSubscribe": "NO"}
    partition |= {key: given.pop(key) for key in list(given) if key in PARTITION_KEYS}
    between = min(30, max(1, round(speed / 5)))  # at least a fifth of a true second, no longer than by default
    common = filled("slurm.conf", speed, folders=folders, user=user, port=controller_port, between=between)
    if accounting_port is not None:
        types = sorted({f"gres/gpu:{node.gpu_type}" for node in nodes if node.gpus})
        tres = ",".join(["gres/gpu", *types]) if types else "cpu"
        common += filled("accounting.conf", folders=folders, port=accounting_port, tres=tres)
    lines = dict(line.split("=", 1) for line in common.splitlines() if "=" in line and not line.startswith("#"))
    text = [f"{key}={value}" for key, value in (lines | given).items()]
    for node in nodes:
        gres = f" Gres=gpu:{node.gpu_type}:{node.gpus}" if node.gpus else ""
        text.append(
            f"NodeName={node.name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={node.port} CPUs={node.cpus} "
            f"RealMemory={node.mem_mb}{gres} Feature={node.gpu_type} State=UNKNOWN"
            + (f" Weight={1 + node.gpus}" if small_first else "")
        )
    top = max((pool.priority for pool in cluster.pools), default=0) or 1
    for k, pool in enumerate(cluster.pools):
        name = partition_name(pool.name)
        line = {"PartitionName": name, "Nodes": ",".join(node.name for node in nodes if node.partition == name)}
        line |= {"Default": "NO" if k else "YES", "PriorityJobFactor": f"{1000 * pool.priority / top:.0f}"} | partition
        more = [
            {"PartitionName": f"{name}-{end}", "Default": "NO", **given} for end, given in (partitions or {}).items()
        ]
        text += [" ".join(f"{key}={value}" for key, value in (line | other).items()) for other in ({}, *more)]
    return "\n".join(text) + "\n"


def gres_conf(nodes: list[Node], folders: Folders) -> str:
    """The text of gres.conf; each GPU has to have a device file, or Slurm refuses the node."""
    lines = ["AutoDetect=off"] if any(node.gpus for node in nodes) else []
    for node in nodes:
        if node.gpus:
            devices = f"[0-{node.gpus - 1}]" if node.gpus > 1 else "0"
            lines.append(f"NodeName={node.name} Name=gpu Type={node.gpu_type} File={folders.devices}/gpu{devices}")
    return "".join(f"{line}\n" for line in lines)


def partition_name(text: str) -> str:
    """The name of a pool, or a GPU type, as Slurm takes it: that of its partition."""
    return NAME.sub("-", text).strip("-") or "x"


def filled(name: str, speed: float = 1.0, **values: Any) -> str:
    """A configuration file of this package with the values in its braces, timeouts among them."""
    timeouts = {f"s{true_s}": max(1, min(LARGEST_U16, round(true_s * speed))) for true_s in TIMEOUTS_S}
    return (files(__package__) / name).read_text(encoding="utf-8").format(**values, **timeouts)
