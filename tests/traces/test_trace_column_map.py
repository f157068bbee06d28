"""Any CSV through a column map."""

import gzip
from ast import literal_eval
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, strategies as st
from raw_cases import cleaned, rows

from rltune.errors import ConfigError, DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.archive import open_member
from rltune.traces.raw.times import wall_clock_to_unix
from rltune.traces.synthetic.archives import write_tar_gz

BASIC = {"job_id": "id", "submit_s": "t", "run_s": "run", "gpus": "g"}


@pytest.fixture
def clean(tmp_path: Path) -> Callable:
    """Clean a CSV text through a column map."""

    def run(text: str, columns: dict, **fields: object) -> object:
        return cleaned(tmp_path / "own.csv", text, "csv", columns=columns, **fields)

    return run


def test_units_factors_constants_fallbacks_and_maps(clean):
    text = (
        "id,t,run,span,g,mem,cpu,state,cut\n"
        "a,1000,2,,1500,2048,500,OK,1\n"
        "b,3000,,90,1000,,1000,NO,0\n"
        "c,2000,1,5,0,1,1,??,no\n"
        "d,5000,1,5,3000,1,1,OK,maybe\n"
    )
    columns = {
        "job_id": "id",
        "submit_s": {"column": "t", "unit": "ms", "factor": 0.5},
        "run_s": {"column": "run", "fallback": "span", "unit": "min"},
        "gpus": {"column": "g", "unit": "milli"},
        "mem_gb": {"column": "mem", "unit": "MiB"},
        "cpus": {"column": "cpu", "unit": "percent"},
        "status": {"column": "state", "map": {"OK": "passed", "NO": "failed"}},
        "run_clamped": "cut",
        "vc": {"constant": "main"},
    }
    result = clean(text, columns)
    assert rows(result, "submit_s run_s gpus mem_gb cpus status run_clamped vc") == [
        ["a", 0, 120, 2, 2.147484, 5, "passed", True, "main"],
        ["b", 1, 5400, 1, None, 10, "failed", False, "main"],
        ["d", 2, 60, 3, 0.001049, 0.01, "passed", False, "main"],
    ]
    assert result.audit.left_out == {"GPU count not positive": 1}
    assert result.audit.noted["run_s from span, as run is empty"] == 1
    assert result.audit.noted["share of a GPU rounded up to whole GPUs"] == 1
    assert result.audit.noted["status: value not in the map"] == 1
    assert result.audit.noted["run_clamped neither true nor false: taken as false"] == 1


def test_wall_clock_start_and_end(clean):
    text = (
        "t,s,e,g\n"
        "2021-03-28 00:30:00,2021-03-28 01:30:00,2021-03-28 03:30:00,1\n"  # clocks forward at 2:00: one hour, not two
        "2021-10-31 02:30:00,2021-10-31 02:10:00,2021-10-31 02:50:00,1\n"  # 2:10 can only be the second one
        "2021-10-31T02:30:00+01:00,2021-10-31T01:40:00Z,2021-10-31T02:40:00.5Z,1\n"
        "2021-03-28 02:30:00,2021-03-28 03:30:00,2021-03-28 03:40:00,1\n"  # 2:30 does not exist: 3:00
    )
    result = clean(text, {"submit_s": "t", "start_s": "s", "end_s": "e", "gpus": "g"}, time_zone="Europe/Berlin")
    times = sorted(rows(result, "run_s wait_s"))
    assert times == [["1", 3600, 3600], ["2", 2400, 2400], ["3", 3600.5, 600], ["4", 600, 1800]]
    assert result.meta.t0 == "2021-03-28T00:30:00.000+01:00"
    assert result.audit.noted["submit_s within the hour skipped in spring: moved to its end"] == 1


