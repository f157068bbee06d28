"""The canonical job table: round trip, dtypes, and all faults reported at once."""

import pandas as pd
import pytest
from history_cases import table
from hypothesis import given, strategies as st

from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.clean import without_names
from rltune.traces.columns import DTYPES, TraceMeta
from rltune.traces.table import read_table, sort_jobs, validate, write_table

META = TraceMeta("t", "Title – ü", "own", "csv", "2017-10-01T00:00:27.000-07:00", "America/Los_Angeles", "a file")


def jobs_of(rows: int = 3) -> pd.DataFrame:
    """Jobs of two GPUs, two at a time."""
    return table([{"submit_s": i // 2, "run_s": 10, "gpus": 2} for i in range(rows)])


def test_round_trip_keeps_values_dtypes_and_metadata(tmp_path):
    jobs = jobs_of()
    jobs.loc[1, "user"] = "anna"
    write_table(jobs, META, tmp_path / "jobs.parquet")
    back, meta = read_table(tmp_path / "jobs.parquet")
    pd.testing.assert_frame_equal(back, jobs)
    assert meta == META
    assert {c: str(t) for c, t in back.dtypes.items()} == DTYPES


def test_all_faults_are_reported_at_once():
    jobs = jobs_of()
    jobs.loc[0, "run_s"] = -1.0
    jobs.loc[1, "gpus"] = 0
    jobs.loc[2, "status"] = "finished"
    jobs["submit_s"] = [5.0, 3.0, 4.0]
    with pytest.raises(DataError) as error:
        validate(jobs, "trace x")
    order = "rows are not sorted by submit_s, then job_id (first: row 1 is 3, 'j00001' after 5, 'j00000')"
    for part in ("trace x", "run_s", "row 0 is -1.0", "gpus", "status", "'finished'", order):
        assert part in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"run_s": float("inf")}, "run_s: a finite number"),
        ({"gpus": [0, 2, 2]}, "gpus: gpus ≥ 1 for gpu jobs and 0 for cpu jobs fails on 1 rows"),
        ({"job_id": pd.Series(["a", "a", "b"], dtype="str")}, "job_id: field_uniqueness"),
        ({"job_id": pd.Series(["a", None, "b"], dtype="str")}, "job_id: not_nullable fails on 1 rows"),
        ({"submit_s": [0.0, float("nan"), 1.0]}, "submit_s: not_nullable fails on 1 rows"),
        ({"surplus": 1}, "column_in_schema .surplus."),
    ],
)
def test_a_fault_is_named(change, fault):
    with pytest.raises(DataError, match=fault) as error:
        validate(jobs_of().assign(**change))
    assert "sorted" not in str(error.value), "a row without time or id is not called unsorted"
    with pytest.raises(DataError, match="column_in_dataframe"):
        validate(jobs_of().drop(columns="vc"))


def test_unreadable_files(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_table(tmp_path / "none.parquet")
    write_table(jobs_of(), META, tmp_path / "jobs.parquet")
    whole = (tmp_path / "jobs.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cut.parquet"):
        read_table(tmp_path / "cut.parquet")
    jobs_of().to_parquet(tmp_path / "plain.parquet")
    with pytest.raises(DataError, match="without the trace's metadata"):
        read_table(tmp_path / "plain.parquet")


def test_ids_out_of_order_at_one_time_are_found():
    jobs = jobs_of(4)
    jobs["job_id"] = pd.Series(["a", "b", "d", "c"], dtype="str")
    with pytest.raises(DataError, match="not sorted .*row 3 is 1, 'c' after 1, 'd'"):
        validate(jobs)
    validate(sort_jobs(jobs))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), max_size=8), st.integers(0, 50))
def test_audit_adds_up(lines, kept):
    audit = Audit()
    audit.read(kept + sum(n for _, n in lines))
    for reason, rows in lines:
        audit.leave_out(reason, rows)
    audit.keep(kept)
    assert Audit(**audit.to_dict()) == audit
    frame = audit.to_frame()
    out = frame.loc[frame["kind"] == "left out", "rows"].sum()
    assert frame.loc[frame["kind"] == "read", "rows"].item() == out + kept
    audit.rows_read += 1
    with pytest.raises(AssertionError, match="does not add up"):
        audit.check()


def test_users_without_names_are_distinguished_as_before():
    """Whoever is not known stays so."""
    jobs = pd.DataFrame({"user": pd.Series(["zoe", None, "ada", "zoe"], dtype="str"), "gpus": [1, 2, 3, 4]})
    assert list(without_names(jobs)["user"].fillna("")) == ["user-1", "", "user-2", "user-1"]
    assert without_names(jobs)["user"].dtype == "str" and list(jobs["user"].fillna("")) == ["zoe", "", "ada", "zoe"]
