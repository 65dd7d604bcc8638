"""What family `shares` says messages take that share lines: in the order of time, or round by round."""

from collections.abc import Iterator

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.evaluation.repeated_rounds import (
    PIECE_MESSAGES,
    Representatives,
    cut_into_pieces,
    find_representatives,
)
from commodel.models.evaluation.replay import Costs, replay, replay_round_by_round
from commodel.models.evaluation.shared_lines import Lines, Sharing
from commodel.models.evaluation.time_order import Bundles, Program, Traffic, in_parts, in_time
from commodel.models.evaluation.values import Classes, Values, by_distance
from commodel.patterns.repeated import Long, Rounds
from commodel.patterns.schedule import KINDS, Schedule
from commodel.progress import at, within

WRITTEN = 1 << 20  # messages: of more, rounds that repeat are not written out
MOST_MESSAGES, MOST_LINES = 1 << 26, 1 << 20  # messages and lines of those that are gone through in pieces
MOST_AROUND = 1 << 23  # messages of rings, which are nearly right round by round, too
COSTS_AT_ONCE = 1 << 20  # draws × messages whose costs are worked out at a time
SHARED, IN_TURN = "shared", "turn"  # ways of setting `order`


def predict(schedule: Schedule, values: Values) -> Array:
    """In the order of time. Of rounds that repeat those few ranks are looked at that all others are like; where ranks
    differ, and rounds are many, some at a time; where they are too many for that, round by round."""
    levels = levels_of(values)
    if not isinstance(schedule, Long):
        return predict_in_time_order(schedule, values, levels)
    lines, too_long = Lines(levels, values), schedule.messages > WRITTEN
    if too_long and _alone(schedule, lines, values):
        return _by_rounds(schedule, values, lines, meets_none=True)
    if like := find_representatives(schedule, levels, lines.links, WRITTEN):
        return like.finish(_Plays(like.sent, values, levels, like).finish(like.played))
    if _fits_in_pieces(schedule, lines, values):
        return predict_in_pieces(schedule, values, levels)
    if too_long:
        return _by_rounds(schedule, values, lines, meets_none=False)
    return predict_in_time_order(schedule.whole, values, levels)


def describe_doubt(schedule: Long, values: Values) -> str:
    """Where it is priced round by round: what others do meanwhile is seen only in part."""
    levels = levels_of(values)
    lines = Lines(levels, values)
    if schedule.messages <= WRITTEN or _alone(schedule, lines, values) or _fits_in_pieces(schedule, lines, values):
        return ""
    if find_representatives(schedule, levels, lines.links, WRITTEN):
        return ""
    share = "an eighth too low" if _rings(schedule) else "half of the time"
    return f"contention not modelled: predicted round by round, which may be {share}"


def _rings(schedule: Long) -> bool:
    """Whether it is of nothing but rounds, in all of which every rank sends to the next one."""
    return all(isinstance(part, Rounds) and part.repeats and part.turn == 1 for part in schedule.parts)


def _fits_in_pieces(schedule: Long, lines: Lines, values: Values) -> bool:
    """Whether no two of its messages go in turn, and messages and lines are not too many."""
    again = len(schedule.parts) > 1 or schedule.parts[0].repeats
    if schedule.messages <= PIECE_MESSAGES or (again and values.settings.get("order") == IN_TURN):
        return False
    most = MOST_AROUND if _rings(schedule) else MOST_MESSAGES
    return schedule.messages <= most and lines.count(cut_into_pieces(schedule)[0].written(schedule.node)) <= MOST_LINES


