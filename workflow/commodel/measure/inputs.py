"""What a start reads, written out into the work folder: its cases, the schedules and partitions that they name, where
its ranks sit; and what is run then.

Programs start in the work folder and every path is relative to it: smpirun takes none with a space in it.
"""

import csv
import os
from pathlib import Path

from commodel.files.atomic import write_text
from commodel.files.paths import AnyPath
from commodel.measure import kernels, overlay
from commodel.measure.starts import Rig, Start
from commodel.models.probes import probe
from commodel.patterns.build import schedule
from commodel.patterns.playfile import write_play
from commodel.platforms import container
from commodel.platforms.build import programs
from commodel.platforms.launchers import Job, toolchain
from commodel.platforms.tools import workshop
from commodel.records import Case


def prepare(rig: Rig, start: Start, number: int) -> Job:
    """What to run for one pass over the cases of a start, with all that it reads written out."""
    how, platform, work = rig.how, rig.platform, rig.work
    rows = [_prepared(row, work) for row in start.rows]
    if platform.overlay:
        hosts = (rig.names[node] if rig.names else overlay.HERE for node in start.nodes)
        rows = overlay.with_topologies(rows, work, hosts)
    with (work / f"{start.name}.cases").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    here = work.resolve()
    folder = container.PROGRAMS if rig.inside else os.path.relpath(programs(workshop(), toolchain(platform)), here)
    job = Job(
        platform=platform,
        starter=rig.starter,
        program=os.path.join(folder, start.program),
        inside=rig.inside,
        arguments=_arguments(rig, start, number),
        nodes=start.nodes,
        names=rig.names,
        kept=() if how.simulated else start.kept,
        drives=start.drives,
        network=Path(os.path.relpath(platform.simgrid_file.resolve(), here)) if platform.simgrid_file else None,
        hostfile=Path(f"{start.name}.hosts"),
        folder=here,
    )
    if platform.overlay:
        return job
    write_text(work / f"{start.name}.placement", job.placement)
    if job.kept:
        write_text(work / f"{start.name}.cores", job.cores)
    if how.hostfile:
        write_text(work / job.hostfile.name, job.hosts)
    return job


def _arguments(rig: Rig, start: Start, number: int) -> tuple[str, ...]:
    """A pass gets its share of the budgets, and an order of its own."""
    settings = rig.plan.measure
    ranks = {"--placement": f"{start.name}.placement", "--sync": settings.sync}  # which an overlay's program has not
    arguments = {
        "--cases": f"{start.name}.cases",
        "--out": f"../{rig.pass_folder(number).name}",
        "--meta": f"../{start.name}.json",
        **({} if rig.platform.overlay else ranks),
        **({"--cores": f"{start.name}.cores"} if start.kept and not rig.how.simulated else {}),
        "--precision": settings.precision,
        "--min-samples": settings.min_samples,
        "--max-samples": max(settings.max_samples // rig.passes, settings.min_samples),
        # Simulated seconds cost nobody anything.
        "--max-seconds": 1e9 if rig.how.simulated else settings.seconds / rig.passes,
        "--warmup": settings.warmup,
        "--seed": rig.plan.seed + number,
    }
    return tuple(str(part) for pair in arguments.items() for part in pair)


def _prepared(row: dict, work: AnyPath) -> dict:
    """The row as the case file has it; the player's schedule and a kernel's partition are written out first."""
    if "partition" in row:
        return kernels.with_partition(row, work)
    if "plays" not in row:
        return row
    member = row["plays"]
    if isinstance(member, Case):
        pattern = probe(member.probe).pattern(member.settings)
        write_play(row["schedule"], pattern)
    else:
        pattern = schedule(member)
        write_play(row["schedule"], pattern, member.operation, member.bytes)
    return {
        "id": row["id"],
        "schedule": row["schedule"].name,
        "finish": "all" if pattern.root is None else pattern.root,
        "waves": row["waves"],
    }
