"""`commodel predict` as a user would type it."""

import json

from tests.cli.running import output

CAB = "params/published/tan/cab-mrnet.yaml"


def predict(*arguments):
    return json.loads(output("predict", *arguments, "--format", "json"))


def sets(**values):
    return [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
