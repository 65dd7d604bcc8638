"""What a setting is: the job that something was measured in, as people call it, where one job is not like another.

A short text of one line, or pairs such as `rails=2 transport=ucx`, whose order does not matter; blank is none. Times of
different settings are never samples of one point, even where all else is the same.
"""

from commodel.errors import UserError
from commodel.units import shown

VARIABLE = "COMMODEL_SETTING"  # of the environment: the setting that a job measures in
LONGEST_SETTING = 80  # characters


def parse_setting(value: object) -> str:
    """Pairs in the order of their names, all else as it stands but for blanks."""
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not text.isprintable() or len(text) > LONGEST_SETTING:
        raise UserError(f"found {shown(value)}, wanted one line of text, at most {LONGEST_SETTING} characters")
    words = text.split()
    if not all(word.partition("=")[0] and "=" in word for word in words):
        return " ".join(words)
    pairs = sorted(words)
    names = [pair.partition("=")[0] for pair in pairs]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UserError(f"found '{twice}' twice, wanted each name once")
    return " ".join(pairs)
