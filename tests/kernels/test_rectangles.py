"""Rectangles that tile a square, compared with counts of rectangles per unit: exact tilings are
read, all others are refused in one line with file and line number."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel_kernels.rectangles import (
    Rectangles,
    find_neighbours,
    find_tiling_error,
    format_rectangles,
    make_even_grid,
    read_rectangles,
)
from tests.refusals import catch_error_message

HEAD = "rank,x,y,width,height\n"
FAST = "rank,x,y,width,height,speed\n"
OUTSIDE = "is not within"


@st.composite
def tilings(draw, most=9):
    """Draw a square that is cut in two repeatedly, plus some ranks without work; and its side."""
    side = draw(st.integers(1, most))
    pieces = [(0, 0, side, side)]
    for _ in range(draw(st.integers(0, 9))):
        x, y, width, height = pieces.pop(draw(st.integers(0, len(pieces) - 1)))
        across = draw(st.booleans())
        cut = draw(st.integers(1, max((width if across else height) - 1, 1)))
        if across and width > 1:
            pieces += [(x, y, cut, height), (x + cut, y, width - cut, height)]
        elif not across and height > 1:
            pieces += [(x, y, width, cut), (x, y + cut, width, height - cut)]
        else:
            pieces.append((x, y, width, height))
    idle = draw(st.integers(0, 2))
    return draw(st.permutations(pieces + idle * [(0, 0, 0, 0)])), side


def tiled(pieces, side):
    return Rectangles(*np.array(pieces).T, side)


def count_rectangles(pieces, side):
    """Return the number of rectangles over every unit (x, y)."""
    paint = np.zeros((side, side), dtype=int)
    for x, y, width, height in pieces:
        paint[x : x + width, y : y + height] += 1
    return paint


@given(tilings())
def test_a_tiling_is_unchanged_after_writing_and_reading(tmp_path_factory, tiling):
    rectangles = Rectangles.of(*np.array(tiling[0]).T)
    path = tmp_path_factory.mktemp("partition") / "p.csv"
    path.write_text(format_rectangles(rectangles))
    again = read_rectangles(path)
    assert again.side == tiling[1]
    for name in ("x", "y", "width", "height"):
        np.testing.assert_array_equal(getattr(again, name), getattr(rectangles, name))


@given(tilings(), st.data())
def test_tilings_with_gaps_or_overlaps_are_refused_like_by_paint(tiling, data):
    """A rectangle is moved or resized, or a moved or resized copy of it is added."""
    pieces, side = tiling
    row = data.draw(st.integers(0, len(pieces) - 1))
    change = data.draw(st.tuples(*(4 * [st.integers(-1, 1)])))
    moved = tuple(max(old + by, 0) for old, by in zip(pieces[row], change, strict=True))
    pieces = (
        [*pieces[:row], moved, *pieces[row + 1 :]] if data.draw(st.booleans()) else [*pieces, moved]
    )
    mistake = find_tiling_error(tiled(pieces, side))
    paint = count_rectangles(pieces, side)
    within = all(x + width <= side and y + height <= side for x, y, width, height in pieces)
    flat = any((width > 0) != (height > 0) for _, _, width, height in pieces)
    if within and not flat and (paint == 1).all():
        assert mistake is None
        return
    text, rank = mistake
    assert 0 <= rank < len(pieces)
    if not within or flat:
        assert OUTSIDE in text or "has no area" in text
        return
    x, y = np.argwhere(paint != 1)[0]
    assert f"at x={x}, y={y}" in text
    assert ("overlap" in text) == (paint[x, y] > 1)


@given(tilings())
def test_shared_sides_of_rectangles_equal_the_borders_in_a_painted_square(tiling):
    pieces, side = tiling
    owner = np.full((side + 2, side + 2), -1)
    for rank, (x, y, width, height) in enumerate(pieces):
        owner[x + 1 : x + 1 + width, y + 1 : y + 1 + height] = rank
    wanted = {}
    for x, y in np.ndindex(side, side):
        rank = owner[x + 1, y + 1]
        left, top, width, height = pieces[rank]
        ways = ((0, -1, 0, y - top), (1, 1, 0, y - top), (2, 0, -1, x - left), (3, 0, 1, x - left))
        for face, right, down, place in ways:
            other = owner[x + 1 + right, y + 1 + down]
            if other not in (-1, rank):
                first, count = wanted.get((rank, other, face), (place, 0))
                wanted[rank, other, face] = first, count + 1
    shared = find_neighbours(tiled(pieces, side))
    columns = (shared.src, shared.dst, shared.side, shared.first, shared.length)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert {row[:3]: row[3:] for row in rows} == wanted
    assert rows == sorted(rows)


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 9))
def test_an_even_grid_is_a_tiling_in_columns(side, rows, columns):
    tiling = make_even_grid(side, (rows, columns))
    assert find_tiling_error(tiling) is None
    working = tiling.area > 0
    assert working.sum() == min(rows, side) * min(columns, side)
    for lengths in (tiling.width[working], tiling.height[working]):
        assert lengths.max() - lengths.min() <= 1
    for number, column in enumerate(tiling.columns):
        assert column.tolist() == [row * columns + number for row in range(min(rows, side))]


def test_rectangles_that_are_no_columns_have_none():
    pinwheel = Rectangles.of([0, 2, 1, 0, 1], [0, 0, 2, 1, 1], [2, 1, 2, 1, 1], [1, 2, 1, 2, 1])
    with pytest.raises(UserError, match="found different widths at x=0: 2 of rank 0, 1 of rank 3"):
        _ = pinwheel.columns


@pytest.mark.parametrize(
    ("text", "line", "complaint"),
    [
        ("", 1, "found no column 'rank' among none"),
        (HEAD, None, "found no rows below the column names"),
        ("rank;x;y\n", 1, "found no column 'rank' among rank;x;y; wanted commas between the cells"),
        (HEAD + "0,0,0,2\n", 2, "height: found '', wanted a whole number from 0"),
        (HEAD + "0,0,0,2,-2\n", 2, "height: found '-2', wanted a whole number from 0"),
        (HEAD + "0,0,0,2,٣\n", 2, "height: found '٣', wanted a whole number from 0"),
        (HEAD + "0,0,0,999999999,1\n", 2, "width: found '999999999', wanted a whole number from 0"),
        (HEAD + "=1+1,0,0,2,2\n", 2, "rank: found '=1+1', wanted the number of a rank, from 0"),
        (HEAD + "99999999,0,0,2,2\n", 2, "rank: found rank 99999999, wanted one below 16777216"),
        (HEAD + "0,0,0,2,2\n\n0,0,0,2,2\n", 4, "found rank 0 again, first on line 2"),
        (HEAD + "1,0,0,2,2\n", 2, "found rank 1, but none 0"),
        (HEAD + "0,0,0,2,1\n2,0,1,2,1\n", 3, "found rank 2, but none 1"),
        (
            HEAD + "0,0,0,2,2\n1,1,1,1,1\n",
            3,
            "rank 0 and rank 1 overlap at x=1, y=1: 2×2 at x=0, y=0 and 1×1 at x=1",
        ),
        (
            HEAD + "0,0,0,2,1\n1,0,1,1,1\n",
            3,
            "found a gap at x=1, y=1: no rectangle is there; wanted 2×2 tiled",
        ),
        (
            HEAD + "0,0,0,2,2\n1,0,0,2,0\n",
            3,
            "rank 1 has no area, wanted 0×0 without work: 2×0 at x=0, y=0",
        ),
        (
            HEAD + "0,0,0,9999999,9999999\n",
            None,
            "found a square of 9999999×9999999, wanted a side of at most 1048576",
        ),
        (HEAD + "0,0,0,1,1\n1,99999999,99999999,0,0\n", None, "found a square of 99999999"),
        (HEAD + "0,0,0,2,2,5\n", 2, "found more cells than the 5 columns"),
        (
            "rank,x,y,width,height,sped\n0,0,0,2,2,5\n",
            2,
            "found the column 'sped', wanted rank,x,y,width,height,speed",
        ),
        (FAST + "0,0,0,2,2\n", 2, "speed: found '', wanted a number such as"),
        (
            FAST + "0,0,0,2,2,0\n",
            2,
            "speed: found '0', wanted a number from 1e-30 to 1e+30, units per second",
        ),
        (FAST + "0,0,0,2,2,nan\n", 2, "speed: found 'nan', wanted a number such as"),
    ],
)
def test_a_mistake_in_a_partition_file_is_refused_with_the_line_number(
    tmp_path, text, line, complaint
):
    path = tmp_path / "p.csv"
    path.write_text(text)
    assert catch_error_message(read_rectangles, path).startswith(
        f"{path}:{line}: {complaint}" if line else f"{path}: {complaint}"
    )


def test_a_partition_file_may_have_speeds(tmp_path):
    """A rank without work takes 0 s. Without speeds, the time is NaN."""
    path = tmp_path / "p.csv"
    path.write_text(FAST + "1,0,3,5,2,2.5e3\n0,0,0,5,3,1e6\n2,0,0,0,0,7\n")
    tiling = read_rectangles(path)
    assert tiling.seconds.tolist() == [15 / 1e6, 10 / 2500, 0]
    path.write_text(format_rectangles(tiling))
    assert read_rectangles(path).speed.tolist() == [1e6, 2500, 7]
    assert np.isnan(make_even_grid(4, (1, 2)).seconds).all()


def test_unreadable_partition_files_are_refused(tmp_path):
    (tmp_path / "packed.csv").write_bytes(b"\xff\xfe rank")
    for path in (tmp_path, tmp_path / "none.csv", tmp_path / "packed.csv"):
        with pytest.raises(UserError):
            read_rectangles(path)


def test_a_file_that_changes_is_read_again(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(HEAD + "0,0,0,2,2\n")
    assert read_rectangles(path).side == 2
    path.write_text(HEAD + "0,0,0,30,30\n")
    assert read_rectangles(path).side == 30


def test_a_large_tiling_is_read_without_painting(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(format_rectangles(make_even_grid(1 << 20, (40, 50))))
    assert read_rectangles(path).ranks == 2000
