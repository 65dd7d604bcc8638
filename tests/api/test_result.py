"""The result of a function: what the verb prints, as a frame, and as files."""

import json

import pandas as pd
import pytest

import commodel
from commodel.files.parameter_sets import write_parameters
from commodel.models.parameter_sets import make_given_set
from tests.cli.running import output, run

LOGGP = {"L": "2us", "o_s": "1us", "o_r": "1us", "g": "1us", "G": "1ns/B"}
SETTINGS = " ".join(f"--set {name}={value}" for name, value in LOGGP.items())
VERB = f"predict --model loggp {SETTINGS} --operation bcast --ranks 8,16 --bytes 1KiB"


@pytest.fixture(scope="module")
def result():
    return commodel.predict("bcast", [8, 16], "1KiB", model="loggp", **LOGGP)


def test_a_printed_result_equals_the_output_of_the_verb(result):
    assert str(result) == run(f"{VERB} --verbose").stdout.rstrip("\n")
    assert result.sentence == str(result).splitlines()[0]
    assert repr(result) == f"Predictions: {result.sentence}"


@pytest.mark.parametrize("style", ["csv", "json"])
def test_a_result_as_text_and_as_a_file_equals_the_output_of_the_verb(result, style, tmp_path):
    verb = output(VERB, "--format", style).rstrip("\n")
    write = getattr(result, f"to_{style}")
    assert write() == verb
    write(tmp_path / "rows")
    assert (tmp_path / "rows").read_text().rstrip("\n") == verb


def test_the_frame_has_numbers_in_si_units(result):
    rows = json.loads(result.to_json())
    assert result.frame["seconds"].tolist() == [row["seconds"] for row in rows]
    assert result.frame[["seconds", "low", "high"]].dtypes.eq(float).all()
    assert result.frame[["ranks", "bytes"]].dtypes.eq(int).all()


def test_a_workbook_has_the_rows_the_notes_and_the_sources(result, tmp_path):
    result.to_excel(tmp_path / "answer.xlsx")
    sheets = pd.read_excel(tmp_path / "answer.xlsx", sheet_name=None, header=None)
    cells = {
        name: [str(cell) for row in sheet.to_numpy() for cell in row]
        for name, sheet in sheets.items()
    }
    assert {"Predictions", "Notes", "Provenance"} <= set(cells)
    header = sheets["Predictions"].index[sheets["Predictions"][0].eq("model")][0]
    table = pd.read_excel(tmp_path / "answer.xlsx", sheet_name="Predictions", header=header)
    micro = pd.to_numeric(table["time [µs]"]).dropna()
    assert micro.tolist() == pytest.approx((1e6 * result.frame["seconds"]).tolist())
    assert all(any(note in cell for cell in cells["Notes"]) for note in result.notes)
    assert "loggp" in cells["Provenance"]


def test_a_notebook_shows_the_sentence_the_rows_and_the_notes(result):
    shown = result._repr_html_()
    assert result.sentence in shown
    assert all(note.split(";")[0] in shown for note in result.notes)
    assert shown.count("<tr") == min(len(result.rows), 12) + 1


def test_without_a_source_the_evidence_is_that_of_the_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(commodel.UserError, match="found neither a model nor parameters"):
        commodel.predict("bcast", 8, 8)


OSU = """# OSU MPI Broadcast Latency Test v7.4
# Size       Avg Latency(us)
8                      12.10
1024                   15.20
65536                  90.40
"""


def test_imported_times_are_those_of_the_verb_and_can_be_fitted(tmp_path):
    (tmp_path / "osu_bcast.txt").write_text(OSU)
    imported = commodel.import_("osu", tmp_path / "osu_bcast.txt", ranks=16, algorithm="binomial")
    said = run(
        f"import osu {tmp_path}/osu_bcast.txt --ranks 16 --algorithm binomial -o {tmp_path}/verb.csv"
    ).stdout
    assert said == f"{tmp_path}/verb.csv: {imported.sentence}\n"
    imported.to_csv(tmp_path / "function.csv")
    assert (tmp_path / "function.csv").read_text() == (tmp_path / "verb.csv").read_text()
    assert imported.frame["seconds"].tolist() == pytest.approx([12.1e-6, 15.2e-6, 90.4e-6])
    fitted = commodel.fit(imported.frame, "hockney")
    assert fitted.parameters["value"].gt(0).all()
    with pytest.raises(commodel.UserError, match="did you mean 'osu'"):
        commodel.import_("osus", tmp_path / "osu_bcast.txt")


