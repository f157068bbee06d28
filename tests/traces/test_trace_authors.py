"""The authors' headerless CSVs, in both variants of their last columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from raw_cases import cleaned, rows

from rltune.errors import DataError
from rltune.traces.clean import CleanTrace

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


def clean(path: Path, lines: list[str], **fields: Any) -> CleanTrace:
    return cleaned(path, "\n".join(lines) + "\n", "authors", **fields)


@pytest.mark.parametrize(
    ("lines", "remark"),
    [
        (README, "read in the readme variant (column 17 virtual cluster, 18 GPU type), as it has 19 columns"),
        (READER, "read in the reader variant (column 18 virtual cluster, 19 GPU type), as it has 20 columns"),
    ],
)
def test_known_answers(lines: list[str], remark: str, tmp_path: Path) -> None:
    result = clean(tmp_path / "Helios_Formatted_withGPUType.csv", lines)
    assert rows(result, "submit_s run_s wait_s gpus cpus mem_gb requested_s vc gpu_type user status") == [
        ["a", 0, 60, None, 2, 12, 29.25, None, "4", "T4", "7", "passed"],
        ["b", 10, 50, 5, 1, None, None, 90, None, "MISC", None, "failed"],
        ["e", 40, 9, 0, 1, None, None, None, "5", "V100", "7", "killed"],
    ]
    assert result.audit.left_out == {"no run time": 1, "run time zero": 1, "no GPU count": 1, "job id met before": 1}
    assert result.audit.noted == {remark: 7, "share of a GPU rounded up to whole GPUs": 1, "status unknown": 2}


def test_the_variant_can_be_forced(tmp_path: Path) -> None:
    result = clean(tmp_path / "a.csv", READER, part="readme")
    jobs = result.jobs.set_index("job_id")
    assert jobs["vc"].isna().all()
    assert next(iter(result.audit.noted)).endswith("as the configuration says")
    assert jobs.loc["e", "gpu_type"] == "5" and jobs.loc["a", "gpu_type"] == "V100M32"
    with pytest.raises(DataError, match="19 fields; expected .*`part: reader` asks for 20"):
        clean(tmp_path / "a.csv", README, part="reader")
    with pytest.raises(ValidationError, match="`part`: found 'Venus'; format `authors` has readme or reader"):
        clean(tmp_path / "a.csv", README, part="Venus")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("1,2,3\n", "the first row has 3 fields; expected 19"),
        ("job_id," + ",".join(map(str, range(18))) + "\n", "has a header row"),
        (("\n".join(README) + "\n")[:-9], "truncated: the last row"),
    ],
)
def test_damage(content: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"a.csv.*{message}"):
        cleaned(tmp_path / "a.csv", content, "authors")
