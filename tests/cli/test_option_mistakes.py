"""A mistake on the command line is told in one line that names the verb, and ends with code 2."""

import pytest
from click.testing import CliRunner

from commodel.cli import main


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("run demo --foo", "commodel: run: No such option '--foo'."),
        ("run", "commodel: run: Missing argument 'EXPERIMENT'."),
        ("run demo --cores 0", "commodel: run: Invalid value for '--cores': 0 is not in the range x>=1."),
        ("predict --bytes", "commodel: predict: Option '--bytes' requires an argument."),
        ("plan demo --format pdf", "commodel: plan: Invalid value for '--format': 'pdf' is not one of"),
        (
            "schedule --operation bcast --algorithm linear --ranks 4",
            "commodel: bytes is missing; bcast needs a message size",
        ),
        ("tune --platform local --ranks 0", "commodel: ranks: found '0', wanted a whole number from 2"),
        ("tune --platform local --ranks 2 --bytes abc", "commodel: bytes: found 'abc', wanted a size such as"),
        ("nope", "commodel: No such command 'nope'."),
        ("--foo", "commodel: No such option '--foo'."),
    ],
)
def test_one_line(line, wanted):
    result = CliRunner().invoke(main, line.split())
    assert result.exit_code == 2
    assert result.stderr.startswith(wanted)
    assert result.stderr.count("\n") == 1


def test_what_sends_nothing_needs_no_size():
    """Beside the mistake of leaving it out where something is sent."""
    result = CliRunner().invoke(main, ["schedule", "--operation", "barrier", "--algorithm", "linear", "--ranks", "4"])
    assert result.exit_code == 0, result.output


def test_no_arguments_get_the_help():
    result = CliRunner().invoke(main, [])
    assert "Start with `commodel run demo`" in result.output
