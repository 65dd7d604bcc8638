"""The table of all probes (`PROBES`): the cases of each, the placement of its ranks, and the
schedule of a case.

A row needs a plan and, if a schedule describes the case, a pattern. Probes of network levels, of
pairs of nodes, and of the library's results have modules of their own.
"""

from itertools import product

import numpy as np

from commodel.models.fitting.round_trips import TRIP_KINDS
from commodel.models.keys import SAME_NODE, Pair
from commodel.models.probes import (
    BETWEEN,
    EVERYWHERE,
    MAX_VECTOR_BYTES,
    PACKET,
    PLAYER,
    CasePlacement,
    Probe,
    ProbePlan,
    Settings,
    Site,
    capacity,
    find_nodes_in_other_classes,
    list_counts,
    list_vector_sizes,
    make_round_trip,
    memory,
    mixture,
    node_pairs,
    place_cyclically,
    place_in_other_classes,
    place_on_node_pairs,
    place_on_one_node,
    place_one_per_node,
    place_spread,
    verify,
)
from commodel.patterns.schedule import Schedule

MTU_BYTES = 1500  # bytes
MAX_CHAIN_HEIGHT = 32
MAX_SENDERS = 8  # senders to one rank in probes `stream` and `flood`, receivers in `deal`
MAX_FAN_RANKS = 129
ROUND_PARTNERS = 64  # partners of a rank, as on the cluster of the LoP paper
ROUND_WAYS = ("isend", "list", "put")
STREAM_LENGTHS = (4, 12)  # messages of each sender
FRAME_BYTES = 1472  # with headers, one Ethernet frame
DATAGRAM_COUNTS = (64, 256, 1024, 4096)
SUPERSTEP_MESSAGES, MAX_SUPERSTEP_RANKS = (0, 1, 2, 4, 8), 64
# paths of copies: always into the same buffer (cache to cache), or each into a new one
REUSED_BUFFER = "ctc"
NEW_BUFFER = "anew"
MMAP_BYTES = 32 << 20  # bytes: glibc returns larger buffers to the system when freed
OVERLAPPING_MESSAGES = 16


def list_combinations(placement: CasePlacement, **settings: object) -> ProbePlan:
    """Return a case for every combination of the settings that are lists, the last setting varies
    fastest."""
    columns = [
        values if isinstance(values, list | tuple | range) else [values]
        for values in settings.values()
    ]
    return [(placement, dict(zip(settings, values, strict=True))) for values in product(*columns)]


def list_packet_sizes(sizes: list[int]) -> list[int]:
    """Return sizes of messages that fit into one packet."""
    return sorted({*(size for size in sizes if size < MTU_BYTES), MTU_BYTES})


def plan_pingpong(site: Site, sizes: list[int]) -> ProbePlan:
    for placement in (place_spread(site, 2), *place_in_other_classes(site)):
        yield from list_combinations(placement, bytes=sorted({*sizes, PACKET}))


def list_parametrised_cases(sizes: list[int]) -> list[Settings]:
    """Return the four kinds of round trip of each size."""
    return [
        {"n": n, "delay": delay, "late": late, "bytes": size}
        for n, delay, late in TRIP_KINDS
        for size in sizes
    ]


def plan_prtt(site: Site, sizes: list[int]) -> ProbePlan:
    return list(
        product(
            (place_spread(site, 2), *place_in_other_classes(site)), list_parametrised_cases(sizes)
        )
    )


