"""The Philly reader on hand-written logs: every quirk of the original, and damaged files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rltune.errors import DataError
from rltune.traces.clean import clean_trace


def job(job_id: str, submitted: Any = "2017-10-02 10:00:00", **fields: Any) -> dict[str, Any]:
    attempts = [attempt("2017-10-02 10:01:00", "2017-10-02 10:11:00", 2)]
    return {"status": "Pass", "vc": "v1", "jobid": job_id, "attempts": attempts, "submitted_time": submitted,
            "user": "u1", **fields}


def attempt(start: Any, end: Any, *nodes: int) -> dict[str, Any]:
    detail = [{"ip": f"m{i}", "gpus": [f"gpu{k}" for k in range(n)]} for i, n in enumerate(nodes)]
    return {"start_time": start, "end_time": end, "detail": detail}


def test_known_answers(philly_folder: Callable, trace: Callable) -> None:
    folder = philly_folder(
        [
            job("plain"),
            job("two nodes", "2017-10-02 10:00:01", attempts=[
                attempt("2017-10-02 10:01:00", "2017-10-02 10:02:00", 8, 4),
            ]),
            job("retried", "2017-10-02 10:00:02", status="Killed", attempts=[
                attempt("2017-10-02 10:01:02", "2017-10-02 10:02:02"),  # no detail: GPUs from the next attempt
                attempt("2017-10-02 11:00:00", "2017-10-02 11:00:30", 4),
                attempt("2017-10-02 12:00:00", "None", 8),
            ]),
            job("odd status", "2017-10-02 10:00:03", status="Unheard", user=None, vc=None),
        ]
    )
    clean = clean_trace("t", trace("philly"), folder)
    jobs = clean.jobs.set_index("job_id")
    assert jobs["submit_s"].tolist() == [0, 1, 2, 3]
    assert jobs["gpus"].tolist() == [2, 12, 4, 2]
    assert jobs["run_s"].tolist() == [600, 60, 90, 600]
    assert jobs["wait_s"].tolist() == [60, 59, 60, 57]
    assert jobs["status"].tolist() == ["passed", "passed", "killed", "unknown"]
    assert jobs["user"].isna().tolist() == [False, False, False, True]
    assert clean.meta.t0 == "2017-10-02T10:00:00.000-07:00"
    assert clean.audit.noted["job with an attempt without times, run time from its other attempts"] == 1
    assert clean.audit.noted["status unknown"] == 1


def test_what_cannot_be_a_job_is_counted(philly_folder: Callable, trace: Callable) -> None:
    once = [attempt("2017-10-02 10:01:00", "2017-10-02 10:11:00", 2)]
    folder = philly_folder(
        [
            job("kept"),
            job("none", attempts=[]),
            job("null", attempts=None),
            job("no times", attempts=[attempt(None, None, 1)]),
            job("no end", attempts=[attempt("2017-10-02 10:01:00", "None", 1)]),
            job("no gpus", attempts=[attempt("2017-10-02 10:01:00", "2017-10-02 10:02:00")]),
            job("zero", attempts=[attempt("2017-10-02 10:01:00", "2017-10-02 10:01:00", 1)]),
            job("no submission", submitted=None),
            job("bad submission", submitted="yesterday"),
            job("kept", "2017-10-02 12:00:00", attempts=once),
            job("early", "2017-09-30 23:59:59", attempts=once),
            job(None, attempts=once),
            job("backwards", attempts=[attempt("2017-10-02 10:02:00", "2017-10-02 10:01:00", 1)]),
        ]
    )
    clean = clean_trace("t", trace("philly", start="2017-10-01"), folder)
    assert clean.jobs["job_id"].tolist() == ["kept"]
    assert clean.audit.left_out == {
        "submitted before 2017-10-01": 1,
        "no attempt to run": 2,
        "no attempt with start and end time": 3,
        "no GPUs listed in any attempt": 1,
        "no submission time": 2,
        "run time zero": 1,
        "no job id": 1,
        "job id met before": 1,
    }


def test_daylight_saving_time(philly_folder: Callable, trace: Callable) -> None:
    """On 2017-11-05 Pacific clocks went back at 2:00: 1:00–2:00 came twice."""
    folder = philly_folder(
        [
            job("across", "2017-11-05 00:30:00", attempts=[attempt("2017-11-05 00:30:00", "2017-11-05 02:30:00", 1)]),
            job("second", "2017-11-05 01:50:00", attempts=[attempt("2017-11-05 01:10:00", "2017-11-05 01:30:00", 1)]),
            job("later", "2017-11-05 02:00:00", attempts=[attempt("2017-11-05 02:00:10", "2017-11-05 03:00:10", 1)]),
        ]
    )
    jobs = clean_trace("t", trace("philly"), folder).jobs.set_index("job_id")
    assert jobs["run_s"].to_dict() == {"across": 3 * 3600, "second": 20 * 60, "later": 3600}
    assert jobs["wait_s"].to_dict() == {"across": 0, "second": 20 * 60, "later": 10}
    assert jobs["submit_s"].to_dict() == {"across": 0, "second": 80 * 60, "later": 150 * 60}


def test_values_of_the_wrong_type_never_crash(philly_folder: Callable, trace: Callable) -> None:
    odd = [5, None, "x", [1], {"a": 1}, True]
    rows = [job(f"{field}-{i}", **{field: value}) for field in ("status", "vc", "user", "attempts")
            for i, value in enumerate(odd)]
    rows += [job(f"t-{i}", value) for i, value in enumerate(odd)]
    rows += [job(f"a-{i}", attempts=[{"start_time": v, "end_time": v, "detail": v}]) for i, v in enumerate(odd)]
    rows += [job(f"d-{i}", attempts=[attempt("2017-10-02 10:01:00", "2017-10-02 10:02:00") | {"detail": [{"gpus": v}]}])
             for i, v in enumerate(odd)]
    clean = clean_trace("t", trace("philly"), philly_folder(rows))
    assert clean.audit.rows_read == len(rows) == 42
    assert clean.audit.rows_kept == 19  # odd status, vc or user do no harm; one detail lists one GPU


def test_start_before_submission_leaves_the_wait_unknown(philly_folder: Callable, trace: Callable) -> None:
    clean = clean_trace("t", trace("philly"), philly_folder([job("a", "2017-10-02 10:05:00")]))
    assert clean.jobs["wait_s"].isna().all()
    assert clean.audit.noted == {"started before submission, wait unknown": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "JSON"),
        ("[]", "no jobs"),
        ('{"a": 1}', "no jobs"),
        ("[1, 2]", "entry 0"),
        (json.dumps([job("a"), job("b")])[:-30], "truncated JSON after 1 jobs"),
        (json.dumps([job("a")])[:-1] + " nonsense", "JSON after 1 jobs"),
    ],
)
def test_damaged_log(text: str, message: str, tmp_path: Path, trace: Callable) -> None:
    (tmp_path / "cluster_job_log").write_text(text)
    with pytest.raises(DataError, match=message) as error:
        clean_trace("t", trace("philly"), tmp_path)
    assert "cluster_job_log" in str(error.value)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_truncated_archive(share: float, philly_folder: Callable, trace: Callable) -> None:
    folder = philly_folder([job(f"{i}-{hash(i * 7919)}") for i in range(3000)])
    archive = folder / "trace-data.tar.gz"
    content = archive.read_bytes()
    archive.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(DataError, match="trace-data.tar.gz"):
        clean_trace("t", trace("philly"), folder)


def test_missing_archive(tmp_path: Path, trace: Callable) -> None:
    with pytest.raises(DataError, match="expected cluster_job_log or trace-data.tar.gz, found nothing"):
        clean_trace("t", trace("philly"), tmp_path)
    with pytest.raises(DataError, match="no such file or folder"):
        clean_trace("t", trace("philly"), tmp_path / "absent")
