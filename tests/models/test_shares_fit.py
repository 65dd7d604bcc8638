"""Model shares: fits to probes of synthetic machines with known parameters; local work by its
size."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from commodel.files.parameter_sets import write_parameters
from commodel.fits import probe_fits
from commodel.fits.probe_fits import fit_set
from commodel.hierarchy import Hierarchy
from commodel.models.evaluation.values import Values
from commodel.models.families import find_family, shares
from commodel.models.fitting import observed as samples
from commodel.models.parameter_sets import read_set
from commodel.models.probes import Site, find_probe
from commodel.models.probes.capacity import COMPUTE_SECONDS, FIRST_RECEIVED_BYTES, make_pattern
from commodel.patterns import build
from commodel.patterns.schedule import Schedule, Work
from commodel.predictions.model import Model
from commodel.predictions.predictions import predict
from tests.models.synthetic import observed, truth
from tests.models.truths.shares import C_LEAF, C_OUT, C_PORT, O_R, O_S, G, L, fluid, model, one_way
from tests.patterns.catalogue import point


@pytest.mark.parametrize("destination", [True, False])
def test_a_fit_finds_that_destinations_select_links(destination):
    """A leaf with two uplinks, each with the bandwidth of a single message."""
    plain = truth("shares").times["capacity"]

    def capacity(case):
        if case["level"] != "leaf":
            return plain(case)
        same = 2 if destination and case["how"] == "stride" and case["step"] % 2 == 0 else 1
        return one_way(
            "beyond",
            case["bytes"],
            case["flows"] / case["step"] ** (case["how"] == "all") * same * 6e-10,
        )

    machine = replace(truth("shares"), times=truth("shares").times | {"capacity": capacity})
    fitted = shares.fit(observed(machine, "shares"))
    assert fitted.settings.get("links") == ({"leaf": 2} if destination else None)


def test_a_link_capacity_that_is_lower_for_short_messages_is_fitted_by_size():
    """Messages below 2 KiB take three times as long per byte, as if each filled a packet of its
    own."""
    plain = truth("shares").times["capacity"]

    def capacity(case):
        if case["level"] != "leaf" or case["bytes"] == 1:
            return plain(case)
        c = C_OUT * (3 if case["bytes"] < 2048 else 1)
        return one_way("beyond", case["bytes"], case["flows"] * c)

    machine = replace(truth("shares"), times=truth("shares").times | {"capacity": capacity})
    fitted = shares.fit(observed(machine, "shares"))
    capacities = {
        name: draws[0] for name, draws in fitted.values.items() if name.startswith("c_out.leaf")
    }
    assert capacities["c_out.leaf.1920"] == pytest.approx(3 * C_OUT, rel=0.02)
    assert capacities["c_out.leaf.2048"] == pytest.approx(C_OUT, rel=0.02)
    assert len(capacities) < 6


def test_a_fit_finds_the_largest_eager_message_and_messages_sent_one_at_a_time():
    """Eager limits are powers of two, minus a header. Here messages above 16 KiB - 100 B use
    rendezvous."""
    late = FIRST_RECEIVED_BYTES * G["leaf"]

    def capacity(case):
        waits = case["how"] == "eager" and case["bytes"] > 16284
        return (
            late + case["bytes"] * G["leaf"] if waits else truth("shares").times["capacity"](case)
        )

    machine = replace(truth("shares"), times=truth("shares").times | {"capacity": capacity})
    fitted = shares.fit(observed(machine, "shares"))
    assert fitted.values["S"][0] == 16384 - 128
    assert fitted.settings["order"] == "turn"


def test_a_fit_finds_that_messages_to_one_rank_share_the_link_of_the_receiver():
    def capacity(case):
        if case["how"] != "order":
            return truth("shares").times["capacity"](case)
        begin = O_S * (1 + np.arange(case["flows"]))
        first = fluid(begin, np.full(case["flows"], case["bytes"] * G["leaf"]))[0]
        return first + L["leaf"] + O_R + one_way("leaf", 0)

    machine = replace(truth("shares"), times=truth("shares").times | {"capacity": capacity})
    fitted = shares.fit(observed(machine, "shares"))
    assert "S" in fitted.missing
    assert fitted.settings["order"] == "shared"


@pytest.mark.parametrize("limit", [0, 1500, None])
def test_a_fit_finds_the_largest_message_sent_before_the_receive_is_posted(limit):
    """Messages of up to `limit` bytes are transferred when they are sent (None: all). In a ring of
    longer messages, each round takes as long as the slowest link."""

    def capacity(case):
        waits = limit is not None and case["how"] == "start" and case["bytes"] > limit
        later = one_way("leaf", case["bytes"]) - O_S - O_R if waits else 0.0
        return truth("shares").times["capacity"](case) + later

    machine = replace(truth("shares"), times=truth("shares").times | {"capacity": capacity})
    fitted = shares.fit(observed(machine, "shares"))
    early = fitted.values["E"][0] if "E" in fitted.values else None
    assert early == {0: 0, 1500: 1024, None: None}[limit]  # the next size probed is 1536
    predicted = model(**({} if early is None else {"E": early}))
    for size in (8, 1200):
        ring = build.build_schedule(point("allgather", "ring", ranks=24, bytes=size))
        rounds = predicted.cost(ring) / one_way("beyond", size)
        assert (
            rounds == pytest.approx(23, rel=0.15)
            if early is not None and size > early
            else rounds < 13
        )


def test_a_fit_separates_growing_overheads_from_the_time_on_the_network():
    """Eager messages, up to 1024 B, are copied at either end; no copy overlaps with the sender or
    the transfer."""
    plain, most = truth("shares").times, 1024

    def more(case):
        return (
            2e-9 * case["bytes"] if case["bytes"] <= most and case.get("apart") != "node" else 0.0
        )

    def prtt(case):
        ends = 2 if case["late"] else 4 + (case["n"] - 1) * (case["delay"] > 0)
        return plain["prtt"](case) + ends * more(case)

    def capacity(case):
        if case["how"] != "start":
            return plain["capacity"](case)
        return (
            COMPUTE_SECONDS
            + O_R
            + (one_way("leaf", case["bytes"]) if case["bytes"] > most else more(case))
        )

    times = {
        "prtt": prtt,
        "distance": lambda case: plain["distance"](case) + 4 * more(case),
        "capacity": capacity,
    }
    fitted = shares.fit(observed(replace(truth("shares"), times=plain | times), "shares"))
    values = Values(
        {name: draws[:1, None] for name, draws in fitted.values.items()},
        fitted.forms,
        fitted.settings,
    )
    for size in (700, 1024, 3000):
        copying, pattern = more({"bytes": size}), Schedule.of(24, 0, 0, 1, size)
        assert values.at("L.leaf", np.array(size))[0] == pytest.approx(L["leaf"], rel=0.1)
        assert values.at("G.leaf", np.array(size))[0] == pytest.approx(G["leaf"], rel=0.01)
        assert shares.predict(pattern, values)[0, 1] == pytest.approx(
            one_way("leaf", size) + 2 * copying, rel=0.04
        )
        assert size > most or shares.predict(pattern, values)[0, 0] == pytest.approx(
            O_S + copying, rel=0.02
        )
        near = Schedule.of(2, 0, 0, 1, size).place(np.zeros(2, dtype=int))
        assert shares.predict(near, values)[0, 1] == pytest.approx(one_way("node", size), rel=0.02)


@pytest.mark.parametrize("shared", [True, False])
def test_a_fit_finds_that_acknowledgements_share_the_link_of_opposite_messages(shared):
    """One message meets `flows` opposite messages. If its acknowledgements share their link, it
    takes as long as they do. Equal numbers of messages in both directions take 5 % longer."""
    plain = truth("shares").times["capacity"]

    def capacity(case):
        if case["how"] == "against" and shared:
            return one_way("leaf", case["bytes"], (case["flows"] + 0.05) * C_PORT)
        return plain(case) * (1.05 if case["ways"] == 2 else 1)

    fitted = shares.fit(
        observed(
            replace(truth("shares"), times=truth("shares").times | {"capacity": capacity}), "shares"
        )
    )
    assert ("back" in fitted.values) == shared
    if shared:
        assert fitted.values["back"][0] == pytest.approx(0.05, rel=0.01)
    against = make_pattern({"how": "against", "procs": 4, "flows": 2, "bytes": 10**6})
    values = Values(
        {name: draws[:1, None] for name, draws in fitted.values.items()},
        fitted.forms,
        fitted.settings,
    )
    lasts = one_way("leaf", 10**6, 2.05 * C_PORT if shared else 3 * C_LEAF)
    assert shares.predict(against, values)[0, 3] == pytest.approx(lasts, rel=0.02)


def test_a_fit_finds_half_duplex_ports():
    """Ports of nodes are half duplex, links of leaves are not."""
    plain = truth("shares").times["capacity"]

    def capacity(case):
        return plain(case) * (2 if case["ways"] == 2 and case["level"] == "node" else 1)

    fitted = shares.fit(
        observed(
            replace(truth("shares"), times=truth("shares").times | {"capacity": capacity}), "shares"
        )
    )
    assert fitted.settings["half_duplex"] == ["node"]


MIB = 1 << 20
CACHE = 4 * MIB


def beyond_cache(near, far):
    return lambda case: near * min(case["bytes"], CACHE) + far * max(case["bytes"] - CACHE, 0)


def copied(case):
    """Return the time of a copy. A copy into a new buffer takes ten times as long."""
    return beyond_cache(2e-11, 6e-11)(case) * (10 if case["path"] == "anew" else 1)


@cache
def evidence(name, longest=64 * MIB):
    machine = truth(name)
    site = replace(machine.site, vectors={"reduce": longest, "copy": longest} if longest else {})
    times = {**machine.times, "work": beyond_cache(1e-10, 4e-10)}
    if "memcopy" in times:
        times["memcopy"] = copied
    return observed(replace(machine, site=site, times=times), name)


@cache
def parameters(name, longest=64 * MIB):
    # The tests use neither the intervals nor the error at left-out cases.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "DEFAULT_DRAWS", 20)
        patch.setattr(probe_fits, "measure_left_out_error", lambda *_: {})
        return fit_set(find_family(name), evidence(name, longest))


def work_seconds(kind, size):
    """Return the predicted time of local work on this many bytes."""
    work = getattr(Work, kind)([0], [1], [size])
    with_work, without = (Schedule.of(2, 0, [0], [1], [8], work=work) for work in (work, None))
    model = Model.of_set(parameters("shares"))
    return (model.cost(with_work) - model.cost(without))[0]


@pytest.mark.parametrize("size", [4096, 65536, CACHE, 16 * MIB, 48 * MIB, 64 * MIB])
def test_model_shares_predicts_local_work_by_size(size):
    case = {"bytes": size, "path": "ctc"}
    assert work_seconds("reduce", size) == pytest.approx(beyond_cache(1e-10, 4e-10)(case))
    assert work_seconds("copy", size) == pytest.approx(copied(case))


def test_copies_into_new_buffers_are_fitted_but_not_predicted():
    fitted = parameters("shares")
    assert fitted.values[f"anew.{64 * MIB}"].value == pytest.approx(
        copied({"bytes": 64 * MIB, "path": "anew"})
    )
    slower = {
        key: np.array([[value.value * (9 if key.startswith("anew") else 1)]])
        for key, value in fitted.values.items()
    }
    pattern = Schedule.of(2, 0, [0], [1], [8], work=Work.copy([0], [1], [64 * MIB]))
    entry = find_family("shares")
    predictions = [
        Model.of(entry, values).cost(pattern)[0]
        for values in (Values.of(fitted), Values(slower, fitted.forms, fitted.settings))
    ]
    assert predictions[0] == predictions[1] > 0


def test_the_cluster_model_fits_copies_only_to_sizes_within_the_cache():
    """The three copy paths of the model are probed at one size each; longer vectors are probed on
    one path only."""
    few, many = (
        find_family("cluster").fit(evidence("cluster", longest)).values for longest in (0, 64 * MIB)
    )
    assert many["M_ctc.b"][0] == few["M_ctc.b"][0]


def test_a_parameter_set_stores_the_longest_probed_vectors(tmp_path):
    fitted = parameters("shares")
    assert fitted.vectors == {"reduce": 64 * MIB, "copy": 64 * MIB}
    assert parameters("loggp").vectors == {"reduce": 64 * MIB}
    write_parameters(tmp_path / "set.yaml", fitted)
    assert read_set(tmp_path / "set.yaml").vectors == fitted.vectors


@pytest.mark.parametrize(
    ("name", "longest", "validity"),
    [
        ("shares", 64 * MIB, "valid"),
        ("shares", 0, "extrapolated: 96 KiB copied at once, measured up to 64 KiB"),
        ("loggp", 64 * MIB, "valid"),
        ("loggp", 0, "extrapolated: 96 KiB copied at once, measured up to 64 KiB"),
    ],
)
def test_vectors_longer_than_the_probed_ones_are_extrapolated(name, longest, validity):
    """Bruck's algorithm copies longer vectors at once than it sends in a message."""
    (prediction,) = predict(
        parameters(name, longest), [point("alltoall", "bruck", ranks=8, bytes=8192)]
    )
    assert prediction.validity_text == validity


