"""Words with a meaning of their own, and names of families: what they are, for readers who point at them."""

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

from commodel.report.shape import Report

TERMS = {
    "held out": "measured, and not seen by the fit that is judged by it",
    "interval": "where 95 % of what is measured lies; of a measurement: where its median lies",
    "job": "points that do the same work and differ in algorithm, tree or layout only",
    "library": "the MPI library's own collective, which chooses its algorithm itself",
    "not told apart": "mean errors that differ by 1 % or less, or by less than their interval",
    "probe": "a small benchmark that values of families are fitted from",
    "regret": "how much longer a family's pick takes than the fastest measured in its job",
    "relative error [%]": "(predicted - measured) / measured",
    "skew [µs]": "how far apart ranks started",
    "μ": "max(predicted/measured, measured/predicted): by what factor a price is off; 1 is exact",
}
SPELLED = {
    "held-out": "held out",
    "intervals": "interval",
    "jobs": "job",
    "probes": "probe",
    "regret [%]": "regret",
    "library's": "library",
}
ORDINARY = {"cluster", "shares"}  # families that are called as other things are


def terms_of(report: Report) -> dict[str, str]:
    """What each word means, families of the report among them."""
    words = TERMS | {spelled: TERMS[term] for spelled, term in SPELLED.items()}
    return words | {name: text for name, text in families_of(report).items() if name not in ORDINARY}


def families_of(report: Report) -> dict[str, str]:
    """Full name and equation by the name that tables use."""
    tables = [table for section in report.sections if section.name == "Families" for table in section.tables]
    if not tables or not {"family", "title", "equation"} <= {column.key for column in tables[0].columns}:
        return {}
    columns = [tables[0].column(key) for key in ("family", "title", "equation")]
    return {name: ": ".join(filter(None, rest)) for name, *rest in zip(*columns, strict=True) if name and any(rest)}


class Defined:
    """Texts as markup in which each term is explained where it comes first."""

    def __init__(self, terms: Mapping[str, str]):
        self.terms = terms
        names = "|".join(re.escape(term) for term in sorted(terms, key=len, reverse=True))
        self.pattern = re.compile(rf"(?<![\w-])(?:{names})(?![\w-])")

    def __call__(self, text: str) -> Markup:
        explained, parts, end = set(), [], 0
        for match in self.pattern.finditer(text):
            if (meaning := self.terms[match[0]]) not in explained:
                explained.add(meaning)
                parts += [
                    escape(text[end : match.start()]),
                    Markup('<abbr title="{}">{}</abbr>').format(meaning, match[0]),
                ]
                end = match.end()
        return Markup("").join([*parts, escape(text[end:])])