@pytest.mark.parametrize(
    "written", ["20240301T100000Z", "2024-03-01T1100+0100", "2024-03-01T11+01:00", "2024-03-01 05:00-5", "2024-03-01"]
)
@pytest.mark.parametrize("others", ["2024-03-01 10:00:00", "2024-03-01T10:00Z"])
def test_offsets_and_times_of_day_in_every_form_of_iso_8601(written, others, clean):
    at_s = 1_709_287_200 - 36_000 * (written == "2024-03-01")
    text = f"id,t,run,g\na,{written},5,1\nb,{others},5,1\nc,{others},5,1\n"
    result = clean(text, BASIC)
    assert datetime.fromisoformat(result.meta.t0).timestamp() == at_s
    assert result.jobs["submit_s"].tolist() == [0, 1_709_287_200 - at_s, 1_709_287_200 - at_s]


def test_column_time_zone_and_window(clean):
    text = "id,t,run,g\na,2021-01-01 23:30:00,5,1\nb,2021-01-02 00:30:00,5,1\nc,2021-01-03 00:00:00,5,1\n"
    columns = {**BASIC, "submit_s": {"column": "t", "time_zone": "Asia/Shanghai"}}
    result = clean(text, columns, time_zone="Asia/Shanghai", start="2021-01-02", end="2021-01-03")
    assert result.jobs["job_id"].tolist() == ["b"]
    assert result.audit.left_out == {"submitted before 2021-01-02": 1, "submitted on or after 2021-01-03": 1}
    assert clean(text, columns).meta.t0 == "2021-01-01T15:30:00.000+00:00"


@pytest.mark.parametrize(
    ("rule", "kept"),
    [("k == 2", "b"), ("k != 2", "acdef"), ("k < 2", "a"), ("k <= 2", "ab"), ("k > 2", "cd"), ("k >= 2", "bcd")]
    + [("k in [1, 3]", "ac"), ("k == '2'", "b"), ("k in ['x']", "e"), ("k == 1", "a"), ("k in ['1', 2]", "b")]
    + [("k in [1, 4]", "ad"), ("k in [1, '4.0', 'x']", "ade")]
    + [("f == True", "ad"), ("f == False", "bc"), ("f != True", "bcef"), ("f in [True, 'maybe']", "ade")],
)
def test_filters_take_numbers_for_numbers_and_words_for_true(rule, kept, clean):
    lines = ["a,0,5,1,1.0,true", "b,1,5,1,2,No", "c,2,5,1,3,0", "d,3,5,1,4.0,1", "e,4,5,1,x,maybe", "f,5,5,1,,"]
    column, op, value = rule.split(" ", 2)
    rules = [{"column": column, "op": op, "value": literal_eval(value)}]
    result = clean("\n".join(["id,t,run,g,k,f", *lines]) + "\n", BASIC, filter=rules)
    assert "".join(result.jobs["job_id"]) == kept
    assert sum(result.audit.left_out.values()) == len(lines) - len(kept)


def test_mistakes_are_named(clean):
    text = "id,t,run,g\na,0,5,1\n"
    with pytest.raises(DataError, match=r"own.csv: column 'gpu_nm' \(mapped to gpus\).*nearest: gpu_num"):
        clean("id,t,run,gpu_num\na,0,5,1\n", {**BASIC, "gpus": "gpu_nm"})
    for field, value in (("factor", 2), ("unit", "ms")):
        with pytest.raises(ConfigError, match=f"columns.submit_s.{field}: goes with numbers"):
            clean("id,t,run,g\na,2020-01-01,5,1\n", {**BASIC, "submit_s": {"column": "t", field: value}})
    with pytest.raises(DataError, match="no job left.*1 rows read, 0 kept; left out: 1 run time negative"):
        clean("id,t,run,g\na,0,-5,1\n", BASIC)
    with pytest.raises(DataError, match="'k' .named in filter."):
        clean(text, BASIC, filter=[{"column": "k", "op": "==", "value": 1}])


