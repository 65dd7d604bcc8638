"""A raw file that was changed, by whatever, is noticed: every cut and every flipped bit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.results.raw_samples import LATE_SUFFIX, DamagedError, is_whole, join, raw_file, read_samples

HEADER = "id,sample,seconds,skew,valid,stop"
ROWS = [f"c,{number},{1e-6 * (number + 1):.9e},1.000000000e-09,1,precision" for number in range(4)]


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """A raw file of two passes, with and without counts."""
    folder = tmp_path_factory.mktemp("raw")

    def made(counts):
        passes = {}
        for number in (1, 3):
            passes[number] = folder / f"pass-{number}.csv"
            tails = (",count", ",7") if counts else ("", "")
            passes[number].write_text("\n".join([HEADER + tails[0], *(row + tails[1] for row in ROWS)]) + "\n")
        (folder / str(counts)).mkdir()
        join(passes, folder / str(counts), "c")
        return raw_file(folder / str(counts), "c")

    return {counts: made(counts) for counts in (False, True)}


def streamed(folder, tail=",2.0e-05,3.0e-05"):
    """The raw file of a stream of waves."""
    path = folder / "pass.csv"
    path.write_text("\n".join([f"{HEADER},first,last", *(row + tail for row in ROWS)]) + "\n")
    join({1: path, 2: path}, folder, "c")
    return raw_file(folder, "c")


def test_the_latencies_of_waves_are_read(tmp_path):
    rows = read_samples(streamed(tmp_path), "c")
    assert [(row["first"], row["last"]) for row in rows] == [(2e-5, 3e-5)] * 8


def test_latencies_that_no_clock_tells_are_blank(tmp_path):
    rows = read_samples(streamed(tmp_path, ",,3.0e-05"), "c")
    assert all("first" not in row and row["last"] == 3e-5 for row in rows)


@pytest.mark.parametrize("tail", [",nan,1", ",inf,1", ",1,x", ",1,-inf"])
def test_latencies_are_numbers(tmp_path, tail):
    with pytest.raises(DamagedError):
        read_samples(streamed(tmp_path, tail), "c")


@pytest.mark.parametrize("counts", [False, True])
def test_what_was_joined_is_read(raw, counts):
    rows = read_samples(raw[counts], "c")
    assert [(row["pass"], row["sample"]) for row in rows] == [(number, k) for number in (1, 3) for k in range(4)]
    assert [row["seconds"] for row in rows] == [1e-6, 2e-6, 3e-6, 4e-6] * 2
    assert all(row.get("count") == (7 if counts else None) for row in rows)


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("valid", ["000", "001", "100", "010", "111"])
def test_the_name_tells_whether_a_sample_is_valid(counts, valid, tmp_path):
    passes = {}
    for number, mark in enumerate(valid, 1):
        passes[number] = tmp_path / f"pass-{number}.csv"
        rows = [row.replace(",1,precision", f",{mark if k == number else 0},time") for k, row in enumerate(ROWS)]
        rows = [row + ",1" if counts else row for row in rows]  # a count of 1 makes no sample valid
        passes[number].write_text("\n".join([HEADER + (",count" if counts else ""), *rows]) + "\n")
    join(passes, tmp_path, "c")
    path = raw_file(tmp_path, "c")
    assert path.name == ("c.csv" if "1" in valid else f"c{LATE_SUFFIX}")
    assert any(row["valid"] for row in read_samples(path, "c")) == ("1" in valid)
    assert raw_file(tmp_path, "d") is None


@given(st.data())
def test_no_cut_and_no_flipped_bit_goes_unnoticed(raw, tmp_path_factory, data):
    whole = raw[data.draw(st.booleans())].read_bytes()
    if data.draw(st.booleans()):
        changed = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        place, bit = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 7))
        changed = whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]
    path = tmp_path_factory.mktemp("damaged") / "c.csv"
    path.write_bytes(changed)
    with pytest.raises(DamagedError):
        read_samples(path, "c")


def test_samples_of_another_case_are_not_taken(raw):
    with pytest.raises(DamagedError, match="it holds samples of 'c'"):
        read_samples(raw[False], "d")


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("\n".join([HEADER, *ROWS]) + "\n", True),
        ("\n".join([HEADER, *ROWS]), False),
        ("\n".join([HEADER, *ROWS[1:]]) + "\n", False),
        (HEADER + "\n", False),
        ("", False),
        ("\0" * 100, False),
    ],
)
def test_what_a_lost_machine_leaves_of_a_pass(tmp_path, text, whole):
    (tmp_path / "c.csv").write_text(text)
    assert is_whole(tmp_path / "c.csv") == whole
