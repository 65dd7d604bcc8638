"""Verbs as a user would type them."""

from click.testing import CliRunner, Result

from commodel.cli import main


def run(*arguments, code=0) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def output(*arguments, code=0) -> str:
    return run(*arguments, code=code).output
