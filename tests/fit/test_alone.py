"""What a message alone takes is kept beside its price: of a machine whose long messages wait for their receiver, which
LogGP has no value for."""

import numpy as np
import pytest

from commodel.files.parameter_sets import read_parameters, write_parameters
from commodel.fit.probe_fits import fitted_set
from commodel.models.families import family
from commodel.models.fitting.observed import CaseSamples, Observed
from commodel.models.probes import Site, probe
from commodel.models.probes.mixture import AROUND, ROUNDS
from commodel.patterns.schedule import Schedule, stack
from commodel.price.model import Model
from commodel.price.validity import single_message_ratios
from tests.models.synthetic import observed, truth

LONG, HANDSHAKE = 16384, 300e-6


def evidence(crowd=1.0):
    """Messages of LONG bytes and more first ask whether they may come; of all nodes at once each takes `crowd` times as
    long."""
    machine = truth("loggp")
    several = dict(observed(machine, "loggp").probes)

    def asked(settings):
        return HANDSHAKE * (settings["bytes"] >= LONG)

    several["prtt"] = [
        CaseSamples(case.settings, case.seconds + 2 * asked(case.settings), case.passes) for case in several["prtt"]
    ]
    several["mixture"] = []
    for place, about in probe("mixture").plan(Site(12, 1), [1, 65536]):
        settings = {**about, "ranks": place.ranks, "layout": place.layout, "pair": "", "where": ""}
        once = machine.times["pingpong"](about) / 2 + asked(about)
        rounds = ROUNDS if about["turn"] == AROUND else 1
        if about["turn"] <= AROUND:
            several["mixture"].append(CaseSamples(settings, np.full(5, crowd * rounds * once), np.ones(5)))
    return Observed(several)


@pytest.fixture(scope="module")
def parameters():
    return fitted_set(family("loggp"), evidence())


def test_what_a_round_trip_took_stands_beside_the_price_of_one(parameters):
    trips, model = parameters.settings["alone"]["beyond"], Model.of_set(parameters, 0)
    assert trips["bytes"] == sorted(trips["bytes"])
    assert LONG in trips["bytes"]
    for size, took, priced in zip(*trips.values(), strict=True):
        both_ways = stack([Schedule.of(2, [0, 1], [0, 1], [1, 0], size, root=0)])
        assert priced == pytest.approx(float(model.cost(both_ways)[0, 0]), rel=1e-5)
        assert took / priced == pytest.approx(float(single_message_ratios(parameters, both_ways)[0]), rel=1e-5)
    one_way = truth("loggp").times["pingpong"]({"bytes": LONG}) / 2
    assert trips["took"][trips["bytes"].index(LONG)] == pytest.approx(2 * (one_way + HANDSHAKE), rel=0.02)


def test_it_survives_its_file(parameters, tmp_path):
    write_parameters(tmp_path / "set.yaml", parameters)
    assert read_parameters(tmp_path / "set.yaml").settings["alone"] == parameters.settings["alone"]


def test_what_is_as_wrong_alone_is_not_said_to_be_wrong_for_being_many(parameters):
    assert "crowded" not in parameters.settings
    crowd = fitted_set(family("loggp"), evidence(crowd=4.0)).settings["crowded"]["nodes"]
    assert crowd["times"] > 4
