"""A cluster file as arrays."""

import numpy as np
import pytest
from workload_cases import cluster, group, table

from rltune.cluster.layout import build_layout
from rltune.cluster.load import offered_load
from rltune.config import ClusterConfig


def test_nodes_are_numbered_pool_by_pool_group_by_group():
    config = cluster([group(2, 4, "P100", cpus=20.5, mem_gb=0.5), group(1, 8, "K80")], [group(3, 2, "K80")])
    layout = build_layout(config)
    nodes, row = layout.nodes, layout.nodes.row
    assert nodes.gpus.tolist() == [4, 4, 8, 2, 2, 2]
    assert row["cpu_milli"].tolist() == [20500, 20500, 64000, 16000, 16000, 16000]
    assert row["mem_mb"].tolist() == [500, 500, 256000, 64000, 64000, 64000]
    assert row["share_cpu"].tolist() == [5125, 5125, 8000, 8000, 8000, 8000]
    assert row["share_mem"].tolist() == [125, 125, 32000, 32000, 32000, 32000]
    assert [layout.types[t] for t in row["type"]] == ["P100", "P100", "K80", "K80", "K80", "K80"]
    assert row["group"].tolist() == [0, 0, 1, 2, 2, 2]
    assert nodes.pool_start.tolist() == [0, 3, 6]
    assert layout.gpus == config.gpus == 22
    assert len(nodes.gpus) == config.nodes == 6
    assert all(x.flags.c_contiguous for x in nodes)


def test_a_domain_is_the_nodes_of_one_type_in_one_pool():
    """Pool a: two P100 nodes, one K80, one P100; pool b: 65 K80 nodes, which need two words a set."""
    config = cluster([group(2, 4, "P100"), group(1, 8, "K80"), group(1, 2, "P100")], [group(65, 2, "K80")])
    nodes = build_layout(config).nodes
    assert nodes.domain_of.tolist() == [[0, 1], [-1, 2]]
    assert nodes.row["domain"].tolist() == [0, 0, 1, 0] + [2] * 65
    assert nodes.row["slot"].tolist() == [0, 1, 0, 2, *range(65)]
    assert nodes.member.tolist() == [0, 1, 3, 2, *range(4, 69)]
    domain = nodes.domain
    assert domain[["gpus", "largest", "nodes", "member_at"]].tolist() == [(10, 4, 3, 0), (8, 8, 1, 3), (130, 2, 65, 4)]
    assert domain[["bucket_at", "word_at", "words"]].tolist() == [(0, 0, 1), (5, 5, 1), (14, 14, 2)]


def test_pools_have_their_gpus_and_their_priority_over_the_largest():
    config = cluster([group(2, 4)], [group(1, 8), group(1, 2)], [group(1, 1)], priorities=[1.0, 4.0, 0.0])
    pool = build_layout(config).nodes.pool
    assert pool.tolist() == [(0, 2, 8, 0.25), (2, 4, 10, 1.0), (4, 5, 1, 0.0)]
    assert build_layout(cluster([group(1, 1)], priorities=[0.0])).nodes.pool["priority"].tolist() == [0.0]


def test_a_pool_serves_the_vc_of_its_name_or_those_it_lists():
    config = cluster([group(1, 1)], [group(1, 1)])
    assert build_layout(config).pool_of_vc == {"a": 0, "b": 1}
    pools = [p.model_dump() for p in config.pools]
    pools[1]["vcs"] = ["x", "Venus/*", "a/b"]
    layout = build_layout(ClusterConfig.model_validate({"title": "C", "pools": pools}))
    assert [layout.serves(name) for name in ("a", "x", "Venus/x", "Venus/y/z", "a/b")] == [0, 1, 1, 1, 1]
    assert not [name for name in ("Venus", "y", "a/c", "") if layout.serves(name) is not None]


def test_offered_load():
    """200 + 100 GPU-seconds in 50 s on 4 GPUs."""
    jobs = table([{"submit_s": 0.0, "run_s": 100.0, "gpus": 2}, {"submit_s": 50.0, "run_s": 100.0, "gpus": 1}])
    assert offered_load(jobs, 4) == pytest.approx(300 / 50 / 4)
    assert np.isnan(offered_load(jobs.iloc[:1], 4))
