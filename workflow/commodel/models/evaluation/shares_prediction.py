"""Prediction of family `shares`: messages that share links, in the order of time or round by round
(`predict`).

Repeated rounds are predicted by the first of these methods that is possible:

1. round by round, if there are too many messages to expand and no two of a round share a link
2. representative ranks in the order of time, if all other ranks are equivalent to them by symmetry
3. pieces of rounds one after the other, in the order of time; if equal pieces take equally long,
   only the first of them
4. all messages in the order of time, if there are not too many
5. round by round, although messages of different rounds share links: this is inaccurate
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from commodel.hierarchy import Hierarchy
from commodel.models import Array
from commodel.models.evaluation.repeated_rounds import (
    PIECE_MESSAGES,
    Representatives,
    cut_into_pieces,
    find_representatives,
    find_senders_of_exchange,
)
from commodel.models.evaluation.replay import Costs, replay, replay_round_by_round
from commodel.models.evaluation.shared_links import (
    SharedLinks,
    Sharing,
    count_link_bytes,
    find_latency,
    find_offsets,
    find_weights,
)
from commodel.models.evaluation.time_order import (
    Bundles,
    RankPrograms,
    Traffic,
    replay_in_time,
    replay_parts,
)
from commodel.models.evaluation.values import Classes, Values
from commodel.patterns.repeated import CompactSchedule, Rounds
from commodel.patterns.schedule import KINDS, MEMORY, Schedule
from commodel.progress import report_within

MAX_EXPANDED_MESSAGES = 1 << 20  # messages; repeated rounds with more are not expanded
# messages and links of a schedule that is replayed in pieces
MAX_MESSAGES, MAX_LINKS = 1 << 26, 1 << 20
# messages of an exchange in one step, beyond which only some ranks are replayed
MAX_EXCHANGE_MESSAGES = 1 << 17
# messages of rings replayed in pieces; longer ones, round by round, may be an eighth too low
MAX_RING_MESSAGES = 1 << 23
# draws × messages whose costs are computed at a time, which limits memory
MAX_COSTS_AT_ONCE = 1 << 20
SHARED, ONE_AT_A_TIME = "shared", "turn"  # values of the setting `order`


def predict(schedule: Schedule, values: Values) -> Array:
    """Return the finish times of all ranks in seconds (last axis: ranks)."""
    levels = get_levels(values)
    links, too_long = SharedLinks(levels, values), schedule.messages > MAX_EXPANDED_MESSAGES
    if not isinstance(schedule, CompactSchedule):
        if schedule.messages > MAX_EXCHANGE_MESSAGES and _may_have_representatives(links):
            senders = find_senders_of_exchange(
                schedule, levels, links.parallel_links, links.columns
            )
            if senders:
                finish = predict_in_time_order(senders.replayed, values, levels, senders)
                return senders.repeat_for_all(finish)[..., : schedule.ranks]
        return predict_in_time_order(schedule, values, levels)
    if too_long and _is_free_of_contention(schedule, links, values):
        return _predict_by_rounds(schedule, values, links, contention_free=True)
    representatives = _find_representatives(schedule, links)
    if representatives:
        finish = predict_in_time_order(representatives.replayed, values, levels, representatives)
        return representatives.repeat_for_all(finish)
    if _fits_in_pieces(schedule, links, values):
        return predict_in_pieces(schedule, values, levels)
    if too_long:
        return _predict_by_rounds(schedule, values, links, contention_free=False)
    return predict_in_time_order(schedule.whole, values, levels)


def describe_round_by_round(schedule: CompactSchedule, values: Values) -> str:
    """Return why a prediction round by round is inaccurate; an empty text if it is accurate, or if
    the schedule is predicted in the order of time."""
    levels = get_levels(values)
    links = SharedLinks(levels, values)
    if (
        schedule.messages <= MAX_EXPANDED_MESSAGES
        or _is_free_of_contention(schedule, links, values)
        or _fits_in_pieces(schedule, links, values)
        or _find_representatives(schedule, links)
    ):
        return ""
    share = "an eighth" if _consists_of_rings(schedule) else "half"
    return f"contention not modelled: predicted round by round, which may be up to {share} too low"


def _may_have_representatives(links: SharedLinks) -> bool:
    """Return whether ranks may be equivalent by symmetry. They are not on a torus, or with
    latencies of single pairs of nodes."""
    return not (links.has_pair_latency or links.torus)


def _find_representatives(schedule: CompactSchedule, links: SharedLinks) -> Representatives | None:
    """Return the representatives of all ranks; None if ranks are not equivalent by symmetry."""
    if not _may_have_representatives(links):
        return None
    return find_representatives(
        schedule, links.levels, links.parallel_links, MAX_EXPANDED_MESSAGES, links.columns
    )


def _consists_of_rings(schedule: CompactSchedule) -> bool:
    """Return whether the schedule consists of repeated rounds only, in which every rank sends to
    the next one."""
    return all(
        isinstance(part, Rounds) and part.periodic and part.shift == 1 for part in schedule.parts
    )


def _fits_in_pieces(schedule: CompactSchedule, links: SharedLinks, values: Values) -> bool:
    """Return whether the schedule is longer than one piece and can be replayed in pieces: there are
    not too many messages or links, and no pair of ranks has to send several messages one at a
    time."""
    first = schedule.parts[0]
    pairs_repeat = len(schedule.parts) > 1 or (isinstance(first, Rounds) and first.periodic)
    if schedule.messages <= PIECE_MESSAGES or (
        pairs_repeat and values.settings.get("order") == ONE_AT_A_TIME
    ):
        return False
    limit = MAX_RING_MESSAGES if _consists_of_rings(schedule) else MAX_MESSAGES
    return (
        schedule.messages <= limit
        and links.count(cut_into_pieces(schedule)[0].expand(schedule.node)) <= MAX_LINKS
    )


def predict_in_pieces(schedule: CompactSchedule, values: Values, levels: Hierarchy) -> Array:
    """Return the finish times of a long schedule, draw by draw, with only a few pieces in memory at
    a time."""
    pieces = cut_into_pieces(schedule)
    keys, kinds = (
        [piece.key for piece in pieces],
        [piece.find_kind(schedule.node, levels) for piece in pieces],
    )
    largest = max(piece.messages for piece in pieces)

    def predict_draw(values: Values) -> Array:
        def load_piece(number: int) -> tuple[RankPrograms, Traffic]:
            piece = pieces[number].expand(schedule.node)
            return next(_TimeOrderReplay(piece, values, levels, part=True).prepare(piece, values))

        return replay_parts(load_piece, keys, largest, schedule.ranks, kinds)

    draws = []
    for draw in range(values.draw_shape[0]):
        with report_within(f"draw {draw + 1} of {values.draw_shape[0]}"):
            draws.append(predict_draw(values.select_draws(draw, draw + 1)))
    return np.stack(draws)


def _predict_by_rounds(
    schedule: CompactSchedule, values: Values, links: SharedLinks, contention_free: bool
) -> Array:
    """Return the finish times by a replay round by round. `contention_free`: no two messages of a
    round share a link. Messages above E, which leave when their receiver is ready, count as
    rendezvous, though their sender does not wait."""
    S, E = values.numbers.get("S", np.inf), values.numbers.get("E", np.inf)
    S_inside, levels = values.numbers.get("S_inside", S), links.levels

    def is_rendezvous(part: Schedule) -> np.ndarray:
        inside = Classes.of(part, levels).distance == 0
        is_above = part.bytes > np.minimum(np.where(inside, S_inside, S), E)
        return np.asarray(is_above.any(axis=tuple(range(is_above.ndim - 1))))

    def find_shared_links(part: Schedule) -> Sharing:
        return links.find_shared_links(
            part, find_transfer_seconds(part, values, levels), is_rendezvous(part)
        )

    def find_costs(part: Schedule) -> Costs:
        rendezvous, latency = (
            is_rendezvous(part),
            find_latency(part, values, Classes.of(part, levels)),
        )
        sending, receiving = copy_seconds_between_nodes(part.bytes, part.channel != MEMORY, values)
        costs = Costs(
            values["o_s"] + sending, values["o_r"] + receiving, latency, shared=find_shared_links
        )
        grant_seconds = np.zeros(1)
        if contention_free:  # a rendezvous sender waits for delivery, an eager one for the port
            grant_seconds = find_transfer_seconds(part, values, levels)
            eager = np.where(rendezvous, 0.0, grant_seconds)
            costs = replace(costs, wire=latency + eager, gap_out=eager, shared=None)
        if not rendezvous.any():
            return costs
        return replace(costs, request=np.where(rendezvous, 0.0, np.nan), grant=grant_seconds)

    def find_work(part: Schedule) -> Array:
        return compute_work_seconds(part, values)

    if contention_free:
        return replay(schedule, find_costs, find_work, levels=levels)
    return replay_round_by_round(schedule, find_costs, find_work)


def find_transfer_seconds(schedule: Schedule, values: Values, levels: Hierarchy) -> Array:
    """Return the seconds of each message's bytes without sharing."""
    classes = Classes.of(schedule, levels)
    byte_time = classes.column("G", schedule.bytes, values)
    return byte_time * count_link_bytes(schedule.bytes, values, classes.distance > 0)


