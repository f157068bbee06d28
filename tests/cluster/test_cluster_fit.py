"""What a cluster can hold of a trace: every reason to leave a job out, and how jobs are cut."""

import numpy as np
import pandas as pd
import pytest
from workload_cases import cluster, compiled, group, random_cluster, random_rows, table

from rltune.cluster.fit import compile_jobs, fit
from rltune.cluster.layout import build_layout
from rltune.config import ClusterConfig, load_cluster, project_root
from rltune.errors import DataError
from rltune.traces.table import validate

ONE = cluster([group(2, 4)])


def test_every_reason_to_leave_a_job_out_and_the_sum():
    config = cluster([group(2, 4, "V100")], [group(4, 8, "P100")], max_job_gpus=20)
    rows = [
        {"resource": "cpu", "gpus": 0},
        {"vc": "a", "gpus": 21},
        {"vc": "a", "gpus": 1, "gpu_type": "T4"},
        {"vc": "a", "gpus": 12, "gpu_type": "V100"},  # 8 V100 in all
        {"vc": "b", "gpus": 1, "cpus": 65.0, "gpu_type": "P100"},  # 64 CPUs on a node
        {"vc": "z", "gpus": 1},
        {"vc": "a", "gpus": 9},  # pool b could
        {"vc": "a", "gpus": 1, "gpu_type": "P100"},  # pool b could
        {"vc": "a", "gpus": 8},
        {"vc": "b", "gpus": 20},
    ]
    fitted, audit = fit(table(rows), config)
    assert audit.left_out == {
        "asks for no GPU": 1,
        "more GPUs than max_job_gpus (20)": 1,
        "GPU type not in the cluster": 1,
        "larger than every pool": 2,
        "its VC is not in the cluster": 1,
        "larger than its pool": 2,
    }
    assert fitted["job_id"].tolist() == ["0008", "0009"]
    assert fitted["pool"].tolist() == [0, 1]
    assert fitted["pool"].dtype == np.int64
    assert (audit.rows_read, audit.rows_kept) == (10, 2)
    assert audit.noted == {"CPUs follow the GPU share": 2, "memory follows the GPU share": 2}


@pytest.mark.parametrize("slots", ["gpu", "cpu"])
@pytest.mark.parametrize("huge", [{"cpus": 1e16}, {"cpus": 1e308}, {"cpus": 1.0, "mem_gb": 1.9e16}])
def test_requests_too_large_for_an_integer_fit_no_pool(slots, huge):
    jobs = table([{"resource": slots, "gpus": int(slots == "gpu"), **asked} for asked in ({"cpus": 1.0}, huge)])
    with np.errstate(all="raise"):
        fitted, audit = fit(jobs, cluster([group(2, 4)], slots=slots))
    too_large = slots == "gpu" or huge["cpus"] > 1  # memory is no constraint on a cluster of processors
    assert audit.left_out.get("larger than every pool", 0) == too_large and len(fitted) == 2 - too_large


def test_on_a_cluster_of_processors_cpus_are_what_a_job_asks_for():
    rows = [
        {"resource": "cpu", "gpus": 0, "cpus": 3.0, "mem_gb": 900.0},
        {"resource": "cpu", "gpus": 0, "cpus": 1.5},
        {"resource": "cpu", "gpus": 0},
        {"resource": "gpu", "gpus": 1, "cpus": 4.0},
        {"resource": "cpu", "gpus": 0, "cpus": 9.0},
    ]
    processors = cluster([group(4, 2, cpus=2, mem_gb=1)], slots="cpu", gpu_types="ignore")
    fitted, audit = fit(table(rows), processors)
    assert fitted["job_id"].tolist() == ["0000", "0001"] and fitted["gpus"].tolist() == [3, 2]
    assert audit.left_out == {"asks for no CPU, or for GPUs": 2, "larger than every pool": 1}
    jobs = compile_jobs(fitted, fitted["run_s"].to_numpy(), processors)
    assert jobs.gpus.tolist() == [3, 2] and set(jobs.row["cpu_milli"]) == set(jobs.row["mem_mb"]) == {-1}


