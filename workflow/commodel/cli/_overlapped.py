"""A kernel whose messages go while processes compute, at the speeds that a file of them says."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from commodel.errors import UserError
from commodel.files.atomic import write_text
from commodel.models.speeds import read_speeds
from commodel.patterns.layouts import processes_of
from commodel.patterns.operations import given_of, operation, own_spelling, tiles
from commodel.patterns.points import Setting
from commodel.patterns.rectanglefile import write
from commodel.price.computation import computation
from commodel.records import Point


@contextmanager
def at_speeds(point: Point, speeds: Path | None, setting: Setting) -> Iterator[tuple[Point, bool]]:
    """The point over a partition that says how fast each process computes its rectangle, itself without speeds; and
    whether the speeds are only declared."""
    if speeds is None:
        yield point, False
        return
    kinds, declared = processes_of(point.layout, point.ranks, dict(setting.types)), read_speeds(speeds)
    try:
        curves = declared.curves("gemm", kinds)
    except UserError as error:
        raise UserError(error.message, file=speeds) from None
    tiling = tiles(point.operation, point.ranks)
    with TemporaryDirectory(prefix="commodel-") as folder:
        path = Path(folder) / "partition.csv"
        write_text(path, write(replace(tiling, speed=computation(tiling, curves).speed)))
        rest = [
            f"{name}={value}" for name, value in _written(point.operation) if name not in ("n", "grid", "partition")
        ]
        spelled = own_spelling(":".join(["summa", f"partition={path}", *rest]))
        yield replace(point, operation=spelled), declared.simulated


def _written(text: str) -> list[tuple[str, str]]:
    """The parameters of an operation as it spells them."""
    written = {parameter.name: parameter.write for parameter in operation(text).parameters}
    return [(name, written[name](value)) for name, value in given_of(text).items()]
