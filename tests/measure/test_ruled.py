"""What fails under rules: read from what a start leaves behind."""

import pytest

from commodel.api.library_rules import OPEN
from commodel.files.safe_paths import SafePath
from commodel.measure.library_collectives import Place
from commodel.plan.config import find, load_platform
from commodel.plan.planning import setting_of
from commodel.records import LIBRARY, Choice, Measure
from commodel.results import raw_samples
from commodel.results.raw_samples import GIVEN_UP


class Failing(Place):
    """Its second case hangs, and all after it are given up."""

    def _run(self, raw, batch, how, settings):
        raw.mkdir()
        for number, case in enumerate(batch.cases[1:]):
            reason = "not done after 20 s" if number == 0 else f"{GIVEN_UP}: not done after 20 s"
            raw_samples.mark(raw, case.id, raw_samples.TIMEOUT, reason, 1)
        return raw


@pytest.mark.parametrize("algorithm", [LIBRARY, "linear"])
def test_what_was_not_tried_excuses_no_rule(tmp_path, algorithm):
    """After three failures in a row of the library itself nothing else is tried: other cases may well pass there."""
    loaded = load_platform(find("platform", "local"))
    measure = Measure("barrier", 0.1, 5, 10, 0.1, 1, 1, 60.0)
    place = Failing("local", loaded, setting_of(loaded), OPEN, measure, SafePath.at(tmp_path), lambda text: None)
    failures = place.find_failures("results", "gather", [64], [Choice("gather", 2, 0, algorithm)], "block")
    given_up = [why for why in failures.values() if why.startswith(GIVEN_UP)]
    assert len(failures) - len(given_up) == 1
    assert bool(given_up) == (algorithm != LIBRARY)
