"""Every line of a CSV below its header is a row kept or a row counted."""

import io

import pandas as pd
import pytest
from hypothesis import given, strategies as st

from rltune.errors import DataError
from rltune.traces.audit import Audit
from rltune.traces.raw.csv_text import read_csv_text

HEADER = "id,t,run,g\n"
TOO_LONG = "row with too many fields"
IN_QUOTES = "line inside a quoted field that spans lines"
OPEN_END = "last line without an end of line: its last field may be cut short"


def rows(count: int, first: int = 0) -> list[str]:
    return [f"j{i},{i},{i % 97 + 1},1\n" for i in range(first, first + count)]


def read(text: str | bytes, names: list[str] | None = None) -> tuple[pd.DataFrame, Audit]:
    """The frame, and an audit closed with its rows, so that the sum is checked."""
    audit = Audit()
    stream = io.BytesIO(text.encode() if isinstance(text, str) else text)
    frame = read_csv_text(stream, "own.csv", audit, names=names, needed=dict.fromkeys(("id", "t ", "t", "run", "g")))
    audit.keep(len(frame))
    return frame, audit


@pytest.mark.parametrize("long", [{0, 700}, {999}, set(range(1000))])
@pytest.mark.parametrize("names", [None, ["id", "t", "run", "g"]])
def test_rows_with_too_many_fields_are_left_out_wherever_they_stand(long, names):
    lines = [line.replace("\n", ",9\n") if i in long else line for i, line in enumerate(rows(1000))]
    frame, audit = read("".join(lines) if names else HEADER + "".join(lines), names)
    assert frame["id"].tolist() == [f"j{i}" for i in range(1000) if i not in long]
    assert list(frame.columns) == ["id", "t", "run", "g"]
    assert audit.rows_read == 1000 and audit.left_out == {TOO_LONG: len(long)} and not audit.noted


@pytest.mark.parametrize("field", range(4))
def test_lines_between_two_stray_quotes_are_counted(field):
    lines = rows(1000)
    for i in (100, 640):
        fields = lines[i].split(",")
        fields[field] = '"' + fields[field]
        lines[i] = ",".join(fields)
    frame, audit = read(HEADER + "".join(lines))
    assert frame["id"].tolist() == [f"j{i}" for i in range(1000) if not 100 <= i <= 640]
    assert audit.rows_read == 1000 and audit.left_out == {IN_QUOTES: 541} and audit.rows_kept == 459


def test_blanks_around_fields_are_no_part_of_them():
    frame, audit = read(" id, t ,run\na,  0, 5\nb, 1,6 \n")
    assert list(frame.columns) == ["id", "t ", "run"] and not audit.left_out
    assert frame.values.tolist() == [["a", "0", "5"], ["b", "1", "6"]]
    frame, _ = read("id, t, run\na, NA, \n, null ,6\n")
    assert frame.isna().to_numpy().tolist() == [[False, True, True], [True, True, False]], "words for null neither"


def test_a_row_with_too_few_fields_is_counted_and_a_last_one_cut_off_refused():
    assert read(HEADER + "a,0,5,1\nb,1\n")[1].left_out == {"row with too few fields": 1}
    with pytest.raises(DataError, match=r"own.csv: truncated: the last row has 2 of 4 fields and no end of line"):
        read(HEADER + "a,0,5,1\nb,1")


def test_a_quote_never_closed_swallows_rows_that_are_counted():
    frame, audit = read(HEADER + 'a,0,5,1\n"b,1,5,1\nc,2,5,1\n')
    assert frame["id"].tolist() == ["a"] and audit.rows_read == 3 and sum(audit.left_out.values()) == 2


def test_a_field_that_spans_lines_as_it_should_keeps_its_row():
    frame, audit = read(HEADER + 'a,0,5,1\n"b, the\nsecond ""job""\n",1,6,2\nc,2,7,"1\n"\n"d",3,8,"1"\n')
    assert frame.values.tolist() == [
        ["a", "0", "5", "1"],
        ['b, the\nsecond "job"\n', "1", "6", "2"],
        ["c", "2", "7", "1\n"],
        ["d", "3", "8", "1"],
    ]
    assert audit.rows_read == 7 and audit.left_out == {IN_QUOTES: 3}


@pytest.mark.parametrize("last", ["b,1,5,1", 'b,1,5,"1"', "b,1,5,1\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_last_line_without_an_end_is_noted(last, end):
    """Its run time, or GPUs, may have had more digits."""
    frame, audit = read((HEADER + "a,0,5,1\n" + last).replace("\n", end))
    assert frame["g"].tolist() == ["1", "1"] and audit.rows_read == 2 and not audit.left_out
    assert audit.noted == ({} if last.endswith("\n") else {OPEN_END: 1})


def test_empty_lines_are_no_rows_and_noted():
    frame, audit = read("\n" + HEADER + "\na,0,5,1\n  \t\n\nb,1,5,1\n\n")
    assert frame["id"].tolist() == ["a", "b"] and audit.rows_read == 2 and audit.noted == {"empty line": 5}
    assert read("id\tt\n\t\n1\t2\n")[1].rows_read == 2  # tabs between fields make a row, of empty ones


@given(body=st.text(alphabet='ab1,"\n\r \t\x00', max_size=80))
def test_any_lines_add_up(body):
    lines = (HEADER + body).replace("\r\n", "\n").replace("\r", "\n").split("\n")[1:]
    try:
        _, audit = read(HEADER + body)
    except DataError as error:
        assert "never closed" in str(error) or "truncated" in str(error)
    else:
        empty = sum(not line.strip(" \t") for line in lines[:-1]) + (bool(lines[-1]) and not lines[-1].strip(" \t"))
        assert len(lines) - empty - (not lines[-1]) <= audit.rows_read <= len(lines)  # empty lines in quotes are read


def test_lines_that_are_not_utf_8_are_latin_1_and_the_others_stay():
    frame, audit = read(b"id,t\nm\xfcller,1\n" + "müller,2\n".encode() + b"m\xe4ller,3\n")
    assert frame["id"].tolist() == ["müller", "müller", "mäller"]
    assert audit.noted == {"byte not UTF-8, read as Latin-1": 2}