def test_the_audit_adds_up_on_random_tables():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        config = random_cluster(rng)
        rows = random_rows(rng, config, 60)
        for row in rows:
            if rng.random() < 0.3:
                row["vc"] = str(rng.choice(["z", "a"]))
            if rng.random() < 0.2:
                row.pop("vc")
            if rng.random() < 0.1:
                row |= {"resource": "cpu", "gpus": 0}
                row.pop("gpu_type", None)
        rows[0] = {"vc": "a", "gpus": 1}
        jobs = validate(table(rows))
        fitted, audit = fit(jobs, config)
        assert len(jobs) == len(fitted) + sum(audit.left_out.values())
        assert audit.rows_kept == len(fitted)
        pd.testing.assert_frame_equal(  # nothing but the pool is new, and the order stays
            fitted.drop(columns="pool"), jobs[jobs["job_id"].isin(fitted["job_id"])].reset_index(drop=True)
        )


def test_an_unknown_vc_is_left_out_or_drawn_as_the_cluster_says():
    pools = ([group(1, 4)], [group(1, 4)])
    rows = [{"vc": "z"}, {"vc": "b"}, {}]
    fitted, audit = fit(table(rows), cluster(*pools))
    assert fitted["job_id"].tolist() == ["0001", "0002"]
    assert audit.noted["VC missing, pool drawn"] == 1
    fitted, audit = fit(table(rows), cluster(*pools, unknown_vc="impute"))
    assert len(fitted) == 3
    assert fitted["pool"][1] == 1
    assert audit.noted["VC not in the cluster, pool drawn"] == audit.noted["VC missing, pool drawn"] == 1


def test_jobs_of_a_vc_that_is_not_in_the_cluster_stay_together():
    pools = [[group(2, 4)], *([group(1, 4)] for _ in range(4))]
    rows = [{"vc": f"v{i % 40}", "gpus": 8 if i % 3 == 0 else 1} for i in range(400)]
    fitted, audit = fit(table(rows), cluster(*pools, unknown_vc="impute"))
    assert (fitted.groupby("vc")["pool"].nunique() == 1).all()
    assert set(fitted["pool"]) == set(range(5))
    assert audit.left_out == {"larger than its pool": len(rows) - len(fitted)}


def test_all_vcs_of_a_part_of_the_trace_can_share_a_pool():
    helios = load_cluster("helios-full", project_root())
    rows = [
        {"vc": vc, "gpus": 8} for vc in ("Venus/vcvlY", "Earth/vcvlY", "Uranus/b", "Saturn/c", "Mars/c", "Earth/gone")
    ]
    fitted, audit = fit(table(rows), helios)
    assert [helios.pools[p].name for p in fitted["pool"]] == ["Venus vcvlY", "Earth vcvlY", "Uranus", "Saturn"]
    assert audit.left_out == {"its VC is not in the cluster": 2}


def test_a_missing_vc_is_drawn_by_nodes_and_the_same_in_every_run():
    config = cluster([group(1, 4)], [group(3, 4)], [group(6, 2)])
    jobs = table([{"gpus": 1 if i % 2 else 4} for i in range(4000)])
    fitted, audit = fit(jobs, config)
    assert audit.noted["VC missing, pool drawn"] == 4000
    small = np.bincount(fitted["pool"][fitted["gpus"] == 1], minlength=3) / 2000
    np.testing.assert_allclose(small, [0.1, 0.3, 0.6], atol=0.04)
    # a job of four GPUs needs two nodes of the third pool, and may go there
    two_nodes = np.bincount(fitted["pool"][fitted["gpus"] == 4], minlength=3) / 2000
    np.testing.assert_allclose(two_nodes, [0.1, 0.3, 0.6], atol=0.04)
    other, _ = fit(jobs.iloc[::-1].reset_index(drop=True).iloc[:1000], config)
    expected = fitted.set_index("job_id")["pool"].loc[other["job_id"]].to_numpy()
    np.testing.assert_array_equal(other["pool"].to_numpy(), expected)


