"""Names of parameters, and values given by hand that replace values of a parameter set."""

from dataclasses import replace

import numpy as np
import pytest

from commodel.errors import UserError
from commodel.models.families import find_family, find_unit, list_family_names
from commodel.models.keys import Pair, describe_piece, make_key, make_sample_key, parse_key
from commodel.models.parameter_sets import (
    describe_changes,
    make_given_set,
    read_published,
    read_set,
    replace_by_hand,
)
from commodel.parameters import Estimate
from commodel.predictions.predictions import predict
from tests.models.synthetic import fitted_set
from tests.patterns.catalogue import point
from tests.refusals import catch_error_message

SOME = 12  # values of a family; some have hundreds of samples
PATTERNS = [
    point("bcast", "binomial", ranks=7, bytes=1000),
    point("gather", "linear", ranks=7, bytes=1000),
]
PATTERNS += [point("reduce", topology="kary:2^2", bytes=1000)]


def text(name, value, measure):
    """Return a value as a user writes it, with its unit."""
    return f"{name}={value!r}{'s' if measure.startswith('s') else 'B' if measure == 'B' else ''}"


def seconds(parameters):
    return [entry.seconds for entry in predict(parameters, PATTERNS, strict=False)]


@pytest.fixture(params=list_family_names())
def parameters(request):
    return fitted_set(request.param)


def test_a_value_given_by_hand_predicts_like_a_parameter_set_with_that_value(parameters):
    entry = find_family(parameters.model)
    for name, estimate in list(parameters.values.items())[:SOME]:
        value = 1.5 * estimate.value if estimate.value > 0 else 1e-9
        measure = find_unit(entry, name, parameters.forms)
        (changed,) = replace_by_hand([parameters], [text(name, float(f"{value:.6g}"), measure)])
        number = changed.values[name].value
        assert number == pytest.approx(value, rel=1e-5)
        assert changed.values[name].low == changed.values[name].high == number
        assert describe_changes(changed).startswith(f"{name}=")
        assert name not in changed.draws
        own = Estimate(number, estimate.unit, number, number)
        wanted = replace(
            parameters,
            values={**parameters.values, name: own},
            draws={other: drawn for other, drawn in parameters.draws.items() if other != name},
        )
        np.testing.assert_array_equal(seconds(changed), seconds(wanted))


def test_nothing_by_hand_is_the_very_set(parameters):
    assert replace_by_hand([parameters], []) == [parameters]
    assert describe_changes(parameters) == ""


def test_settings_are_recorded_too(parameters):
    for name, setting in find_family(parameters.model).settings.items():
        for choice in setting.values:
            try:
                (changed,) = replace_by_hand([parameters], [f"{name}={choice}"])
            except UserError:
                continue  # such as a posting that was not measured
            assert changed.settings[name] == choice
            assert f"{name}={choice}" in describe_changes(changed)


LOGGP = make_given_set("loggp", ["L=10us", "o_s=1us", "o_r=1us", "g=1us", "G=1ns"])
HOCKNEY = make_given_set("hockney", ["alpha=1us", "beta=1ns"])


def test_a_family_s_value_changes_no_other_family():
    loggp, hockney = replace_by_hand([LOGGP, HOCKNEY], ["loggp:L=2us", "hockney:alpha=3us"])
    assert (loggp.values["L"].value, hockney.values["alpha.a"].value) == (2e-6, 3e-6)
    assert (describe_changes(loggp), describe_changes(hockney)) == (
        "L=2us in place of 10 µs",
        "alpha.a=3us in place of 1 µs",
    )
    (only, other) = replace_by_hand([LOGGP, HOCKNEY], ["loggp:L=2us"])
    assert (describe_changes(only), other) == ("L=2us in place of 10 µs", HOCKNEY)


def test_a_value_given_without_a_family_applies_to_all_parameter_sets():
    same = replace(LOGGP, platform="other")
    assert [entry.values["L"].value for entry in replace_by_hand([LOGGP, same], ["L=2us"])] == [
        2e-6,
        2e-6,
    ]


def test_values_by_types_of_nodes_are_named_by_these():
    """A value L for all pairs of types would be ignored, so it is refused."""
    pairs = {
        f"L.{pair}": Estimate(value, "s", value, value)
        for pair, value in (("fat.fat", 1e-6), ("fat.thin", 2e-6))
    }
    values = {name: value for name, value in LOGGP.values.items() if name != "L"} | pairs
    typed = replace(LOGGP, model="hloggp", values=values)
    with pytest.raises(
        UserError,
        match=r"the set of hloggp has no value 'L'; wanted one of: L\.fat\.fat, L\.fat\.thin",
    ):
        replace_by_hand([typed], ["L=1us"])


