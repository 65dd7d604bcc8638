"""`python -m commodel`, for the workflow's rules: no PATH needed."""

from commodel.cli import main, one_line_errors
from commodel.cli._output import copy_output_to_log
from commodel.errors import UserError

try:
    with one_line_errors():
        copy_output_to_log()
except UserError as error:
    error.show()
    raise SystemExit(error.exit_code) from None
main(prog_name="commodel")
