"""Operations with named parameters: normalized specs, errors in one line, and messages of a halo
exchange."""

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.patterns.build import build_schedule
from commodel.patterns.operations import (
    canonicalize_operation,
    fill_parameters,
    find_required_ranks,
    find_squarest_grid,
    list_operations,
)
from commodel.patterns.point_digests import add_digests
from commodel.patterns.points import PlatformResources, make_library_points, make_point
from tests.patterns.catalogue import point
from tests.patterns.dataflow import Replay
from tests.refusals import catch_error_message

GRIDS = st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(
    lambda grid: 2 <= prod(grid) <= 64
)


def neighbours(grid, periodic):
    """Yield (sender, receiver, the sender's face) rank by rank; the last dimension varies
    fastest."""
    places = list(product(*map(range, grid)))
    for place in places:
        for dimension, length in enumerate(grid):
            for face, step in ((2 * dimension, -1), (2 * dimension + 1, 1)):
                other = list(place)
                other[dimension] += step
                if periodic:
                    other[dimension] %= length
                if tuple(other) != place and tuple(other) in places:
                    yield places.index(place), places.index(tuple(other)), face


@given(GRIDS, st.booleans(), st.integers(1, 9), st.sampled_from(["nonblocking", "shift"]))
def test_a_halo_exchange_sends_each_face_to_the_neighbour_on_that_side(
    grid, periodic, size, choice
):
    text = f"halo:grid={'x'.join(map(str, grid))}:periodic={'yes' if periodic else 'no'}"
    pattern = build_schedule(point(text, choice, ranks=prod(grid), bytes=size))
    expected = sorted(neighbours(grid, periodic))
    face = pattern.contents().first // size - 2 * len(grid) * pattern.src
    assert (
        sorted(zip(pattern.src.tolist(), pattern.dst.tolist(), face.tolist(), strict=True))
        == expected
    )
    Replay(pattern, text, size).check()
    steps = set(pattern.step.tolist())
    assert steps == ({0} if choice == "nonblocking" else {row[2] for row in expected})


@given(st.integers(2, 5000))
def test_the_squarest_grid_is_the_nearest_to_a_square(ranks):
    long, short = find_squarest_grid(ranks)
    assert long * short == ranks
    assert long >= short
    assert not [side for side in range(short + 1, int(ranks**0.5) + 1) if ranks % side == 0]


@pytest.mark.parametrize(
    ("text", "own", "ranks"),
    [
        ("halo", "halo", None),
        (" halo : periodic = no", "halo", None),
        ("halo:periodic=yes:grid=04x2", "halo:grid=4x2:periodic=yes", 8),
        ("halo:grid=2x3x4", "halo:grid=2x3x4", 24),
        ("broadcast", "bcast", None),
        ("reduce_scatter", "reduce-scatter", None),
    ],
)
def test_spellings_of_an_operation_have_one_canonical_form(text, own, ranks):
    assert canonicalize_operation(text) == own
    assert canonicalize_operation(own) == own
    assert find_required_ranks(text) == ranks


def test_omitted_parameters_follow_from_the_number_of_ranks():
    assert fill_parameters("halo", 24) == {"grid": (6, 4), "periodic": False}
    assert fill_parameters("halo:grid=24", 24) == {"grid": (24,), "periodic": False}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hallo", "unknown operation 'hallo'; did you mean 'halo'?"),
        ("halo:gird=4x4", "halo has no parameter 'gird'; did you mean 'grid'?"),
        ("halo:grid", "found 'grid' in 'halo:grid', wanted NAME=VALUE"),
        ("halo:", "found '' in 'halo:', wanted NAME=VALUE"),
        ("halo:grid=4x", "halo: grid: found '4x', wanted numbers of ranks, such as 4x2"),
        (
            "halo:grid=1x1",
            "halo: grid: found '1x1', wanted at most 6 numbers and 2 to 16777216 ranks in all",
        ),
        ("halo:grid=2x2:grid=4", "found grid twice in 'halo:grid=2x2:grid=4', wanted it once"),
        ("halo:periodic=true", "halo: periodic: found 'true', wanted yes or no"),
        ("bcast:grid=4", "found 'bcast:grid=4', but bcast takes no parameters"),
    ],
)
def test_a_mistake_in_a_parameter_is_refused_in_one_line(text, complaint):
    assert catch_error_message(canonicalize_operation, text) == complaint


def test_a_grid_determines_the_number_of_ranks():
    resources = PlatformResources("big", 64, 4)
    combination = {"operation": "halo:grid=4x2", "algorithm": "shift", "bytes": 8}
    assert make_point(resources, combination).ranks == 8
    with pytest.raises(
        UserError, match="found 9, but 'halo:grid=4x2' has 8 ranks; leave ranks out"
    ) as error:
        make_point(resources, combination | {"ranks": 9})
    assert error.value.key == "ranks"


def test_an_operation_without_an_mpi_function_has_no_library_default():
    resources = PlatformResources("big", 64, 4)
    halo = make_point(
        resources, {"operation": "halo", "algorithm": "shift", "ranks": 8, "bytes": 8}
    )
    assert not list(make_library_points(resources, [halo]))
    with pytest.raises(
        UserError, match="found library, but MPI has no halo; wanted one of: nonblocking, shift"
    ):
        make_point(resources, {"operation": "halo", "algorithm": "library", "ranks": 8, "bytes": 8})


def test_ids_distinguish_grids_and_not_spellings():
    def ids(*texts):
        resources, rest = PlatformResources("big", 64, 4), {"algorithm": "shift", "bytes": 8}
        return {
            entry.id
            for entry in add_digests(
                make_point(resources, rest | {"operation": text}) for text in texts
            )
        }

    assert len(ids("halo:grid=4x2", "halo:periodic=no:grid=04x2")) == 1
    assert (
        len(ids("halo:grid=4x2", "halo:grid=2x4", "halo:grid=8", "halo:grid=4x2:periodic=yes")) == 4
    )


def test_every_operation_states_the_meaning_of_bytes_and_the_mpi_function():
    for name, entry in list_operations().items():
        assert bool(entry.bytes) == (name not in ("barrier", "overlay-startup", "overlay-skew"))
        assert not entry.mpi or entry.mpi.lower() == f"mpi_{name}".replace("-", "_")
        for known in entry.parameters:
            value = known.default(8) if callable(known.default) else known.default
            assert known.read(known.write(value)) == value