def test_a_missing_vc_is_drawn_among_the_pools_that_hold_the_job():
    config = cluster([group(50, 1)], [group(1, 4, mem_gb=100)], [group(1, 4, "P100")])
    for gpus, pools in ((4, {0, 1}), (2, {1})):  # two GPUs want 50 GB each, on nodes of 32
        fitted, _ = fit(table([{"gpus": gpus, "mem_gb": 100.0, "gpu_type": "V100"}] * 100), config)
        assert set(fitted["pool"]) == pools


def test_a_job_never_mixes_types():
    config = cluster([group(1, 4, "V100"), group(1, 4, "P100")])
    _, audit = fit(table([{"gpus": 8}, {"gpus": 4}]), config)
    assert audit.left_out == {"larger than every pool": 1}
    fitted, audit = fit(table([{"gpus": 8, "gpu_type": "T4"}]), config.model_copy(update={"gpu_types": "ignore"}))
    assert len(fitted) == 1
    assert audit.noted["GPU type ignored"] == 1


def test_cuts_against_enumeration():
    """Full chunks are the most one node could give, and the rest; else the fewest nodes that hold it, if any do."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        config = random_cluster(rng)
        jobs = table(random_rows(rng, config, 30) + [{"vc": "a"}])
        fitted, _ = fit(jobs, config)
        layout = build_layout(config)
        got = compile_jobs(fitted, fitted["run_s"].to_numpy(), config)
        kept = dict(zip(fitted["job_id"], range(len(fitted)), strict=True))
        for row in jobs.itertuples():
            pool = ord(row.vc) - ord("a")
            names = set(layout.types) if pd.isna(row.gpu_type) else set(row.gpu_type.split("|"))
            cuts = [_cut(row, layout, pool, t) if name in names else None for t, name in enumerate(layout.types)]
            assert (row.job_id in kept) == any(cuts), row
            if row.job_id in kept:
                j = kept[row.job_id]
                found = [None if full < 0 else (size, full, rem) for size, full, rem, *_ in got.cut[j].tolist()]
                assert found == cuts, row
                assert got.pool[j] == pool


def _cut(row, layout, pool: int, kind: int) -> tuple[int, int, int] | None:
    """(size, full, rem) of a job on one type of a pool by trying chunk by chunk; None where all of it cannot hold it."""
    nodes, start = layout.nodes.row, layout.nodes.pool_start

    def most(m: int) -> int:
        g = 0
        while g < nodes["gpus"][m] and all(
            pd.isna(total) or (g + 1) * np.floor(total * 1000 / row.gpus) <= have
            for total, have in ((row.cpus, nodes["cpu_milli"][m]), (row.mem_gb, nodes["mem_mb"][m]))
        ):
            g += 1
        return g

    mine = [m for m in range(start[pool], start[pool + 1]) if nodes["type"][m] == kind]
    room = sorted((most(m) for m in mine), reverse=True)
    if not room or room[0] == 0:
        return None
    full, rem = divmod(row.gpus, room[0])
    chunks = [room[0]] * full + ([rem] if rem else [])
    fits = len(chunks) <= len(room) and all(have >= need for have, need in zip(room, chunks))
    if fits:
        return (room[0], full, rem)
    fewest = [n for n in range(1, len(room) + 1) if sum(room[:n]) >= row.gpus]
    return (0, fewest[0], 0) if fewest else None


def test_compiled_jobs_keep_the_units():
    rows = [{"gpus": 2, "cpus": 5.0, "mem_gb": 3.0, "run_s": 7.5, "requested_s": 9.0, "submit_s": 3.25}]
    jobs, _ = compiled(ONE, rows)
    assert (jobs.submit_s[0], jobs.run_s[0], jobs.estimate_s[0], jobs.gpus[0]) == (3.25, 7.5, 9.0, 2)
    assert (jobs.row["cpu_milli"][0], jobs.row["mem_mb"][0]) == (2500, 1500)
    jobs, _ = compiled(ONE, [{"gpus": 3}])
    assert (jobs.row["cpu_milli"][0], jobs.row["mem_mb"][0]) == (-1, -1)


def test_thirds_are_rounded_down_so_that_they_still_fit():
    """31.9 CPUs of 32 for three GPUs: 10,633 thousandths each."""
    config = cluster([group(1, 3, cpus=31.9)])
    jobs, _ = compiled(config, [{"gpus": 3, "cpus": 31.9}])
    assert jobs.row["cpu_milli"][0] == 10633
    assert jobs.cut["full"][0, 0] == 1


def test_held_out_jobs_have_no_say_in_how_a_trace_is_thinned():
    rng = np.random.default_rng(3)
    rows = [{"submit_s": 10.0 * i, "run_s": float(rng.integers(10, 2000)), "gpus": 2} for i in range(400)]
    config = cluster([group(4, 4)], balance=3.0)
    kept, audit = fit(table(rows), config, known_share=0.9)
    assert 0 < len(kept) < 400 and audit.left_out
    later = [{**row, "run_s": 4 * row["run_s"]} if i >= 360 else row for i, row in enumerate(rows)]
    assert fit(table(later), config, known_share=0.9)[0]["job_id"].tolist() == kept["job_id"].tolist()
    assert fit(table(later), config)[0]["job_id"].tolist() != kept["job_id"].tolist()


@pytest.mark.parametrize(
    ("gpus", "cut"),
    [
        (8, (8, 1, 0)),
        (5, (8, 0, 5)),  # equal chunks
        (16, (0, 3, 0)),
        (12, (8, 1, 4)),
        (17, (0, 4, 0)),
        (24, (0, 5, 0)),  # 8 + 4 + 4 and so on
    ],
)
def test_nodes_of_different_sizes_hold_together_what_the_large_ones_alone_cannot(gpus, cut):
    config = cluster([group(1, 8), group(4, 4)])
    jobs, _ = compiled(config, [{"gpus": gpus}])
    assert jobs.cut[0, 0].tolist()[:3] == cut
    _, audit = fit(table([{"gpus": 25}, {"gpus": 1}]), config)
    assert audit.left_out == {"larger than every pool": 1}


@pytest.mark.parametrize(
    ("row", "types"),
    [
        ({"gpus": 1}, {"P100", "K80", "M40"}),
        ({"gpus": 2}, {"P100", "K80"}),
        ({"gpus": 4}, {"P100"}),
        ({"gpus": 8}, {"P100"}),
        ({"gpus": 2, "cpus": 20.0}, {"P100"}),
        ({"gpus": 4, "gpu_type": "K80"}, {"K80"}),
    ],
)
def test_a_job_may_be_kept_to_nodes_that_hold_it_on_the_fewest(row, types):
    shapes = [group(2, 4, "P100"), group(2, 2, "K80"), group(1, 1, "M40")]
    free, kept = (cluster(shapes, fewest_nodes=fewest) for fewest in (False, True))
    assert allowed(kept, row) == types <= allowed(free, row)
    assert row != {"gpus": 4} or allowed(free, row) == {"P100", "K80"}


def allowed(config: ClusterConfig, row: dict) -> set[str]:
    """Types that a job may run on."""
    jobs, layout = compiled(config, [row])
    return {kind for kind, full in zip(layout.types, jobs.cut["full"][0], strict=True) if full >= 0}


def test_missing_types_are_drawn_by_their_shares():
    config = cluster(
        [group(2, 8, "V100"), group(2, 4, "P100"), group(1, 2, "K80")], type_shares={"V100": 3.0, "P100": 1.0}
    )
    rows = [{"gpus": 1} for _ in range(2000)] + [{"gpus": 8}, {"gpus": 1, "gpu_type": "K80"}]
    fitted, audit = fit(table(rows), config)
    assert audit.noted["GPU type missing, drawn by type_shares"] == 2001
    jobs = compile_jobs(fitted, fitted["requested_s"].to_numpy(), config)
    allowed = jobs.cut["full"] >= 0
    assert (allowed.sum(axis=1) == 1).all()
    assert allowed[:2000].mean(axis=0) == pytest.approx([0.75, 0.25, 0], abs=0.03)
    assert allowed[2000:].tolist() == [[True, False, False], [False, False, True]], "8 GPUs need a V100; K80 is named"
    few = compile_jobs(fitted.iloc[500:600], fitted["requested_s"].to_numpy()[500:600], config)
    assert (few.cut["full"] == jobs.cut["full"][500:600]).all(), "a job's type is its own"


def test_a_job_that_only_a_type_without_a_share_could_hold_is_left_out():
    config = cluster([group(2, 8, "V100"), group(2, 4, "P100")], type_shares={"P100": 1.0})
    fitted, audit = fit(table([{"gpus": 1}, {"gpus": 16}, {"gpus": 16, "gpu_type": "V100"}]), config)
    assert audit.left_out == {"no GPU type with a share could hold it": 1} and len(fitted) == 2


SPEEDS = "model,gpus,gpu_type,consolidated_steps_per_s,unconsolidated_steps_per_s\n" + "".join(
    f"{model},{gpus},{kind},{speed},\n"
    for gpus in (1, 16)
    for model, kind, speed in (
        *(("small", kind, 1) for kind in ("K80", "P100", "V100")),
        *(("large", kind, 0) for kind in ("K80", "P100")),
        ("large", "V100", 2),
    )
)
K80_OR_V100 = ([group(2, 8, "K80")], [group(2, 8)])
RUNS_ON_V100 = [
    ("its VC's pool", cluster(*K80_OR_V100), {"vc": "a"}, {"small"}),
    ("its VC's pool", cluster(*K80_OR_V100), {"vc": "b"}, {"small", "large"}),
    ("a pool drawn for its VC", cluster(*K80_OR_V100, unknown_vc="impute"), {"vc": "x"}, {"small"}),
    ("a pool drawn for its VC", cluster(*K80_OR_V100, unknown_vc="impute"), {"vc": "z"}, {"small", "large"}),
    ("any pool", cluster(*K80_OR_V100), {}, {"small", "large"}),
    (
        "types it asks for",
        cluster([group(1, 8, "K80"), group(1, 8, "P100"), group(1, 8)]),
        {"gpu_type": "K80|P100"},
        {"small"},
    ),
    ("its size", cluster([group(4, 8, "K80"), group(1, 8)]), {"gpus": 16}, {"small"}),
    ("its size", cluster([group(4, 8, "K80"), group(2, 8)]), {"gpus": 16}, {"small", "large"}),
    ("shares", cluster([group(1, 8, "K80"), group(1, 8)], type_shares={"K80": 1.0}), {}, {"small"}),
]


@pytest.mark.parametrize(("by", "config", "job", "models"), RUNS_ON_V100)
def test_a_model_that_is_drawn_runs_where_the_job_may(by, config, job, models, tmp_path):
    """The large model runs on V100s only. No job is left out for the model that it was given."""
    (tmp_path / "speeds.csv").write_text(SPEEDS)
    config = config.model_copy(update={"speeds": str(tmp_path / "speeds.csv"), "recorded_on": "V100"})
    fitted, audit = fit(table([job] * 200), config)
    assert audit.left_out == {} and set(fitted["model"]) == models
    assert len(fitted) == 200


def test_where_the_model_that_the_trace_names_does_not_run_it_is_the_reason(tmp_path):
    (tmp_path / "speeds.csv").write_text(SPEEDS)
    config = cluster(*K80_OR_V100).model_copy(update={"speeds": str(tmp_path / "speeds.csv"), "recorded_on": "V100"})
    rows = [{"vc": "a", "model": "large"}, {"vc": "b", "model": "large"}, {"gpu_type": "T4"}, {"vc": "a", "gpus": 99}]
    _, audit = fit(table(rows), config)
    assert audit.left_out == {
        "model runs on no GPU type that could hold it": 1,
        "GPU type not in the cluster": 1,
        "larger than every pool": 1,
    }
    with pytest.raises(DataError, match="left out: 1 model runs on no GPU type that could hold it$"):
        fit(table(rows[:1]), config)