def test_impossible_numbers_are_counted(clean):
    """A wait of zero is none of them."""
    lines = ["a,0,5,1,0,0", "g,1,5,1,-3,4", "b,1e300,5,1,,", "c,-1e300,5,1,,", "d,1,5,1e30,,", "e,2,1e200,1,,"]
    text = "\n".join(["id,t,run,g,w,c", *lines, "f,3,315576001,1,,"]) + "\n"
    result = clean(text, {**BASIC, "wait_s": "w", "cpus": "c"})
    assert rows(result, "wait_s cpus") == [["a", 0, None], ["g", None, 4]]
    assert sum(result.audit.left_out.values()) == 5
    assert result.audit.left_out["run time impossible (over 10 years)"] == 2
    assert result.audit.noted["wait_s negative, taken as unknown"] == 1
    assert result.audit.noted["cpus not positive, taken as unknown"] == 1
    text = "id,t,run,g\na,2020-01-01,5,1\nb,9999-12-31 23:59:59,5,1\nc,0001-01-01 00:00:00,5,1\nd,2020-13-45,5,1\n"
    result = clean(text, BASIC, time_zone="America/Los_Angeles")
    assert "a" in set(result.jobs["job_id"]) and result.audit.rows_read == 4


def test_numbers_with_a_comma_are_counted_as_such(clean):
    result = clean('id,t,run,g\na,0,5,1\nb,1,"5,5",1\nc,2,"1,234.5",1\nd,3,"many, or few",1\ne,4,7,1\nf,5,7,1\n', BASIC)
    noted = result.audit.noted
    assert (noted["run_s not a number, for its comma"], noted["run_s not a number"]) == (2, 1)
    assert result.audit.left_out == {"no run time": 3}


def test_times_far_from_the_others_are_left_out(clean):
    times = {"a": 1_577_836_800, "b": 100_000_000_000, "c": -2_208_988_801, "d": 1_577_923_200, "e": 6_942_585_600}
    result = clean("id,t,run,g\n" + "".join(f"{name},{t},5,1\n" for name, t in times.items()), BASIC)
    assert result.jobs["job_id"].tolist() == ["a", "d"]
    assert result.audit.left_out["submission time impossible (not within the years 1900–2189)"] == 3
    assert result.span == "2020-01-01 00:00 to 2020-01-02 00:00 (UTC), 1.0 days"


@pytest.mark.parametrize("hour", ["", "2330", "233000"])
@pytest.mark.parametrize("more", [[], ["20201301"]])
def test_dates_written_as_digits(hour, more, clean):
    written = ["20201231" + hour, "20210102", *more]
    text = "id,t,run,g\n" + "".join(f"j{i},{t},5,1\n" for i, t in enumerate(written))
    result = clean(text, BASIC, time_zone="Europe/Berlin")
    late_s = 84_600 if hour else 0
    assert datetime.fromisoformat(result.meta.t0).timestamp() == 1_609_369_200 + late_s
    assert result.jobs["submit_s"].tolist() == [0, 172_800 - late_s]
    assert result.audit.noted["submit_s read as dates written YYYYMMDD, YYYYMMDDhhmm or YYYYMMDDhhmmss"] == 2
    assert result.audit.left_out.get("no submission time", 0) == len(more)


@pytest.mark.parametrize(
    ("first", "how"), [("20201231", {"unit": "s"}), ("20201231", {"factor": 0.5}), ("15000000", {})]
)
def test_numbers_of_eight_digits_that_are_no_dates_stay_numbers(first, how, clean):
    text = f"id,t,run,g\na,{first},5,1\nb,{int(first) + 10},5,1\n"
    result = clean(text, {**BASIC, "submit_s": {"column": "t", **how}})
    assert result.jobs["submit_s"].tolist() == [0, 10 * how.get("factor", 1.0)]
    assert result.audit.noted["submission before 1990 if read as seconds since 1970"] == 2


