"""What a plan says of how long it took to measure on its platforms before."""

import time
from dataclasses import replace

import pytest

from commodel.plan.planning import write_plan
from commodel.results.progress import beside_estimates, earlier
from tests.results.drivers import attempt, leave


@pytest.fixture
def told(real, monkeypatch):
    """What is said of a plan that is the same."""
    monkeypatch.chdir(real.folder.parent.parent)
    write_plan(real.plan, "e", real.folder.parent.parent)
    return lambda: list(beside_estimates(real.plan, real.folder.parent))


def test_the_pace_of_what_was_measured_is_that_of_the_plan(real, told):
    """Attempts count as long as they went on; a batch that is not done says nothing."""
    now, batches = time.time(), real.plan.batches
    died, done = (attempt(now - 99, ended=now - 99 + seconds, outcome=how) for seconds, how in ((5, "x"), (20, "done")))
    leave(real, 0, [died, done])
    leave(real, 1, [attempt(now - 99, ended=now, outcome="error: stopped")])
    before = earlier("real", real.plan.platforms["real"].digest, real.folder.parent)
    assert (before.experiment, before.seconds, before.estimate) == ("e", 25.0, batches[0].seconds)
    (sentence,) = told()
    assert f"e took 25 s there, where {batches[0].seconds:.3g} s were estimated" in sentence
    assert before.pace * sum(batch.seconds for batch in batches) == pytest.approx(
        float(sentence.split(" takes ")[1].removesuffix(" s")), rel=5e-3
    )


def test_where_nothing_was_measured_the_estimate_says_what_it_does_not_know(real, told):
    leave(real, 0, [attempt(time.time() - 9, ended=time.time(), outcome="done")])
    other = replace(real.plan.platforms["real"], digest="another file")
    (real.folder / "plan.json").write_text("no plan")
    assert told() == ["real: nothing was measured there yet; the estimate knows no lost packets, and no other jobs"]
    write_plan(replace(real.plan, platforms={"real": other}), "e", real.folder.parent.parent)
    assert told()[0].startswith("real: nothing was measured")


def test_of_a_simulated_platform_nothing_unknown_is_said(campaign):
    assert list(beside_estimates(campaign.plan, campaign.folder.parent)) == []