def test_a_difference_is_that_of_the_verb(tmp_path):
    for name, latency in (("old", "2us"), ("new", "3us")):
        settings = [f"{key}={value}" for key, value in (LOGGP | {"L": latency}).items()]
        write_parameters(tmp_path / f"{name}.yaml", make_given_set("loggp", settings))
    difference = commodel.diff(tmp_path / "old.yaml", tmp_path / "new.yaml")
    assert str(difference) == run(
        f"diff {tmp_path}/old.yaml {tmp_path}/new.yaml --verbose"
    ).stdout.rstrip("\n")
    assert difference.to_json() == output(
        f"diff {tmp_path}/old.yaml {tmp_path}/new.yaml --format json"
    ).rstrip("\n")
    (change,) = difference.list_exceeding(0.1)
    assert (change.name, change.ratio) == ("loggp L", pytest.approx(1.5))


WORKLOAD = "--operation bcast --ranks 8 --bytes"


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Return two parameter sets."""
    folder = tmp_path_factory.mktemp("sets")
    for name, settings in (
        ("loggp", [f"{key}={value}" for key, value in LOGGP.items()]),
        ("hockney", ["alpha=4us", "beta=1ns"]),
    ):
        write_parameters(folder / f"{name}.yaml", make_given_set(name, settings))
    return folder


def test_printed_advice_equals_the_output_of_the_verb(sets):
    advice = commodel.advise("bcast", 8, "1KiB", evidence=sets)
    verb = f"advise --params {sets} {WORKLOAD} 1KiB"
    assert str(advice) == run(f"{verb} --verbose").stdout.rstrip("\n")
    assert advice.text(verbose=False) == run(verb).stdout.rstrip("\n")
    assert advice.text(top=2) == run(f"{verb} --verbose --top 2").stdout.rstrip("\n")
    assert advice.to_json() == output(verb, "--format", "json").rstrip("\n")
    assert {row["model"] for row in advice.provenance} == {"loggp", "hockney"}


def test_printed_decisions_equal_the_output_of_the_verb(sets, tmp_path):
    decisions = commodel.decide("bcast", 8, ["8", "1KiB"], evidence=sets)
    verb = f"advise --params {sets} {WORKLOAD} 8,1KiB"
    assert str(decisions) == run(f"{verb} --verbose").stdout.rstrip("\n")
    assert decisions.to_csv() == output(verb, "--format", "csv").rstrip("\n")
    for_rules = commodel.decide("bcast", 8, ["8", "1KiB"], evidence=sets, open_mpi=True)
    for result, suffix in ((decisions, "csv"), (for_rules, "conf")):
        result.save(tmp_path / f"function.{suffix}")
        run(f"{verb} -o {tmp_path}/verb.{suffix}")
        assert (tmp_path / f"function.{suffix}").read_text() == (
            tmp_path / f"verb.{suffix}"
        ).read_text()
    with pytest.raises(commodel.UserError, match="wanted decide"):
        decisions.to_rules(tmp_path / "all.conf")
    with pytest.raises(commodel.UserError, match=r"wanted a file .csv, .xlsx or .conf"):
        decisions.save(tmp_path / "decisions.txt")


@pytest.fixture(scope="module")
def collectives(tmp_path_factory):
    """Return a table of times by Hockney's model."""
    rows = [
        f"bcast,{algorithm},{ranks},{size},{depth * (4e-6 + 1e-9 * size)!r}"
        for algorithm, ranks, depth in (
            ("binomial", 4, 2),
            ("binomial", 8, 3),
            ("linear", 4, 3),
            ("linear", 8, 7),
        )
        for size in (8, 1024, 65536)
    ]
    path = tmp_path_factory.mktemp("tables") / "collectives.csv"
    path.write_text("\n".join(["operation,algorithm,ranks,bytes,seconds", *rows]))
    return path


