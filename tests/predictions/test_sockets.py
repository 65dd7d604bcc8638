"""Sockets and memory of nodes in predictions from data sheets: closed forms, limits of all models,
and what is remarked."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from commodel.api.fits import read_data_sheet
from commodel.errors import UserError
from commodel.files.parameter_sets import read_parameters, write_parameters
from commodel.patterns.algorithms import find_algorithms
from commodel.plan.config import load_platform
from commodel.predictions.predictions import predict
from commodel.predictions.sockets import number_sockets
from tests.cli.running import read_rows
from tests.patterns.catalogue import point

MODELS = ("shares", "hockney", "loggp")
OF_MESSAGE, OF_SOCKET, OF_LINK = 8e9, 90e9, 40e9  # bytes per second
SIZE = 1 << 16  # bytes
MEMORY = {"bandwidth": "8 GB/s", "latency": "0.3us"}
BETWEEN = {"bandwidth": "6 GB/s", "latency": "0.6us", "total": "40 GB/s"}
WITH_TOTAL = MEMORY | {"total": "90 GB/s"}


def make_platform(memory, sockets=None, levels=None):
    links = {"node": {"bandwidth": "100 Gbit/s", "latency": "0.5us"}}
    links |= {name: links["node"] | {"uplinks": 4} for name in levels or {}}
    sheet = {"links": links, "memory": memory}
    sheet |= {"sockets": sockets} if sockets else {}
    return {
        "launcher": "slurm",
        "nodes": 24,
        "cores": 32,
        "levels": levels or {},
        "data_sheet": sheet,
    }


def read_set(folder, model, memory, sockets=None, levels=None):
    path = folder / "fat.yaml"
    path.write_text(yaml.safe_dump(make_platform(memory, sockets, levels)))
    return read_data_sheet(model, path)


def predict_one(parameters, *names, **properties):
    (prediction,) = predict(parameters, [point(*names, **properties)])
    return prediction


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(2, 5))
def test_ranks_of_a_node_are_divided_evenly_in_their_order(nodes, sockets):
    numbers = number_sockets(np.array(nodes), sockets)
    assert (numbers // sockets).tolist() == nodes
    for node in set(nodes):
        of_node = numbers[np.array(nodes) == node]
        assert (np.diff(of_node) >= 0).all()
        assert max(np.bincount(of_node - node * sockets)) == -(-len(of_node) // sockets)


# memory of the sheet, sockets, the time of an exchange of 32 ranks, and its relative error
EXCHANGES = {
    "memory": (WITH_TOTAL, None, 32 * 31 * SIZE / OF_SOCKET, 0.01),
    "link between sockets": (WITH_TOTAL | {"between": BETWEEN}, 2, 16 * 16 * SIZE / OF_LINK, 0.02),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("memory", "sockets", "seconds", "error"), EXCHANGES.values(), ids=EXCHANGES
)
def test_an_exchange_in_a_node_takes_what_its_narrowest_part_takes(
    model, memory, sockets, seconds, error, tmp_path
):
    parameters = read_set(tmp_path, model, memory, sockets)
    exchange = {"ranks": 32, "bytes": SIZE, "layout": "block:32"}
    predicted = predict_one(parameters, "alltoall", "linear", **exchange)
    assert predicted.seconds == pytest.approx(seconds, rel=error)


@pytest.mark.parametrize("model", MODELS)
def test_a_message_between_sockets_has_their_latency_and_bandwidth(model, tmp_path):
    parameters = read_set(tmp_path, model, WITH_TOTAL | {"between": BETWEEN}, sockets=2)
    two = {"ranks": 2, "bytes": SIZE, "layout": "block:2"}
    predicted = predict_one(parameters, "bcast", "linear", **two)
    assert predicted.seconds == pytest.approx(6e-7 + SIZE / 6e9, rel=1e-3)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("operation", ["bcast", "allreduce", "allgather", "alltoall", "reduce"])
def test_no_prediction_is_faster_than_the_memory(model, operation, tmp_path):
    slow = read_set(tmp_path, model, MEMORY | {"total": "9 GB/s"})
    for algorithm, entry in find_algorithms(operation).items():
        if entry.needs_argument:
            continue
        collective = {"ranks": 16, "bytes": SIZE, "layout": "block:16"}
        predicted = predict_one(slow, operation, algorithm, **collective)
        # Every rank but one receives a block at least, or the whole vector in parts.
        assert predicted.seconds >= SIZE * 15 / 16 / 9e9, algorithm


def test_without_a_total_it_is_remarked_that_nothing_limits_the_sum(tmp_path):
    ring = {"ranks": 768, "bytes": SIZE, "layout": "block:32"}
    unlimited = predict_one(read_set(tmp_path, "loggp", MEMORY), "allgather", "ring", **ring)
    rate = 767 * 31 * SIZE / unlimited.seconds
    assert rate > 32 * OF_MESSAGE * 0.9
    assert f"ranks of a node copy {rate / 1e9:.0f} GB/s together" in unlimited.validity_text
    limited = predict_one(read_set(tmp_path, "loggp", WITH_TOTAL), "allgather", "ring", **ring)
    assert "as long as the memory of a node takes" in limited.validity_text
    assert limited.seconds == pytest.approx(767 * 31 * SIZE / OF_SOCKET)
    alone = {"ranks": 24, "bytes": SIZE, "layout": "block:1"}
    alone_seconds = predict_one(read_set(tmp_path, "loggp", MEMORY), "allgather", "ring", **alone)
    assert alone_seconds.validity_text == "from data sheets, not measured"


def test_levels_of_the_network_keep_their_groups(tmp_path):
    memory = WITH_TOTAL | {"between": BETWEEN}
    parameters = read_set(tmp_path, "shares", memory, sockets=4, levels={"leaf": 8})
    assert parameters.settings["levels"]["host"] == np.repeat(np.arange(24), 4).tolist()
    assert parameters.settings["levels"]["leaf"] == np.repeat(np.arange(3), 32).tolist()
    path = tmp_path / "set.yaml"
    write_parameters(path, parameters)
    assert read_parameters(path).settings == parameters.settings


def test_predict_and_advise_have_one_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    memory = WITH_TOTAL | {"between": BETWEEN}
    write_parameters(tmp_path / "set.yaml", read_set(tmp_path, "hockney", memory, sockets=2))
    asked = "--params set.yaml --platform fat.yaml --operation alltoall --ranks 32 --bytes 64KiB"
    asked += " --layout block:32"
    advised = read_rows(f"advise {asked}")
    assert advised
    for alternative in advised:
        (predicted,) = read_rows(f"predict {asked} --algorithm {alternative['alternative']}")
        assert predicted["seconds"] == alternative["seconds"]


@pytest.mark.parametrize("model", MODELS)
def test_sets_are_read_as_they_were_written(model, tmp_path):
    parameters = read_set(tmp_path, model, WITH_TOTAL)
    path = tmp_path / "set.yaml"
    write_parameters(path, parameters)
    assert read_parameters(path).values == parameters.values


@pytest.mark.parametrize("model", MODELS)
def test_a_rank_copies_as_fast_as_a_message_within_its_node(model, tmp_path):
    """Bruck's alltoall copies all blocks before and after its rounds, and what each round sends."""
    parameters = read_set(tmp_path, model, WITH_TOTAL)
    names = ("alltoall", "bruck")
    with_copies = predict_one(parameters, *names, ranks=4, bytes=SIZE, layout="block:1").seconds
    values = {name: estimate for name, estimate in parameters.values.items() if "gamma" not in name}
    without = predict_one(
        replace(parameters, values=values, forms={}), *names, ranks=4, bytes=SIZE, layout="block:1"
    ).seconds
    copied_blocks = 4 + 2 + 2 + 4
    assert with_copies - without == pytest.approx(copied_blocks * SIZE / OF_MESSAGE, rel=0.01)
    note = next(estimate.note for name, estimate in parameters.values.items() if "gamma" in name)
    assert "not in data sheets: assumed to take as long as a message within a node" in note


@pytest.mark.parametrize(
    ("memory", "sockets", "message"),
    [
        (WITH_TOTAL, 2, "found sockets, wanted memory.between, too"),
        (WITH_TOTAL | {"between": BETWEEN}, None, "wanted the number of sockets"),
        (WITH_TOTAL | {"between": BETWEEN}, 1, "wanted a whole number from 2 to 64"),
        (WITH_TOTAL | {"total": "90"}, None, "wanted a bandwidth such as"),
    ],
)
def test_incomplete_sockets_are_refused_in_one_line(memory, sockets, message, tmp_path):
    path = tmp_path / "fat.yaml"
    path.write_text(yaml.safe_dump(make_platform(memory, sockets)))
    with pytest.raises(UserError) as caught:
        load_platform(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)
