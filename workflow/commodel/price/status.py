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
    CROWDED = "blind to contention"  # messages meet on links of the network that the family knows nothing of
    SHEETS = SHEETS
    NOT_PRICED = "not priced"
    NOT_FITTED = "not fitted"
    LIBRARY = "library"  # what the MPI library does by itself is measured only
    UNSAID = "measured only"  # no schedule says what it does

    def because(self, reason: str) -> str:
        return f"{self.value}: {reason}"

    @classmethod
    def votes(cls, text: str) -> bool:
        """Whether a price of this status has a say in a choice; what is extrapolated has, too."""
        return not cls.BLIND.of(text)

    def of(self, text: str) -> bool:
        """Whether a text is this status, whatever its reason."""
        return text.partition(":")[0] == self.value
