"""What is said of a fit to collectives: rows that it cannot explain by file and line, and LogGP that is Hockney."""

import pytest

from commodel.fit.measured_tables import read_points
from commodel.fit.table_fits import remarks
from commodel.models.parameter_sets import set_given
from commodel.price.predictions import predict

LOGGP = {"L": "2.5us", "o_s": "1.5us", "o_r": "1us", "g": "4us", "G": "6ns"}
SAME = {"L": "0s", "o_s": "3us", "o_r": "0s", "g": "3us", "G": "6ns"}  # a port is busy for all of a message
WAYS = [("bcast", "binomial"), ("bcast", "linear"), ("allgather", "ring"), ("scatter", "linear")]


def machine(values):
    return set_given("loggp", [f"{name}={value}" for name, value in values.items()])


@pytest.fixture
def table(tmp_path):
    """Times of a machine; those of some lines so many times longer."""

    def written(values, factors):
        file = tmp_path / "t.csv"
        names = [f"{operation},{choice},8,{size}" for operation, choice in WAYS for size in (1, 1000, 100_000)]

        def write(seconds):
            rows = (f"{name},{time:.10g}\n" for name, time in zip(names, seconds, strict=True))
            file.write_text("operation,algorithm,ranks,bytes,seconds\n" + "".join(rows))
            return read_points(file)

        prices = [price.seconds for price in predict(machine(values), write([1] * len(names)).points)]
        return write([seconds * factors.get(line, 1) for line, seconds in enumerate(prices, 2)])

    return written


def test_rows_that_are_not_explained_are_named(table):
    lines = list(remarks(machine(LOGGP), table(LOGGP, {3: 7, 9: 0.2, 5: 1.5}), "t.csv"))
    assert lines == [
        "t.csv:3: bcast binomial, 8 ranks, 1000 B: took 7 times its price, not explained",
        "t.csv:9: allgather ring, 8 ranks, 1000 B: took 0.2 times its price, not explained",
    ]


def test_where_all_are_off_none_is(table):
    assert not list(remarks(machine(LOGGP), table(LOGGP, dict.fromkeys(range(2, 14), 3)), "t.csv"))


@pytest.mark.parametrize(("values", "count"), [(LOGGP, 0), (SAME, 1)])
def test_loggp_that_is_hockney_says_so(table, values, count):
    lines = list(remarks(machine(values), table(values, {}), "t.csv"))
    assert len(lines) == count
    assert all("collapsed to Hockney" in line and "β = 6e-09 s/B" in line for line in lines)