def test_intervals_of_extrapolated_vectors_widen_as_for_extrapolated_messages():
    fitted = replace(parameters("loggp", 0), left_out={"error": 0.2, "cases": 5}, draws={})
    (prediction,) = predict(fitted, [point("alltoall", "bruck", ranks=8, bytes=8192)])
    assert np.log(prediction.high / prediction.seconds) == pytest.approx(
        1.96 * np.log(1.2) * np.sqrt(np.log2(96 / 64))
    )


@pytest.mark.parametrize("hop", [0.0, 2e-6])
def test_a_fit_finds_the_latency_of_each_pair_if_nodes_form_no_groups(hop):
    """The nodes form a row: each node between two others adds the latency of one hop."""
    seen = observed(truth("shares"), "shares")
    nodes, levels = truth("shares").site.nodes, Hierarchy.of(seen.levels)
    cases = [
        samples.CaseSamples(
            {"one": one, "two": two, "nodes": nodes, "trips": 1, "bytes": bytes},
            np.full(
                3,
                2
                * (
                    one_way(levels.names[int(levels.distance(one, two))], bytes)
                    + hop * (two - one - 1)
                ),
            ),
            np.ones(3, dtype=int),
            None,
        )
        for one in range(nodes)
        for two in range(one + 1, nodes)
        for bytes in (8, 65536)
    ]
    fitted = shares.fit(replace(seen, probes={**seen.probes, "nodepairs": cases}))
    if not hop:
        assert "pair_latency" not in fitted.settings
        return
    one, two = np.triu_indices(nodes, 1)
    assert fitted.settings["pair_latency"] == pytest.approx(hop * (two - one - 1), abs=1e-8)