@pytest.mark.parametrize("models", [["hockney"], ["hockney", "pmnf"]])
@pytest.mark.parametrize("hold_out", [None, "ranks > 4"])
def test_a_printed_fit_equals_the_output_of_the_verb(collectives, tmp_path, models, hold_out):
    fitted = commodel.fit(collectives, models, hold_out=hold_out)
    verb = ["fit", "table", collectives, *(word for model in models for word in ("--model", model))]
    verb += ["--hold-out", hold_out] if hold_out else []
    assert str(fitted) == run(*verb).stdout.rstrip("\n")
    for style in ("csv", "json"):
        assert getattr(fitted, f"to_{style}")() == run(*verb, "--format", style).stdout.rstrip("\n")
    assert [row["model"] for row in fitted.provenance] == models
    assert any(
        note.endswith("each rank is assumed to have a node of its own.") for note in fitted.notes
    )
    if len(models) == 1:
        assert fitted.parameters.loc["beta.a", "value"] == pytest.approx(1e-9, rel=1e-3)
    else:
        with pytest.raises(commodel.UserError, match="found 2 models, wanted one"):
            fitted.save(tmp_path / "set.yaml")


def test_exported_files_are_those_of_the_verb(sets, tmp_path):
    decisions = commodel.decide("bcast", 8, ["8", "1KiB"], evidence=sets, open_mpi=True)
    decisions.to_csv(tmp_path / "choices.csv")
    pattern = "--operation bcast --algorithm binomial --ranks 8 --bytes 1KiB"
    sources = {
        ("mrnet", "kary:4^2"): "mrnet kary:4^2",
        ("goal", "bcast"): f"goal {pattern} --gamma 0.3ns",
        ("rules", tmp_path / "choices.csv"): f"rules {tmp_path}/choices.csv",
    }
    options = {"goal": {"algorithm": "binomial", "ranks": 8, "bytes": "1KiB", "gamma": "0.3ns"}}
    for (name, source), verb in sources.items():
        result = commodel.export(name, source, **options.get(name, {}))
        assert f"{result}\n" == run(f"export {verb}").stdout
        written = commodel.export(name, source, tmp_path / name, **options.get(name, {}))
        assert str(written) == str(tmp_path / name)
        assert (tmp_path / name).read_text() == f"{result}\n"
    assert str(commodel.export("rules", decisions)) == str(
        commodel.export("rules", tmp_path / "choices.csv")
    )
    with pytest.raises(
        commodel.UserError, match="export mrnet: found 'host'; did you mean 'hosts'"
    ):
        commodel.export("mrnet", "kary:4^2", host="hosts.txt")
    with pytest.raises(commodel.UserError, match="found no format 'mrnt'; did you mean 'mrnet'"):
        commodel.export("mrnt", "kary:4^2")


@pytest.mark.parametrize(
    ("catalogue", "name", "options", "words"),
    [
        *(
            (name, None, {}, "")
            for name in ("operations", "algorithms", "topologies", "layouts", "models")
        ),
        ("operations", "halo", {}, ""),
        ("algorithms", "bcast", {"libraries": True}, "--libraries"),
        ("layouts", "near", {}, ""),
        ("models", "loggp", {}, ""),
        ("topology", "kary:2^3", {"style": "dot"}, "--format dot"),
        ("layout", "cyclic:2", {"ranks": 6}, "--ranks 6"),
    ],
)
def test_a_printed_catalogue_equals_the_output_of_the_verb(catalogue, name, options, words):
    shown = commodel.show(catalogue, name, **options)
    verb = " ".join(filter(None, ("show", catalogue, name, words)))
    assert str(shown) == run(verb).stdout.rstrip("\n")
    assert len(shown.frame)
    if catalogue != "topology":
        for style in ("csv", "json"):
            assert getattr(shown, f"to_{style}")() == run(f"{verb} --format {style}").stdout.rstrip(
                "\n"
            )


def test_a_wrong_catalogue_or_option_is_named():
    with pytest.raises(
        commodel.UserError, match="found no catalogue 'model'; did you mean 'models'"
    ):
        commodel.show("model")
    with pytest.raises(commodel.UserError, match="show layout: found 'rank'; did you mean 'ranks'"):
        commodel.show("layout", "cyclic:2", rank=6)


def test_an_answer_without_rows_is_a_workbook_of_its_notes(tmp_path, monkeypatch):
    monkeypatch.setattr("commodel.extensions.list_extensions", tuple)
    commodel.show("extensions").to_excel(tmp_path / "answer.xlsx")
    sheets = pd.read_excel(tmp_path / "answer.xlsx", sheet_name=None, header=None)
    assert "Shown" not in sheets
    assert "No extension is installed." in sheets["Notes"].to_string()
