"""The time between waves of a stream, through the command a user would type."""

import pytest
from click.testing import CliRunner

from commodel.cli import main
from tests.cli.predicting import CAB, predict, sets


@pytest.mark.parametrize(("spec", "microseconds"), [("flat:32", 344.112), ("groups:12x7,11x4", 184.012)])
def test_tan_pipelined_on_cab(spec, microseconds):
    (row,) = predict("--family", "tan", "--params", CAB, "--operation", "reduce", "--topology", spec, "--pipelined")
    assert row["seconds"] == pytest.approx(microseconds * 1e-6, rel=1e-6)


def test_the_time_between_waves_of_a_family_without_an_equation():
    """A rank of a chain takes and sends; the root of a flat tree sends to all."""
    values = ("--family", "loggp", *sets(L="10us", o_s="2us", o_r="3us", g="1us", G=0), "--ranks", 8, "--bytes", 8)
    for choice, period in (("chain", 5e-6), ("linear", 14e-6)):
        pattern = (*values, "--operation", "bcast", "--algorithm", choice)
        (endless,) = predict(*pattern, "--pipelined")
        one, two, fifty = predict(*pattern, "--waves", "1,2,50")
        assert [row["seconds"] for row in (endless, two, fifty)] == pytest.approx([period] * 3)
        assert [row["waves"] for row in (one, two, fifty)] == [1, 2, 50]
        assert [one["seconds"]] == [row["seconds"] for row in predict(*pattern)]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--waves", "0"), "found '0', wanted a whole number from 1 to 100000"),
        (("--waves", "x"), "found 'x', wanted a whole number"),
        (("--waves", "1000000000"), "found '1000000000', wanted a whole number from 1 to 100000"),
        (("--waves", "5", "--pipelined"), "give --waves or --pipelined, which is of a stream without end"),
    ],
)
def test_waves_that_cannot_be(more, said):
    arguments = [
        "predict",
        "--family",
        "logp",
        *sets(L="1us", o="1us", g="1us"),
        "--operation",
        "barrier",
        "--ranks",
        "4",
    ]
    result = CliRunner().invoke(main, [*arguments, *more])
    assert result.exit_code == 2
    assert said in result.output
    assert len(result.output.splitlines()) == 1


def test_a_family_that_adds_up_steps_says_so():
    arguments = [
        "predict",
        "--family",
        "bsp",
        *sets(g="1us", **{"l.a": "1us"}),
        "--operation",
        "barrier",
        "--ranks",
        "4",
    ]
    for more in (["--pipelined"], ["--waves", "5"]):
        result = CliRunner().invoke(main, [*arguments, *more])
        assert result.exit_code == 2
        assert "family bsp adds up steps for all ranks at once: it says nothing about waves" in result.output