@pytest.mark.parametrize("way", ["equal", "latency"])
def test_a_fit_finds_whether_distant_messages_get_smaller_shares_of_a_port(way):
    """The message to the distant node has the same weight as that to the near node, or a quarter of
    it. The near message ends when the distant one has used its share."""
    plain = truth("shares").times["capacity"]

    def capacity(case):
        share = {"equal": 1.0, "latency": L["leaf"] / L["beyond"]}[way]
        return (
            one_way("leaf", case["bytes"], (1 + share) * C_PORT)
            if case["how"] == "unequal"
            else plain(case)
        )

    def distance(case):
        return 2 * (
            O_S
            + L[case["apart"]]
            + case["bytes"] * (G["node"] if case["apart"] == "node" else G["leaf"])
            + O_R
        )

    machine = replace(
        truth("shares"), times=truth("shares").times | {"capacity": capacity, "distance": distance}
    )
    assert shares.fit(observed(machine, "shares")).settings.get("sharing", "equal") == way


@pytest.mark.parametrize("entry", ["path", "latency"])
def test_a_fit_finds_whether_messages_use_a_port_before_or_after_their_latency(entry):
    """If messages use the port after their latency, the near message has the whole port until the
    distant message arrives there."""
    plain = truth("shares").times["capacity"]

    def capacity(case):
        if case["how"] != "unequal" or entry == "path":
            return plain(case)
        once, latency_difference = case["bytes"] * C_PORT, L["beyond"] - L["leaf"]
        return O_S + L["leaf"] + max(once, 2 * once - latency_difference) + O_R

    machine = replace(truth("shares"), times=truth("shares").times | {"capacity": capacity})
    settings = shares.fit(observed(machine, "shares")).settings
    assert settings.get("entry", "path") == entry
    assert settings.get("sharing", "equal") == "equal"


