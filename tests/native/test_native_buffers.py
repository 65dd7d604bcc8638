"""Every program sends from one buffer and receives into another, on pages that are there: seen by its MPI calls."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "workflow" / "native"
SIZE = 1 << 20
CASES = {  # program: cases, each with what ranks 0 and 1 do with long messages: send, receive or both
    "pingpong": {f"{SIZE}": ("both", "both")},
    "pairs": {f"1,{SIZE}": ("both", "both")},
    "chain": {f"1,{SIZE}": ("both", "both")},
    "prtt": {f"2,0,0,{SIZE}": ("both", "both")},
    "hrelation": {f"2,2,{SIZE}": ("both", "both")},
    "fan": {f"round,{how},1,{SIZE},{SIZE}": ("both", "both") for how in ("isend", "list", "put")},
    "post": {
        f"isend,1,{SIZE}": ("send", "receive"),
        f"list,1,{SIZE}": ("send", "receive"),
        f"put,1,{SIZE}": ("both", "receive"),  # the target's window is everybody's
        f"irecv,1,{SIZE}": ("receive", "send"),
    },
    "stream": {f"1,2,{SIZE}": ("receive", "send")},
    "overlap": {f"user,2,{SIZE}": ("receive", "send")},
    "player": {"schedule.csv,all": ("both", "both")},
    "library": {f"allreduce,{SIZE}": ("both", "both")},
}
HEADERS = {
    "pingpong": "bytes",
    "pairs": "pairs,bytes",
    "chain": "height,bytes",
    "prtt": "n,delay,late,bytes",
    "hrelation": "procs,h,bytes",
    "fan": "direction,how,n,bytes,answer",
    "post": "how,n,bytes",
    "stream": "senders,each,bytes",
    "overlap": "what,messages,bytes",
    "player": "schedule,finish",
    "library": "operation,bytes",
}
NO_MESSAGES = {"memcopy", "work", "flood"}  # of MPI; flood's ranks either send or receive
UNTIMED = {"verify"}  # nobody reads its times
FEW = ("--max-samples", 6, "--min-samples", 6, "--max-seconds", 0.2)


@pytest.fixture(scope="module")
def watched(relinked):
    """The folder of all programs, each with the watch linked into it."""
    return relinked("message_buffers.c", CASES)


def test_no_program_is_forgotten():
    programs = {path.stem for path in NATIVE.glob("p*/*.c") if "\nint main" in path.read_text()}
    assert programs == CASES.keys() | NO_MESSAGES | UNTIMED


@pytest.mark.parametrize("program", CASES)
def test_messages_leave_from_one_buffer_and_arrive_in_another(program, watched, start, tmp_path, write_schedule):
    write_schedule(tmp_path / "schedule.csv", [(0, "send", 0, 1, SIZE, ""), (1, "send", 1, 0, SIZE, "")])
    for number, (case, parts) in enumerate(CASES[program].items()):
        cases = f"id,{HEADERS[program]}\na,{case}"
        result = start(2, watched, program, cases, *FEW, out=f"samples-{number}")
        assert result.code == 0, f"{program} {case}: {result.err}"
        counts = re.findall(r"^buffers: sent (\d+) received (\d+)$", result.err, re.MULTILINE)
        done = sorted("both" if s != "0" != r else "send" if s != "0" else "receive" for s, r in counts)
        assert done == sorted(parts), f"{program} {case}: {result.err}"