@pytest.mark.parametrize(
    ("zeros", "unit", "write"),
    [
        ("000", "milliseconds", "unit: ms"),
        ("000000", "microseconds", "factor: 0.000001"),
        ("000000000", "nanoseconds", "factor: 0.000000001"),
    ],
)
def test_submissions_in_a_finer_unit_are_refused_with_the_unit(zeros, unit, write, clean):
    text = f"id,t,run,g\na,1600000000{zeros},5,1\nb,1600000060{zeros},5,1\nc,7,5,1\n"
    said = f"look like {unit}. Write `submit_s: .column: t, {write}.`"
    with pytest.raises(DataError, match=f"own.csv: submit_s: 2 of 3 values are after the year 2200.*{said}"):
        clean(text, BASIC)
    result = clean(text, {**BASIC, "submit_s": {"column": "t", **yaml.safe_load(write)}}, start="2020-01-01")
    assert result.jobs["submit_s"].round(3).tolist() == [0, 60]


@pytest.mark.parametrize("name", ["start_s", "end_s"])
def test_the_unit_of_every_time_is_checked(name, clean):
    text = "id,t,s,e,g\n" + "".join(f"{i},1600000{i}00000,1600000{i}60000,1600000{i}90000,1\n" for i in range(3))
    columns = {n: {"column": c, "unit": "ms"} for n, c in (("submit_s", "t"), ("start_s", "s"), ("end_s", "e"))}
    assert clean(text, {"gpus": "g", **columns}).jobs["run_s"].round(3).tolist() == [30, 30, 30]
    said = f"own.csv: {name}: 3 of 3 values .*Write `{name}: .column: {name[0]}, unit: ms.`"
    with pytest.raises(DataError, match=said):
        clean(text, {"gpus": "g", **columns, name: name[0]})


@pytest.mark.parametrize("name", ["wait_s", "requested_s"])
def test_a_wait_or_time_limit_longer_than_any_run_is_unknown(name, clean):
    result = clean("id,t,run,g,w\na,2e9,5,1,315576000\nb,2e9,5,1,315576001\n", {**BASIC, name: "w"})
    assert rows(result, name) == [["a", 315_576_000], ["b", None]]
    assert result.audit.noted == {f"{name} over 10 years, taken as unknown": 1}


def test_durations_written_as_a_clock(clean):
    text = "id,t,run,lim,g\na,0,01:02:03,90,1\nb,1,1-02:03:04,60,1\nc,2,00:00:00.5,30,1\nd,3,soon,1,1\ne,4,7,1,1\n"
    columns = {**BASIC, "requested_s": {"column": "lim", "unit": "min"}}
    result = clean(text, columns)
    assert result.jobs["run_s"].tolist() == [3_723, 93_784, 0.5, 7]
    assert result.jobs["requested_s"].tolist() == [5_400, 3_600, 1_800, 60]
    assert result.audit.noted["run_s not a duration"] == 1 and result.audit.left_out == {"no run time": 1}
    short = clean("id,t,run,g\na,0,02:30,1\nb,1,00:30,1\n", BASIC)
    assert short.jobs["run_s"].tolist() == [150, 30]
    assert short.audit.noted["run_s taken as mm:ss (if it is hh:mm: factor: 60)"] == 2
    hours = clean("id,t,run,g\na,0,02:30,1\nb,1,00:30,1\n", {**BASIC, "run_s": {"column": "run", "factor": 60}})
    assert hours.jobs["run_s"].tolist() == [9000, 1800] and "run_s taken" not in str(hours.audit.noted)
    with pytest.raises(ConfigError, match=r"columns.run_s.unit: found 'h'.*\[d-\]hh:mm:ss there. Leave the unit out"):
        clean(text, {**BASIC, "run_s": {"column": "run", "unit": "h"}})


def test_a_mapped_column_that_is_there_twice(clean):
    text = 'id,t,run,g,g,x,"x"\na,0,5,1,2,3,4\n'
    with pytest.raises(DataError, match="own.csv: column 'g' is in the header more than once"):
        clean(text, BASIC)
    with pytest.raises(DataError, match="column 'x' is in the header more than once"):
        clean(text.replace("g,g", "g,h"), BASIC, filter=[{"column": "x", "op": "==", "value": 3}])
    assert clean(text.replace("g,g", "g,h"), BASIC).jobs["gpus"].tolist() == [1]