def get_levels(values: Values) -> Hierarchy:
    """Return the levels of the parameter set, read once."""
    if "levels" not in values.cache:
        values.cache["levels"] = Hierarchy.of(values.settings.get("levels", {}))
    return values.cache["levels"]


def _is_free_of_contention(schedule: CompactSchedule, links: SharedLinks, values: Values) -> bool:
    """Return whether no two messages of a round share a link, and no link slows a message down, as
    in a ring in node order."""
    # `back`: messages in opposite directions of a link slow each other down.
    if "back" in values or not _consists_of_rings(schedule):
        return False
    for part in schedule.parts:
        if not isinstance(part, Rounds):
            continue
        first_round = part.round(0, schedule.node)
        if links.is_contended(
            first_round, find_transfer_seconds(first_round, values, links.levels)
        ):
            return False
    return True


def predict_in_time_order(
    schedule: Schedule,
    values: Values,
    levels: Hierarchy,
    representatives: Representatives | None = None,
) -> Array:
    """Return the finish times of each size and draw, each replayed in its own order of time.
    `representatives`: of which the schedule has the replayed messages."""
    sent = representatives.sent if representatives else schedule
    pattern_replay = _TimeOrderReplay(sent, values, levels, representatives)
    if schedule.bytes.ndim > 1:
        sizes = range(schedule.sizes)
        stack = (
            schedule.resize(schedule.bytes[size, 0], schedule.work.bytes[size, 0]) for size in sizes
        )
        return np.stack([pattern_replay.predict(one_size) for one_size in stack])
    return pattern_replay.predict(schedule)