def test_a_slower_link_is_not_mistaken_for_shares_by_latency():
    plain = truth("shares").times["capacity"]
    fast = replace(
        truth("shares"),
        times=truth("shares").times
        | {
            "capacity": lambda case: (
                one_way("leaf", case["bytes"], C_PORT) if case["how"] == "unequal" else plain(case)
            )
        },
    )
    assert shares.fit(observed(fast, "shares")).settings.get("sharing", "equal") == "equal"


def test_the_capacity_of_a_port_is_fitted_to_messages_to_distant_nodes():
    """Near nodes are reached over fewer links than distant ones, as in a torus."""
    plain = truth("shares").times["capacity"]

    def capacity(case):
        if (case["level"], case["how"]) == ("node", "far"):
            return one_way("beyond", case["bytes"], case["flows"] * C_PORT / 2)
        return plain(case)

    machine = replace(truth("shares"), times=truth("shares").times | {"capacity": capacity})
    fitted = shares.fit(observed(machine, "shares")).values
    assert fitted["c_out.node.65536"][0] == pytest.approx(C_PORT / 2, rel=0.05)
    assert "c_pair.node.65536" in fitted
    assert "c_pair.node.65536" not in shares.fit(observed(truth("shares"), "shares")).values


@pytest.mark.parametrize("added", [0.0, 5e-4])
def test_slow_ports_are_not_mistaken_for_slow_links_of_their_groups(added):
    """Nodes 12 to 23 have slower ports. Only the link of the last leaf is slower than its ports.
    Messages above 256 B may have an added latency."""
    port, slow_link, machine = np.repeat([1.0, 2.0], 12) * G["beyond"], G["beyond"], truth("shares")

    def added_latency(size):
        return added if size > 256 else 0.0

    def one_message(case):
        nodes = [int(node) for node in str(case["where"]).split("+")]
        return one_way(case["apart"], case["bytes"], port[nodes].max()) + added_latency(
            case["bytes"]
        )

    def capacity(case):
        if case["level"] != "leaf":
            return machine.times["capacity"](case)
        nodes, pattern = (
            np.array([int(node) for node in str(case["where"]).split("+")]),
            make_pattern(case),
        )
        src, dst = nodes[pattern.src], nodes[pattern.dst]
        busy = [link * np.bincount(ends, minlength=24) for link, ends in ((port, src), (port, dst))]
        last = [slow_link * np.count_nonzero(ends >= 20) for ends in (src, dst)]
        return one_way("beyond", case["bytes"], max(np.max(busy), *last)) + added_latency(
            case["bytes"]
        )

    seen = observed(
        replace(
            machine,
            times=machine.times
            | {"capacity": capacity, "distance": lambda case: 2 * one_message(case)},
        ),
        "shares",
    )
    cases = []
    for case in find_probe("nodepairs").cases("synthetic", machine.site, [8]):
        apart = "leaf" if case.settings["one"] // 4 == case.settings["two"] // 4 else "beyond"
        settings = {**case.settings, "where": "+".join(map(str, case.where)), "ranks": 2}
        slowest = port[[case.settings["one"], case.settings["two"]]].max()
        size = case.settings["bytes"]
        seconds = 2 * case.settings["trips"] * (one_way(apart, size, slowest) + added_latency(size))
        cases.append(samples.CaseSamples(settings, np.full(5, seconds), np.ones(5, dtype=int)))
    fitted = shares.fit(replace(seen, probes={**seen.probes, "nodepairs": cases}))
    ports = np.array(fitted.settings["link_factors"]["node"])
    assert ports[12:] / ports[:12] == pytest.approx(2.0, rel=0.05)
    [capacity_seconds] = [
        draws[0] for name, draws in fitted.values.items() if name.startswith("c_out.leaf")
    ]
    by_leaf = capacity_seconds * np.array(fitted.settings["link_factors"]["leaf"])
    assert by_leaf[5] == pytest.approx(slow_link, rel=0.05)
    # four messages at a time do not slow each other down
    assert by_leaf[:5].max() < port.max() / 4 * 1.05