def predict_in_pieces(schedule: Long, values: Values, levels: Hierarchy) -> Array:
    cut = cut_into_pieces(schedule)
    most = max(piece.messages for piece in cut)

    def finish(values: Values) -> Array:
        def game(number: int) -> tuple[Program, Traffic]:
            at(f"part {number + 1} of {len(cut)}")
            some = cut[number].written(schedule.node)
            return next(_Plays(some, values, levels, part=True).games(some, values))

        return in_parts(game, len(cut), most, schedule.ranks)

    draws = []
    for draw in range(values.lead[0]):
        with within(f"draw {draw + 1} of {values.lead[0]}"):
            draws.append(finish(values.some(draw, draw + 1)))
    return np.stack(draws)


def _by_rounds(schedule: Long, values: Values, lines: Lines, meets_none: bool) -> Array:
    """`meets_none`: whether messages share no lines."""
    S, levels = values.numbers.get("S", np.inf), lines.levels

    def asks(part: Schedule) -> np.ndarray:
        return (part.bytes > S).any(axis=tuple(range(max(part.bytes.ndim, np.ndim(S)) - 1)))

    def costs(part: Schedule) -> Costs:
        ask, (sending, receiving) = (
            asks(part),
            copies_between_nodes(part.bytes, part.node[part.src] != part.node[part.dst], values),
        )

        def shared(known: Schedule) -> Sharing:
            return lines.shared_by(known, by_distance(known, "G", values, levels) * known.bytes, asks(known))

        return Costs(
            send=values["o_s"] + sending,
            receive=values["o_r"] + receiving,
            wire=by_distance(part, "L", values, levels),
            request=np.where(ask, 0.0, np.nan) if ask.any() else None,
            answer=np.zeros(1) if ask.any() else None,
            shared=shared,
        )

    def alone(part: Schedule) -> Costs:
        """Who asks waits until the message is through; of what is sent at once the next waits for the last one."""
        ask, (sending, receiving) = (
            asks(part),
            copies_between_nodes(part.bytes, part.node[part.src] != part.node[part.dst], values),
        )
        wire, lasts = (by_distance(part, name, values, levels) for name in "LG")
        lasts = lasts * part.bytes
        return Costs(
            send=values["o_s"] + sending,
            receive=values["o_r"] + receiving,
            wire=wire + np.where(ask, 0.0, lasts),
            gap_out=np.where(ask, 0.0, lasts),
            request=np.where(ask, 0.0, np.nan) if ask.any() else None,
            answer=lasts if ask.any() else None,
        )

    def work(part: Schedule) -> Array:
        return work_seconds(part, values)

    if meets_none:
        return replay(schedule, alone, work, levels=levels)
    return replay_round_by_round(schedule, costs, work)


def levels_of(values: Values) -> Hierarchy:
    """Those of the set, read once."""
    if "levels" not in values.worked_out:
        values.worked_out["levels"] = Hierarchy.of(values.settings.get("levels", {}))
    return values.worked_out["levels"]


def _alone(schedule: Long, lines: Lines, values: Values) -> bool:
    """Whether in no round two messages share a line, nor one is held up by it, as around a ring in the order of nodes:
    then rounds need not be gone through one by one."""
    if "back" in values or not _rings(schedule):
        return False
    for part in schedule.parts:
        turn = part.round(0, schedule.node)
        if lines.meet(turn, by_distance(turn, "G", values, lines.levels) * turn.bytes):
            return False
    return True


def predict_in_time_order(schedule: Schedule, values: Values, levels: Hierarchy) -> Array:
    """Size by size and draw by draw, each in its own order of time."""
    plays = _Plays(schedule, values, levels)
    if schedule.bytes.ndim > 1:
        return np.stack([plays.finish(single) for single in split_stack(schedule)])
    return plays.finish(schedule)


