"""Parameter sets with names and units checked: from files (`read_set`), published ones
(`read_published`), and values given by hand as `NAME=VALUE` (`make_given_set`, `replace_by_hand`).

Changes by hand are recorded in the set.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from commodel.errors import UserError, locate_mistakes, suggest_name
from commodel.files.cache import find_input
from commodel.files.parameter_sets import MAX_FILE_BYTES, parse_parameters
from commodel.files.quantities import check_unit, parse_with_unit
from commodel.files.safe_paths import AnyPath
from commodel.files.yaml import Document, read_yaml
from commodel.models.evaluation.values import FORM_NAMES, Values
from commodel.models.families import Family, complete_values, find_family, find_unit, infer_forms
from commodel.models.keys import parse_key
from commodel.parameters import Estimate, ParameterSet
from commodel.records import LIBRARY
from commodel.sources import ROOT
from commodel.units import format_seconds, show_value


def read_set(path: AnyPath) -> ParameterSet:
    """Return the parameter set of a file."""
    return parse_set(read_yaml(path, MAX_FILE_BYTES))


def list_sets(path: Path) -> list[Path]:
    """Return the files of the parameter sets that a path names: itself, or those in its folder."""
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.yaml"))
    if not files:
        raise UserError("found no parameter set (.yaml) in this folder", file=path)
    return files


def parse_set(document: Document) -> ParameterSet:
    """Return the parameter set of a document, with units checked and full names.

    A number with another unit is refused, and a time without one. A function given as one number is
    its constant.
    """
    parameters = parse_parameters(document)
    if parameters.model == LIBRARY:  # its values belong to branches (`predictions/mpi_default.py`)
        return parameters
    family = find_family(parameters.model)
    names = {name: family.full_name(name, parameters.classes) for name in parameters.values}
    for name, full in names.items():
        if full != name and full in names:
            raise document.error(("parameters", name), f"found {full}, too, wanted one of them")
    # unknown forms raise an error at the prediction
    if set(parameters.forms.values()) <= set(FORM_NAMES):
        for name, estimate in parameters.values.items():
            if parse_key(name).parameter in family.by_name:  # unknown names too
                try:
                    check_unit(
                        estimate.value,
                        estimate.unit,
                        find_unit(family, names[name], parameters.forms),
                    )
                except UserError as error:
                    raise document.error(("parameters", name), error.found) from None
    return replace(
        parameters,
        values={names[name]: estimate for name, estimate in parameters.values.items()},
        draws={names.get(name, name): drawn for name, drawn in parameters.draws.items()},
    )


def name_published_file(name: str) -> str:
    """Return the file below the clone of values printed in a paper, named FAMILY/SOURCE."""
    return f"params/published/{name}.yaml"


def read_published(name: str) -> ParameterSet:
    """Return the parameter set of a paper."""
    return read_set(find_input(name_published_file(name), ROOT))


def read_published_sets(model: str) -> dict[str, ParameterSet]:
    """Return the sets of a model whose values papers print, by their files below the clone."""
    files = sorted((ROOT / name_published_file(f"{model}/x")).parent.glob("*.yaml"))
    return {str(path.relative_to(ROOT)): read_set(path) for path in files}


BY_HAND_KEY = "by hand"


def make_given_set(name: str, texts: Sequence[str]) -> ParameterSet:
    """Return a parameter set from `NAME=VALUE` texts, taken as exact.

    A function's constant may be named by the function alone. A setting takes one of the model's
    values.
    """
    family = find_family(name)
    settings, values_given = _split_settings(
        family, [text.removeprefix(f"{name}:") for text in texts]
    )
    values_by_name: dict[str, str] = {}
    for name_text, value in values_given:
        parameter = family.by_name.get(parse_key(name_text).parameter)
        if parameter is None:
            raise UserError(
                f"model {name} has no parameter '{name_text}'; {suggest_name(name_text, family.by_name)}"
            )
        full_name = family.full_name(name_text)
        if full_name in values_by_name:
            raise UserError(f"found {full_name} twice")
        values_by_name[full_name] = value
    forms = infer_forms(family, values_by_name)
    values = {
        full: _parse_estimate(family, full, value, forms) for full, value in values_by_name.items()
    }
    parameters = ParameterSet(
        name, "", "given on the command line", values, forms=forms, settings=settings
    )
    complete_values(family, Values.of(parameters))
    return parameters


def replace_by_hand(sets: Sequence[ParameterSet], texts: Sequence[str]) -> list[ParameterSet]:
    """Return the sets with values and settings replaced: `NAME=VALUE` texts for all sets,
    `MODEL:NAME=VALUE` for one model.

    Changes are noted in the provenance; a changed value has no interval.
    """
    texts_by_model: dict[str, list[str]] = {parameters.model: [] for parameters in sets}
    for text in texts:
        name, _, _ = text.partition("=")
        owner, colon, _ = name.partition(":")
        owner = owner.strip()
        if colon and owner not in texts_by_model:
            raise UserError(
                f"--set {text}: found no set of model '{owner}'; {suggest_name(owner, texts_by_model)}"
            )
        for family_name in [owner] if colon else _list_changeable(texts_by_model):
            texts_by_model[family_name].append(text.partition(":")[2] if colon else text)
    return [
        _replace_values(parameters, texts_by_model[parameters.model], len(texts_by_model) > 1)
        for parameters in sets
    ]


def _list_changeable(models: Collection[str]) -> list[str]:
    """Return the models whose values may be given by hand: all but that of the MPI default beside
    others, which has no parameters."""
    return [name for name in models if name != LIBRARY] or list(models)


def describe_changes(parameters: ParameterSet) -> str:
    """Return which values of a set were given by hand; empty if none."""
    return str(parameters.provenance.get(BY_HAND_KEY, ""))


def _replace_values(
    parameters: ParameterSet, texts: Sequence[str], many_sets: bool
) -> ParameterSet:
    """Return a set with some values and settings replaced."""
    if not texts:
        return parameters
    family = find_family(parameters.model)
    settings, values_given = _split_settings(family, texts)
    notes = [
        f"{name}={value}{_describe_previous(parameters.settings.get(name))}"
        for name, value in settings.items()
    ]
    names = [_find_name(family, parameters, name_text, many_sets) for name_text, _ in values_given]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise UserError(f"--set: found {repeated[0]} twice")
    forms = {
        **infer_forms(family, [name for name in names if name not in parameters.values]),
        **parameters.forms,
    }
    values = dict(parameters.values)
    for name, (_, value) in zip(names, values_given, strict=True):
        previous = parameters.values.get(name)
        values[name] = replace(_parse_estimate(family, name, value, forms), note="set by hand")
        notes.append(f"{name}={value}{_describe_previous(previous and _format_estimate(previous))}")
    changed = replace(
        parameters,
        values=values,
        forms=forms,
        settings={**parameters.settings, **settings},
        missing={
            name: why
            for name, why in parameters.missing.items()
            if name not in map(_find_parameter, names)
        },
        draws={name: drawn for name, drawn in parameters.draws.items() if name not in names},
        provenance={**parameters.provenance, BY_HAND_KEY: ", ".join(notes)},
    )
    if changed.values:  # a model that could not be fitted has none; its prediction reports why
        complete_values(family, Values.of(changed))
    return changed


def _describe_previous(previous: object) -> str:
    return f" in place of {previous}" if previous else ""


def _format_estimate(estimate: Estimate) -> str:
    return (
        format_seconds(estimate.value)
        if estimate.unit == "s"
        else f"{estimate.value:.4g} {estimate.unit}".strip()
    )


def _find_parameter(name: str) -> str:
    return parse_key(name).parameter


def _find_name(family: Family, parameters: ParameterSet, name_text: str, many_sets: bool) -> str:
    """Return the name of a value in the set: a function's constant may be named by the function.

    A value that the set has by node type must be named with the type, or the change would have no
    effect.
    """
    if _find_parameter(name_text) not in family.by_name:
        suggestion = suggest_name(name_text, [*family.by_name, *family.settings])
        hint = "; --set MODEL:NAME=VALUE is of one model alone" if many_sets else ""
        raise UserError(
            f"--set {name_text}: model {family.name} has no parameter or setting '{name_text}'; {suggestion}{hint}"
        )
    same_parameter = [
        name for name in parameters.values if _find_parameter(name) == _find_parameter(name_text)
    ]
    constant = family.full_name(name_text, parameters.classes)
    for name in (name_text, constant):
        if name in same_parameter:
            return name
    if same_parameter:
        suggestion = suggest_name(name_text, same_parameter)
        raise UserError(
            f"--set {name_text}: the set of {family.name} has no value '{name_text}'; {suggestion}"
        )
    return constant


def _parse_estimate(family: Family, name: str, text: str, forms: Mapping[str, str]) -> Estimate:
    """Return the exact value of a text.

    A coefficient of a function may be negative, no other value. A time per byte may be given in
    seconds.
    """
    unit_wanted = find_unit(family, name, forms)
    with locate_mistakes(key=name):
        number, measure = parse_with_unit(text)
        check_unit(
            number,
            unit_wanted if measure == "s" and unit_wanted.startswith("s") else measure,
            unit_wanted,
        )
        if number < 0 and not family.by_name[_find_parameter(name)].argument:
            raise UserError(f"found {show_value(text)}, wanted a value that is not negative")
    return Estimate.exact(number, unit_wanted)


def _split_settings(
    family: Family, texts: Sequence[str]
) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return those of `NAME=VALUE` texts that are settings of the model, and the other pairs."""
    pairs = []
    for pair in texts:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            raise UserError(f"found '{pair}', wanted NAME=VALUE")
        pairs.append((name, value))
    settings = {name: value for name, value in pairs if name in family.settings}
    return settings, [(name, value) for name, value in pairs if name not in family.settings]
