"""Parameter sets from files, each value in the unit, and by the name, that its family has for it.

Values that somebody gives by hand, as `NAME=VALUE`: all that a family needs, or some in place of a set's. A set
says of itself what was changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from commodel.errors import UserError, mistakes_in, suggest
from commodel.files.cache import reached
from commodel.files.parameter_sets import MAX_SET, checked
from commodel.files.quantities import check_unit, parse_with_unit
from commodel.files.safe_paths import AnyPath
from commodel.files.yaml import Document, read
from commodel.models.evaluation.values import FORM_NAMES, Values
from commodel.models.families import Family, complete, family, forms_of, unit
from commodel.models.keys import parse
from commodel.parameters import Estimate, ParameterSet
from commodel.sources import ROOT
from commodel.units import format_seconds, shown


def read_set(path: AnyPath) -> ParameterSet:
    return set_of(read(path, MAX_SET))


def set_of(document: Document) -> ParameterSet:
    """Return a number of another unit, or of one that is not named, is refused, not taken for seconds. A function that
    is one number, as those of older sets may be, is called as its constant."""
    parameters = checked(document)
    entry = family(parameters.family)
    names = {name: entry.in_full(name, parameters.classes) for name in parameters.values}
    for name, full in names.items():
        if full != name and full in names:
            raise document.error(("parameters", name), f"found {full}, too, wanted one of them")
    if set(parameters.forms.values()) <= set(FORM_NAMES):  # what others are is said where they are predicted
        for name, estimate in parameters.values.items():
            if parse(name).parameter in entry.by_name:  # so is a name that the family does not know
                try:
                    check_unit(estimate.value, estimate.unit, unit(entry, names[name], parameters.forms))
                except UserError as error:
                    raise document.error(("parameters", name), error.found) from None
    return replace(
        parameters,
        values={names[name]: estimate for name, estimate in parameters.values.items()},
        draws={names.get(name, name): drawn for name, drawn in parameters.draws.items()},
    )


def published_file(name: str) -> str:
    """Of values printed in a paper, named FAMILY/SOURCE: their file, below the clone."""
    return f"params/published/{name}.yaml"


def published(name: str) -> ParameterSet:
    return read_set(reached(published_file(name), ROOT))


def published_sets(family: str) -> dict[str, ParameterSet]:
    """Return the sets of a model whose values papers print, by their files below the clone."""
    files = sorted((ROOT / published_file(f"{family}/x")).parent.glob("*.yaml"))
    return {str(path.relative_to(ROOT)): read_set(path) for path in files}


BY_HAND = "by hand"


def set_given(name: str, texts: Sequence[str]) -> ParameterSet:
    """Return a parameter set from `NAME=VALUE` texts, taken as exact. A function's constant may go by its name alone; a
    setting's value is one of those that the family has for it."""
    entry = family(name)
    settings, values_given = _settings(entry, [text.removeprefix(f"{name}:") for text in texts])
    texts: dict[str, str] = {}
    for called, value in values_given:
        parameter = entry.by_name.get(parse(called).parameter)
        if parameter is None:
            raise UserError(f"family {name} has no parameter '{called}'; {suggest(called, entry.by_name)}")
        called = entry.in_full(called)
        if called in texts:
            raise UserError(f"found {called} twice")
        texts[called] = value
    forms = forms_of(entry, texts)
    values = {called: _estimate(entry, called, value, forms) for called, value in texts.items()}
    parameters = ParameterSet(name, "", "given on the command line", values, forms=forms, settings=settings)
    complete(entry, Values.of(parameters))
    return parameters


def by_hand(sets: Sequence[ParameterSet], texts: Sequence[str]) -> list[ParameterSet]:
    """Return the sets with values and settings in the place of theirs: `NAME=VALUE` texts for all of them,
    `FAMILY:NAME=VALUE` for that of a family. What was changed is noted in the provenance; a value has no interval
    then."""
    wanted: dict[str, list[str]] = {parameters.family: [] for parameters in sets}
    for text in texts:
        name, _, _ = text.partition("=")
        of, colon, _ = name.partition(":")
        if colon and of.strip() not in wanted:
            raise UserError(f"--set {text}: found no set of family '{of.strip()}'; {suggest(of.strip(), wanted)}")
        for family_name in [of.strip()] if colon else wanted:
            wanted[family_name].append(text.partition(":")[2] if colon else text)
    return [_changed(parameters, wanted[parameters.family], len(wanted) > 1) for parameters in sets]


