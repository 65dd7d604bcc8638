"""What predict may be asked for: lists, several sets, values by hand; and what it refuses, in one line."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from commodel.cli import main
from commodel.files.parameter_sets import write_parameters
from commodel.models.parameter_sets import set_given
from tests.cli.predicting import CAB, predict, sets
from tests.cli.running import output as run
from tests.cli.running import run as ran


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            "alpha.a: {value: 1e-6, unit: s}\n  beta.a: 1e-9",
            "set.yaml:4: parameters.beta.a: found '1e-9', wanted a unit with it, such as 1e-9s/B",
        ),
        (
            "alpha.a: {value: 1, unit: us}\n  beta.a: 0",
            "set.yaml:3: parameters.alpha.a: found the unit 'us', wanted a value in s",
        ),
        (
            "alpha.a: {value: 1e-6, unit: s}\n  beta.a: {value: 1e-9, unit: s}",
            "beta.a: found the unit 's', wanted a value in s/B",
        ),
        ("alpha.a: 5us\n  beta.a: 1ns", "set.yaml:4: parameters.beta.a: found the unit 's', wanted a value in s/B"),
        (
            "alpha.a: 5 parsec\n  beta.a: 0",
            "set.yaml:3: parameters.alpha.a: found the unit 'parsec' in '5 parsec'; wanted",
        ),
        ("alpha.a: 5us\n  beta.a: 1kb/s", "found the unit 'kb/s' in '1kb/s'; did you mean 'kB/s'?"),
        ("alpha.a: {value: 5us, unit: ms}\n  beta.a: 0", "alpha.a.value: found '5us' beside the unit 'ms', wanted one"),
        (
            "alpha.a: {value: 5us, low: high}\n  beta.a: 0",
            "alpha.a.low: found 'high', wanted a number, or one with its",
        ),
        ("alpha.a: 5MB/B\n  beta.a: 0", "alpha.a: found '5MB/B', wanted a number, or one with its unit: 2.5us"),
        (
            "alpha.a: {value: 1e-6, unit: s}\n  bta: {value: 1e-9, unit: s/B}",
            "family hockney has no parameter 'bta'; did you mean 'beta'?",
        ),
    ],
)
def test_a_value_in_a_file_has_a_name_and_a_unit_of_its_family(values, said, tmp_path):
    file = tmp_path / "set.yaml"
    file.write_text(f"family: hockney\nparameters:\n  {values}\n")
    arguments = ["predict", "--family", "hockney", "--params", str(file), "--operation", "barrier", "--ranks", "4"]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, said in result.output) == (2, True), result.output


def test_a_value_in_a_file_may_be_written_as_elsewhere(tmp_path):
    (tmp_path / "own.yaml").write_text(
        "family: hockney\nparameters:\n  alpha.a: {value: 50us, low: 40 us, high: 0.06ms}\n  beta.a: 80ns/B\n"
    )
    job = ("--operation", "bcast", "--algorithm", "linear", "--ranks", 8, "--bytes", "1KiB")
    (own,) = predict("--params", tmp_path / "own.yaml", *job)
    (given_so,) = predict("--family", "hockney", *sets(alpha="50us", beta="80ns/B"), *job)
    assert own["seconds"] == given_so["seconds"] == pytest.approx(7 * 50e-6 + 7 * 1024 * 80e-9)


def test_lists_and_ranges():
    values = sets(alpha="50us", beta="80ns")
    rows = predict("--family", "hockney", *values, "--operation", "bcast", "--ranks", "2:16:*2", "--bytes", "1,1KiB")
    assert {(row["ranks"], row["bytes"]) for row in rows} == {(p, m) for p in (2, 4, 8, 16) for m in (1, 1024)}
    assert {row["algorithm"] for row in rows} >= {"linear", "binomial", "chain"}


def test_barrier_needs_no_bytes_and_csv_has_the_columns():
    text = run(
        "predict",
        "--family",
        "hockney",
        *sets(alpha="50us", beta="80ns"),
        "--operation",
        "barrier",
        "--algorithm",
        "dissemination",
        "--ranks",
        8,
        "--format",
        "csv",
    )
    head, row = text.splitlines()
    assert head.split(",")[:3] == ["family", "operation", "algorithm"]
    assert float(row.split(",")[head.split(",").index("seconds")]) == pytest.approx(150e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--family", "logggp", *sets(L=1)], "did you mean 'loggp'"),
        (["--family", "logp", *sets(L="1us")], "needs o"),
        (["--family", "logp", *sets(L="2.5", o="1us", g=0)], "L: found '2.5', wanted a unit with it, such as 2.5us"),
        (["--family", "hockney", *sets(alpha="1us", beta="2e-9")], "beta.a: found '2e-9', wanted a unit with it"),
        (["--family", "hockney", *sets(**{"alpha": "1us", "beta.a": "1ns", "beta.b": "-3"})], "beta.b: found"),
        (["--family", "logp", *sets(L="1us", o="1us", g="-1us")], "found"),
        (["--family", "logp", *sets(L="1us", o="1us", q="1us")], "no parameter 'q'"),
        (["--family", "logp", "--params", CAB], "wanted logp"),
        (["--family", "tan", "--params", "/no/such.yaml"], "/no/such.yaml"),
        (["--family", "tan"], "--params"),
        ([*sets(L="1us")], "--set without --params needs --family"),
        (["--family", "lop", *sets(o_s="1us")], "no rtt"),
        (["--family", "lop", *sets(rtt="9us", **{"rtt.b": "20us"})], "needs rtt.c"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments, words):
    result = CliRunner().invoke(
        main, ["predict", *arguments, "--operation", "reduce", "--topology", "flat:4", "--bytes", "1KiB"]
    )
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


def test_without_a_set_one_is_named_that_a_run_has_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "other"):
        (tmp_path / "results/e/judged" / name).mkdir(parents=True)
        (tmp_path / "results/e/judged" / name / "logp.yaml").touch()
    for more, name in (([], "mine"), (["--platform", "other"], "other")):
        asked = ["predict", "--operation", "bcast", "--ranks", "4", "--bytes", "1", *more]
        said = CliRunner().invoke(main, asked).stderr
        assert said == f"commodel: give --params FILE, such as results/e/judged/{name}/logp.yaml, or --set NAME=VALUE\n"


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (["--operation", "bcat", "--ranks", "4", "--bytes", "1"], "did you mean 'bcast'"),
        (["--operation", "bcast", "--algorithm", "binomal", "--ranks", "4", "--bytes", "1"], "did you mean 'binomial'"),
        (["--operation", "gather", "--topology", "flat:4", "--bytes", "1"], "topology"),
        (["--operation", "bcast", "--ranks", "4"], "bytes"),
        (["--operation", "bcast", "--bytes", "4"], "ranks"),
        (["--operation", "bcast", "--ranks", "0", "--bytes", "1"], "found"),
        (["--operation", "bcast", "--ranks", "1", "--bytes", "1"], "wanted 2 to"),
        (["--operation", "bcast", "--ranks", "4", "--bytes", "1", "--layout", "blok:2"], "block"),
        (["--ranks", "4", "--bytes", "1"], "operation"),
    ],
)
def test_a_wrong_pattern_is_one_line_and_exit_2(pattern, words):
    result = CliRunner().invoke(main, ["predict", "--family", "hockney", *sets(alpha="1us", beta="1ns"), *pattern])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert words in result.stderr


@pytest.mark.parametrize("verb", ["predict", "schedule"])
def test_the_library_is_measured_and_not_priced(verb):
    pattern = ["--operation", "gather", "--algorithm", "library", "--ranks", "16", "--bytes", "8"]
    family = ["--family", "hockney", *sets(alpha="10us", beta="2ns")] if verb == "predict" else []
    result = CliRunner().invoke(main, [verb, *family, *pattern])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "'library' is the MPI library's own gather: it is measured, not priced" in result.stderr


def test_families_of_several_sets_stand_side_by_side():
    """Row by row those of the same point, each as its family alone prices it."""
    lop = "params/published/lop/infiniband-send.yaml"
    pattern = ("--operation", "reduce", "--topology", "flat:4", "--topology", "flat:8", "--bytes", "1KiB")
    rows = predict("--params", CAB, "--params", lop, *pattern)
    assert [(row["topology"], row["family"]) for row in rows] == [
        ("flat:4", "tan"),
        ("flat:4", "lop"),
        ("flat:8", "tan"),
        ("flat:8", "lop"),
    ]
    assert rows[1::2] == predict("--family", "lop", "--params", lop, *pattern)


def test_a_set_is_read_another_way(tmp_path):
    """Settings beside a file; a name of nothing is refused, and so is a value that no setting has."""
    path = tmp_path / "set.yaml"
    numbers = {"o_0.a": 1e-6, "o_1.a": 2e-6, "L_0.a": 1e-6, "L_1.a": 3e-6}
    lines = "".join(f"  {name}: {{value: {value}, unit: s}}\n" for name, value in numbers.items())
    path.write_text(f"family: taulop\nplatform: ''\nsource: test\nparameters:\n{lines}")

    def seconds(*more):
        about = ["--operation", "bcast", "--algorithm", "linear", "--ranks", "3", "--bytes", "8", "--format", "json"]
        return json.loads(run("predict", "--family", "taulop", "--params", str(path), *about, *more))[0]["seconds"]

    assert seconds() == pytest.approx(2e-6 + 2 * 3e-6)
    assert seconds("--set", "shared=node") == pytest.approx(2 * (2e-6 + 3e-6))
    about = ["predict", "--family", "taulop", "--params", str(path), "--operation", "bcast", "--ranks", "2"]
    for text, said in (
        ("shared=nod", "setting shared: found 'nod', wanted channel or node"),
        ("shraed=node", "--set shraed: family taulop has no parameter or setting 'shraed'; did you mean 'shared'?"),
        ("o_2=1us", "--set o_2: family taulop has no parameter or setting 'o_2'; did you mean 'o_1'?"),
        ("loggp:L=1us", "--set loggp:L=1us: found no set of family 'loggp'; wanted one of: taulop"),
    ):
        result = CliRunner().invoke(main, [*about, "--bytes", "8", "--set", text])
        assert (result.exit_code, said in result.output) == (2, True), result.output


def test_a_value_by_hand_stands_beside_its_price(tmp_path):
    path = tmp_path / "set.yaml"
    write_parameters(path, set_given("loggp", ["L=10us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"]))
    pattern = ("--operation", "bcast", "--algorithm", "linear", "--ranks", 2, "--bytes", 1)
    (plain,) = predict("--params", path, *pattern)
    (changed,) = predict("--params", path, *pattern, "--set", "L=30us")
    assert changed["by hand"] == "L=30us in place of 10 µs"
    assert changed["seconds"] == pytest.approx(plain["seconds"] + 20e-6)
    assert "by hand" not in plain


def test_prices_of_a_plan_with_values_by_hand_are_not_the_campaign_s(tmp_path):
    (tmp_path / "plan.json").write_text("{}")
    path = tmp_path / "set.yaml"
    write_parameters(path, set_given("hockney", ["alpha=1us", "beta=1ns"]))
    out = tmp_path / "predictions" / "hockney.csv"
    words = ["predict", "--params", path, "--plan", tmp_path / "plan.json", "--set", "alpha=2us", "--out", out]
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert (result.exit_code, "these prices would lie among the results" in result.output) == (2, True)


def test_sets_of_other_platforms_say_so(tmp_path):
    """Their prices are as good as ever, of the machine that they were fitted on."""
    files = []
    for name, platform in (("loggp", "here"), ("hockney", "there"), ("logp", "")):
        values = {"loggp": ["L=1us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"], "hockney": ["alpha=1us", "beta=1ns"]}
        known = set_given(name, values.get(name, ["L=1us", "o=1us", "g=1us"]))
        files.append(tmp_path / f"{name}.yaml")
        write_parameters(files[-1], replace(known, platform=platform, simulated=platform == "there"))
    given = [part for path in files for part in ("--params", path)]
    job = ("--operation", "bcast", "--algorithm", "linear", "--ranks", 4, "--bytes", 8)
    several = (
        "OF SEVERAL PLATFORMS: values of loggp of here; hockney of there; intervals hold what prices were off there."
    )
    simulated = "SIMULATED: the parameters were fitted to a simulated platform."
    assert ran("predict", *given, *job).stderr.splitlines() == [several, simulated]
    assert f"Note: {several}" in ran("advise", *given, *job[:2], *job[4:]).stdout
    loggp = given[:2]
    assert ran("predict", *loggp, *job).stderr == ""
    assert "OF ANOTHER PLATFORM THAN tree-256: values of loggp of here" in (
        ran("predict", *loggp, "--platform", "tree-256", *job).stderr
    )
