"""Run commands as a user types them."""

import json

from click.testing import CliRunner, Result

from commodel.cli import main

CAB = "params/published/tan/cab-mrnet.yaml"


def run(line, *arguments, code=0) -> Result:
    """Run a command line, split at blanks, followed by `arguments` unsplit; check the exit code."""
    result = CliRunner().invoke(main, [*str(line).split(), *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def output(line, *arguments, code=0) -> str:
    return run(line, *arguments, code=code).output


def read_rows(line, *arguments):
    return json.loads(run(line, *arguments, "--format", "json").stdout)


def refused(line, *arguments) -> str:
    """Run a command line that has to fail, and return its one-line error message."""
    result = run(line, *arguments, code=2)
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def sets(**values) -> str:
    return " ".join(f"--set {name}={value}" for name, value in values.items())
