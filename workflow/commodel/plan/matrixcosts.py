"""Node-hours beside the rows of an editable matrix, by formulas that follow what is kept, sizes and waves."""

from collections.abc import Sequence

from commodel.plan.costs import Cost

TITLES = ("nodes used", "a sample [µs]", "node-hours")
NOTE = (
    "Node-hours follow keep, bytes and waves. With other ranks or another choice a row keeps its nodes and time, and a "
    "new row has the average of the others: `commodel plan` knows exactly."
)


class Costs:
    """`first` is the row of the first combination, from 0; letters are those of the columns that formulas look at."""

    def __init__(self, book, sheet, first: int, columns: Sequence[str]):
        self.sheet, self.first = sheet, first
        self.at = {name: chr(ord("A") + place) for place, name in enumerate((*columns, *TITLES))}
        self.place = len(columns)
        self.bold, self.head = book.add_format({"bold": True}), book.add_format({"bold": True, "bottom": 1})
        self.hours = book.add_format({"num_format": "0.000000", "bg_color": "#F3F6F8"})
        self.total = book.add_format({"num_format": "0.000000", "bold": True})

    def write(self, costs: Sequence[Cost | None], kept: Sequence[bool], rest: float, more: int) -> None:
        """`rest`: node-hours of what is no combination; `more`: rows that wait for new ones."""
        known = [cost for cost in costs if cost is not None]
        if not known:
            self.sheet.write_string(0, 4, "simulated: no node-hours", self.bold)
            return
        for place, title in enumerate(TITLES, self.place):
            self.sheet.write_string(self.first - 1, place, title, self.head)
            self.sheet.set_column(place, place, 14)
        for row, cost in enumerate(costs, self.first):
            if cost is not None:
                counted = kept[row - self.first]
                self.sheet.write_number(row, self.place, cost.nodes)
                self.sheet.write_formula(row, self.place + 1, self._sample(row, cost), None, cost.seconds * 1e6)
                self._row(row, cost, cost.node_hours if counted else 0)
        last = self.first + len(costs)
        for row in range(last, last + more):
            for place, title in enumerate(TITLES[:2], self.place):
                mean = f"AVERAGE({self.at[title]}${self.first + 1}:{self.at[title]}${last})"
                mean = f"ROUND({mean},0)" if place == self.place else mean
                self.sheet.write_formula(row, place, f'=IF({self.at["operation"]}{row + 1}="","",{mean})', None, "")
            self._row(row, known[0], 0)
        total = sum(cost.node_hours for cost, counted in zip(costs, kept, strict=True) if cost and counted) + rest
        hours = self.at["node-hours"]
        self.sheet.write_string(0, 4, "node-hours on real machines, about", self.bold)
        self.sheet.write_formula(
            0, 7, f"=SUM({hours}{self.first + 1}:{hours}{last + more})+{hours}1", self.total, total
        )
        self.sheet.write_string(0, 8, "of them probes, library, starts of jobs", self.bold)
        self.sheet.write_number(0, self.place + 2, rest, self.total)
        self.sheet.write_string(1, 6, NOTE)

    def _sample(self, row: int, cost: Cost) -> str:
        size, waves = (f"{self.at[name]}{row + 1}" for name in ("bytes", "waves"))
        size = f"IF(ISNUMBER({size}),{size},{cost.bytes})"
        waves = f"IF(ISNUMBER({waves}),{waves},{cost.waves})/{cost.waves}"
        return f"=({cost.seconds * 1e6!r}+{cost.per_byte * 1e6!r}*({size}-{cost.bytes}))*{waves}"

    def _row(self, row: int, cost: Cost, hours: float) -> None:
        nodes, sample, operation, keep = (f"{self.at[name]}{row + 1}" for name in (*TITLES[:2], "operation", "keep"))
        seconds = f"(MIN({sample}*{cost.samples}/1E6,{cost.limit!r})+{sample}*{cost.warmup}/1E6+{cost.once!r})"
        formula = f'=IF(OR({operation}="",{keep}="no"),0,{seconds}*{nodes}/3600)'
        self.sheet.write_formula(row, self.place + 2, formula, self.hours, hours)
