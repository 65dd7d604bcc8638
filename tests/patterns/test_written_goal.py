"""GOAL files, text and binary: reading returns what was written, errors have one line, and steps
satisfy all dependencies."""

import struct
import sys
import tracemalloc
from dataclasses import fields

import hypothesis
import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from commodel.errors import UserError
from commodel.files.safe_reading import CHUNK_BYTES
from commodel.patterns.pattern_files import goal, goal_binary, read_pattern
from commodel.patterns.pattern_files.tasks import (
    CALCULATE,
    RECEIVE,
    SEND,
    Dependencies,
    Steps,
    Tasks,
    make_schedule,
    match_messages,
)
from tests.patterns.goal_files import (
    BINARY,
    TEXT,
    make_binomial_broadcast,
    make_dissemination,
    packed,
)
from tests.patterns.rank_local import ends
from tests.refusals import catch_error_message


@st.composite
def programs(draw):
    """Draw tasks with any dependencies within a rank, so that some programs deadlock."""
    ranks = draw(st.integers(2, 4))
    rows, needs = [[] for _ in range(ranks)], []
    for _ in range(draw(st.integers(1, 10))):
        src = draw(st.integers(0, ranks - 1))
        dst = (src + draw(st.integers(1, ranks - 1))) % ranks
        size, tag = draw(st.integers(0, 50)), draw(st.integers(0, 1))
        rows[src].append((SEND, size, dst, tag))
        rows[dst].append((RECEIVE, size, src, tag))
    for tasks in rows:
        tasks += [
            (CALCULATE, time, 0, 0)
            for time in draw(st.lists(st.sampled_from((0, 0, 7)), max_size=4))
        ]
    rows = [draw(st.permutations(tasks)) for tasks in rows]
    first = 0
    for tasks in rows:
        for _ in range(draw(st.integers(0, 2 * len(tasks)))):
            before, after = (
                draw(st.integers(0, len(tasks) - 1)),
                draw(st.integers(0, len(tasks) - 1)),
            )
            if draw(st.integers(0, 9)):  # seldom a circle
                before, after = min(before, after), max(before, after)
            if before != after:
                needs.append((first + before, first + after, draw(st.booleans())))
        first += len(tasks)
    rank = np.repeat(np.arange(ranks), [len(tasks) for tasks in rows])
    kind, size, peer, tag = np.array([row for tasks in rows for row in tasks]).T
    before, after, begun = np.array(needs, dtype=int).reshape(-1, 3).T
    return Tasks(
        "made up",
        ranks,
        rank,
        kind,
        size,
        peer,
        tag,
        Dependencies(before, after, begun.astype(bool)),
    )


@pytest.fixture
def read(tmp_path):
    def read(text):
        (tmp_path / "a.goal").write_text(text)
        return make_schedule(goal.read_tasks(tmp_path / "a.goal"))

    return read


def ranks(*bodies):
    blocks = [f"rank {rank} {{\n{body.strip()}\n}}" for rank, body in enumerate(bodies)]
    return "\n".join([f"num_ranks {len(bodies)}", *blocks])


def seconds(count):
    return f"calc {count}000000000"


def test_a_goal_file_of_three_ranks_takes_the_specified_times(read):
    """The schedule is example 3 of shared/schedule.md."""
    first = (
        f"a: {seconds(5)}\nb: send 1b to 1\nc: send 1b to 2\nb requires a\nc requires a\nc "
        "irequires b"
    )
    second = f"a: recv 1b from 0\nb: {seconds(1)}\nb requires a"
    assert ends(read(ranks(first, second, "recv 1b from 0"))) == [7, 9, 9]


def test_a_receive_waited_for_after_work_overlaps_the_work(read):
    """A trace represents MPI_Irecv, work and MPI_Wait by a receive, a calc and a calc of 0."""
    body = (
        f"r: recv 8b from 1\nw: {seconds(20)}\nw irequires r\nz: calc 0\nz requires w\nz requires r"
    )
    sender = f"w: {seconds(10)}\ns: send 8b to 0\ns requires w"
    pattern = read(ranks(body, sender))
    assert ends(pattern) == [21, 11]
    assert pattern.dst_wait > pattern.dst_step
    at_once = body.replace("w irequires r", "w requires r")
    assert ends(read(ranks(at_once, sender))) == [33, 11]


