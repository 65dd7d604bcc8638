"""The columns of the tables that stages leave for each other: what each holds, in which unit, and whether it may be
blank. Readers check them, writers and reports ask for them.
"""

from dataclasses import dataclass, replace

from commodel.records import STOPS


@dataclass(frozen=True)
class Field:
    """A column of a file. A blank text is one; a number, or a flag, is blank only where that is said."""

    name: str
    type: type  # str, bool, int (never below 0) or float
    unit: str = ""  # s or B; what has none is a name, a number of things, or a ratio
    blank: bool = False
    optional: bool = False  # not every table has it
    among: tuple[str, ...] = ()  # all that a text may be


Schema = tuple[Field, ...]


def _fields(kind: type, names: str, **about) -> Schema:
    return tuple(Field(name, kind, **about) for name in names.split())


def names(schema: Schema, *types: type) -> list[str]:
    """Of all columns, or of those of some types."""
    return [field.name for field in schema if not types or field.type in types]


def needed(schema: Schema, wanted: str, optional: bool = False) -> Schema:
    """Some of the columns, where a table must have these, or may, and may have others."""
    return tuple(replace(field, optional=optional) for field in schema if field.name in wanted.split())


KINDS = ("probe", "point")

OBSERVATIONS = (
    *_fields(str, "id batch platform"),
    *_fields(bool, "simulated"),
    *_fields(str, "kind", among=KINDS),
    *_fields(str, "name layout pair"),
    *_fields(int, "ranks pass sample"),
    *_fields(float, "seconds", unit="s"),
    *_fields(float, "skew", unit="s", blank=True),
    *_fields(bool, "valid"),
    *_fields(str, "stop", among=STOPS),
    # The settings of probes and points: each has some of them.
    *_fields(str, "choice apart direction how level what path", optional=True),
    *_fields(str, "setting", optional=True),  # of the job, as people call it; blank: none (`files/settings.py`)
    *_fields(str, "where", optional=True),  # nodes of a probe that does not run on the first ones, as 3+17
    *_fields(int, "bytes", unit="B", blank=True, optional=True),
    *_fields(
        int,
        "answer delay flows h height late messages n packets pairs procs senders each step ways",
        blank=True,
        optional=True,
    ),
    *_fields(int, "one two nodes trips", blank=True, optional=True),  # a pair of nodes, of how many; there and back
    *_fields(float, "count", blank=True, optional=True),
    *_fields(float, "cpu", unit="s", blank=True, optional=True),  # of a wave, all processes of an overlay network
    *_fields(float, "computation", unit="s", blank=True, optional=True),  # of a kernel, beside its communication
    # Of points of several waves: how many; of a sample the latencies of the first and of the last of them.
    *_fields(int, "waves", blank=True, optional=True),
    *_fields(float, "first last", unit="s", blank=True, optional=True),
)
SUMMARY = (
    *_fields(str, "kind", among=KINDS),
    *_fields(str, "platform"),
    *_fields(bool, "simulated"),
    *_fields(str, "name id settings"),
    *_fields(int, "passes samples invalid"),
    *_fields(str, "stop", among=STOPS),
    *_fields(float, "min median low high mean p95 max skew", unit="s", blank=True),
    *_fields(float, "cpu computation", unit="s", blank=True, optional=True),
    *_fields(str, "batch raw setting", optional=True),  # older tables have none
)
DISTRIBUTIONS = (
    *_fields(str, "id platform"),
    *_fields(bool, "simulated"),
    *_fields(str, "pair"),
    *_fields(int, "bytes", unit="B"),
    *_fields(float, "low high", unit="s"),
    *_fields(int, "count"),
    *_fields(bool, "tail"),
)
UNMEASURED = (
    *_fields(str, "id batch platform"),
    *_fields(bool, "simulated"),
    *_fields(str, "kind", among=KINDS),
    *_fields(str, "name choice layout"),
    *_fields(int, "ranks nodes leaves", blank=True),
    *_fields(int, "bytes", unit="B", blank=True),
    *_fields(int, "waves", blank=True, optional=True),
    *_fields(str, "status reason"),
)
PREDICTIONS = (
    *_fields(str, "point family"),
    *_fields(float, "predicted predicted_low predicted_high", unit="s", blank=True),
    *_fields(str, "status"),
    *_fields(float, "alone", blank=True, optional=True),  # how many times as long as priced messages take, each alone
    *_fields(bool, "held_out", optional=True),  # False where the family's own fit has seen the point
)
PRICES = (  # of a matrix without an experiment; a text is missing where it does not apply
    *_fields(str, "operation algorithm topology layout"),
    *_fields(int, "ranks"),
    *_fields(int, "bytes", unit="B"),
    *_fields(int, "waves"),  # of several, seconds are those between two
    *_fields(str, "family parameters"),
    *_fields(float, "seconds low high", unit="s", blank=True),
    *_fields(str, "status"),
    *_fields(float, "parameters_low parameters_high", unit="s", blank=True, optional=True),
    *_fields(str, "interval", optional=True),
    *_fields(float, "alone", blank=True, optional=True),
)
COMPARISON = (
    *_fields(str, "point platform operation algorithm topology choice layout"),
    *_fields(int, "ranks leaves"),
    *_fields(int, "bytes", unit="B"),
    *_fields(int, "nodes", optional=True),  # older tables have none
    *_fields(str, "reach", optional=True),  # levels up to the farthest that ranks cross; nor have they
    *_fields(int, "waves", optional=True),  # of several, the time measured and predicted is that between two
    *_fields(str, "room group"),
    *_fields(bool, "simulated"),
    *_fields(str, "batch setting", optional=True),
    *_fields(int, "fan_in"),
    *_fields(float, "measured measured_low measured_high", unit="s", blank=True),
    *_fields(float, "first last", unit="s", blank=True, optional=True),  # latencies of the first and the last wave
    *_fields(int, "samples invalid"),
    *_fields(str, "stop", among=("", *STOPS)),
    *_fields(float, "skew", unit="s", blank=True),
    # On the host of the first rank; blank where the programs did not say, and where all is simulated.
    *_fields(int, "processes processors", blank=True, optional=True),
    *_fields(str, "family"),
    *needed(PREDICTIONS, "predicted predicted_low predicted_high status"),
    *_fields(float, "alone", blank=True, optional=True),
    # What the parameters alone leave open, and what the interval rests on; older tables have that in its place.
    *_fields(float, "parameters_low parameters_high", unit="s", blank=True, optional=True),
    *_fields(str, "interval", optional=True),
    *_fields(str, "measurement"),
    *_fields(str, "raw", optional=True),
    *_fields(float, "relative_error mu", blank=True),
    *_fields(bool, "inside held_out best chosen tie"),
    *_fields(float, "regret", blank=True),
    *_fields(float, "library fastest", unit="s", blank=True),
)
