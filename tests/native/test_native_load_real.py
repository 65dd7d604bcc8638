"""The probes that load a rank, a network or the memory, on two real ranks: their samples have the sense they claim."""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.alone

CASES = {
    "pairs": "id,pairs,bytes\na,1,8\nb,1,0\nc,1,100000",
    "stream": "id,senders,each,bytes\na,1,1,8\nb,1,100,0\nc,1,10,100000",
    "post": "id,how,n,bytes\na,isend,1,8\nb,list,1,0\nc,put,1,100000\nd,irecv,1,100000",
    "hrelation": "id,procs,h,bytes\na,2,0,8\nb,2,1,0\nc,2,3,100000",
    "overlap": "id,what,messages,bytes\na,control,0,8\nb,control,10,8\nc,user,10,0\nd,user,3,100000",
    "memcopy": "id,path,bytes\na,ctc,1\nb,ctm,100\nc,mtm,0\nd,anew,100\ne,anew,0",
    "flood": "id,what,senders,packets,bytes\na,arrived,1,1,8\nb,through,1,20,65507\nc,room,1,1,8",
    "fan": "\n".join(
        ["id,direction,how,n,bytes,answer"]
        + [
            f"{d}-{how},{d},{how},1,{size},100000"
            for d in ("out", "in", "round")
            for how, size in (("isend", 0), ("list", 8), ("put", 200000))
        ]
    ),
}
ALONE = {"post", "overlap", "memcopy"}


@pytest.mark.parametrize("program", sorted(CASES))
def test_samples(real, program):
    result = real(2, program, CASES[program], "--precision", 0.1, "--max-seconds", 0.3)
    assert result.code == 0, result.err
    cases = [line.split(",")[0] for line in CASES[program].splitlines()[1:]]
    assert result.files() == sorted(f"{case}.csv" for case in cases)
    for case in cases:
        rows = result.rows(case)
        assert list(rows[0])[:6] == ["id", "sample", "seconds", "skew", "valid", "stop"]
        assert list(rows[0])[6:] == (["count"] if program == "flood" else [])
        assert all(re.fullmatch(r"\d\.\d{9}e[+-]\d\d", row["seconds"]) for row in rows)
        assert all((row["skew"] == "") == (program in ALONE) for row in rows)
        assert all(float(row["seconds"]) > 0 for row in rows if row["valid"] == "1")


def test_messages_that_have_come_cost_their_receiver_time_each(real):
    result = real(2, "overlap", "id,what,messages,bytes\nnone,user,0,8\nsome,user,50,8\nplain,control,0,8")
    assert result.median("some") > result.median("none")
    assert result.median("plain") > 20 * result.median("none")


def test_datagrams_are_counted(real):
    result = real(
        2, "flood", "id,what,senders,packets,bytes\nfew,arrived,1,2,8\nmany,arrived,1,2000,60000", "--max-seconds", 1
    )
    assert result.code == 0, result.err
    counts = {case: [int(row["count"]) for row in result.rows(case)] for case in ("few", "many")}
    assert all(0 <= count <= 2 for count in counts["few"])
    assert max(counts["few"]) == 2
    assert all(0 < count <= 2000 for count in counts["many"])
    assert all(row["count"] == str(int(row["count"])) for row in result.rows("many"))


FLOOD = "id,what,senders,packets,bytes\nmany,through,1,2000,20000\nfew,arrived,1,2000,20000\nroom,room,1,1,8"


def flooded(result):
    assert result.code == 0, result.err
    return ([float(row["count"]) for row in result.rows(case)] for case in ("many", "few", "room"))


def test_what_a_socket_throws_away_has_come_through(start, relinked):
    """On one host nothing is lost on the way: what does not arrive is what the receiver's socket had no room for."""
    through, arrived, room = flooded(start(2, relinked("slow_reader.c", {"flood"}), "flood", FLOOD, "--max-seconds", 1))
    assert set(room) == {float(Path("/proc/sys/net/core/rmem_default").read_text())}
    assert max(arrived) < 2000
    assert set(through) == {2000}


def test_where_sockets_do_not_tell_the_host_does(start, relinked):
    """Of all its sockets together, so that nobody else may flood one meanwhile."""
    through, _, _ = flooded(start(2, relinked("old_kernel.c", {"flood"}), "flood", FLOOD, "--max-seconds", 1))
    assert set(through) == {2000}


def test_copies_grow_with_their_bytes_and_caches_help(real):
    sizes = (1000, 30000, 1000000)
    cases = "\n".join(f"{kind}{size},{kind},{size}" for kind in ("ctc", "ctm", "mtm") for size in sizes)
    result = real(1, "memcopy", "id,path,bytes\n" + cases, "--max-seconds", 0.3)
    assert result.code == 0, result.err
    for kind in ("ctc", "ctm", "mtm"):
        times = [result.median(f"{kind}{size}") for size in sizes]
        assert times[0] < times[1] < times[2]
    for size in sizes[:2]:  # the biggest may not fit into a small cache
        assert result.median(f"mtm{size}") > 0.8 * result.median(f"ctc{size}")


def test_pages_of_a_buffer_that_is_allocated_for_a_copy_cost_time(real):
    result = real(1, "memcopy", f"id,path,bytes\nagain,ctc,{40 << 20}\nanew,anew,{40 << 20}", "--max-seconds", 0.3)
    assert result.code == 0, result.err
    assert result.median("anew") > result.median("again")