class _TimeOrderReplay:
    """Replay of one pattern in the order of time, at any sizes. Data that do not depend on the
    sizes are computed once."""

    def __init__(
        self,
        schedule: Schedule,
        values: Values,
        levels: Hierarchy,
        representatives: Representatives | None = None,
        part: bool = False,
    ) -> None:
        """`part`: the schedule is a piece of a longer one."""
        self.values, self.classes = values, Classes.of(schedule, levels)
        self.passed_links = SharedLinks(levels, values).find_passed_links(
            schedule, self.classes, representatives.rotation if representatives else None, part
        )
        self.pair = representatives.pair if representatives else None
        self.is_whole = not (representatives or part)
        self.programs: dict[bytes, RankPrograms] = {}

    def predict(self, schedule: Schedule) -> Array:
        """Return the finish times at one size, of all draws. With very many messages, one draw at a
        time is in memory."""
        draws, draws_per_part = (
            self.values.draw_shape[0],
            max(MAX_COSTS_AT_ONCE // max(len(schedule.src), 1), 1),
        )
        parts: Iterable[Values] = [self.values]
        if draws_per_part < draws:
            firsts = range(0, draws, draws_per_part)
            parts = (self.values.select_draws(first, first + draws_per_part) for first in firsts)
        return np.stack(
            [
                replay_in_time(*prepared)
                for part in parts
                for prepared in self.prepare(schedule, part)
            ]
        )

    def prepare(self, schedule: Schedule, values: Values) -> Iterator[tuple[RankPrograms, Traffic]]:
        """Yield for each draw the operations of all ranks and their costs."""
        # Above S bytes the sender waits for the receiver. Above E bytes a message leaves when its
        # receiver is ready.
        inside = self.classes.distance == 0
        defaults = {
            "S": np.inf,
            "S_inside": values.numbers.get("S", np.inf),
            "E": np.inf,
            "back": 0.0,
        }
        numbers = (values.numbers.get(name, default) for name, default in defaults.items())
        S, S_inside, E, opposite_share = (
            np.broadcast_to(number, (*values.draw_shape, 1))[:, 0] for number in numbers
        )
        copying = copy_seconds_between_nodes(schedule.bytes, self.classes.distance > 0, values)
        ends = (
            values[name] + seconds for name, seconds in zip(("o_s", "o_r"), copying, strict=True)
        )
        send, receive = (
            np.broadcast_to(column, (*values.draw_shape, len(schedule.src))) for column in ends
        )
        wire = find_latency(schedule, values, self.classes)
        weights = find_weights(schedule, values, self.classes)
        offsets = find_offsets(self.passed_links, np.broadcast_to(wire, send.shape), values)
        byte_time = self.classes.column("G", schedule.bytes, values)
        unshared = byte_time * count_link_bytes(schedule.bytes, values, self.classes.distance > 0)
        link_seconds = self.passed_links.find_link_seconds(schedule.bytes, values)
        work = np.broadcast_to(
            compute_work_seconds(schedule, values), (*values.draw_shape, len(schedule.work.step))
        )
        programs: dict[tuple[float, ...], RankPrograms] = {}
        for draw in range(values.draw_shape[0]):
            limits = float(S[draw]), float(S_inside[draw]), float(E[draw])
            if limits not in programs:
                sender_waits = schedule.bytes > np.where(inside, S_inside[draw], S[draw])
                # E = 0: even empty messages use rendezvous.
                rendezvous = sender_waits | (schedule.bytes > E[draw]) | (E[draw] == 0)
                programs[limits] = self._find_program(schedule, sender_waits, rendezvous)
            yield (
                programs[limits],
                Traffic(
                    send[draw],
                    receive[draw],
                    wire[draw],
                    unshared[draw],
                    link_seconds[draw],
                    work[draw],
                    float(opposite_share[draw]),
                    weights[draw],
                    None if offsets is None else offsets[draw],
                ),
            )

    def _find_program(
        self, schedule: Schedule, sender_waits: np.ndarray, rendezvous: np.ndarray
    ) -> RankPrograms:
        """Return the operations of all ranks, which are the same for all sizes and draws whose
        messages use rendezvous alike."""
        key = sender_waits.tobytes() + rendezvous.tobytes()
        if key not in self.programs:
            one_at_a_time = self.values.settings.get("order") == ONE_AT_A_TIME
            uses = self.passed_links.message, self.passed_links.link
            opposite = self.passed_links.opposite
            # Only the messages of a whole schedule are bundled, and only if a pair may send
            # several at a time.
            queues = self.is_whole and not one_at_a_time
            self.programs[key] = RankPrograms.of(
                schedule,
                rendezvous,
                uses,
                one_at_a_time,
                sender_waits,
                opposite,
                self.pair,
                Bundles.of_queues(schedule, rendezvous, *uses, opposite) if queues else None,
            )
        return self.programs[key]


def copy_seconds_between_nodes(
    bytes: np.ndarray, between: np.ndarray, values: Values
) -> tuple[Array, Array]:
    """Return the extra time of sender and receiver for each message between nodes, over that of a
    short message."""
    of_sender, of_receiver = copy_seconds(bytes, values)
    return np.where(between, of_sender, 0.0), np.where(between, of_receiver, 0.0)


def copy_seconds(bytes: np.ndarray, values: Values) -> tuple[Array | float, Array | float]:
    """Return the extra time of sender and receiver by size: 0 for messages sent by rendezvous."""
    if "O_s" not in values.functions:
        return 0.0, 0.0
    is_eager = bytes <= np.minimum(values.numbers.get("S", np.inf), values.numbers.get("E", np.inf))
    return np.where(is_eager, values.at("O_s", bytes), 0.0), np.where(
        is_eager, values.at("O_r", bytes), 0.0
    )


def compute_work_seconds(schedule: Schedule, values: Values) -> Array:
    """Return the seconds of each row of local work. If copies were not measured, they take as long
    as reductions."""
    work = schedule.work
    seconds = values.at("gamma", work.bytes)
    if "copy" in values.functions:
        seconds = np.where(work.kind == KINDS.index("copy"), values.at("copy", work.bytes), seconds)
    return work.seconds + np.where(work.bytes > 0, seconds, 0.0)
