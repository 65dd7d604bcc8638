"""Cases of an MPI library's own collectives that fail under selection rules, read from the files of
a start."""

import pytest

from commodel.files.safe_paths import SafePath
from commodel.plan.config import find_config_file, load_platform
from commodel.plan.planning import make_resources
from commodel.records import LIBRARY, Choice, Measure
from commodel.results import raw_samples
from commodel.results.raw_samples import STOPPED_BY_FAILURES
from commodel_tune.dialects import OPEN_MPI_DIALECT
from commodel_tune.timer import LibraryTimer, _read_times
from tests.refusals import catch_error_message


class Failing(LibraryTimer):
    """Mark the second case as timed out, and all later cases as given up."""

    def _run(self, raw, batch, how, settings):
        raw.mkdir()
        for number, case in enumerate(batch.cases[1:]):
            reason = (
                "not done after 20 s"
                if number == 0
                else f"{STOPPED_BY_FAILURES}: not done after 20 s"
            )
            raw_samples.write_marker(raw, case.id, raw_samples.TIMEOUT, reason, 1)
        return raw


@pytest.mark.parametrize("algorithm", [LIBRARY, "linear"])
def test_untried_cases_are_failures_of_an_algorithm_but_not_of_the_library_default(
    tmp_path, algorithm
):
    """After three successive failures of the library default the other cases are not tried; they
    might pass."""
    loaded = load_platform(find_config_file("platform", "local"))
    measure = Measure("barrier", 0.1, 5, 10, 0.1, 1, 1, 60.0)
    place = Failing(
        "local", loaded, make_resources(loaded), OPEN_MPI_DIALECT, measure, SafePath.at(tmp_path)
    )
    failures = place.find_failures(
        "results", "gather", [64], [Choice("gather", 2, 0, algorithm)], "block"
    )
    given_up = [why for why in failures.values() if why.startswith(STOPPED_BY_FAILURES)]
    assert len(failures) - len(given_up) == 1
    assert bool(given_up) == (algorithm != LIBRARY)


ROW = '["bcast", 2, "block", 8, %s, 0.05]'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "took: found nothing, wanted seconds"),
        ('{"took": NaN, "workloads": []}', "took: found 'nan', wanted seconds"),
        ('{"took": 1, "workloads": 5}', "workloads: found '5', wanted a list"),
        *(
            (f'{{"took": 1, "workloads": [{ROW % number}]}}', "workloads[0]: found a list, wanted ")
            for number in ("NaN", "-1", "0", "1e999", "true", '"1"', "null")
        ),
        ('{"took": 1, "workloads": [["bcast", 2]]}', "workloads[0]: found a list, wanted "),
    ],
)
def test_a_damaged_file_of_times_is_refused(text, message, tmp_path):
    """Such as one of which a program of somebody else has replaced a time."""
    (tmp_path / "times.json").write_text(text)
    found = catch_error_message(_read_times, SafePath(tmp_path) / "times.json")
    assert found.startswith(f"{tmp_path}/times.json: {message}")
    assert "\n" not in found
