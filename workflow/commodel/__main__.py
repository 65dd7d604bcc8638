"""`python -m commodel`, for the workflow's rules: no PATH needed."""

from commodel.cli import main, one_line_errors
from commodel.cli._output import keep_what_is_said
from commodel.errors import UserError

try:
    with one_line_errors():
        keep_what_is_said()
except UserError as error:
    error.show()
    raise SystemExit(error.exit_code) from None
main(prog_name="commodel")