def plan_pairprtt(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield round trips within and between nodes that `prtt` lacks. Pairs are of node types, not of
    nodes."""
    probed_pair = place_spread(site, 2).pair
    places = [
        placement
        for placement in (*place_on_one_node(site, 2), *place_on_node_pairs(site))
        if placement.pair != probed_pair
    ]
    return list(product(places, list_parametrised_cases(sizes)))


def make_plain_round_trip(case: Settings) -> Schedule | None:
    """Return the schedule of a round trip; None with delays, which a schedule cannot express."""
    delayed = case.get("n", 1) > 1 or case.get("delay") or case.get("late")
    return None if delayed else make_round_trip(case["bytes"])


def choose_tree_packet(sizes: list[int]) -> int:
    """Return the size of the messages that TAN is fitted to: 1 KiB, as in its paper, or the largest
    size probed if all are smaller."""
    return min(PACKET, max(sizes))


def plan_chain(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield chains of every height up to 32, as in the TAN paper. Ranks are placed cyclically over
    the nodes, so every hop crosses the network."""
    placement = place_cyclically(site, min(site.ranks, MAX_CHAIN_HEIGHT + 1))
    return list_combinations(
        placement, height=range(1, placement.ranks), bytes=choose_tree_packet(sizes)
    )


def make_chain(case: Settings) -> Schedule:
    """Return a packet along a chain of ranks and back."""
    height = case["height"]
    down, up = np.arange(height), np.arange(height, 0, -1)
    src, dst = np.concatenate([down, up]), np.concatenate([down + 1, up - 1])
    return Schedule.of(height + 1, np.arange(2 * height), src, dst, case["bytes"], root=0)


def plan_fan(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield messages from all to one rank (in) or from it to all (out), one rank a node."""
    placement = place_one_per_node(site, MAX_FAN_RANKS)
    partners, packet = list_counts(placement.ranks - 1), choose_tree_packet(sizes)
    return list_combinations(
        placement, direction=["in", "out"], n=partners, how="isend", bytes=packet, answer=0
    )


def plan_wave(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield the TAN paper's N-to-1 experiment (MRNetBench): the root requests, N leaves reply, and
    the time ends with the last reply."""
    placement = place_one_per_node(site, MAX_FAN_RANKS)
    packet = choose_tree_packet(sizes)
    round_trip = {"direction": "round", "how": "isend", "bytes": packet, "answer": packet}
    return list_combinations(placement, n=list_counts(placement.ranks - 1), **round_trip)


def plan_round(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield the rounds to which LoP is fitted: one byte from a rank to n partners, and one back
    from each."""
    placement = place_one_per_node(site, ROUND_PARTNERS + 1)
    return list_combinations(
        placement,
        how=ROUND_WAYS,
        n=list_counts(placement.ranks - 1),
        direction="round",
        bytes=1,
        answer=1,
    )


def plan_post(site: Site, sizes: list[int]) -> ProbePlan:
    placement = place_one_per_node(site, ROUND_PARTNERS + 1)
    return list_combinations(
        placement, how=(*ROUND_WAYS, "irecv"), n=list_counts(placement.ranks - 1), bytes=1
    )


def plan_triplet(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield a message from one rank to one or two others with empty answers, from which LMO
    separates the times of processors from those of the network."""
    for first, nodes in site.members().items():
        in_other_classes = [
            CasePlacement(3, "block:1", distant_nodes, str(Pair(first, first)))
            for distant_nodes in find_nodes_in_other_classes(site, 2)
        ]
        for placement in (*place_triplets(site, first, nodes), *in_other_classes):
            lengths = sorted({0, *sizes})
            yield from list_combinations(
                placement, n=[1, 2], bytes=lengths, direction="round", how="isend", answer=0
            )


def place_triplets(site: Site, first: str, nodes: range) -> list[CasePlacement]:
    """Return placements of three ranks whose root is on a node of the type: on three nodes of the
    type if possible, else on one, else with two nodes of other types."""
    if len(nodes) >= 3:
        return [CasePlacement(3, "block:1", tuple(nodes[:3]), str(Pair(first, first)))]
    if site.count_cores(first) >= 3:
        return [CasePlacement(3, "block:3", (nodes[0],), str(Pair(first, SAME_NODE)))]
    other_nodes = [node for node in range(site.nodes) if node not in nodes][:2]
    if len(other_nodes) == 2 and place_on_node_pairs(site):
        return [
            CasePlacement(
                3,
                "block:1",
                (nodes[0], *other_nodes),
                str(Pair(first, site.find_type(other_nodes[0]))),
            )
        ]
    return []


def make_fan(case: Settings) -> Schedule | None:
    """Return the schedule of a fan; None for lists and puts, which a schedule cannot express."""
    n, leaves = case["n"], np.arange(1, case["n"] + 1)
    if case["how"] != "isend":
        return None
    if case["direction"] == "in":
        return Schedule.of(n + 1, 0, leaves, 0, case["bytes"], root=0)
    if case["direction"] == "out":
        return Schedule.of(n + 1, 0, 0, leaves, case["bytes"])
    hub, reply_step = np.zeros(n, dtype=int), np.ones(n, dtype=int)
    step, sizes = np.concatenate([hub, reply_step]), np.repeat([case["bytes"], case["answer"]], n)
    return Schedule.of(
        n + 1, step, np.concatenate([hub, leaves]), np.concatenate([leaves, hub]), sizes, root=0
    )


def plan_ring(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield τ concurrent transfers on each channel: on one node, and cyclically over two nodes, so
    that every message crosses the network."""
    counts, pair = list_counts(site.cores), str(Pair(site.find_type(0), site.find_type(0)))
    rings = [
        placement for count in counts if count > 1 for placement in place_on_one_node(site, count)
    ]
    rings += [placement for count in counts for placement in place_on_node_pairs(site, count)]
    rings += [
        CasePlacement(2 * count, f"cyclic:{count}", nodes, pair)
        for nodes in find_nodes_in_other_classes(site, 1)
        for count in counts
    ]
    for placement in rings:
        yield from list_combinations(placement, procs=placement.ranks, bytes=sorted({0, *sizes}))


def make_ring(case: Settings) -> Schedule:
    """Return the schedule in which every rank sends to the next and receives from the previous
    one."""
    ranks = np.arange(case["procs"])
    return Schedule.of(case["procs"], 0, ranks, (ranks + 1) % case["procs"], case["bytes"])


def plan_pairs(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield round trips between several pairs at once, of at most one packet, as in the cluster
    model."""
    for pairs in list_counts(min(site.ranks, 64) // 2):
        yield from list_combinations(
            place_spread(site, 2 * pairs), pairs=pairs, bytes=list_packet_sizes(sizes)
        )


def make_pairs(case: Settings) -> Schedule:
    """Return the schedule of round trips between several pairs."""
    count = case["pairs"]
    first, second = np.arange(count), np.arange(count, 2 * count)
    step, src, dst = (
        np.repeat([0, 1], count),
        np.concatenate([first, second]),
        np.concatenate([second, first]),
    )
    return Schedule.of(2 * count, step, src, dst, case["bytes"])


def plan_stream(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield streams of two lengths. Their difference is the gap between receptions."""
    placement = place_spread(site, min(site.ranks, MAX_SENDERS + 1))
    return list_combinations(
        placement, senders=placement.ranks - 1, each=STREAM_LENGTHS, bytes=list_packet_sizes(sizes)
    )


def make_stream(case: Settings) -> Schedule:
    """Return the schedule of a stream from several ranks to one."""
    senders = np.tile(np.arange(1, case["senders"] + 1), case["each"])
    return Schedule.of(case["senders"] + 1, 0, senders, 0, case["bytes"], root=0)


def plan_deal(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield messages from one rank to several in turn, in two lengths.

    Their difference is the gap between sends; with one receiver it could be the receiver's gap.
    """
    placement = place_spread(site, min(site.ranks, MAX_SENDERS + 1))
    receivers = placement.ranks - 1
    # with fewer receivers, each gets more messages
    lengths = [length * MAX_SENDERS // receivers for length in STREAM_LENGTHS]
    return list_combinations(placement, n=receivers, each=lengths, bytes=list_packet_sizes(sizes))


def make_deal(case: Settings) -> Schedule:
    """Return the schedule of messages from one rank to several in turn."""
    receivers = np.tile(np.arange(1, case["n"] + 1), case["each"])
    return Schedule.of(case["n"] + 1, 0, 0, receivers, case["bytes"])


def plan_overlap(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield a computation during which messages arrive, the same computation without messages, and
    the calls that receive the messages."""
    for size in list_packet_sizes(sizes):
        for kind, messages in (
            ("control", 0),
            ("control", OVERLAPPING_MESSAGES),
            ("user", OVERLAPPING_MESSAGES),
        ):
            yield place_spread(site, 2), {"what": kind, "messages": messages, "bytes": size}


def plan_flood(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield UDP floods to one rank, from whose losses and times of arrival the buffer of the
    network is estimated.

    A datagram that the receiver's socket drops has passed the network, so it is counted separately.
    """
    placement = place_spread(site, min(site.ranks, MAX_SENDERS + 1))
    floods = [
        (kind, packets) for kind in ("through", "arrived", "held") for packets in DATAGRAM_COUNTS
    ] + [("room", 1)]
    for kind, packets in floods[:1] if site.simulated else floods:
        yield (
            placement,
            {
                "what": kind,
                "packets": packets,
                "senders": placement.ranks - 1,
                "bytes": FRAME_BYTES,
            },
        )


def plan_hrelation(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield supersteps of several h, on several numbers of ranks."""
    max_ranks = min(site.ranks, MAX_SUPERSTEP_RANKS)
    for procs in sorted({1 << power for power in range(1, max_ranks.bit_length())} | {max_ranks}):
        yield from list_combinations(
            place_spread(site, procs), procs=procs, h=SUPERSTEP_MESSAGES, bytes=PACKET
        )


def make_hrelation(case: Settings) -> Schedule | None:
    """Return the schedule of one superstep: every rank sends h messages and receives h."""
    procs, h = case["procs"], case["h"]
    if not h:
        return None
    rank, message = np.repeat(np.arange(procs), h), np.tile(np.arange(h), procs)
    return Schedule.of(procs, 0, rank, (rank + 1 + message % (procs - 1)) % procs, case["bytes"])


def plan_work(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield local reductions of vectors. Simulated platforms report 0.

    Sizes include those that points copy, because most models use these values for copies too.
    """
    lengths = {*list_vector_sizes(site, sizes, "reduce", "copy"), PACKET}
    return list_combinations(place_spread(site, 2), bytes=sorted(lengths))


def plan_memcopy(site: Site, sizes: list[int]) -> ProbePlan:
    """Yield copies from cache to cache, cache to memory, and memory to memory. Vectors longer than
    any message of the probes are included."""
    messages = sorted({size for size in sizes if size >= 64} or {PACKET})
    cases = list(product((REUSED_BUFFER, "ctm", "mtm"), messages))
    cases += [
        (REUSED_BUFFER, size)
        for size in list_vector_sizes(site, sizes, "copy")
        if size not in messages
    ]
    longest = min(max([*site.vectors.values(), *messages]), MAX_VECTOR_BYTES)
    if longest >= MMAP_BYTES and not site.simulated:
        cases += [(NEW_BUFFER, size) for size in sorted({MMAP_BYTES, longest})]
    return [(place_spread(site, 2), {"path": path, "bytes": size}) for path, size in cases]


PRTT_COLUMNS, FAN_COLUMNS = (
    ("n", "delay", "late", "bytes"),
    ("direction", "how", "n", "bytes", "answer"),
)
PROBE_LIST = (
    Probe(
        "pingpong",
        "round trip of one message",
        ("bytes",),
        plan_pingpong,
        classes=EVERYWHERE,
        pattern=make_plain_round_trip,
    ),
    Probe(
        "prtt",
        "round trip of a burst, with delays: each parameter of LogGP",
        PRTT_COLUMNS,
        plan_prtt,
        classes=EVERYWHERE,
        pattern=make_plain_round_trip,
    ),
    Probe(
        "pairprtt",
        "parametrised round trips by pair of types",
        PRTT_COLUMNS,
        plan_pairprtt,
        program="prtt",
        optional=True,
        pattern=make_plain_round_trip,
    ),
    Probe(
        "chain",
        "round trip along a chain of ranks",
        ("height", "bytes"),
        plan_chain,
        pattern=make_chain,
    ),
    Probe("fan", "N-to-1 and 1-to-N", FAN_COLUMNS, plan_fan, pattern=make_fan),
    Probe(
        "wave",
        "round trip of a wave from the root",
        FAN_COLUMNS,
        plan_wave,
        program="fan",
        pattern=make_fan,
    ),
    Probe(
        "round",
        "1-to-n and n-to-1 round trip",
        FAN_COLUMNS,
        plan_round,
        program="fan",
        pattern=make_fan,
    ),
    Probe("post", "posting n operations", ("how", "n", "bytes"), plan_post),
    Probe(
        "triplet",
        "one-to-two round trips",
        FAN_COLUMNS,
        plan_triplet,
        program="fan",
        optional=True,
        classes=BETWEEN,
        pattern=make_fan,
    ),
    Probe(
        "ring",
        "concurrent transfers, by channel",
        ("procs", "bytes"),
        plan_ring,
        program=PLAYER,
        optional=True,
        classes=BETWEEN,
        pattern=make_ring,
    ),
    Probe(
        "pairs",
        "ping-pongs between many pairs at once",
        ("pairs", "bytes"),
        plan_pairs,
        pattern=make_pairs,
    ),
    Probe(
        "stream",
        "streams of packets to one rank",
        ("senders", "each", "bytes"),
        plan_stream,
        pattern=make_stream,
    ),
    Probe(
        "deal",
        "packets from one rank to several in turn",
        ("n", "each", "bytes"),
        plan_deal,
        program=PLAYER,
        pattern=make_deal,
    ),
    Probe("overlap", "processor time of receiving", ("what", "messages", "bytes"), plan_overlap),
    Probe(
        "flood",
        "datagrams at full speed to one rank, counted",
        ("what", "senders", "packets", "bytes"),
        plan_flood,
    ),
    Probe(
        "hrelation",
        "supersteps of h messages a rank",
        ("procs", "h", "bytes"),
        plan_hrelation,
        pattern=make_hrelation,
    ),
    Probe("work", "local reduction", ("bytes",), plan_work),
    Probe("memcopy", "memory copies", ("path", "bytes"), plan_memcopy),
    memory.PROBE,
    capacity.PROBE,
    node_pairs.DISTANCE_PROBE,
    node_pairs.UNIFORMITY_PROBE,
    node_pairs.NODE_PAIRS_PROBE,
    mixture.PROBE,
    verify.PROBE,
)
PROBES = {entry.name: entry for entry in sorted(PROBE_LIST, key=lambda entry: entry.name)}
