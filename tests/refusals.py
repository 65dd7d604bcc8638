"""What a user reads when something is refused: the one line of a UserError."""

import pytest

from commodel.errors import UserError


def message(call, *arguments) -> str:
    with pytest.raises(UserError) as caught:
        call(*arguments)
    text = caught.value.format_message()
    assert "\n" not in text
    return text
