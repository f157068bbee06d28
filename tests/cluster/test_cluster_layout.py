"""A cluster file as arrays."""

from __future__ import annotations

import numpy as np
import pytest
from workload_cases import cluster, group, table

from rltune.cluster.layout import ANY_TYPE, build_layout
from rltune.cluster.load import offered_load
from rltune.config import ClusterConfig


def test_nodes_are_numbered_pool_by_pool_group_by_group() -> None:
    config = cluster([group(2, 4, "P100", cpus=20.5, mem_gb=0.5), group(1, 8, "K80")], [group(3, 2, "K80")])
    layout = build_layout(config)
    nodes = layout.nodes
    assert nodes.gpus.tolist() == [4, 4, 8, 2, 2, 2]
    assert nodes.cpu_milli.tolist() == [20500, 20500, 64000, 16000, 16000, 16000]
    assert nodes.mem_mb.tolist() == [500, 500, 256000, 64000, 64000, 64000]
    assert [layout.types[t] for t in nodes.type] == ["P100", "P100", "K80", "K80", "K80", "K80"]
    assert nodes.group.tolist() == [0, 0, 1, 2, 2, 2]
    assert nodes.pool_start.tolist() == [0, 3, 6]
    assert layout.gpus == config.gpus == 22
    assert len(nodes.gpus) == config.nodes == 6
    assert all(x.dtype == np.int64 and x.flags.c_contiguous for x in nodes)


def test_types_are_one_where_the_cluster_ignores_them() -> None:
    layout = build_layout(cluster([group(1, 4, "P100"), group(1, 8, "K80")], gpu_types="ignore"))
    assert layout.types == (ANY_TYPE,)
    assert layout.nodes.type.tolist() == [0, 0]
    assert layout.nodes.group.tolist() == [0, 1]


def test_a_pool_serves_the_vc_of_its_name_or_those_it_lists() -> None:
    config = cluster([group(1, 1)], [group(1, 1)])
    assert build_layout(config).pool_of_vc == {"a": 0, "b": 1}
    pools = [p.model_dump() for p in config.pools]
    pools[1]["vcs"] = ["x", "y"]
    layout = build_layout(ClusterConfig.model_validate({"title": "C", "pools": pools}))
    assert layout.pool_of_vc == {"a": 0, "x": 1, "y": 1}
    assert layout.has_vcs
    assert not build_layout(cluster([group(1, 1)])).has_vcs


def test_a_vc_belongs_to_one_pool_and_names_differ() -> None:
    pool = {"name": "a", "groups": [group(1, 1)]}
    with pytest.raises(ValueError, match="pool names must differ"):
        ClusterConfig.model_validate({"title": "C", "pools": [pool, pool]})
    with pytest.raises(ValueError, match="belongs to one pool"):
        ClusterConfig.model_validate({"title": "C", "pools": [pool, {**pool, "name": "b", "vcs": ["a"]}]})


def test_offered_load() -> None:
    """200 + 100 GPU-seconds in 50 s on 4 GPUs."""
    jobs = table([{"submit_s": 0.0, "run_s": 100.0, "gpus": 2}, {"submit_s": 50.0, "run_s": 100.0, "gpus": 1}])
    assert offered_load(jobs, 4) == pytest.approx(300 / 50 / 4)
    assert np.isnan(offered_load(jobs.iloc[:1], 4))
