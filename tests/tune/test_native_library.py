"""The MPI library's collectives: every operation is correct for any number of ranks and takes at
least its lower bound. Results for legal but unusual inputs: libraries are correct, and a wrong
algorithm is detected."""

import pytest

from commodel.models.probes.verify import INPUTS, list_cases
from commodel.patterns.algorithms import find_algorithms
from commodel.patterns.libraries import MPICH
from commodel.platforms.mpi_libraries import find_kind, find_library_version
from commodel.records import Choice
from commodel_tune import mpich_selection as selection
from commodel_tune.dialects import MPICH_DIALECT, find_dialect

US = 1e-6
OPERATIONS = [
    "bcast",
    "scatter",
    "gather",
    "reduce",
    "allreduce",
    "reduce-scatter",
    "allgather",
    "alltoall",
]
# whole doubles and not, shares that differ, above and below thresholds
SIZES = (0, 1, 8, 13, 4096, 100_000)
HOP = 13 * US  # the simulated LogGP: L + o_s + o_r
G_BYTE = 1e-10


def cases(sizes=SIZES):
    rows = [f"{name}.{size},{name},{size}" for name in OPERATIONS for size in sizes]
    return "\n".join(["id,operation,bytes", *rows, "barrier.0,barrier,0"])


@pytest.mark.parametrize("ranks", [1, 2, 3, 8, 7, pytest.param(24, marks=pytest.mark.slow)])
def test_every_operation_is_right_on_any_number_of_ranks(simulated, ranks):
    """The first pass checks every received byte, and the program ends at the first wrong one."""
    result = simulated(ranks, "library", cases(), "--min-samples", 6, "--max-samples", 6)
    assert result.code == 0, result.err
    assert len(result.files()) == len(OPERATIONS) * len(SIZES) + 1


def test_two_real_ranks(real):
    result = real(
        2, "library", cases(), "--max-samples", 20, "--max-seconds", 0.02, "--sync", "barrier"
    )
    assert result.code == 0, result.err
    assert len(result.files()) == len(OPERATIONS) * len(SIZES) + 1
    assert all(min(result.seconds(f"{name}.100000")) > 0 for name in OPERATIONS)


def test_two_ranks_need_the_messages_that_the_operation_cannot_do_without(simulated):
    """Between two ranks every algorithm takes at least the time of one message with the data that
    the other rank needs."""
    size = 100_000
    result = simulated(2, "library", cases((size,)))
    for name in ("bcast", "scatter", "gather", "reduce", "allgather", "alltoall", "allreduce"):
        assert result.median(f"{name}.{size}") >= 0.99 * (HOP + size * G_BYTE), name
    assert result.median(f"reduce-scatter.{size}") >= 0.99 * (HOP + size / 2 * G_BYTE)
    assert result.median("barrier.0") >= 0.99 * HOP
    assert result.median(f"bcast.{size}") == pytest.approx(HOP + size * G_BYTE, rel=0.01)


def test_the_end_of_a_gather_is_the_root_s(simulated, tmp_path, write_schedule):
    """A gather ends when the root has received the last message. The player's gather with the same
    messages takes about as long."""
    write_schedule(tmp_path / "gather.csv", [(0, "send", r, 0, 8, "") for r in range(1, 8)])
    library = simulated(8, "library", "id,operation,bytes\ng,gather,8\nb,bcast,8", out="own")
    played = simulated(8, "player", "id,schedule,finish\ng,gather.csv,0", out="played")
    assert library.median("g") == pytest.approx(played.median("g"), rel=0.3)
    assert library.median("g") >= 0.99 * HOP


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a,broadcast,8", "broadcast"),
        ("a,barrier,8", "a barrier has no message"),
        ("a,bcast,-1", "a whole number of bytes"),
        ("a,bcast,3000000000", "2147483647"),
    ],
)
def test_refusals(simulated, row, words):
    result = simulated(2, "library", f"id,operation,bytes\n{row}")
    assert result.code != 0
    assert len(result.errors) == 1
    assert words in result.errors[0]
    assert result.files() == []


def rows(operations, ranks, sizes=(4096,)):
    lines = ["id,collective,input,communicator,bytes"]
    for name in operations:
        for number, about in enumerate(list_cases(name, ranks, sizes)):
            lines.append(
                f"{name}.{about['input']}.{number},{','.join(str(value) for value in about.values())}"
            )
    return "\n".join(lines)