def test_work_that_needs_no_message_does_not_wait_for_one(read):
    body = f"r: recv 8b from 1\nw: {seconds(20)}\ns: send 8b to 1\ns requires r\ns requires w"
    sender = f"w: {seconds(10)}\ns: send 8b to 0\ns requires w\nrecv 8b from 0"
    assert ends(read(ranks(body, sender))) == [22, 24]


def test_waits_at_a_calc_of_0_are_delayed_until_a_task_requires_the_calc(read):
    """No task requires the calc of 0 at once, so the work comes first."""
    body = (
        f"r: recv 8b from 1\nz: calc 0\nz requires r\nw: {seconds(20)}\nv: {seconds(3)}\nv "
        "requires z\nv requires w"
    )
    sender = f"w: {seconds(10)}\ns: send 8b to 0\ns requires w"
    assert ends(read(ranks(body, sender)))[0] == 24


def test_independent_chains_do_not_deadlock(read):
    """If rank 0 waited for both of its receives in one step, the ranks would deadlock."""
    zero = (
        "a: recv 8b from 1 tag 1\nb: send 8b to 1 tag 2\nb requires a\nc: recv 8b from 1 tag 3\n"
        "d: send 8b to 1 tag 4"
    )
    first = (
        "a: send 8b to 0 tag 3\nb: recv 8b from 0 tag 4\nb requires a\nc: send 8b to 0 tag 1\nc "
        "requires b"
    )
    last = "d: recv 8b from 0 tag 2\nd requires c"
    pattern = read(ranks(f"{zero}\nd requires c", f"{first}\n{last}"))
    assert len(pattern.src) == 4
    assert np.isfinite(ends(pattern)).all()


def test_messages_of_a_pair_and_tag_match_in_posting_order(read):
    sends = "a: send 1b to 1 tag 7\nb: send 2b to 1 tag 7\na requires b\nsend 3b to 1 tag 5"
    takes = "x: recv 3b from 0 tag 5\ny: recv 9b from 0 tag 7\nz: recv 9b from 0 tag 7"
    pattern = read(ranks(sends, f"{takes}\nw: {seconds(50)}\nw requires y\nz requires w"))
    late = pattern.bytes[np.argmax(pattern.dst_step)]
    assert late == 1
    assert sorted(pattern.bytes) == [1, 2, 3]


def test_blanks_comments_and_everything_that_txt2bin_accepts_are_read(read):
    text = """// one unit of calc is 1 ps
/* two
lines */ num_ranks 2   // a comment
  rank 1 {
    l1 requires l2      /* before both */
    l1: recv 8 b from 0 tag 4294967294 cpu 1 nic 2
    l2:calc 2000000 cpu 3
  }
rank 0 {
send 8b to 1 tag 4294967294
}"""
    pattern = read(text)
    assert pattern.work.seconds.tolist() == [2e-6]
    assert (pattern.src.tolist(), pattern.dst.tolist(), pattern.bytes.tolist()) == ([0], [1], [8])
    assert pattern.dst_step > pattern.work.step


def test_the_unit_of_calc_is_nanoseconds_unless_the_file_states_another(read):
    body = "calc 1500\nsend 1b to 1"
    assert read(ranks(body, "recv 1b from 0")).work.seconds == [1.5e-6]
    text = "// one unit of calc is 1 ps\n" + ranks(body, "recv 1b from 0")
    assert read(text).work.seconds == [1.5e-9]


