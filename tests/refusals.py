"""The text that a user reads if input is refused: the one line of a UserError."""

import pytest

from commodel.errors import UserError


def catch_error_message(call, *arguments) -> str:
    """Return the one-line message of the UserError that the call raises."""
    with pytest.raises(UserError) as caught:
        call(*arguments)
    text = caught.value.format_message()
    assert "\n" not in text
    return text
