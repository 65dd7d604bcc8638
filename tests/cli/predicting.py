"""`commodel predict` as a user would type it."""

import json

from tests.cli.running import run

CAB = "params/published/tan/cab-mrnet.yaml"


def predict(*arguments):
    return json.loads(run("predict", *arguments, "--format", "json").stdout)


def sets(**values):
    return [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
