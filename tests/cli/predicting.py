"""`commodel predict` as a user would type it."""

import json

from click.testing import CliRunner

from commodel.cli import main

CAB = "params/published/tan/cab-mrnet.yaml"


def run(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def predict(*arguments):
    return json.loads(run("predict", *arguments, "--format", "json"))


def sets(**values):
    return [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
