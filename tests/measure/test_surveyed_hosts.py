"""Batches on Slurm and the hosts of a survey: other hosts are refused, and samples of other hosts
are not mixed in."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from commodel.errors import UserError
from commodel.files.atomic import write_json
from commodel.files.safe_paths import SafePath
from commodel.measure import batch as subject
from commodel.platforms.launchers import LAUNCHERS
from commodel.records import Batch, Measure, Plan, PlannedPlatform
from commodel.results.attempts import OwnAttempt, read_attempts
from commodel.results.raw_samples import list_finished

HOSTS = ("n0", "n1", "n2", "n3")
PLATFORM = PlannedPlatform(launcher="slurm", simulated=False, digest="1", hosts=HOSTS)
PLAN = Plan(
    "e", "", "", 1, (), {}, Measure("barrier", 0.1, 2, 2, 1, 1, 0, 1), {"p": PLATFORM}, (), ""
)
SURVEY = Batch("p-survey-1", "p", 4)


@pytest.fixture
def allocate(monkeypatch):
    """allocate(batch, *nodes): let Slurm allocate these nodes; return the nodes of the batch."""

    def names(batch, *given):
        monkeypatch.setitem(LAUNCHERS, "slurm", replace(LAUNCHERS["slurm"], names=lambda *_: given))
        return subject._name_nodes(
            PLAN, batch, SimpleNamespace(launcher="slurm", digest="1"), "srun"
        )

    return names


def test_a_batch_runs_on_the_first_surveyed_hosts_and_a_survey_on_any(allocate):
    assert allocate(Batch("p-2n-1", "p", 2), "n0", "n1") == ("n0", "n1")
    assert allocate(SURVEY, "n5", "n6", "n7", "n8") == ("n5", "n6", "n7", "n8")


@pytest.mark.parametrize("given", [("n0", "n2"), ("n1", "n0"), ("n7", "n8")])
def test_hosts_other_than_the_surveyed_ones_are_refused_with_remedies(allocate, given):
    with pytest.raises(UserError) as refused:
        allocate(Batch("p-2n-1", "p", 2), *given)
    assert str(refused.value) == (
        f"networks/p-1.yaml: the job runs on {','.join(given)}, wanted n0,n1, whose network was surveyed: request them "
        "(sbatch --nodelist=n0,n1), delete this file to survey again, or run with --no-survey"
    )


@pytest.mark.parametrize(
    ("recorded", "used", "left"),
    [
        (HOSTS, HOSTS, {"a", "b"}),
        (HOSTS, ("n0",), {"a", "b"}),
        (("n0", "n1", "n2", "n4"), ("n0", "n1"), set()),
        (("n1", "n0", "n2", "n3"), HOSTS, set()),
        (HOSTS, ("n0", "n5"), set()),  # the attempt before the last one
    ],
)
def test_an_attempt_on_other_nodes_begins_again(tmp_path, recorded, used, left):
    """Samples of other nodes are renamed in the folder."""
    folder = SafePath.at(tmp_path)
    context = SimpleNamespace(
        folder=folder, names=HOSTS, passes=1, pass_folders=[folder / ".pass-1"]
    )
    context.pass_folders[0].mkdir()
    earlier = OwnAttempt(folder, None, "")
    earlier.record_nodes(used)
    for name in ("a.csv", "b.unmeasured.json", ".pass-1/c.csv"):
        (tmp_path / name).write_text("1")
    write_json(folder / "provenance.json", {"nodes": list(recorded)})
    messages = []
    subject._set_aside_other_nodes(context, OwnAttempt(folder, None, ""), messages.append)
    assert set().union(*list_finished(folder)) == left
    assert bool(list_finished(context.pass_folders[0])[0]) == bool(left)
    assert len(messages) == (not left)
    assert len(read_attempts(folder).attempts) == 1
    if not left:
        assert (tmp_path / "a.csv.other-nodes-1").read_text() == "1"
