"""`--statistic` of predict and advise: which ranks' times are predicted and ranked; the same in
Python."""

import json

import pytest

import commodel
from commodel.errors import UserError
from commodel.files.parameter_sets import write_parameters
from commodel.models.parameter_sets import make_given_set
from tests.cli.running import output, run

WORDS = ("completion", "last rank", "first rank", "rank mean")
REDUCE = "--operation reduce --ranks 64 --bytes 1KiB"


@pytest.fixture(scope="module")
def loggp(tmp_path_factory):
    path = tmp_path_factory.mktemp("sets") / "loggp.yaml"
    write_parameters(
        path, make_given_set("loggp", ["L=5us", "o_s=1us", "o_r=1us", "g=2us", "G=1ns", "gamma=0s"])
    )
    return path


def predict(loggp, word):
    command = f"predict --params {loggp} {REDUCE} --algorithm linear --format json"
    (row,) = json.loads(output(command, "--statistic", word))
    return row


@pytest.mark.parametrize("word", WORDS)
def test_verbs_and_functions_predict_one_statistic(word, loggp):
    row = predict(loggp, word)
    assert row.get("statistic", "completion") == word
    arguments = {"algorithm": "linear", "parameters": loggp, "statistic": word}
    (seconds,) = commodel.predict("reduce", 64, "1KiB", **arguments).frame["seconds"]
    assert seconds == row["seconds"]
    ranked = json.loads(
        output(f"advise --params {loggp} {REDUCE} --format json", "--statistic", word)
    )
    (of_linear,) = [entry["seconds"] for entry in ranked if entry["alternative"] == "linear"]
    assert of_linear == pytest.approx(seconds, rel=1e-12)
    advice = commodel.advise("reduce", 64, "1KiB", evidence=loggp, statistic=word)
    assert advice.frame["alternative"].tolist() == [entry["alternative"] for entry in ranked]


def test_a_linear_reduction_has_the_least_mean_although_it_is_complete_last(loggp):
    """Its senders are done at once. Advice therefore minimises the completion."""
    mean, completion = (predict(loggp, word)["seconds"] for word in ("rank mean", "completion"))
    assert mean < completion / 20
    said = output(f"advise --params {loggp} {REDUCE}", "--statistic", "rank mean")
    assert "reduce over 64 ranks, 1 KiB, rank mean: use linear" in said
    assert "not until the operation is complete; the operation may be complete much later" in said
    assert "use binomial" in output(f"advise --params {loggp} {REDUCE}")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("predict {} --waves 5", "statistic 'rank mean' is of one wave"),
        (
            "advise {} -o table.csv",
            "found --statistic 'rank mean', wanted completion: decisions minimise that time",
        ),
    ],
)
def test_streams_and_decision_tables_have_only_completions(line, complaint, loggp):
    with pytest.raises(
        UserError, match="statistic 'rank mean' is of one wave: leave waves and pipelined out"
    ):
        commodel.predict("reduce", 64, "1KiB", parameters=loggp, waves=5, statistic="rank mean")
    command = line.format(f"--params {loggp} {REDUCE}")
    assert complaint in run(command, "--statistic", "rank mean", code=2).stderr