def test_a_resource_in_capitals(clean):
    result = clean("id,t,run,g,r\na,0,5,1,GPU\nb,1,5,0, Cpu\nc,2,5,1,tpu\n", {**BASIC, "resource": "r"})
    assert result.jobs["resource"].tolist() == ["gpu", "cpu", "gpu"]
    assert result.audit.noted["resource not one of gpu, cpu: taken as gpu"] == 1
    result = clean("id,t,run,g,r\na,2e9,5,1,\nb,2e9,5,0,cpu\n", {**BASIC, "resource": "r"})
    assert result.audit.noted == {"resource not given: taken as gpu": 1}, "an empty cell is no odd word"


def test_a_status_read_wholly_wrongly_is_noted(clean):
    text = "id,t,run,g,s\na,2e9,5,1,COMPLETED\nb,2e9,0,1,CANCELLED\nc,2e9,5,1,TIMEOUT\n"
    assert clean(text, {**BASIC, "status": "s"}).audit.noted == {"status unknown": 3}, "as all notes: of all rows read"
    result = clean(text, BASIC)
    assert not result.audit.noted and set(result.jobs["status"]) == {"unknown"}, "where none is given, none is wrong"


def test_jobs_that_have_not_ended_are_left_out(clean):
    text = "id,t,run,g,s\na,2e9,5,1,DONE\nb,2e9,5,1,RUN\nc,2e9,5,1,WAIT\nd,2e9,5,1,odd\n"
    states = {"DONE": "passed", "RUN": "running", "WAIT": "not started", "odd": "unknown"}
    result = clean(text, {**BASIC, "status": {"column": "s", "map": states}})
    assert rows(result, "status") == [["a", "passed"], ["d", "unknown"]]
    assert result.audit.left_out == {
        "still pending when the log was written": 1,
        "still running when the log was written": 1,
    }


def test_states_that_a_map_lacks_have_their_usual_meaning(clean):
    text = (
        "id,t,run,g,s\na,2e9,5,1,DONE\nb,2e9,5,1,RUNNING\nc,2e9,5,1,CANCELLED by 7\nd,2e9,5,1,odd\ne,2e9,5,1,Stopped\n"
    )
    result = clean(text, {**BASIC, "status": {"column": "s", "map": {"DONE": "passed"}}})
    assert rows(result, "status") == [["a", "passed"], ["c", "killed"], ["d", "unknown"], ["e", "unknown"]]
    assert result.audit.left_out == {"still running when the log was written": 1}
    assert result.audit.noted["status: value not in the map"] == 2


def test_time_limits_in_words_are_none(clean):
    text = "id,t,run,g,l\n" + "".join(
        f"{k},2e9,5,1,{('UNLIMITED', 'unlimited ')[k % 2] if k else '01:00:00'}\n" for k in range(9)
    )
    result = clean(text, {**BASIC, "requested_s": "l"})
    assert result.jobs["requested_s"].tolist()[0] == 3600.0 and result.jobs["requested_s"].count() == 1
    assert result.audit.noted["requested_s: a word for no value, such as UNLIMITED"] == 8


def test_what_cannot_be_read_names_the_files_column(clean):
    with pytest.raises(DataError, match=r"own.csv: column 'Memory': mem_gb: 2 of 2 values are not a number .*'64Gi'"):
        clean("id,t,run,g,Memory\na,2e9,5,1,64Gi\nb,2e9,5,1,64Gi\n", {**BASIC, "mem_gb": "Memory"})