def test_the_operation_file_reads_goal_and_tables(tmp_path):
    (tmp_path / "a").write_text("\ufeff\n// words\n" + ranks("send 1b to 1", "recv 1b from 0"))
    assert read_pattern(f"file:{tmp_path / 'a'}").bytes.tolist() == [1]
    (tmp_path / "b").write_text("rank,step,kind,peer,bytes\n0,0,send,1,8\n")
    assert read_pattern(f"file:{tmp_path / 'b'}").bytes.tolist() == [8]
    (tmp_path / "c").write_text(ranks("calc 5", "calc 5"))
    with pytest.raises(UserError, match="found no message"):
        read_pattern(f"file:{tmp_path / 'c'}")


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (
            "2147483648,send,0,1,8,,",
            "column step: found '2147483648', wanted a whole number from 0 to 2147483647",
        ),
        (
            "3,send,0,1,8,,2",
            "column wait: found '2', wanted no step before the one that posts the message",
        ),
        ("0,compute,0,,,-1,", "column seconds: found '-1', wanted a number of seconds from 0"),
        ("0,reduce,0,,8,,1", "column wait: found '1', wanted nothing: reduce is done in its step"),
    ],
)
def test_the_error_for_a_mistake_in_a_table_names_the_line_and_column(row, complaint, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"step,kind,rank,peer,bytes,seconds,wait\n0,send,0,1,8,,\n{row}\n")
    assert catch_error_message(read_pattern, f"file:{path}").startswith(f"{path}:3: {complaint}")


