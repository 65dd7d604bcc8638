"""What report and terminal say of memory that has left the caches, and of a machine that others were using."""

import pandas as pd
import pytest
from tests.reading import sentences

from commodel.cli.run import outcome
from commodel.compare.model_ranking import ranked
from commodel.files.results_folder import Results
from commodel.predictions.validity import PriceStatus
from commodel.reports import build, stored
from commodel.reports.sections import conditions

TRUST = "Which model to trust"


def on_this_machine(comparison, operation="summa:n=16:grid=1x2", ratio=2.0):
    """A platform of it, as if it were real, its points a kernel's that took so many times their prices."""
    there = comparison["platform"] == "ether16"
    frame = comparison.assign(batch="ether16-1")
    frame.loc[there, ["operation", "simulated"]] = operation, False
    for key in ("measured", "measured_low", "measured_high"):
        frame.loc[there, key] = ratio * frame.loc[there, "predicted"]
    return frame


@pytest.mark.parametrize(("ratio", "said"), [(2.0, True), (1.0, False)])
def test_kernels_find_their_memory_cold(small, ratio, said):
    lines = sentences(build(on_this_machine(small, ratio=ratio), experiment="cold"), TRUST)
    cold = [line for line in lines if line.startswith("ether16: Kernels took ")]
    assert len(cold) == said
    assert all("took 2 times their prices" in line and "may then leave memory" in line for line in cold)


def test_nothing_is_said_of_what_does_not_compute_or_is_simulated(small):
    assert not conditions.describe_conditions(on_this_machine(small, "bcast"), {})
    assert not conditions.describe_conditions(on_this_machine(small).assign(simulated=True), {})


@pytest.mark.parametrize(("at_work", "said"), [(1.7, True), (0.1, False), (None, False), ("1.7", False)])
def test_a_busy_machine_is_said_to_be_busy(small, at_work, said):
    about = {"ether16-1": {"cores": 2, **({} if at_work is None else {"at_work": at_work})}}
    lines = conditions.describe_conditions(on_this_machine(small, "bcast"), about)
    assert len(lines) == said
    assert all("others kept 1.7 of its 2 processors at work" in line for line in lines)


def test_medians_that_nobody_knows_are_counted_and_say_nothing_of_caches(small):
    frame = on_this_machine(small)
    points = frame.loc[frame["platform"] == "ether16", "point"].unique()
    frame.loc[frame["point"].isin(points[:3]), "measured_high"] *= 3
    frame.loc[frame["point"] == points[0], "measured_low"] /= 400
    line, cold = conditions.describe_conditions(frame, {})
    known = "measured medians are known to a factor of 2 at best, of 1,200 at worst"
    assert line.startswith(f"ether16: 3 of {len(points)} {known}: samples scatter or passes differ")
    assert f"({len(points) - 3} points," in cold


def test_levels_that_nobody_named_are_told_once_a_platform(small):
    """Whichever family was found to be blind to them, and nothing of one that is blind for another reason."""
    doubt = PriceStatus.UNNAMED.because("nodes are up to 2.1 times as far from each other as those probed")
    blind = PriceStatus.UNPLACED.because("ranks in different leaf groups are priced as nearer ones")
    there = small["platform"] == "ether16"
    frame = small.assign(status=small["status"].mask(there & (small["family"] == "hockney"), doubt))
    (line,) = conditions.odd(frame, {})
    assert line.startswith(
        "ether16: nodes are up to 2.1 times as far from each other as those probed, and the platform"
    )
    help = "file names no levels: `commodel network EXPERIMENT --levels` tells them, after `probes: [auto, nodepairs]`"
    assert help in line
    (other,) = conditions.odd(frame.assign(status=frame["status"].mask(there, blind)), {})
    assert "names no levels" not in other


@pytest.mark.parametrize(("paired", "hint"), [((), conditions.LOOK), (("ether16",), "")])
def test_what_the_best_family_doubts_is_told(small, paired, hint):
    crowded = PriceStatus.CROWDED.because("messages of all nodes at once took up to 9.5 times as long as priced")
    there = small["platform"] == "ether16"
    best = ranked(small[there])["family"].iloc[0]
    its = there & (small["family"] == best)
    points = small.loc[its & small["mu"].notna(), "point"]
    some = its & small["point"].isin(points[: len(points) // 2])
    (line,) = conditions.odd(small.assign(status=small["status"].mask(some, crowded)), {}, paired)
    doubted = f"ether16: the best family, {best}, doubts {some.sum()} of {len(points)} prices: {crowded}{hint}."
    assert line == doubted
    others = there & (small["family"] != best)
    assert not conditions.odd(small.assign(status=small["status"].mask(others, crowded)), {}, paired)


def test_the_terminal_says_below_its_table_what_the_report_says(folder):
    alone = outcome(Results.of(folder))
    frame = pd.read_csv(folder / "comparison.csv")
    frame.loc[frame["platform"] == "ether16", "measured_high"] *= 3
    frame.to_csv(folder / "comparison.csv", index=False)
    *shown, blank, said = outcome(Results.of(folder)).splitlines()
    assert (shown, blank) == (alone.splitlines(), "")
    assert said.startswith("ether16: ")
    assert "are known to a factor of 2 at best, of " in said
    assert said in sentences(stored(folder), TRUST)
