"""Settings of SimGrid that are passed on, and what their values look like. SimGrid itself would take part of a wrong
value for the whole (`1KiB:…` for 1 byte), or end without a word on which setting it was."""

import re
from typing import NamedTuple

from commodel.errors import UserError, near, one_line, suggest
from commodel.units import shown

NUMBER = r"([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?"
TIME = rf"{NUMBER}(ps|ns|us|ms|s|m|h)?"


class Form(NamedTuple):
    """What values look like, as a pattern and in words."""

    pattern: str
    wanted: str


def _pieces(value: str) -> str:
    """From each size on: one value or more."""
    piece = rf"[0-9]{{1,18}}(:({value}))+"
    return rf"{piece}(;{piece})*;?"


PIECES = Form(_pieces(TIME), "SIZE:SECONDS:SECONDS_A_BYTE, more sizes after ';', such as 0:6e-6:0;1500:4e-5:2e-9")
FACTORS = Form(_pieces(NUMBER), "SIZE:FACTOR, more sizes after ';', such as 0:1;65536:1.2")
FACTOR = Form(rf"{NUMBER}|{FACTORS.pattern}", f"a number, or {FACTORS.wanted}")
AMOUNT = Form(NUMBER, "a number without a unit: seconds, bytes, or bytes a second")
ANY_NUMBER = Form(rf"-?{NUMBER}", "a number")
BYTES = Form(r"[0-9]{1,18}", "a whole number of bytes without a unit, such as 65536")
LIMIT = Form(r"-1|[0-9]{1,9}", "a whole number, or -1 for no limit")
WHOLE = Form(r"[0-9]{1,9}", "a whole number without a unit")
FLAG = Form(r"yes|no|on|off|true|false|[01]", "yes or no")
SPEED = Form(rf"{NUMBER}([kMGTPEZY]?f|(kilo|mega|giga|tera|peta|exa)?flops)?", "flop/s, such as 1Gf")
# Left out is what names files or programs (tracing/*, smpi/tmpdir, smpi/comp-adjustment-file, path, plugin, …).
CHECKED = {
    PIECES: "smpi/os smpi/ois smpi/or",
    FACTORS: "smpi/lat-factor smpi/bw-factor",
    FACTOR: "network/bandwidth-factor network/latency-factor",
    AMOUNT: "smpi/wtime smpi/init smpi/test smpi/iprobe smpi/iprobe-cpu-usage network/TCP-gamma network/loopback-bw "
    "network/loopback-lat network/weight-S maxmin/precision precision/timing precision/work-amount surf/precision",
    ANY_NUMBER: "smpi/cpu-threshold",
    BYTES: "smpi/async-small-thresh smpi/send-is-detached-thresh",
    LIMIT: "maxmin/concurrency-limit",
    WHOLE: "contexts/stack-size contexts/guard-size",
    FLAG: "smpi/grow-injected-times smpi/simulate-computation smpi/finalization-barrier smpi/barrier-finalization "
    "smpi/barrier-collectives network/crosstraffic network/maxmin-selective-update cpu/maxmin-selective-update",
    SPEED: "smpi/host-speed",
}
FORMS = {name: form for form, names in CHECKED.items() for name in names.split()}
# Their values are names that hang on the version of SimGrid, which lists them where one is wrong.
NAMED_SETTINGS = {
    *(f"smpi/{name}" for name in ("buffering", "IB-penalty-factors", "coll-selector", "allgather", "allgatherv")),
    *(f"smpi/{name}" for name in ("allreduce", "alltoall", "alltoallv", "barrier", "bcast", "gather", "reduce")),
    *("smpi/reduce-scatter", "smpi/scatter", "network/model", "network/optim", "network/solver", "cpu/model"),
    *("cpu/optim", "cpu/solver", "host/model", "host/solver", "contexts/factory"),
}
KNOWN_SETTINGS = (*FORMS, *sorted(NAMED_SETTINGS))


def check_name(name: str) -> None:
    if name not in KNOWN_SETTINGS:
        raise UserError(f"found the setting '{one_line(name, 60)}', which is not passed on; {_nearest(name)}")


def check_value(name: str, value: str) -> None:
    """Of a setting that is known."""
    form = FORMS.get(name)
    if form and not re.fullmatch(form.pattern, value):
        raise UserError(f"found {shown(value)}, wanted {form.wanted}")


def _nearest(name: str) -> str:
    groups = ", ".join(dict.fromkeys(known.partition("/")[0] for known in KNOWN_SETTINGS))
    return suggest(name, KNOWN_SETTINGS) if near(name, KNOWN_SETTINGS) else f"wanted one of {groups}"
