"""Damaged raw files: a clean table with every row counted, or one error that names the file."""

import json
import re

import pytest
from hypothesis import given, strategies as st
from raw_cases import BASES, FEW, FILES, FUZZ, HELIOS_HEADER, clean, helios, pai_tasks, philly, sound

from rltune.errors import DataError
from rltune.traces.inspect import inspect_file
from rltune.traces.raw import encoding

poison = st.sampled_from(
    [
        *("", "NaN", "None", "null", "-1", "0", "1e12", "1" * 400, "inf", "-inf", "1e-320", "13/10/2017 10:00:00"),
        *("\x00", '"', '"a\nb"', "a,b", ",,,,,,,,,,", "9999-12-31 23:59:59", "0001-01-01 00:00:00"),
        *("2017-11-05 01:30:00", "[]", "{}", "ÿ", "\u2028", "💥", "=cmd()", "../../x", " ", "\t", "\r", "true"),
        *("1_000", "0x10", "٣", "1e400", "1e308", "-5", "PENDING", "REQUEUED", "2_[1-9]", "1.0"),
        *("gres/gpu=1000000000000", "Pending", "Running", "nan"),
    ]
)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> bytes:
    """A text with lines out of order, doubled or gone, values poisoned, cut, in any encoding and with any ends."""
    lines = text.splitlines(keepends=True)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(lines) - 1, 0)))
        match draw(st.integers(0, 4)):
            case 0 if lines:
                lines.insert(draw(st.integers(0, len(lines))), lines[at])
            case 1 if lines:
                lines.insert(draw(st.integers(0, len(lines) - 1)), lines.pop(at))
            case 2 if lines:
                del lines[at]
            case 3 if lines:
                fields = re.split(r"([,| ]+)", lines[at])  # every second is a delimiter
                fields[2 * draw(st.integers(0, len(fields) // 2))] = draw(poison)
                lines[at] = "".join(fields)
            case _:
                lines.insert(at, draw(st.text(max_size=30)))
    text = "".join(lines)
    if draw(st.booleans()):
        text = text.replace("\n", draw(st.sampled_from(["\r\n", "\r", "\n\n"])))
    content = text.encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1"])), "replace")
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(content)))
        content = content[:at] + draw(st.binary(max_size=8)) + content[at + draw(st.integers(0, 5)) :]
    return content[: draw(st.integers(0, len(content)))] if draw(st.integers(0, 4)) == 0 else content


@pytest.mark.parametrize("name", BASES)
@FUZZ
@given(data=st.data())
def test_a_damaged_file_is_cleaned_and_counted_or_refused(name, data, tmp_path):
    sound(tmp_path, name, data.draw(damaged(BASES[name])))


JOB = json.loads(philly())[1]
JSON_KEYS = [*JOB, *JOB["attempts"][0], "gpus"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8) | poison,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(JSON_KEYS), inner, max_size=4),
    max_leaves=20,
)


@FUZZ
@given(jobs=st.lists(json_values, max_size=6))
def test_any_json_is_refused_or_counted(jobs, tmp_path):
    result = sound(tmp_path, "philly", json.dumps([*json.loads(philly()), *jobs]).encode("utf-8", "replace"))
    assert result is None or result.audit.rows_read == 8 + len(jobs)


def test_deep_json_is_no_crash(tmp_path):
    deep = "[" * 5_000 + "]" * 5_000
    with pytest.raises(DataError, match="entry 8 is a list; expected a job"):
        clean(tmp_path, "philly", (philly()[:-2] + "," + deep + "]").encode())
    for field in ("j0", "v", "gpu0", "2017-10-02 10:00:00"):
        sound(tmp_path, "philly", philly().replace(f'"{field}"', deep).encode())


@pytest.mark.parametrize("name", [*FEW, "sacct"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_every_marked_encoding_and_end_of_line_gives_the_same_jobs(name, encoding, end, tmp_path):
    text = "\ufeff" * encoding.endswith("e") + BASES[name].replace("\n", end)
    expected = clean(tmp_path / "a", name, BASES[name].encode())
    result = clean(tmp_path / "b", name, text.encode(encoding))
    assert result.jobs.equals(expected.jobs) and result.audit == expected.audit
    assert "ü" in "".join(result.jobs["user"])


@pytest.mark.parametrize("name", [*FEW, "swf", "sacct"])
@pytest.mark.parametrize("begun", [True, False])
def test_what_never_ends_does_not_fill_the_memory(name, begun, tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "LONGEST", 1 << 20)
    start = BASES[name].removesuffix('"\n }\n]') if begun else '[{"jobid": "' * (name == "philly")
    with pytest.raises(DataError, match=f"{FILES[name]}: over 1 MiB without the end of a line or a JSON entry"):
        clean(tmp_path, name, (start + "x" * (3 << 20)).encode())


def test_json_without_line_ends_may_be_longer(tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "LONGEST", 100_000)
    monkeypatch.setattr(encoding, "_CHUNK", 10_000)
    text = json.dumps(json.loads(philly()) * 200)
    assert len(text) > 300_000 and clean(tmp_path, "philly", text.encode()).audit.rows_read == 1_600
    inspect_file(tmp_path / "cluster_job_log")


def test_utf_16_cut_in_a_character_or_without_its_mark(tmp_path):
    with pytest.raises(DataError, match="own.csv: begins with the mark of UTF-16 and is not"):
        clean(tmp_path, "csv", helios().encode("utf-16")[:-1])
    with pytest.raises(DataError, match=r"own.csv: not text \(the header holds zero bytes\)"):
        clean(tmp_path, "csv", helios().encode("utf-16-le"))
    with pytest.raises(DataError, match="not text.*Unpack it if it is compressed"):
        clean(tmp_path, "csv", b"(\xb5/\xfd\x00X" + bytes(20) + b"\n")  # as zstd begins


@pytest.mark.parametrize("name", ["csv", "helios"])
def test_times_in_another_order_are_one_error_with_an_example(name, tmp_path):
    right = helios().splitlines(True)
    wrong = [line.replace("2020-04-01 10", "13/10/2020 10", 1) for line in right]
    said = f"{FILES[name]}.*12 of 12 values are not a time as YYYY.*'13/10/2020 10:00:00'"
    with pytest.raises(DataError, match=said):
        clean(tmp_path, name, "".join(wrong).encode())
    result = clean(tmp_path, name, "".join(wrong[:4] + right[4:]).encode())
    assert result.audit.left_out["no submission time"] == (3 if name == "csv" else 2)  # of Helios, one is a CPU job


def test_a_column_of_words_for_numbers_is_one_error_with_an_example(tmp_path):
    text = helios().replace(",3600,30", ",1:00:00,30")
    with pytest.raises(DataError, match=r"cluster_log.csv: duration: 12 of 12 values are not a number.*'1:00:00'"):
        clean(tmp_path, "helios", text.encode())
    with pytest.raises(DataError, match=r"pai_task_table.csv: plan_gpu: 12 of 12 values are not a number.*'half'"):
        clean(tmp_path, "alibaba2020", pai_tasks().replace(",50,", ",half,").encode())


@pytest.mark.parametrize("name", FEW)
def test_an_empty_file_is_named(name, tmp_path):
    for content in (b"", b"\n\n", b"\xef\xbb\xbf", b"\xff\xfe", HELIOS_HEADER.encode() + b"\n"):
        with pytest.raises(DataError, match=str(FILES[name].split("/")[-1]) + "|no job left"):
            clean(tmp_path, name, content)
