"""The answer to a question (`Result`): rows, a sentence, and notes. A verb prints it, a notebook
shows it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commodel.files.atomic import write_text
from commodel.files.text_tables import format_answer, format_rows

if TYPE_CHECKING:
    import pandas as pd

    from commodel.parameters import ParameterSet

MAX_SHOWN_ROWS = 12  # in a notebook


class Result:
    """The rows that answer a question, in seconds and bytes; the answer in a sentence; notes on
    reasons and limits; and where the values come from, a row for each source.

    `print(answer)` shows what the verb prints.
    """

    if TYPE_CHECKING:  # some results compute these when they are first used

        @property
        def rows(self) -> Sequence[Mapping[str, Any]]: ...

        @property
        def sentence(self) -> str: ...

        @property
        def notes(self) -> Sequence[str]: ...

        @property
        def provenance(self) -> Sequence[Mapping[str, str]]: ...

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows as a DataFrame."""
        import pandas as pd  # the command line prints rows without it

        return pd.DataFrame(list(self.rows))

    def text(self, verbose: bool = True) -> str:
        """Return the sentence, the rows as a table, and the notes; only the first of these unless
        `verbose`."""
        return format_answer(self.sentence, format_rows(self.rows, "table"), self.notes, verbose)

    def to_csv(self, file: str | Path | None = None) -> str | None:
        """Write the rows as CSV, or return them as text."""
        return write_or_return(format_rows(self.rows, "csv"), file)

    def to_json(self, file: str | Path | None = None) -> str | None:
        """Write the rows as JSON, or return them as text."""
        return write_or_return(format_rows(self.rows, "json"), file)

    def to_excel(self, file: str | Path) -> None:
        """Write a workbook: the rows as a table to sort and to filter, the sentence with the notes,
        and the provenance."""
        from commodel.reports.workbooks import write_result  # slow to load

        write_result(
            type(self).__name__,
            self.frame,
            [self.sentence, *self.notes],
            list(self.provenance),
            Path(file),
        )

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.sentence}"

    def _repr_html_(self) -> str:
        """Return the sentence, the first rows and the notes, for notebooks."""
        table = self.frame.head(MAX_SHOWN_ROWS).to_html(index=False, float_format="{:.3g}".format)
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return f"<p>{html.escape(self.sentence)}</p>{table}<ul>{notes}</ul>"


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Result):
    """A result whose rows are known when it is made."""

    rows: Sequence[Mapping[str, Any]]
    sentence: str
    notes: Sequence[str]
    provenance: Sequence[Mapping[str, str]]


def describe_sources(sets: Iterable[ParameterSet]) -> list[Mapping[str, str]]:
    """Return a row for each parameter set: its model, its platform, and where its values come
    from."""
    return [
        {"model": fitted.model, "platform": fitted.platform or "", "source": fitted.source}
        for fitted in sets
    ]


def write_or_return(text: str, file: str | Path | None) -> str | None:
    """Write text to a file, or return it if none is named."""
    if file is None:
        return text
    write_text(Path(file), text + "\n")
    return None
