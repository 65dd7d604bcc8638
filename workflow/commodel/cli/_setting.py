"""Which setting a job measures in."""

import os

from commodel.errors import UserError
from commodel.files.settings import VARIABLE, parse_setting


def job_setting(given: str | None) -> str:
    """As asked for, else as the environment of the job says; blank: nobody says any."""
    called = "--setting" if given is not None else VARIABLE
    try:
        return parse_setting(os.environ.get(VARIABLE, "") if given is None else given)
    except UserError as error:
        raise UserError(error.found, key=called) from None
