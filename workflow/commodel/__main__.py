"""`python -m commodel`, for the workflow's rules: no PATH needed."""

from commodel.cli import main, print_errors_as_lines
from commodel.cli._output import copy_output_to_log
from commodel.errors import UserError

try:
    with print_errors_as_lines():
        copy_output_to_log()
except UserError as error:
    error.show()
    raise SystemExit(error.exit_code) from None
main(prog_name="commodel")