def note(parameters: ParameterSet) -> str:
    """Return what of a set was given by hand; empty where nothing was."""
    return str(parameters.provenance.get(BY_HAND, ""))


def _changed(parameters: ParameterSet, texts: Sequence[str], many_sets: bool) -> ParameterSet:
    if not texts:
        return parameters
    entry = family(parameters.family)
    settings, values_given = _settings(entry, texts)
    notes = [f"{name}={value}{_instead(parameters.settings.get(name))}" for name, value in settings.items()]
    names = [_name_in(entry, parameters, called, many_sets) for called, _ in values_given]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"--set: found {twice[0]} twice")
    forms = {**forms_of(entry, [name for name in names if name not in parameters.values]), **parameters.forms}
    values = dict(parameters.values)
    for name, (_, value) in zip(names, values_given, strict=True):
        before = parameters.values.get(name)
        values[name] = replace(_estimate(entry, name, value, forms), note="set by hand")
        notes.append(f"{name}={value}{_instead(before and _shown(before))}")
    changed = replace(
        parameters,
        values=values,
        forms=forms,
        settings={**parameters.settings, **settings},
        missing={name: why for name, why in parameters.missing.items() if name not in map(_parameter, names)},
        draws={name: drawn for name, drawn in parameters.draws.items() if name not in names},
        provenance={**parameters.provenance, BY_HAND: ", ".join(notes)},
    )
    if changed.values:  # a family that could not be fitted has none, and says why where it is predicted
        complete(entry, Values.of(changed))
    return changed


def _instead(before: object) -> str:
    return f" in place of {before}" if before else ""


def _shown(estimate: Estimate) -> str:
    return format_seconds(estimate.value) if estimate.unit == "s" else f"{estimate.value:.4g} {estimate.unit}".strip()


def _parameter(name: str) -> str:
    return parse(name).parameter


def _name_in(entry: Family, parameters: ParameterSet, called: str, many_sets: bool) -> str:
    """Return what the set calls it: a function's constant may go by the function's name. What it has in other parts,
    such as by types of nodes, is named by these, or nothing would change."""
    if _parameter(called) not in entry.by_name:
        known = suggest(called, [*entry.by_name, *(entry.settings or {})])
        hint = "; --set FAMILY:NAME=VALUE is of one family alone" if many_sets else ""
        raise UserError(f"--set {called}: family {entry.name} has no parameter or setting '{called}'; {known}{hint}")
    own = [name for name in parameters.values if _parameter(name) == _parameter(called)]
    constant = entry.in_full(called, parameters.classes)
    for name in (called, constant):
        if name in own:
            return name
    if own:
        raise UserError(f"--set {called}: the set of {entry.name} has no value '{called}'; {suggest(called, own)}")
    return constant


def _estimate(entry: Family, name: str, text: str, forms: Mapping[str, str]) -> Estimate:
    """Return the lower bound of a value. A coefficient of a function may be negative; nothing else may. Of a time per
    byte, the byte need not be said."""
    wanted = unit(entry, name, forms)
    with mistakes_in(key=name):
        number, measure = parse_with_unit(text)
        check_unit(number, wanted if measure == "s" and wanted.startswith("s") else measure, wanted)
        if number < 0 and not entry.by_name[_parameter(name)].argument:
            raise UserError(f"found {shown(text)}, wanted a value that is not negative")
    return Estimate(number, wanted, number, number)


def _settings(entry: Family, texts: Sequence[str]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Of `NAME=VALUE` texts those that choose a variant of the family, and the others in their parts."""
    pairs = []
    for pair in texts:
        called, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            raise UserError(f"found '{pair}', wanted NAME=VALUE")
        pairs.append((called, value))
    known = entry.settings or {}
    return {called: value for called, value in pairs if called in known}, [
        (called, value) for called, value in pairs if called not in known
    ]
