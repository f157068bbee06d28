"""Pod lists of Alibaba's 2023 trace, and the authors' headerless CSVs in both variants of their last columns."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from raw_cases import POD_HEAD as HEADER, cleaned, rows, trace_config

from rltune.errors import DataError
from rltune.traces.clean import CleanTrace, clean_trace

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


def clean(path: Path, pods: list[str], **fields: Any) -> CleanTrace:
    return cleaned(path, "\n".join([HEADER, *pods]) + "\n", "alibaba2023", **fields)


def test_known_answers(tmp_path):
    result = clean(tmp_path / "openb_pod_list_default.csv", PODS)
    assert rows(result, "submit_s run_s wait_s gpus cpus mem_gb gpu_type status") == [
        ["p0", 0, 240, 60, 1, 12, 17.179869, None, "passed"],
        ["p1", 10, 90, 0, 1, 3.152, 5.872026, "V100M16|V100M32", "failed"],
        ["p2", 20, 370, 10, 8, 88, 343.597384, "T4", "passed"],
        ["p7", 70, 140, None, 1, None, None, None, "unknown"],
    ]
    assert (result.jobs["resource"] == "gpu").all() and not result.jobs["sla"].any()
    assert result.meta.t0 == "1970-01-01T00:01:40.000+00:00"
    assert result.audit.left_out == {
        "last seen running, its end not known (phase Running)": 2,
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


def test_variants_in_a_folder(tmp_path):
    for variant, pods in (("default", PODS[:1]), ("gpuspec33", PODS[:3])):
        clean(tmp_path / f"openb_pod_list_{variant}.csv", pods)
    (tmp_path / "openb_node_list_gpu_node.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\n")
    trace = trace_config("alibaba2023")
    with pytest.raises(DataError, match="found 2 files, openb_pod_list_default.csv, openb_pod_list_gpuspec33.csv"):
        clean_trace("t", trace, tmp_path)
    part = trace.model_copy(update={"part": "gpuspec33"})
    assert clean_trace("t", part, tmp_path).audit.rows_read == 3
    with pytest.raises(DataError, match="expected a pod list .*openb_pod_list_multigpu20.csv"):
        clean_trace("t", trace.model_copy(update={"part": "multigpu20"}), tmp_path)


#         id sub wait run gpu cput mem cpus rtime rmem st user grp exe que part prev
COMMON = [
    "a,100,-1,60,2,-1,-1,12,-1,29.25,1,7,-1,-1,0,-1,-1",
    "b,110,5,50,1,-1,-1,-1,90,-1,0,-1,-1,-1,0,-1,-1",
    "c,120,0,0,1,-1,-1,-1,-1,-1,1,7,-1,-1,0,-1,-1",
    "d,130,0,-1,1,-1,-1,-1,-1,-1,1,7,-1,-1,0,-1,-1",
    "e,140,0,9,0.5,-1,-1,-1,-1,-1,5,7,-1,-1,0,-1,-1",
    "f,150,0,9,-1,-1,-1,-1,-1,-1,2,7,-1,-1,0,-1,-1",
    "a,160,0,9,1,-1,-1,-1,-1,-1,2,7,-1,-1,0,-1,-1",
]
ENDS = ["4,0", "-1,1", "4,2", "4,2", "5.0,3", "4,4", "4,4"]
README = [f"{c},{e}" for c, e in zip(COMMON, ENDS)]
READER = [f"{c},-1,{e}" for c, e in zip(COMMON, ENDS)]


def clean_authors(path: Path, lines: list[str], **fields: Any) -> CleanTrace:
    return cleaned(path, "\n".join(lines) + "\n", "authors", **fields)


@pytest.mark.parametrize(
    ("lines", "remark"),
    [
        (README, "read in the readme variant (column 17 virtual cluster, 18 GPU type), as it has 19 columns"),
        (READER, "read in the reader variant (column 18 virtual cluster, 19 GPU type), as it has 20 columns"),
    ],
)
def test_known_answers_of_the_authors(lines, remark, tmp_path):
    result = clean_authors(tmp_path / "Helios_Formatted_withGPUType.csv", lines)
    assert rows(result, "submit_s run_s wait_s gpus cpus mem_gb requested_s vc gpu_type user status") == [
        ["a", 0, 60, None, 2, 12, 29.25, None, "4", "T4", "7", "passed"],
        ["b", 10, 50, 5, 1, None, None, 90, None, "MISC", None, "failed"],
        ["e", 40, 9, 0, 1, None, None, None, "5", "V100", "7", "killed"],
    ]
    assert result.audit.left_out == {"no run time": 1, "run time zero": 1, "no GPU count": 1, "job id met before": 1}
    assert result.audit.noted == {remark: 7, "share of a GPU rounded up to whole GPUs": 1, "status unknown": 2}


def test_the_variant_can_be_forced(tmp_path):
    result = clean_authors(tmp_path / "a.csv", READER, part="readme")
    jobs = result.jobs.set_index("job_id")
    assert jobs["vc"].isna().all()
    assert next(iter(result.audit.noted)).endswith("as the configuration says")
    assert jobs.loc["e", "gpu_type"] == "5" and jobs.loc["a", "gpu_type"] == "V100M32"
    with pytest.raises(DataError, match="19 fields; expected .*`part: reader` asks for 20"):
        clean_authors(tmp_path / "a.csv", README, part="reader")
    with pytest.raises(ValidationError, match="`part`: found 'Venus'; format `authors` has readme or reader"):
        clean_authors(tmp_path / "a.csv", README, part="Venus")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("1,2,3\n", "the first row has 3 fields; expected 19"),
        ("job_id," + ",".join(map(str, range(18))) + "\n", "has a header row"),
        (("\n".join(README) + "\n")[:-9], "truncated: the last row"),
    ],
)
def test_damage(content, message, tmp_path):
    with pytest.raises(DataError, match=f"a.csv.*{message}"):
        cleaned(tmp_path / "a.csv", content, "authors")