def test_a_value_given_by_hand_replaces_a_missing_parameter():
    values = {name: value for name, value in LOGGP.values.items() if name != "g"}
    lacking = replace(LOGGP, values=values, missing={"g": "no probe"})
    (changed,) = replace_by_hand([lacking], ["g=1us"])
    assert changed.missing == {}
    assert seconds(changed) == seconds(LOGGP)
    assert describe_changes(changed) == "g=1us"


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["L"], "found 'L', wanted NAME=VALUE"),
        (["L=2"], "L: found '2', wanted a unit with it"),
        (["L=-2us"], "L: found"),
        (["L=1us", "L=2us"], "found L twice"),
        (["l=1us"], "--set l: model loggp has no parameter or setting 'l'; did you mean 'L'?"),
        (["x=1us"], "--set x: model loggp has no parameter or setting 'x'; wanted one of"),
        (
            ["loggps:L=1us"],
            "--set loggps:L=1us: found no set of model 'loggps'; did you mean 'loggp'?",
        ),
        (["loggp:=1us"], "has no parameter or setting ''"),
        (["hockney:L=1us"], "--set L: model hockney has no parameter or setting 'L'"),
        (
            ["L=1us"],
            "--set L: model hockney has no parameter or setting 'L'; wanted one of: alpha, beta, gamma; --set MOD",
        ),
        ([":L=1us"], "found no set of model ''"),
        (["loggp:L\n\x1b[2J=1us"], "has no parameter or setting"),
    ],
)
def test_mistakes(texts, said):
    sets = [LOGGP, HOCKNEY] if "hockney" in said or ":" in texts[0] else [LOGGP]
    assert said in catch_error_message(replace_by_hand, sets, texts)


@pytest.mark.parametrize(
    ("name", "value", "number"),
    [
        ("L", "2us", 2e-6),
        ("L", "0", 0),
        ("G", "0.1ns/B", 1e-10),
        ("L", "2", "found '2', wanted a unit with it, such as 2us or 2s"),
        ("G", "2e-9", "found '2e-9', wanted a unit with it, such as 2e-9s/B"),
        ("L", "2MB", "found the unit 'B', wanted a value in s"),
        ("L", "2us/B", "found the unit 's/B', wanted a value in s"),
        ("L", "2 parsec", "found the unit 'parsec' in '2 parsec'; wanted one of"),
        ("L", "soon", "found 'soon', wanted a number, or one with its unit: 2.5us"),
    ],
)
def test_by_hand_and_in_a_file_a_value_is_read_alike(name, value, number, tmp_path):
    file = tmp_path / "set.yaml"
    values = {"L": "1us", "o_s": "1us", "o_r": "1us", "g": "1us", "G": "1ns/B", name: value}
    lines = [f"  {called}: {text}" for called, text in values.items()]
    file.write_text("\n".join(["model: loggp", "parameters:", *lines]))
    for read in (lambda: read_set(file), lambda: replace_by_hand([LOGGP], [f"{name}={value}"])[0]):
        if isinstance(number, str):
            with pytest.raises(UserError) as error:
                read()
            assert error.value.found.startswith(number)
            assert error.value.key in (name, f"parameters.{name}")
        else:
            assert read().values[name].value == number


def test_a_bandwidth_may_be_given_by_hand():
    cluster = read_published("cluster/fast-ethernet-16")
    (changed,) = replace_by_hand([cluster], ["capacity=100 Mbit/s"])
    assert changed.values["capacity"].value == 12.5e6
    with pytest.raises(UserError, match="capacity: found the unit 'B', wanted a value in B/s"):
        replace_by_hand([cluster], ["capacity=12MB"])


def test_parse_key_reads_the_keys_of_make_key_and_make_sample_key():
    assert parse_key("L") == ("L", "", "")
    assert parse_key(make_key("o", "a")) == ("o", "o", "a")
    assert parse_key(make_key("o_0", "fat", "a")) == ("o_0", "o_0.fat", "a")
    assert parse_key(make_sample_key("g", 64)).sample == (64, None)
    assert parse_key(make_sample_key(make_key("L_1", Pair("fat", "thin")), 64.0, 3)).sample == (
        64,
        3,
    )
    assert parse_key("o.fat.thin.64x3") == ("o", "o.fat.thin", "64x3")
    assert not any(parse_key(name).sample for name in ("L", "o.a", "o.x1", "C.fat"))


def test_a_pair_knows_the_types_of_both_nodes():
    assert Pair.parse("fat.thin").types == ("fat", "thin")
    assert Pair.parse("fat.same").types == ("fat", "fat")
    assert Pair.parse("fat.same").within
    assert not Pair.parse("fat.fat").within
    assert str(Pair.parse("fat.thin")) == "fat.thin"


def test_the_description_of_a_piece_names_the_size_from_which_the_piece_applies():
    meanings = {
        name: describe_piece(parse_key(f"alpha.{name}"), "latency") for name in ("a", "a1", "x1")
    }
    assert meanings == {
        "a": "latency",
        "a1": "latency; above alpha.x1",
        "x1": "message size in bytes above which another piece of alpha applies",
    }