SEND_ONE, TAKE_ONE = "a: send 8b to 1 tag 3", "a: recv 8b from 0 tag 3"
MISTAKES = [
    (
        ranks(SEND_ONE, "calc 5"),
        3,
        "rank 0 sends 8 bytes to rank 1 with tag 3, and it has no matching receive",
    ),
    (
        ranks("calc 5", TAKE_ONE),
        6,
        "rank 1 receives from rank 0 with tag 3, and it has no matching send",
    ),
    (ranks(SEND_ONE, TAKE_ONE.replace("3", "4")), 3, "and it has no matching receive"),
    (ranks(f"{SEND_ONE}\nb: send 8b to 1 tag 3", TAKE_ONE), 4, "no matching receive"),
    (ranks(SEND_ONE, f"{TAKE_ONE}\nrecv 8b from 0 tag 3"), 7, "no matching send"),
    (
        ranks(f"{SEND_ONE}\na requires a", TAKE_ONE),
        3,
        "circle of requires: line 3 of rank 0 waits for line 3 of rank 0",
    ),
    (
        ranks(f"{SEND_ONE}\nb: calc 5\na requires b\nb irequires a", TAKE_ONE),
        3,
        "circle of requires: line 3 of rank 0 waits for line 4 of rank 0, which waits for line 3",
    ),
    (
        ranks(
            "a: send 8b to 1\nb: recv 8b from 1\na requires b",
            "a: send 8b to 0\nb: recv 8b from 0\na requires b",
        ),
        3,
        "a deadlock: line 3 of rank 0 waits for line 8 of rank 1, which waits for line 3 of rank 0",
    ),
    (ranks("send 8b to 2", TAKE_ONE), 3, "found rank 2, wanted 0 to 1"),
    (
        ranks("send 8b to 0", ""),
        3,
        "rank 0 sends 8 bytes to rank 0 with tag 0, and it has no matching receive",
    ),
    (ranks("send 8b to -1", ""), 3, "sends to any rank, wanted one"),
    (ranks("send 8b to 1 tag -1", TAKE_ONE), 3, "sends with any tag, wanted one"),
    (
        ranks(SEND_ONE, "recv 8b from -1 tag 4"),
        6,
        "rank 1 receives from any rank with tag 4: no rank sends that",
    ),
    (
        ranks(SEND_ONE, "recv 8b from -1 tag 3\nrecv 8b from -1 tag 3", "send 8b to 1 tag 3"),
        6,
        "receives from any rank with tag 3: rank 0 with tag 3 and rank 2 with tag 3 match, and the times decide",
    ),
    (
        ranks(f"{SEND_ONE}\nsend 8b to 1 tag 4", "recv 8b from 0 tag -1\nrecv 8b from 0 tag -1"),
        7,
        "receives from rank 0 with any tag: rank 0 with tag 3 and rank 0 with tag 4 match",
    ),
    (
        ranks(SEND_ONE, "recv 8b from 0 tag 4294967296"),
        6,
        "found tag 4294967296, wanted 0 to 4294967294",
    ),
    (
        ranks("send 2000000000000000b to 1", TAKE_ONE),
        3,
        "found 2000000000000000 bytes, wanted at most",
    ),
    (
        ranks("calc 2000000000000000000", TAKE_ONE),
        3,
        "found 2000000000000000000, wanted at most 1e+09 s",
    ),
    (
        ranks("calc 9223372036854775808", TAKE_ONE),
        3,
        "found 9223372036854775808, wanted at most 9223372036854775807",
    ),
    (
        ranks("send 8b to 9223372036854775808", TAKE_ONE),
        3,
        "found 9223372036854775808, wanted at most",
    ),
    (
        ranks(f"{SEND_ONE}\na requires b", TAKE_ONE),
        4,
        "found label 'b', which rank 0 does not have",
    ),
    (ranks(f"{SEND_ONE}\na: calc 5", TAKE_ONE), 4, "found label a twice in rank 0"),
    (ranks("a: send 8 to 1", TAKE_ONE), 3, "found 'a: send 8 to 1', wanted LABEL: send Xb to R"),
    (ranks("a: send 8b from 1", TAKE_ONE), 3, "wanted LABEL: send Xb to R"),
    (ranks("a: calc 5 tag 3", TAKE_ONE), 3, "found a calc with a tag"),
    (ranks("a: calc 5.5", TAKE_ONE), 3, "wanted LABEL"),
    (ranks("a: calc 99999999999999999999", TAKE_ONE), 3, "wanted LABEL"),
    (
        ranks(SEND_ONE, TAKE_ONE).removesuffix("}"),
        6,
        "the end of the file inside rank 1, wanted }; is it cut?",
    ),
    (
        ranks(SEND_ONE, TAKE_ONE).replace("ranks 2", "ranks 3"),
        7,
        "found no rank 2, wanted all of 3; is the file cut?",
    ),
    (ranks(SEND_ONE, TAKE_ONE).replace("rank 1", "rank 0"), 5, "found rank 0 twice"),
    (ranks(SEND_ONE, TAKE_ONE).replace("rank 1", "rank 2"), 5, "found rank 2, wanted 0 to 1"),
    (ranks(SEND_ONE, TAKE_ONE).replace("}\nrank", "rank"), 4, "found 'rank 1 {' inside rank 0"),
    (
        ranks(SEND_ONE, TAKE_ONE).replace("num_ranks 2\n", ""),
        1,
        "found rank 0, wanted num_ranks N before it",
    ),
    (
        ranks(SEND_ONE, TAKE_ONE).replace("ranks 2", "ranks 99999999"),
        1,
        "found 99999999 ranks, wanted 1 to 16777216",
    ),
    ("// nothing", 1, "found no num_ranks"),
    (ranks(SEND_ONE, TAKE_ONE) + "\nl: calc 5", 8, "wanted rank R {"),
]


@pytest.mark.parametrize(
    "receive", ["from -1 tag 3", "from 4294967295 tag 3", "from 0 tag -1", "from -1 tag -1"]
)
def test_a_receive_from_any_rank_that_one_rank_sends_to(read, receive):
    """Rank 2 also sends a message with this tag, but to rank 0: it matches no receive of rank 1."""
    others = "send 8b to 0 tag 3", "recv 8b from 2 tag 3"
    twice = [
        ranks(f"{SEND_ONE}\n{others[1]}", f"recv 8b {what}", others[0])
        for what in (receive, "from 0 tag 3")
    ]
    open_end, named = map(read, twice)
    assert open_end.encode() == named.encode()


def test_a_rank_sends_to_itself(read):
    """The message takes o + L + o of LogGP, and later tasks wait for it, also if there is only one
    rank."""
    body = "s: send 8b to 0 tag 1\nr: recv 8b from 0 tag 1\nr irequires s"
    assert ends(read(ranks(body))) == [3]
    then = f"{body}\nt: send 8b to 1\nt requires r"
    assert ends(read(ranks(then, "recv 8b from 0"))) == [4, 6]


