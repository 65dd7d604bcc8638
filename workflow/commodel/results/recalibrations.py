"""Records of the recalibrations of a campaign (`write_calibration`, `read_calibrations`).

Each recalibration has a folder with the recalibrated parameter sets, and a file with the setting of
the new measurement, its points, and the resulting factors. Only this module reads and writes that
file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Interval, Len
from pydantic import AfterValidator, TypeAdapter

from commodel.errors import UserError, make_printable
from commodel.files.atomic import write_json
from commodel.files.quantities import parse_setting
from commodel.files.results_folder import CALIBRATION, Results
from commodel.files.safe_paths import AnyPath
from commodel.files.typed_records import read_json_record
from commodel.records import Count, Finite, Name

MAX_ROWS = 1000  # points, or models


def _read_setting(text: str) -> str:
    try:
        return parse_setting(text)
    except UserError as error:
        raise ValueError(error.found) from None


Text = Annotated[str, AfterValidator(make_printable)]
Positive = Annotated[float, Interval(gt=0, lt=float("inf"))]


@dataclass(frozen=True, slots=True)
class RecordedFactor:
    value: Positive
    low: Positive
    high: Positive
    known: bool


@dataclass(frozen=True, slots=True)
class RecordedFactors:
    """The factors of one model, and its μ at held-out points before and after recalibration."""

    latency: RecordedFactor
    per_byte: RecordedFactor
    together: bool  # the measurements determine only one common factor
    points: Count  # from which they are estimated
    scatter: Finite  # standard deviation of the residuals
    before: Positive | None
    after: Positive | None
    checked: Count  # number of held-out points


@dataclass(frozen=True, slots=True)
class RecordedPoint:
    """A point measured in the new setting; `elsewhere` is its time in the campaign, None if it was
    not measured there."""

    operation: Text
    alternative: Text  # an algorithm or a topology
    layout: Text
    ranks: Count
    bytes: Count
    seconds: Positive
    elsewhere: Positive | None
    used: bool


@dataclass(frozen=True, slots=True)
class Calibration:
    setting: Annotated[str, AfterValidator(_read_setting)]
    platform: Name  # of the sets that were recalibrated
    measured_on: Name  # platform of the new measurement
    simulated: bool
    date: Text
    points: Annotated[tuple[RecordedPoint, ...], Len(0, MAX_ROWS)]
    models: Annotated[Mapping[Name, RecordedFactors], Len(0, MAX_ROWS)]


CALIBRATION_ADAPTER = TypeAdapter(Calibration)


def write_calibration(folder: AnyPath, calibration: Calibration) -> None:
    write_json(folder / CALIBRATION, CALIBRATION_ADAPTER.dump_python(calibration, mode="json"))


def read_calibrations(results: Results) -> dict[str, Calibration]:
    """Return all recalibrations of a results folder, by the name of their folder, in the order of
    their dates."""
    calibrations = {
        folder.name: read_json_record(CALIBRATION_ADAPTER, folder / CALIBRATION)
        for folder in results.calibrations()
    }
    return dict(
        sorted(calibrations.items(), key=lambda calibrated: (calibrated[1].date, calibrated[0]))
    )
