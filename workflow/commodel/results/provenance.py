"""What a batch's notes say of where its numbers come from: its setting, and what its programs say of themselves."""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import TypeAdapter

from commodel.errors import UserError
from commodel.files.paths import AnyPath
from commodel.files.settings import parse_setting
from commodel.files.typed import read_json_record


@dataclass(frozen=True, slots=True)
class Program:
    """What a native program says of itself and its ranks, as far as reports tell it."""

    mpi: str = ""
    compiler: str = ""
    flags: str = ""
    clock: str = ""
    clock_resolution: float | None = None  # seconds
    clock_uncertainty: float | None = None
    hosts: tuple[str, ...] = ()  # of its ranks
    processors: int | None = None  # of the first of them
    computing: str = ""  # what a kernel computes with


PROGRAM = TypeAdapter(Program)


def read_program(path: AnyPath) -> Program:
    return read_json_record(PROGRAM, path)


@dataclass(frozen=True, slots=True)
class Noted:
    """What is read back of a batch's provenance."""

    setting: str = ""


NOTED = TypeAdapter(Noted)


def setting_of(path: AnyPath) -> str:
    """The setting that a batch was measured in, where its provenance says one."""
    if not path.exists():
        return ""
    try:
        return parse_setting(read_json_record(NOTED, path).setting)
    except UserError as error:
        raise UserError(error.found, file=path, key=error.key or "setting") from None


def same_setting(path: AnyPath, wanted: str) -> str:
    """Of a batch that has samples and goes on: those of one batch are of one setting. Who says none goes on in that."""
    began = setting_of(path)
    if wanted not in ("", began):
        what = f"in setting '{began}'" if began else "without a setting"
        instead = "a platform file that says `setting:` has batches of its own"
        raise UserError(f"found setting '{wanted}', but this batch was begun {what}; {instead}", file=path)
    return began


def processors(paths: Iterable[AnyPath]) -> int | None:
    """Those that the programs of a batch saw on their first host; None where none says."""
    return min((number for path in paths if (number := read_program(path).processors)), default=None)
