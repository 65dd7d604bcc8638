"""Parameter sets from files, each value in the unit, and by the name, that its family has for it."""

from dataclasses import replace

from commodel.errors import UserError
from commodel.files.kept import reached
from commodel.files.paths import AnyPath
from commodel.files.quantities import check_unit
from commodel.files.sets import MAX_SET, checked
from commodel.files.yaml import Document, read
from commodel.models.families import family, unit
from commodel.models.keys import parse
from commodel.models.pricing.functions import FORM_NAMES
from commodel.parameters import ParameterSet
from commodel.sources import ROOT


def read_set(path: AnyPath) -> ParameterSet:
    return set_of(read(path, MAX_SET))


def set_of(document: Document) -> ParameterSet:
    """A number of another unit, or of one that is not named, is refused, not taken for seconds. A function that is one
    number, as those of older sets may be, is called as its constant."""
    parameters = checked(document)
    entry = family(parameters.family)
    names = {name: entry.in_full(name, parameters.classes) for name in parameters.values}
    for name, full in names.items():
        if full != name and full in names:
            raise document.error(("parameters", name), f"found {full}, too, wanted one of them")
    if set(parameters.forms.values()) <= set(FORM_NAMES):  # what others are is said where they are priced
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
