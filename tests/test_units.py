import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commodel import units
from commodel.errors import UserError


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", 0),
        (4096, 4096),
        (4096.0, 4096),
        ("1KiB", 1024),
        ("64 kB", 64_000),
        ("1MiB", 1 << 20),
        ("1.5KiB", 1536),
        ("1.1kB", 1100),
        ("1e3", 1000),
        ("1024TiB", 1 << 50),
        (" 7 B ", 7),
    ],
)
def test_bytes(text, wanted):
    assert units.parse_bytes(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2.5us", 2.5e-6),
        ("6ns", 6e-9),
        ("1.5e-6 s", 1.5e-6),
        (0, 0),
        ("0.0", 0),
        ("2 min", 120),
        ("3 µs", 3e-6),
        ("1 h", 3600),
    ],
)
def test_seconds(text, wanted):
    assert units.parse_seconds(text) == pytest.approx(wanted, rel=1e-15)


@pytest.mark.parametrize(
    ("value", "near"),
    [
        ("2.5", "2.5us or 2.5s"),
        (2.5, "2.5us or 2.5s"),
        (60, "60us or 60s"),
        ("2.5e-6", "2.5e-6s"),
        (" 1. ", "1.us or"),
    ],
)
def test_a_time_without_a_unit_is_refused_unless_seconds_are_expected(value, near):
    with pytest.raises(UserError, match=f"wanted a unit with it, such as {near}"):
        units.parse_seconds(value)
    assert units.parse_number_of_seconds(value) == float(value)


def test_fraction_and_number():
    assert units.parse_fraction("2%") == 0.02
    assert units.parse_fraction(0.02) == 0.02
    assert units.parse_number("1e3") == 1000


BROKEN = ["", " ", "-1", -1, "nan", "inf", math.nan, math.inf, None, True, [], {}, "1 parsec", "KiB", "1e", "--1",
          "1 2", "1e9999", "9" * 400, 10**4000, "\u0664", "1;2", "0x10", "1_000"]  # fmt: skip


@pytest.mark.parametrize("value", BROKEN, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize(
    "parse",
    [
        units.parse_bytes,
        units.parse_seconds,
        units.parse_fraction,
        units.parse_number,
        units.parse_count,
    ],
)
def test_refused(parse, value):
    with pytest.raises(UserError) as caught:
        parse(value)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.message
    assert "wanted" in caught.value.message or "did you mean" in caught.value.message


def test_refusals_suggest():
    with pytest.raises(UserError, match="did you mean 'KiB'"):
        units.parse_bytes("4 Kib")
    for written in ("4KB", "4 k", "4kb"):
        with pytest.raises(UserError, match=r"did you mean 'KiB', 1024 bytes, or 'kB', 1000 bytes"):
            units.parse_bytes(written)
    with pytest.raises(UserError, match="whole bytes"):
        units.parse_bytes(1.5)
    with pytest.raises(UserError, match="at most 1024 TiB"):
        units.parse_bytes("1025 TiB")
    with pytest.raises(UserError, match="2%"):
        units.parse_fraction(2)
    with pytest.raises(UserError, match="from 1 to"):
        units.parse_count(0)


@settings(deadline=None)
@given(st.text(max_size=30) | st.floats() | st.integers() | st.none() | st.booleans())
def test_parsers_give_a_bounded_value_or_a_user_error(value):
    for parse, high in (
        (units.parse_bytes, 1 << 50),
        (units.parse_seconds, 1e9),
        (units.parse_fraction, 1),
    ):
        try:
            parsed, message = parse(value), ""
        except UserError as error:
            parsed, message = 0, error.message
        assert 0 <= parsed <= high
        assert "\n" not in message


@pytest.mark.parametrize(
    ("count", "wanted"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1024, "1 KiB"),
        (1500, "1500 B"),
        (1536, "1536 B"),
        (3 << 20, "3 MiB"),
        (1 << 50, "1024 TiB"),
    ],
)
def test_format_bytes(count, wanted):
    assert units.format_bytes(count) == wanted


@settings(deadline=None)
@given(st.integers(0, 1 << 50))
def test_bytes_round_trip(count):
    assert units.parse_bytes(units.format_bytes(count)) == count


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        (3.44e-4, "344 µs"),
        (0, "0 s"),
        (1.78e-20, "0 s"),
        (2.5e-6, "2.5 µs"),
        (999.9e-6, "1 ms"),
        (0.9996, "1 s"),
        (1.2345e-9, "1.23 ns"),
        (3e-10, "0.3 ns"),
        (12.34, "12.3 s"),
        (1234.4, "1234 s"),
        (-3.44e-4, "-344 µs"),
        (math.nan, "nan"),
        (math.inf, "inf"),
    ],
)
def test_format_seconds(seconds, wanted):
    assert units.format_seconds(seconds) == wanted


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        (0.0916, "91.6 ms"),
        (105, "105 s"),
        (119.9, "120 s"),
        (1200, "20 min"),
        (28_800, "8 h"),
        (18_720, "5 h 12 min"),
        (174_475, "2 d"),
        (86_400 * 3.25, "3 d 6 h"),
        (8.64e8, "10,000 d"),
    ],
)
def test_durations_are_in_minutes_hours_and_days(seconds, wanted):
    assert units.format_duration(seconds) == wanted


@settings(deadline=None)
@given(st.floats(1e-9, 1e6))
def test_seconds_round_trip(seconds):
    assert units.parse_seconds(units.format_seconds(seconds)) == pytest.approx(seconds, rel=5.01e-3)