@pytest.mark.parametrize(("text", "line", "complaint"), MISTAKES)
def test_a_mistake_in_a_goal_file_is_refused_with_the_line_number(text, line, complaint, tmp_path):
    path = tmp_path / "bad.goal"
    path.write_text(text)
    found = catch_error_message(lambda: make_schedule(goal.read_tasks(path)))
    assert complaint in found
    assert found.startswith(f"{path}:{line}: ")


def test_cached_and_parsed_tasks_are_equal(read):
    """A line with a blank before the colon, or with two blanks around `requires`, is parsed and not
    looked up in the cache."""
    body = "\n".join(
        f"l{n}: {SEND_ONE.partition(': ')[2]}\nc{n}: calc 5 cpu 1\nc{n} requires l{n}"
        for n in range(9)
    )
    receives = "\n".join(f"l{n}: recv 8b from 0 tag 3" for n in range(9))
    text = ranks(body, receives)
    apart = text.replace(":", " :").replace(" requires ", "  requires  ")
    assert read(text).encode() == read(apart).encode()
    with pytest.raises(UserError, match="found label l3 twice in rank 1"):
        read(ranks(body, f"{receives}\nl3: recv 8b from 0 tag 3"))


LINES = st.lists(
    st.tuples(
        st.sampled_from(["l{0}: send {1}b to {2} tag {3}", "x{0}: recv {1}b from {2}", "l{0}: calc {1}", "calc {3}",
                         "l{0}: send {1}b to {2} cpu {3} nic {2}", "l{0} requires l{1}", "l{0} irequires x{3}", "",
                         "  l{0} : recv {2}b from -1  ", "l0{0}: calc 7", "}}", "rank {2} {{", "ab", "l_{0}: calc 1"]),
        st.tuples(*[st.sampled_from([0, 1, 2, 3, 7, 10, 12, 2**31, 2**40])] * 4),
    ),
    max_size=8,
)  # fmt: skip


