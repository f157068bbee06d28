"""The Philly reader on hand-written logs: every quirk of the original, and damaged files."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import ijson
import pytest
from hypothesis import given, strategies as st
from raw_cases import cleaned, rows as rows_of

from rltune.errors import DataError
from rltune.traces.clean import CleanTrace


def job(job_id: str, submitted: Any = "10:00:00", **fields: Any) -> dict[str, Any]:
    attempts = [attempt("10:01:00", "10:11:00", 2)]
    plain = {"status": "Pass", "vc": "v1", "jobid": job_id, "user": "u1", "attempts": attempts}
    return {**plain, "submitted_time": submitted if submitted is None else day(submitted), **fields}


def day(time: Any) -> Any:
    """A time of day on 2 October 2017; anything else as it is."""
    return f"2017-10-02 {time}" if isinstance(time, str) and time[2:3] == ":" else time


def attempt(start: Any, end: Any, *nodes: int) -> dict[str, Any]:
    detail = [{"ip": f"m{i}", "gpus": [f"gpu{k}" for k in range(n)]} for i, n in enumerate(nodes)]
    return {"start_time": day(start), "end_time": day(end), "detail": detail}


def clean(folder: Path, *jobs: dict[str, Any], **fields: Any) -> CleanTrace:
    return cleaned(folder / "cluster_job_log", json.dumps(jobs), "philly", **fields)


def test_known_answers(tmp_path):
    """The run time is the sum of the attempts: 60 + 30 s; 120 + 120 s, though they overlap."""
    tries = {
        "two nodes": [("10:01:00", "10:02:00", 8, 4)],
        "retried": [("10:01:02", "10:02:02"), ("11:00:00", "11:00:30", 4), ("12:00:00", "None", 8)],  # first no detail
        "overlaps": [("10:01:00", "10:03:00", 1), ("10:02:00", "10:04:00", 1)],
    }
    times = {name: {"attempts": [attempt(*one) for one in of]} for name, of in tries.items()}
    result = clean(
        tmp_path,
        job("plain"),
        job("two nodes", "10:00:01", **times["two nodes"]),
        job("retried", "10:00:02", status="Killed", **times["retried"]),
        job("odd status", "10:00:03", status="Unheard", user=None, vc=None),
        job("overlaps", "10:00:04", **times["overlaps"]),
    )
    assert rows_of(result, "submit_s gpus run_s wait_s status user") == [
        ["plain", 0, 2, 600, 60, "passed", "u1"],
        ["two nodes", 1, 12, 60, 59, "passed", "u1"],
        ["retried", 2, 4, 90, 60, "killed", "u1"],
        ["odd status", 3, 2, 600, 57, "unknown", None],
        ["overlaps", 4, 1, 240, 56, "passed", "u1"],
    ]
    assert result.meta.t0 == "2017-10-02T10:00:00.000-07:00"
    assert result.audit.noted == {
        "job with an attempt without times, run time from its other attempts": 1,
        "job with more than one attempt, run time is their sum": 2,
        "job whose attempts have pauses between them: their span is longer than their sum": 1,
        "job whose attempts overlap: their sum is longer than their span": 1,
        "job whose attempts list different numbers of GPUs: the first counts": 1,
        "status unknown": 1,
    }


def test_what_cannot_be_a_job_is_counted(tmp_path):
    once = [attempt("10:01:00", "10:11:00", 2)]
    result = clean(
        tmp_path,
        job("kept"),
        job("none", attempts=[]),
        job("null", attempts=None),
        job("no times", attempts=[attempt(None, None, 1)]),
        job("no end", attempts=[attempt("10:01:00", "None", 1)]),
        job("no gpus", attempts=[attempt("10:01:00", "10:02:00")]),
        job("zero", attempts=[attempt("10:01:00", "10:01:00", 1)]),
        job("no submission", submitted=None),
        job("bad submission", submitted="yesterday"),
        job("kept", "12:00:00", attempts=once),
        job("early", "2017-09-30 23:59:59", attempts=once),
        job(None, attempts=once),
        job("backwards", attempts=[attempt("10:02:00", "10:01:00", 1)]),
        start="2017-10-01",
    )
    assert result.jobs["job_id"].tolist() == ["kept"]
    assert result.audit.left_out == {
        "submitted before 2017-10-01": 1,
        "no attempt to run": 2,
        "no attempt with start and end time": 3,
        "no GPUs listed in any attempt": 1,
        "no submission time": 2,
        "run time zero": 1,
        "no job id": 1,
        "job id met before": 1,
    }


def test_a_retry_in_the_hour_that_comes_twice_follows_the_attempt_before_it(tmp_path):
    """00:30 to the first 01:50 is 4,800 s, the second 01:10 to 02:10 3,600 s; with no end known, a start counts."""
    night = "2017-11-05 {}".format
    times = [("00:30:00", "01:50:00"), ("01:10:00", "02:10:00")]
    again = [("01:20:00", None), ("01:05:00", "01:15:00"), ("01:16:00", "01:17:00")]
    tries = [[attempt(night(a), b and night(b), 1) for a, b in of] for of in (times, again)]
    jobs = [job("retried", night("00:29:00"), attempts=tries[0]), job("thrice", night("01:00:00"), attempts=tries[1])]
    result = clean(tmp_path, *jobs)
    assert result.jobs["run_s"].tolist() == [8_400, 660]
    assert result.jobs["wait_s"].tolist() == [60, 1_200]
    assert "job whose attempts overlap: their sum is longer than their span" not in result.audit.noted


minutes = st.integers(0, 240)
tries = st.lists(st.tuples(minutes, minutes.filter(bool) | st.none()), max_size=4)


@given(rows=st.lists(st.tuples(minutes, tries), min_size=1, max_size=6))
def test_attempts_are_read_one_after_the_other(rows, tmp_path):
    """In the night when an hour comes twice, each time is the first of its readings that is not before the latest so far."""

    def wall(minute: int, **more: Any) -> datetime:
        return datetime(2017, 11, 5, minute // 60, minute % 60, **more)

    def read(minute: int, latest: float) -> float:
        first, second = (wall(minute, tzinfo=ZoneInfo("America/Los_Angeles"), fold=f).timestamp() for f in (0, 1))
        return second if first < latest else first

    expected = {}
    for row, (submitted, tries) in enumerate(rows):
        latest, lengths = read(submitted, -1.0), []
        for begin, finish in tries:
            start = read(begin, latest)
            end = None if finish is None else read(finish, max(latest, start))
            latest = max(latest, start, end or start)
            lengths += [] if end is None or end < start else [end - start]
        if sum(lengths) > 0:
            expected[str(row)] = sum(lengths)
    plain = job("0 plain")
    jobs = [
        job(str(row), str(wall(s)), attempts=[attempt(str(wall(b)), e and str(wall(e)), 1) for b, e in tries])
        for row, (s, tries) in enumerate(rows)
    ]
    result = clean(tmp_path, plain, *jobs)
    assert result.jobs.set_index("job_id")["run_s"].drop("0 plain").to_dict() == expected


def test_the_backend_of_ijson_is_compiled():
    """The others are ten times as slow; where this fails, its wheel is missing for the platform."""
    assert ijson.backend == "yajl2_c"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}', "no jobs"),
        ("[1, 2]", "entry 0"),
        (json.dumps([job("a"), job("b")])[:-30], "truncated JSON after 1 jobs"),
        (json.dumps([job("a")])[:-1] + " nonsense", "JSON after 1 jobs"),
    ],
)
def test_damaged_log(text, message, tmp_path):
    with pytest.raises(DataError, match=f"cluster_job_log: .*{message}"):
        cleaned(tmp_path / "cluster_job_log", text, "philly")