def on_communicator(cases, ranks):
    """Return the cases on a communicator of this number of ranks."""
    header, *lines = cases.splitlines()
    return "\n".join([header, *(line for line in lines if line.split(",")[3] == str(ranks))])


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_library_at_hand_is_right(oversubscribed, ranks):
    cases = on_communicator(rows(INPUTS, ranks), ranks)
    result = oversubscribed(ranks, "verify", cases)
    assert result.code == 0, result.err
    assert len(result.files()) == cases.count("\n")


def selected(folder, mpi_programs, operation, spec, counts):
    """Return the environment in which MPICH uses an algorithm."""
    dialect = find_dialect(mpi_programs / "library")
    file = folder / f"{spec}.json"
    file.write_text(dialect.user_text([Choice(operation, ranks, 0, spec) for ranks in counts]))
    return dict(dialect.environment(file, [Choice(operation, 2, 0, spec)]))


@pytest.mark.parametrize("operation", MPICH_DIALECT.operations)
def test_every_algorithm_of_mpich_s_selection_is_right(
    oversubscribed, mpi_programs, tmp_path, operation
):
    """Without their conditions in the selection file, alltoall in place and Rabenseifner reductions
    by a user-defined operation failed with an assertion."""
    if find_kind(find_library_version([str(mpi_programs / "library")])) != MPICH:
        pytest.skip("no MPICH here")
    specs = [
        spec for spec in find_algorithms(operation) if MPICH_DIALECT.can_name(operation, spec, 2)
    ]
    assert specs
    cases = on_communicator(rows([operation], 3, (64,)), 3)
    for spec in specs:
        settings = selected(tmp_path, mpi_programs, operation, spec, (3,))
        result = oversubscribed(3, "verify", cases, out=spec, **settings)
        assert result.code == 0, (spec, result.err)


@pytest.mark.parametrize("operation", ["allreduce", "reduce", "reduce-scatter"])
def test_mpich_algorithms_reorder_operands_exactly_if_listed_as_reordering(
    oversubscribed, mpi_programs, tmp_path, operation, monkeypatch
):
    """The generated selection file does not require a commutative or built-in operation."""
    if find_kind(find_library_version([str(mpi_programs / "library")])) != MPICH:
        pytest.skip("no MPICH here")
    monkeypatch.setattr(selection, "REORDERING", ())
    monkeypatch.setattr(selection, "BUILT_IN_OPERATION_FUNCTIONS", ())
    header, *lines = on_communicator(rows([operation], 4, (64,)), 4).splitlines()
    cases = "\n".join([header, *(line for line in lines if ",order," in line)])
    for spec, entry in find_algorithms(operation).items():
        if MPICH_DIALECT.can_name(operation, spec, 4):
            (routine,) = (routine for routine in entry.mpi_functions if routine.library == MPICH)
            settings = selected(tmp_path, mpi_programs, operation, spec, (4,))
            result = oversubscribed(4, "verify", cases, out=spec, **settings)
            assert (result.code == 0) == routine.keeps_order, (spec, result.err)


@pytest.mark.parametrize(
    ("operation", "setting", "input"),
    [
        ("reduce", "smpi/reduce:binomial", ""),
        ("allreduce", "smpi/allreduce:rdb", ""),
        ("allreduce", "smpi/allreduce:lr", "order"),
    ],
)
def test_an_algorithm_that_reorders_operands_is_noticed(simulated, operation, setting, input):
    result = simulated(8, "verify", rows([operation], 8), "--sync", "barrier", settings=[setting])
    if not input:
        assert result.code == 0, result.err
    else:
        assert result.code != 0
        assert any(
            f"{operation}, input {input}, " in line and "is wrong" in line for line in result.errors
        )


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("a,bcst,plain,2,8", "collective"),
        ("a,bcast,order,2,8", "input"),
        ("a,bcast,plain,0,8", "communicator"),
        ("a,bcast,plain,3,8", "communicator"),
    ],
)
def test_a_case_that_no_collective_has_is_refused(real, row, complaint):
    result = real(2, "verify", f"id,collective,input,communicator,bytes\n{row}")
    assert result.code != 0
    assert any(complaint in line for line in result.errors)
