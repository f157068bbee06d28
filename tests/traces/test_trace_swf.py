"""SWF logs: known answers for every field and quirk, and any bytes at all either clean or refused with a reason."""

import gzip
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from raw_cases import cleaned, rows

from rltune.errors import ConfigError, DataError
from rltune.traces.clean import CleanTrace

HEAD = "; Version: 2.2\n; UnixStartTime: 1027839845\n; TimeZoneString: Europe/Stockholm\n; MaxProcs: 64\n;\n"
#        job submit wait run alloc cpu used req rtime rmem status user group exe queue part prev think
JOBS = [
    "  1   100   10  60    8   -1  512   4   120   -1      1    7     1  -1     2   -1   -1    -1",
    "  2   110   -1  50   -1   -1   -1   4    -1  1024     0   -1     1  -1     2   -1   -1    -1",
    "  3   120    5  0    -1   -1   -1   4    60   -1      5    7     1  -1     2   -1   -1    -1",
    "  4   130    5  -1   -1   -1   -1   4    60   -1      5    7     1  -1     2   -1   -1    -1",
    "  5   140    5  30    4   -1   -1   4    60   -1      5    7     1  -1     0   -1   -1    -1",
    "  6   150    5  40    4   -1   -1   4    60   -1      1    7     1  -1     2   -1   -1    -1",
    "  6   150    5  15    4   -1   -1   4    60   -1      2    7     1  -1     2   -1   -1    -1",
    "  6    -1   20  25    4   -1   -1   4    60   -1      3    7     1  -1     2   -1   -1    -1",
    "  7   160    5  25    4   -1   -1   4    60   -1      4    7     1  -1     2   -1   -1    -1",
    "  8   170    0  0    99   -1   -1   4    60   -1      1    7     1  -1     2   -1   -1    -1",
    "  9   180    0  1.5   99   -1   -1   4   0    -1     -1    7     1  -1     2   -1   -1    -1",
]
NO_DATE = "without a date, as the header has no number as UnixStartTime: dates and hours mean nothing"
GOOD = "10 190 0 9 1 -1 -1 1 60 -1 1 7 1 -1 1 -1 -1 -1"


def clean(path: Path, text: str | bytes, **fields: Any) -> CleanTrace:
    return cleaned(path, text, "swf", **{"time_zone": "Europe/Stockholm", **fields})


def test_known_answers(tmp_path):
    result = clean(tmp_path / "a.swf.gz", gzip.compress((HEAD + "\n".join(JOBS) + "\n").encode()))
    assert rows(result, "submit_s run_s wait_s requested_s cpus mem_gb user vc status") == [
        ["1", 0, 60, 10, 120, 8, 0.004194, "7", "2", "passed"],  # no partition known, so the queue; 512 kB × 8
        ["2", 10, 50, None, None, 4, 0.004194, None, "2", "failed"],  # 1,024 kB × 4
        ["5", 40, 30, 5, 60, 4, None, "7", "0", "killed"],
        ["6", 50, 40, 5, 60, 4, None, "7", "2", "passed"],
        ["9", 80, 1.5, 0, None, 99, None, "7", "2", "unknown"],
    ]
    assert (result.jobs["resource"] == "cpu").all() and (result.jobs["gpus"] == 0).all()
    # 1027839845 is 2002-07-28 09:04:05 in Stockholm; the first job came 100 s later.
    assert result.meta.t0 == "2002-07-28T09:05:45.000+02:00"
    assert result.audit.rows_read == 11
    assert result.audit.left_out == {
        "part of a job that was swapped out (status 2, 3 or 4); the job has its own line": 2,
        "part of a job that was swapped out (status 2, 3 or 4), without the job's own line": 1,
        "cancelled before it started": 2,
        "run time zero": 1,
    }
    assert result.audit.noted == {
        "more processors than the machine has (MaxProcs)": 2,
        "processors requested taken, as none are known to be allocated": 3,
        "memory used taken, as none is known to be requested": 1,
        "status unknown": 1,
        "requested_s not positive, taken as unknown": 1,
    }


def test_the_partition_comes_before_the_queue(tmp_path):
    line = GOOD.replace("1 -1 -1 -1", "1 3 -1 -1")
    result = clean(tmp_path / "a.swf", HEAD + line + "\n" + GOOD.replace("10 190", "11 195") + "\n")
    assert result.jobs["vc"].fillna("?").tolist() == ["3", "?"]


@pytest.mark.parametrize(("start", "unix_s"), [("893466664 (Fri Apr 24)", 893_466_664), ("8.5e8; about", 850_000_000)])
def test_a_remark_may_follow_a_number_of_the_header(start, unix_s, tmp_path):
    head = f";UnixStartTime: {start}\n; MaxProcs: 3 processors\n"
    result = clean(tmp_path / "a.swf", head + JOBS[0] + "\n" + GOOD + "\n", time_zone="UTC")
    assert datetime.fromisoformat(result.meta.t0).timestamp() == unix_s + 100
    assert result.audit.noted["more processors than the machine has (MaxProcs)"] == 1


@pytest.mark.parametrize("odd", ["1,024", "1e999"])
def test_a_header_value_that_is_no_number_is_said(odd, tmp_path):
    result = clean(tmp_path / "a.swf", f"; UnixStartTime: {odd}\n; MaxProcs: {odd}\n{GOOD}\n", time_zone=None)
    assert result.meta.t0 == "1970-01-01T00:03:10.000+00:00"
    assert result.audit.noted == {
        NO_DATE: 1,
        "the header's MaxProcs is not a number: processors not compared with it": 1,
    }


def test_the_time_zone_of_the_header(tmp_path):
    with pytest.raises(ConfigError, match="config/traces/t.yaml: time_zone: not given; write `time_zone: Europe/Stock"):
        clean(tmp_path / "a.swf", HEAD + GOOD + "\n", time_zone=None)
    other = clean(tmp_path / "a.swf", HEAD + GOOD + "\n", time_zone="Asia/Tokyo")
    assert other.audit.noted == {"hours of the day counted in Asia/Tokyo; the log's header says Europe/Stockholm": 1}
    assert other.meta.t0.endswith("+09:00")
    same = clean(tmp_path / "a.swf", HEAD + GOOD + "\n", time_zone="Europe/Oslo")  # another name, the same clock
    nonsense = clean(tmp_path / "a.swf", HEAD.replace("Europe/Stockholm", "here/there") + GOOD + "\n", time_zone=None)
    assert not same.audit.noted and not nonsense.audit.noted


def test_lines_that_are_no_jobs(tmp_path):
    text = "\ufeff" + HEAD + f"{GOOD}\n1 2 3\n; a remark\n\n{GOOD} 5\n   \n"
    text += GOOD.replace("10 190", "11 x") + "\n" + GOOD
    result = clean(tmp_path / "a.swf", text.replace("\n", "\r\n"))
    assert result.audit.rows_read == 5 and result.audit.rows_kept == 1
    assert result.audit.left_out == {
        "row with too few fields": 1,
        "row with too many fields": 1,
        "no submission time": 1,
        "job id met before": 1,
    }
    assert result.audit.noted["submit_time not a number"] == 1
    assert result.audit.noted["last line without an end of line: its last field may be cut short"] == 1


@pytest.mark.parametrize(
    ("content", "message"), [(HEAD, "no line of 18 fields"), (f"{GOOD}\n{GOOD[:20]}", "truncated: the last row has")]
)
def test_damage(content, message, tmp_path):
    with pytest.raises(DataError, match=f"a.swf.*{message}"):
        clean(tmp_path / "a.swf", content)