def test_the_content_tells_what_is_packed_not_the_name(tmp_path):
    text = "id,t,run,g\na,0,5,1\n"
    assert cleaned(tmp_path / "own.csv", gzip.compress(text.encode()), "csv", columns=BASIC).audit.rows_kept == 1
    with pytest.raises(DataError, match="own.csv: truncated or damaged"):
        cleaned(tmp_path / "own.csv", gzip.compress(text.encode() * 500)[:-9], "csv", columns=BASIC)
    (tmp_path / "own.csv").unlink()
    write_tar_gz(tmp_path / "a.tar.gz", {"in/other.csv": "x\n", "in/own.csv": text})
    packed = gzip.decompress((tmp_path / "a.tar.gz").read_bytes())
    for name, content, folder in (("a.tar.gz", None, False), ("a.tar", packed, False), ("a.tar.gz", packed, True)):
        if content:
            (tmp_path / name).write_bytes(content)
        with open_member(tmp_path if folder else tmp_path / name, "in/own.csv", ("a.tar.gz",)) as (stream, _):
            assert stream.read().decode() == text


@pytest.mark.parametrize("delimiter", ["|", ";", "\t"])
def test_other_delimiters(delimiter, clean):
    text = "id,t,run,g\na,0,5,1\nb,1,6,2\n".replace(",", delimiter)
    assert clean(text, BASIC).jobs["run_s"].tolist() == [5, 6]


stamps = st.one_of(
    st.datetimes(datetime(2017, 1, 1), datetime(2018, 12, 31)),
    st.datetimes(datetime(2017, 11, 5), datetime(2017, 11, 5, 4)),  # Pacific clocks go back at 2:00 …
    st.datetimes(datetime(2017, 3, 12), datetime(2017, 3, 12, 4)),  # … and on at 2:00
).map(lambda t: t.replace(microsecond=0).isoformat(" "))
nothing = st.sampled_from([None, "", "None", "Unknown", "9999-12-31 23:59:59", "0001-01-01 00:00:00"])


@given(
    text=st.lists(st.one_of(stamps, stamps, nothing), min_size=1, max_size=8),
    zone=st.sampled_from(["America/Los_Angeles", "Asia/Shanghai", "UTC", "Australia/Lord_Howe"]),
    earlier=st.lists(st.integers(1_509_850_000, 1_509_890_000), min_size=8, max_size=8) | st.none(),
)
def test_wall_clock_is_read_as_by_the_standard_library(text, zone, earlier):
    before = None if earlier is None else np.array(earlier[: len(text)], dtype=np.float64)
    found = wall_clock_to_unix(pd.Series(text, dtype="str"), zone, "t", Audit(), before)
    with_fraction = pd.Series([*text, "2017-06-01 00:00:00.5"], dtype="str")
    after = None if before is None else np.append(before, 0.0)
    np.testing.assert_array_equal(found, wall_clock_to_unix(with_fraction, zone, "t", Audit(), after)[:-1])
    for i, value in enumerate(text):
        if value is None or not value.startswith("201"):
            assert np.isnan(found[i])
            continue
        wall = datetime.fromisoformat(value).replace(tzinfo=ZoneInfo(zone))
        readings = {wall.replace(fold=fold).timestamp() for fold in (0, 1)}
        if datetime.fromtimestamp(wall.timestamp(), ZoneInfo(zone)).replace(tzinfo=None) == wall.replace(tzinfo=None):
            first = min(readings)
            assert found[i] == (max(readings) if before is not None and first < before[i] else first)
        else:  # skipped in spring
            read = datetime.fromtimestamp(found[i], ZoneInfo(zone)).replace(tzinfo=None)
            assert read >= datetime.fromisoformat(value)


def test_a_share_of_a_gpu_by_the_rule_named(clean):
    text = "id,t,run,g\na,0,5,0.3\nb,1,5,2.4\nc,2,5,3.0000000000000004\n"
    assert clean(text, BASIC).jobs["gpus"].tolist() == [1, 3, 3]
    left = clean(text, BASIC, gpu_share="leave_out")
    assert left.jobs["gpus"].tolist() == [3]
    assert left.audit.left_out == {"asks for a share of a GPU (gpu_share: leave_out)": 2}