def test_a_network_without_levels_but_with_a_protocol_change_is_fitted():
    """G is a table of samples, and no probe has messages to distant nodes."""
    machine = truth("shares")

    def round_trip(case):
        return (
            2
            * one_way(case["apart"], case["bytes"])
            * (1.5 if case["bytes"] % 3 == 0 and case["bytes"] else 1.0)
        )

    times = machine.times | {"distance": round_trip}
    flat = replace(
        machine, times=times, site=replace(machine.site, levels=Hierarchy.written({}, 24))
    )
    fitted = shares.fit(observed(flat, "shares"))
    assert {"G.beyond.65536", "c_out.node.65536"} <= fitted.values.keys()


def test_a_latency_that_hides_the_bytes_does_not_change_the_capacity_for_short_messages(
    monkeypatch,
):
    """Two sites have a latency of 1 ms, plus a delay that changes with the size in steps."""
    monkeypatch.setitem(L, "beyond", 1e-3)
    machine = truth("shares")

    def delay(time):
        def delayed(case):
            is_far = case.get("level") == "leaf" or case.get("how") in ("far", "in")
            trips = 2 if case.get("apart") == "beyond" else is_far
            steps = np.array([1e-3, 9.5e-4, 6e-4, 9e-4, 1.2e-3, 1.5e-3, 2.5e-3])
            return (
                time(case)
                + trips * steps[np.searchsorted([256, 700, 1400, 3400, 5700, 9300], case["bytes"])]
            )

        return delayed

    delayed = {name: delay(machine.times[name]) for name in ("distance", "capacity")}
    fitted = shares.fit(observed(replace(machine, times=machine.times | delayed), "shares"))
    capacities = {
        int(name.split(".")[2]): fitted.values[name][0]
        for name in fitted.values
        if "c_out.leaf" in name
    }
    # of which near nodes show the bytes
    visible = [capacity for size, capacity in capacities.items() if size >= 256]
    assert visible == pytest.approx([C_OUT] * len(visible), rel=0.05)


def test_on_a_single_node_messages_within_it_are_fitted():
    """No pair of nodes is there, whose time per byte others could be compared with."""
    machine = replace(truth("shares"), site=Site(1, 8), sizes=(8, 1024, 65536, 1 << 20))
    fitted = shares.fit(observed(machine, "shares"))
    assert fitted.values["L.node.a"][0] == pytest.approx(L["node"], rel=0.01)
    assert fitted.values["c_inside.node.65536"][0] == pytest.approx(8e-11, rel=0.05)