@hypothesis.settings(
    max_examples=400, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(st.lists(LINES, min_size=1, max_size=4), st.permutations(range(4)))
def test_ranks_read_in_blocks_equal_ranks_read_line_by_line(tmp_path, bodies, order):
    """A file with comments is read line by line. The errors of both readers are also equal."""
    blocks = [
        "\n".join([f"rank {rank} {{", *(form.format(*numbers) for form, numbers in body), "}"])
        for rank, body in zip([rank for rank in order if rank < len(bodies)], bodies, strict=True)
    ]
    text = "\n".join([f"num_ranks {len(bodies)}", *blocks, ""])
    path = tmp_path / "a.goal"
    found = []
    for content in (text, text.replace("\n", " // c\n")):
        path.write_text(content)
        try:
            tasks = goal.read_tasks(path)
        except UserError as error:
            found.append(str(error).replace(" // c", ""))
            continue
        needs = np.stack(
            [tasks.dependencies.before, tasks.dependencies.after, tasks.dependencies.on_start]
        )
        columns = np.stack([tasks.rank, tasks.kind, tasks.size, tasks.peer, tasks.tag, tasks.line])
        found.append(
            (tasks.ranks, tasks.other_units, columns.tolist(), needs[:, np.lexsort(needs)].tolist())
        )
    assert found[0] == found[1]


def test_ranks_of_many_lines_are_read_in_blocks(tmp_path, monkeypatch):
    """The file is longer than a block. Only its first line is read by the line reader."""
    body = "\n".join(
        f"l{2 * step}: send 8b to {{}}\nl{2 * step + 1}: recv 8b from {{}}" for step in range(2000)
    )
    body += "\n" + "\n".join(f"l{2 * step} requires l{2 * step - 1}" for step in range(1, 2000))
    pairs = [((rank + 1) % 64, (rank - 1) % 64) for rank in range(64)]
    (tmp_path / "a.goal").write_text(ranks(*(body.format(*pair * 2000) for pair in pairs)) + "\n")
    assert (tmp_path / "a.goal").stat().st_size > CHUNK_BYTES
    taken, take = [], goal._Reader.read_line
    monkeypatch.setattr(
        goal._Reader, "read_line", lambda reader, text: taken.append(text) or take(reader, text)
    )
    tasks = goal.read_tasks(tmp_path / "a.goal")
    assert taken == ["num_ranks 64"]
    assert len(tasks.rank) == 64 * 4000
    assert tasks.line[4000] == 6004
    assert (tasks.dependencies.before == tasks.dependencies.after - 1).all()


def slow_order(tasks):
    """Return the order in which tasks begin, and the matching end of each message; None for a
    deadlock."""
    needs = list(
        zip(
            tasks.dependencies.before,
            tasks.dependencies.after,
            tasks.dependencies.on_start,
            strict=True,
        )
    )
    posted, over, queues, other_end = [], set(), {}, {}
    while len(over) < len(tasks.rank):
        ready = [
            task
            for task in range(len(tasks.rank))
            if task not in posted
            and all(b in (posted if begun else over) for b, a, begun in needs if a == task)
        ]
        if not ready:
            return None
        for task in ready:
            posted.append(task)
            if tasks.kind[task] != RECEIVE:
                over.add(task)
            if tasks.kind[task] != CALCULATE:
                pair = (tasks.rank[task], tasks.peer[task])[
                    :: 1 if tasks.kind[task] == SEND else -1
                ]
                queues.setdefault((*pair, tasks.tag[task]), ([], []))[
                    int(tasks.kind[task] == RECEIVE)
                ].append(task)
        for sends, receives in queues.values():
            for send, receive in zip(sends, receives, strict=False):
                over.add(receive)
                other_end |= {send: receive, receive: send}
    return posted, other_end


@settings(max_examples=300)
@given(programs())
def test_steps_satisfy_all_dependencies_or_report_a_deadlock(tasks):
    """Every dependency holds in the steps of its rank, and all bytes and all work are in the
    schedule. Programs without an order are refused as a deadlock."""
    expected = slow_order(tasks)
    if expected is None:
        with pytest.raises(
            UserError, match=r"^made up: (a deadlock|a circle of requires): task \d+ of rank"
        ) as caught:
            make_schedule(tasks)
        event(caught.value.message.split(":")[1])
        return
    event("schedule")
    posted, other_end = expected
    matching = match_messages(tasks)
    assert matching.other_end.tolist() == [
        other_end.get(task, -1) for task in range(len(tasks.rank))
    ]
    assert posted == sorted(posted, key=lambda task: (matching.round[task], task))
    assert_kept(tasks, posted, Steps.of(tasks, matching))
    pattern = make_schedule(tasks)
    sent, time = (tasks.size[tasks.kind == kind] for kind in (SEND, CALCULATE))
    assert sorted(pattern.bytes) == sorted(sent)
    assert pattern.work.seconds.sum() == pytest.approx(time.sum() / 1e9)
    assert np.isfinite(ends(pattern)).all()


def assert_kept(tasks, posted, steps):
    """Assert that steps satisfy all dependencies: within a step a rank posts receives, then sends,
    waits, and calculates."""
    begun, over = {}, {}
    needs = list(
        zip(
            tasks.dependencies.before,
            tasks.dependencies.after,
            tasks.dependencies.on_start,
            strict=True,
        )
    )
    for task in posted:
        before = [(begun if begins else over)[b] for b, a, begins in needs if a == task]
        if tasks.is_zero_calc[task]:
            begun[task] = over[task] = max(before, default=(-1, 0))
        elif tasks.is_calculation[task]:
            begun[task] = over[task] = steps.post[task], 3
            assert all(place <= over[task] for place in before)
        else:
            begun[task], over[task] = (
                (steps.post[task], int(tasks.kind[task] == SEND)),
                (steps.wait[task], 2),
            )
            assert all(place <= begun[task] for place in before)
            assert begun[task] < over[task]


@pytest.fixture
def read_binary(tmp_path):
    def read(content):
        (tmp_path / "a.bin").write_bytes(content)
        return make_schedule(goal_binary.read_tasks(tmp_path / "a.bin"))

    return read


def test_text_and_binary_goal_give_the_same_tasks(tmp_path):
    for name, content in (("text", TEXT.encode()), ("binary", BINARY)):
        (tmp_path / name).write_bytes(content)
    text, binary = (read_pattern(f"file:{tmp_path / name}") for name in ("text", "binary"))
    assert text.has_same_structure(binary)
    assert text.bytes.tolist() == binary.bytes.tolist()
    assert sorted(binary.bytes) == [4, 8, 16]
    assert text.work.seconds.tolist() == binary.work.seconds.tolist() == [5e-6]
    tasks = goal.read_tasks(tmp_path / "text")
    assert packed(tasks, [(0, 0), (0, 0), (1, 0), (0, 0), (0, 0), (0, 1), (0, 0), (0, 0)]) == BINARY
    assert tasks.other_units == goal_binary.read_tasks(tmp_path / "binary").other_units == 2


@given(programs())
def test_packed_binary_tasks_are_read_unchanged(tmp_path_factory, tasks):
    path = tmp_path_factory.mktemp("goal") / "a.bin"
    path.write_bytes(packed(tasks))
    again = goal_binary.read_tasks(path)
    for name in ("ranks", "rank", "kind", "size", "peer", "tag"):
        np.testing.assert_array_equal(getattr(tasks, name), getattr(again, name))
    rows = [
        sorted(
            zip(
                *(
                    getattr(program.dependencies, field.name)
                    for field in fields(program.dependencies)
                ),
                strict=True,
            )
        )
        for program in (tasks, again)
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("make", [make_dissemination, make_binomial_broadcast])
def test_ranks_of_a_binary_file_are_read_together(tmp_path, make):
    """A call for each rank would take a minute for a million ranks."""
    calls = []
    for ranks in (8, 2048):
        path = tmp_path / f"{ranks}.bin"
        path.write_bytes(packed(make(ranks)))
        calls.append(count_calls(goal_binary.read_tasks, path))
    assert calls[0] == calls[1]


def count_calls(function, *arguments):
    """Return the number of Python and C functions that a call calls."""
    events = []
    sys.setprofile(lambda frame, event, argument: events.append(event))
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return sum(event in ("call", "c_call") for event in events)


def test_a_broadcast_is_put_in_steps_within_400_bytes_a_message():
    """A file of a million messages, one for each rank, therefore takes 400 MB besides the
    interpreter."""
    tasks = make_binomial_broadcast(1 << 15)
    tracemalloc.start()
    try:
        pattern = make_schedule(tasks)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert pattern.messages == (1 << 15) - 1
    assert peak / pattern.messages < 400


@pytest.mark.parametrize("ranks", [3, 1 << 24])
def test_channels_of_large_ranks_and_tags_match(ranks):
    """The number of a channel would not fit 64 bits if it had all bits of two ranks and a tag."""
    last, tag = ranks - 1, 2**32 - 2
    rows = [(0, SEND, 1, last, tag), (0, SEND, 2, last, 0), (0, SEND, 3, last - 1, tag)]
    rows += [(last - 1, RECEIVE, 0, 0, tag), (last, RECEIVE, 0, 0, 0), (last, RECEIVE, 0, 0, tag)]
    none = np.zeros(0, dtype=int)
    columns = np.array(rows, dtype=np.int64).T
    tasks = Tasks("made up", ranks, *columns, Dependencies(none, none, none.astype(bool)))
    assert match_messages(tasks).other_end.tolist() == [5, 4, 3, 2, 1, 0]


def test_a_truncated_binary_file_is_refused(read_binary):
    for length in range(8, len(BINARY)):
        with pytest.raises(
            UserError, match=r"a\.bin: found \d+ bytes, wanted .*; is the file cut\?"
        ):
            read_binary(BINARY[:length])


ZEROS, NO_TASKS = np.zeros(8, dtype=int), np.zeros(0, dtype=int)
MOSTLY_ZERO = Tasks(  # four tasks of a rank fit both task sizes
    "made up",
    2,
    np.repeat([0, 1], 4),
    np.repeat([SEND, RECEIVE], 4),
    ZEROS,
    np.repeat([1, 0], 4),
    ZEROS,
    Dependencies(NO_TASKS, NO_TASKS, NO_TASKS.astype(bool)),
)


@given(programs())
@example(MOSTLY_ZERO)
def test_binary_of_loggopsim_2_is_named(tmp_path_factory, tasks):
    path = tmp_path_factory.mktemp("goal") / "a.bin"
    path.write_bytes(packed(tasks, more=bytes(65)))
    with pytest.raises(
        UserError,
        match=r"a\.bin: found a binary of LogGOPSim 2, wanted one of LogGOPSim, or the text",
    ):
        goal_binary.read_tasks(path)


def changed(place, form, value):
    return BINARY[:place] + struct.pack(form, value) + BINARY[place + struct.calcsize(form) :]


BLOCKS = 14 + 3 * 16  # where that of rank 0 begins
FIRST = BLOCKS + 12  # its first task


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (changed(0, "<Q", 2342), "a file overwritten by LogGOPSim --save-mem"),
        (changed(8, "<I", 0), "found 0 ranks, wanted 1 to"),
        (changed(8, "<I", 2**32 - 1), "found 4294967295 ranks, wanted 1 to"),
        (changed(8, "<I", 2**24), "wanted a table of 16777216 ranks; is the file cut"),
        (changed(14, "<Q", 55), "block of rank 0 does not begin"),
        (changed(22, "<Q", 2**64 - 1), "block of rank 1 does not begin"),
        (changed(14 + 40, "<Q", 2**63), "is the file cut"),
        (changed(14 + 40, "<Q", 400), "found 434 bytes, wanted 408"),
        (BINARY + b"x", "found 435 bytes, wanted 434"),
        (changed(BLOCKS, "<I", 4), "do not match its counts"),
        (changed(BLOCKS, "<I", 2**32 - 1), "do not match its counts"),
        (changed(BLOCKS + 4, "<I", 2**32 - 1), "do not match its counts"),
        (changed(BLOCKS + 8, "<I", 1), "do not match its counts"),
        (changed(FIRST, "<I", 1), "do not match its counts"),
        (
            changed(FIRST + 39, "<I", 2),
            "task 1 of rank 0 has another number of dependencies than listed",
        ),
        (changed(FIRST + 4, "<B", 9), "task 0 of rank 0: found kind 9"),
        (changed(FIRST + 9, "<Q", 2**64 - 1), "wanted at most 1e+09 s"),
        (changed(FIRST + 39 + 9, "<Q", 2**63), "task 1 of rank 0: found"),
        (changed(FIRST + 39 + 5, "<I", 7), "task 1 of rank 0: found rank 7, wanted 0 to 2"),
        (
            changed(FIRST + 39 + 5, "<I", 2),
            "task 0 of rank 1: rank 1 receives from rank 0 with tag 7, and it has no matching send",
        ),
        (
            changed(FIRST + 39 + 17, "<I", 2**32 - 1),
            "task 1 of rank 0: sends with any tag, wanted one",
        ),
        (changed(FIRST + 23, "<I", 3), "rank 0 names other followers than it has"),
        (changed(FIRST + 23, "<I", 2**32 - 1), "rank 0 names other followers than it has"),
        (changed(FIRST + 27, "<I", 2), "rank 0 names other followers than it has"),
        (changed(FIRST + 27, "<I", 2**32 - 1), "rank 0 names other followers than it has"),
        (changed(FIRST + 3 * 39, "<I", 3), "rank 0 names task 3, wanted one of 3"),
        (changed(FIRST + 3 * 39, "<I", 0), "task 0 of rank 0 has another number of dependencies"),
    ],
)
def test_an_impossible_binary_file_is_refused_in_one_line(read_binary, content, complaint):
    found = catch_error_message(read_binary, content)
    assert complaint in found
    assert "a.bin: " in found
