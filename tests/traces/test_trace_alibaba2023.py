"""Pod lists of Alibaba's 2023 trace, and the rules that make whole GPUs of shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from rltune.config.trace import TraceConfig
from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.clean import CleanTrace, clean_trace
from rltune.traces.raw.shares import whole_gpus

ROOT = Path(__file__).resolve().parents[2]

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
PODS = [
    "p0,12000,16384,1,1000,,LS,Succeeded,100,400,160",
    "p1,3152,5600,1,460,V100M16|V100M32,BE,Failed,110,200,110",
    "p2,88000,327680,8,1000,T4,Burstable,Succeeded,120,500,130",
    "p3,6000,12288,1,500,,LS,Running,130,300,140",  # deleted before the trace's end
    "p4,6000,12288,1,1000,,LS,Running,140,900,150",  # deleted at the trace's end
    "p5,6000,12288,1,1000,,LS,Pending,150,800,",
    "p6,20000,65536,0,0,,LS,Succeeded,160,300,170",  # no GPU
    "p7,0,0,1,1000,,LS,Odd,170,300,160",
    "p8,1000,1000,1,0,,LS,Failed,180,300,190",
    "p9,1000,1000,1,1000,,LS,Failed,190,190,190",
]


def clean(path: Path, lines: list[str] | bytes, **fields: Any) -> CleanTrace:
    path.write_bytes(lines if isinstance(lines, bytes) else ("\n".join([HEADER, *lines]) + "\n").encode())
    values = {"title": "T", "data": "own", "format": "alibaba2023", "path": "x", **fields}
    return clean_trace("t", TraceConfig(**values), path)


def test_known_answers(tmp_path: Path) -> None:
    result = clean(tmp_path / "openb_pod_list_default.csv", PODS)
    jobs = result.jobs.set_index("job_id")
    assert jobs.index.tolist() == ["p0", "p1", "p2", "p7"]
    assert jobs["submit_s"].tolist() == [0, 10, 20, 70]
    assert jobs["run_s"].tolist() == [240, 90, 370, 140]
    assert jobs["wait_s"].fillna(-1).tolist() == [60, 0, 10, -1]
    assert jobs["gpus"].tolist() == [1, 1, 8, 1]
    assert jobs["cpus"].fillna(-1).tolist() == [12, 3.152, 88, -1]
    assert jobs["mem_gb"].fillna(-1).tolist() == pytest.approx([17.179869184, 5.8720256, 343.59738368, -1])
    assert jobs["gpu_type"].fillna("any").tolist() == ["any", "V100M16|V100M32", "T4", "any"]
    assert jobs["status"].tolist() == ["passed", "failed", "passed", "unknown"]
    assert (jobs["resource"] == "gpu").all() and not jobs["sla"].any()
    assert result.meta.t0 == "1970-01-01T00:01:40.000+00:00"
    assert result.audit.left_out == {
        "last seen running, its end not known (phase Running)": 1,
        "still running at the end of the trace (phase Running)": 1,
        "never scheduled (phase Pending)": 1,
        "CPU pod (num_gpu 0)": 1,
        "run time zero": 1,
        "GPU count not positive": 1,
    }
    assert result.audit.noted == {
        "wait_s negative, taken as unknown": 1,
        "cpus not positive, taken as unknown": 1,
        "mem_gb not positive, taken as unknown": 1,
        "status unknown": 1,
        "share of a GPU rounded up to whole GPUs": 2,
    }


def test_pods_running_can_count_until_their_deletion(tmp_path: Path) -> None:
    result = clean(tmp_path / "a.csv", PODS, pods_running="until_deletion")
    jobs = result.jobs.set_index("job_id")
    assert jobs.index.tolist() == ["p0", "p1", "p2", "p3", "p7"]
    assert jobs.loc["p3", "run_s"] == 160 and jobs.loc["p3", "status"] == "killed"
    assert result.audit.left_out["still running at the end of the trace (phase Running)"] == 1
    with pytest.raises(ValidationError, match="`pods_running` goes with format `alibaba2023`"):
        TraceConfig(title="T", data="own", format="swf", path="x", pods_running="until_deletion")


@pytest.mark.parametrize(
    ("rule", "expected", "noted"),
    [("round_up", [1, 2, 3, 1, 0, 8], 3), ("leave_out", [np.nan, np.nan, np.nan, 1, 0, 8], 0)],
)
def test_rules_for_shares(rule: str, expected: list[float], noted: int) -> None:
    """0.46 of one; 3 × 0.5 = 1.5; 10 × 0.25 = 2.5; 10 × 0.1, exactly one whole; none; 8 whole ones."""
    audit = Audit()
    asked = np.array([0.46, 0.5, 0.25, 0.1, 0.0, 1.0]) * [1, 3, 10, 10, 1, 8]
    gpus, out = whole_gpus(asked, rule, audit)  # type: ignore[arg-type]
    np.testing.assert_array_equal(gpus, expected)
    assert out.tolist() == ([True] * 3 + [False] * 3 if rule == "leave_out" else [False] * 6)
    assert sum(audit.noted.values()) == noted


def test_variants_in_a_folder(tmp_path: Path) -> None:
    for variant, pods in (("default", PODS[:1]), ("gpuspec33", PODS[:3])):
        clean(tmp_path / f"openb_pod_list_{variant}.csv", pods)
    (tmp_path / "openb_node_list_gpu_node.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\n")
    trace = TraceConfig(title="T", data="own", format="alibaba2023", path="x")
    with pytest.raises(DataError, match="found 2 files, openb_pod_list_default.csv, openb_pod_list_gpuspec33.csv"):
        clean_trace("t", trace, tmp_path)
    part = trace.model_copy(update={"part": "gpuspec33"})
    assert clean_trace("t", part, tmp_path).audit.rows_read == 3
    with pytest.raises(DataError, match="expected a pod list .*openb_pod_list_multigpu20.csv"):
        clean_trace("t", trace.model_copy(update={"part": "multigpu20"}), tmp_path)
