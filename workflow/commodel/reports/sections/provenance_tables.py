"""Provenance of a report: batches, attempts, files with digests, and the experiment's own texts."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from commodel.files.cache import MAX_COPY_BYTES, MAX_PLAIN_COPY_BYTES
from commodel.files.safe_reading import MIB
from commodel.records import ArchivedFile
from commodel.reports.elements import (
    Column,
    Section,
    Table,
    Text,
    make_table,
    select_columns,
    to_plain_value,
)
from commodel.reports.sections.evidence import flatten_provenance
from commodel.results.provenance import ExperimentProvenance

PROVENANCE_SHEET = "Provenance"
# row with the path to the results, by which raw files are linked
RESULTS_KEY = "results, seen from here"
MAX_COLUMNS = 12  # if more keys differ between batches, each becomes a row instead of a column
MAX_LINE_LENGTH = 500
MAX_LINES = 2000  # shown characters of a line, and shown lines of a text
FILES_NOTE = (
    "Files in the folder of the results. For a batch: the digest of sha256sum's list of its samples and its programs' "
    "outputs."
)


INPUT_FILES_NOTE = (
    "Files that the experiment names, and published parameter sets. Copies are in inputs/files of the "
    "results, up to {0} MiB; above {1} MiB they are compressed by gzip, and the digest is of the uncompressed file."
)


def make_sections(
    batches: Mapping[str, Mapping], run_provenance: ExperimentProvenance, simulated: set[str]
) -> list[Section]:
    blocks = [*tabulate_batches(batches, simulated)]
    if run_provenance.attempts:
        blocks.append(tabulate_attempts(run_provenance, simulated))
    if run_provenance.files:
        blocks.append(
            make_table(
                "Files", "Files of this report", list(run_provenance.files.items()), note=FILES_NOTE
            )
        )
    if run_provenance.inputs:
        blocks.append(tabulate_files(run_provenance.inputs))
    if run_provenance.tools:
        blocks.append(
            make_table("Tools", "Programs used for the report", list(run_provenance.tools.items()))
        )
    note = "Provenance of the measurements. A batch is measured in one allocation."
    pages = [Section(PROVENANCE_SHEET, note, tuple(blocks))]
    if run_provenance.texts:
        note = (
            "The experiment and its platforms, word for word, as they were when this was planned."
        )
        note += (
            " Short patterns, partitions and published sets too." if run_provenance.inputs else ""
        )
        texts = tuple(
            Text(to_plain_value(name), split_text(text))
            for name, text in run_provenance.texts.items()
        )
        pages.append(Section("Inputs", note, texts))
    return pages


def tabulate_files(files: Mapping[str, ArchivedFile]) -> Table:
    rows = [
        (name, file.kind, file.bytes, file.digest, file.copy or "none: too large", file.source)
        for name, file in files.items()
    ]
    note = INPUT_FILES_NOTE.format(MAX_COPY_BYTES // MIB, MAX_PLAIN_COPY_BYTES // MIB)
    return make_table("Input files", "Named files and published sets", rows, note=note)


def tabulate_attempts(run_provenance: ExperimentProvenance, simulated: set[str]) -> Table:
    rows = []
    for attempt in run_provenance.attempts:
        row = dict(attempt)
        row["simulated"] = to_plain_value(attempt.get("platform")) in simulated
        row["started"] = format_time(attempt.get("started"))
        row["ended"] = format_time(attempt.get("ended"))
        rows.append(row)
    note = (
        "A batch that was stopped continues in its next attempt, which measures only missing points. Other tables show "
        "the last attempt that measured."
    )
    return make_table("Attempts", "Attempts", rows, note=note)


def format_time(seconds: Any) -> str | None:
    """Return a time of the Unix clock as date and time in UTC."""
    try:
        return (
            datetime.datetime.fromtimestamp(float(seconds), datetime.UTC).isoformat(" ", "seconds")[
                :19
            ]
            + " UTC"
        )
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def split_text(text: str) -> tuple[str, ...]:
    """Return the text line by line. A long line continues in the next row; if lines are left out,
    the last one counts them."""
    shown = []
    for line in text.expandtabs(4).splitlines():
        printable = "".join(char if char.isprintable() else " " for char in line)
        shown += [
            printable[at : at + MAX_LINE_LENGTH]
            for at in range(0, max(1, len(printable)), MAX_LINE_LENGTH)
        ]
    hidden = len(shown) - MAX_LINES
    return (
        *shown[:MAX_LINES],
        *([f"… {hidden:,} more lines; the digest above is of all of them"] if hidden > 0 else []),
    )


def format_dates(batches: Mapping[str, Mapping], run_provenance: ExperimentProvenance) -> str:
    """Return the first and the last day of the measurements; empty if unknown."""
    days = [str(batch["date"])[:10] for batch in batches.values() if batch.get("date")]
    attempts = run_provenance.attempts
    seconds = [attempt.get(key) for attempt in attempts for key in ("started", "ended")]
    moments = map(format_time, seconds)
    days = sorted({*days, *(when[:10] for when in moments if when)})
    if not days:
        return ""
    return to_plain_value(
        f"measured on {days[0]}" if len(days) == 1 else f"measured from {days[0]} to {days[-1]}"
    )


def tabulate_batches(batches: Mapping[str, Mapping], simulated: set[str]) -> list[Table]:
    """Return three tables of provenance entries: equal in all batches, equal in the batches of a
    platform, and different between batches."""
    entries = {to_plain_value(name): flatten_provenance(batch) for name, batch in batches.items()}
    by_platform: dict[str, list[dict[str, str]]] = {}
    for batch in entries.values():
        by_platform.setdefault(batch.get("platform", ""), []).append(batch)
    keys = list(dict.fromkeys(key for batch in entries.values() for key in batch))
    common_keys = [key for key in keys if has_one_value(entries.values(), key)]
    keys = [key for key in keys if key not in (*common_keys, "platform", "simulated")]

    def is_platforms(key: str) -> bool:
        return all(has_one_value(rows, key) for rows in by_platform.values())

    platform_keys = list(filter(is_platforms, keys))
    differing_keys = [key for key in keys if key not in platform_keys]
    of_all = [(key, next(iter(entries.values()))[key]) for key in common_keys]
    tables = [make_table("Common", "Common to all batches", of_all)]
    if platform_keys:
        rows = []
        for name, (batch, *_) in by_platform.items():
            rows += [
                (name, name in simulated, key, batch[key]) for key in platform_keys if key in batch
            ]
        tables.append(make_table("Common by platform", "Common to the batches of a platform", rows))
    if len(by_platform) > 1:
        differing_keys.insert(0, "platform")
    row_heads = {
        name: (name, batch.get("platform") in simulated or batch.get("simulated") == "yes")
        for name, batch in entries.items()
    }
    if len(differing_keys) <= MAX_COLUMNS:
        further: Sequence[Column] = [Column(f"= {key}", key) for key in differing_keys]
        batch_rows: list[tuple[Any, ...]] = []
        for name, batch in entries.items():
            batch_rows.append((*row_heads[name], *(batch.get(key, "") for key in differing_keys)))
    else:
        further = select_columns("Common")
        batch_rows = []
        for name, batch in entries.items():
            keys_of_batch = [key for key in differing_keys if key in batch]
            batch_rows += [(*row_heads[name], key, batch[key]) for key in keys_of_batch]
    columns = [*select_columns("Batches"), *further]
    return [*tables, make_table("Batches", "Differences between batches", batch_rows, columns)]


def has_one_value(batches: Iterable[Mapping[str, str]], key: str) -> bool:
    return len({batch.get(key) for batch in batches}) == 1