class _Plays:
    """Of one pattern, at whatever sizes: what does not depend on them is worked out once."""

    def __init__(
        self,
        schedule: Schedule,
        values: Values,
        levels: Hierarchy,
        like: Representatives | None = None,
        part: bool = False,
    ) -> None:
        """`part`: of a longer pattern."""
        self.values, self.classes = values, Classes.of(schedule, levels)
        self.passed = Lines(levels, values).passed_by(schedule, self.classes, like and like.turned, part)
        self.pair, self.whole = None if like is None else like.pair, not (like or part)
        self.programs: dict[bytes, Program] = {}

    def finish(self, schedule: Schedule) -> Array:
        """At one size, of all draws; of very many messages a draw at a time, or their columns would not fit."""
        draws, at_once = self.values.lead[0], max(COSTS_AT_ONCE // max(len(schedule.src), 1), 1)
        parts = (self.values.some(first, first + at_once) for first in range(0, draws, at_once))
        parts = parts if at_once < draws else [self.values]
        return np.stack([in_time(*game) for part in parts for game in self.games(schedule, part)])

    def games(self, schedule: Schedule, values: Values) -> Iterator[tuple[Program, Traffic]]:
        """Of each draw what ranks do and what it costs."""
        numbers = (values.numbers.get(name, none) for name, none in (("S", np.inf), ("E", np.inf), ("back", 0.0)))
        S, E, back = (np.broadcast_to(number, (*values.lead, 1))[:, 0] for number in numbers)
        more = copies_between_nodes(schedule.bytes, self.classes.apart > 0, values)
        ends = (values[name] + copying for name, copying in zip(("o_s", "o_r"), more, strict=True))
        send, receive = (np.broadcast_to(column, (*values.lead, len(schedule.src))) for column in ends)
        wire, alone = (self.classes.column(name, schedule.bytes, values) for name in "LG")
        columns = send, receive, wire, alone * schedule.bytes, self.passed.seconds(schedule.bytes, values)
        work = np.broadcast_to(work_seconds(schedule, values), (*values.lead, len(schedule.work.step)))
        for draw in range(values.lead[0]):
            waits = schedule.bytes > S[draw]
            asks = waits | (schedule.bytes > E[draw]) | (E[draw] == 0)  # not even empty ones leave at once
            if (known := waits.tobytes() + asks.tobytes()) not in self.programs:
                in_turn = values.settings.get("order") == IN_TURN
                uses = self.passed.message, self.passed.line
                opposite = self.passed.opposite
                queues = self.whole and not in_turn  # of rounds and of what goes in turn none waits behind another
                bundles = Bundles.of_queues(schedule, asks, *uses, opposite) if queues else None
                self.programs[known] = Program.of(schedule, asks, uses, in_turn, waits, opposite, self.pair, bundles)
            yield self.programs[known], Traffic(*(column[draw] for column in (*columns, work)), float(back[draw]))


def copies_between_nodes(bytes: np.ndarray, between: np.ndarray, values: Values) -> tuple[Array, Array]:
    """By how much more than with a short message sender and receiver are busy with each; with those between nodes."""
    sending, receiving = (np.where(between, more, 0.0) for more in copies(bytes, values))
    return sending, receiving


def copies(bytes: np.ndarray, values: Values) -> tuple[Array | float, Array | float]:
    """The same by size: nothing where a message waits for its receiver."""
    if "O_s" not in values.functions:
        return 0.0, 0.0
    at_once = bytes <= np.minimum(*(values.numbers.get(name, np.inf) for name in "SE"))
    sending, receiving = (np.where(at_once, values.at(name, bytes), 0.0) for name in ("O_s", "O_r"))
    return sending, receiving


def split_stack(schedule: Schedule) -> Iterator[Schedule]:
    """The schedules of a stack."""
    for number in range(schedule.sizes):
        yield schedule.resized(schedule.bytes[number, 0], schedule.work.bytes[number, 0])


def work_seconds(schedule: Schedule, values: Values) -> Array:
    """Where copies were not measured they take as long as reductions."""
    work = schedule.work
    takes = values.at("gamma", work.bytes)
    if "copy" in values.functions:
        takes = np.where(work.kind == KINDS.index("copy"), values.at("copy", work.bytes), takes)
    return work.seconds + np.where(work.bytes > 0, takes, 0.0)
