"""What a price is worth, in a word."""

from enum import Enum

from commodel.parameters import SHEETS


class PriceStatus(Enum):
    """How far a price is to be trusted, or why there is none. Tables have it as text, with the reason after a colon; a
    family may have a doubt of its own, in words of its own."""

    OK = "ok"
    EXTRAPOLATED = "extrapolated"
    BLIND = "blind to size"  # no say in a choice: sizes that the family does not see are part of it
    NOT_PROBED = "not probed"  # ranks are farther from each other, or nearer, than those of any probe
    UNPLACED = "blind to placement"  # the family prices ranks near and far alike
    UNNAMED = "blind to placement", "the platform's file names no levels"  # so that no family can know better
    MISFIT = "misfit"  # a message alone takes much longer, or shorter, than it is priced
    CROWDED = "blind to contention"  # messages meet on links of the network that the family knows nothing of
    SHEETS = SHEETS
    NOT_PRICED = "not priced"
    NOT_FITTED = "not fitted"
    LIBRARY = "library"  # what the MPI library does by itself is measured only
    UNSAID = "measured only"  # no schedule says what it does

    def __init__(self, word: str, cause: str = "") -> None:
        self.word, self.cause = word, cause

    def because(self, reason: str) -> str:
        return f"{self.word}: {reason}, and {self.cause}" if self.cause else f"{self.word}: {reason}"

    @classmethod
    def votes(cls, text: str) -> bool:
        """Whether a price of this status has a say in a choice; what is extrapolated has, too."""
        return not cls.BLIND.of(text)

    def of(self, text: str) -> bool:
        """Whether a text is this status, whatever its reason; what has a cause of its own is that without one, too."""
        return word(text) == self.word and text.endswith(self.cause)


def foremost(*texts: str) -> str:
    """Of all that a price is doubted for what is told of it: what takes its say, wherever it stands, else the first."""
    doubts = [text for text in texts if text not in ("", PriceStatus.OK.value)]
    silencing = (text for text in doubts if not PriceStatus.votes(text))
    return next(silencing, doubts[0] if doubts else PriceStatus.OK.value)


def word(text: str) -> str:
    """What a price is worth, without the reason."""
    return text.partition(":")[0]


def reason(text: str) -> str:
    return text.partition(": ")[2]
