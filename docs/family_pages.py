"""Generate the page of each model from its source file, and the table of all models.

The site's build calls this (hooks.py), so that a new model needs no page, table row or menu entry.
"""

import importlib
import re
from collections.abc import Iterator

from commodel.models.families import Family, Parameter, find_family, list_family_names
from commodel.models.parameter_sets import read_published_sets

FUNCTIONS = {name: rf"\{name} " for name in ("max", "min", "log", "exp")} | {"rtt": r"\mathrm{rtt}"}
SIGNS = {
    "·": r"\cdot ",
    "×": r"\times ",
    "−": "-",
    "Σ": r"\sum ",
    "≤": r"\le ",
    "⌈": r"\lceil ",
    "⌉": r"\rceil ",
}
SIGNS |= {
    "α": r"\alpha ",
    "β": r"\beta ",
    "λ": r"\lambda ",
    "τ": r"\tau ",
    "γ": r"\gamma ",
    "…": r"\dots ",
    "%": r"\%",
    "⟶": r"\qquad ",
}
RAISED = dict(zip("⁰¹²³", "0123", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆", "0123456", strict=True))
TOKEN = re.compile(
    r"(?P<name>[A-Za-zα-ωΣ]+)(?:_(?P<below>[A-Za-z0-9]+(?:[,:][a-z])?))?|\^(?P<above>[a-z](?:_[a-z])?)|\s+|."
)


def maths(line: str) -> str:
    """Return a typed formula, such as `T_ij(m) = o_s,i + L·m`, in TeX. Words of a sentence stay
    words."""
    tex: list[str] = []
    words: list[str] = []
    for match in TOKEN.finditer(re.sub(r"\s{2,}(?=\()", "⟶", line.strip())):
        if _is_word(match, bool(words)):
            words.append(match[0])
            continue
        if words:
            tex.append(rf"\text{{ {''.join(words).strip()} }}")
            words.clear()
        tex.append(_symbol(match))
    return "".join(tex) + (rf"\text{{ {''.join(words).strip()}}}" if words else "")


def _is_word(match: re.Match, within: bool) -> bool:
    """Return whether a token is a word: a name of several letters that is no function, or part of a
    sentence."""
    name = match["name"]
    if name is None or match["below"]:
        return (
            within
            and bool(re.fullmatch(r"[\s\d.,]", match[0]))
            and match.string[match.end() : match.end() + 1] != "·"
        )
    return (len(name) > 1 and name not in FUNCTIONS) or (name == "a" and within)


def _symbol(match: re.Match) -> str:
    token, name, below = match[0], match["name"], match["below"] or ""
    if match["above"]:
        return f"^{{{match['above']}}}"
    if name is None:
        if token.isspace():
            return (
                r"\ "
                if re.fullmatch(
                    r"\w\w", match.string[match.start() - 1] + match.string[match.end()]
                )
                else " "
            )
        raised, lowered = RAISED.get(token), LOWERED.get(token)
        return (
            f"^{{{raised}}}"
            if raised
            else f"_{{{lowered}}}"
            if lowered
            else SIGNS.get(token, token)
        )
    symbol = FUNCTIONS.get(name) or SIGNS.get(name, name)
    upright = len(below) > 2 and below.isalpha()
    return symbol + (rf"_{{\mathrm{{{below}}}}}" if upright else f"_{{{below}}}" if below else "")


def table() -> str:
    rows = (
        f"| [{entry.title}]({name}.md) | `{name}` | {entry.equation} |"
        for name, entry in families().items()
    )
    return "\n".join(["| model | `model` | equation of a message |", "|---|---|---|", *rows])


def page(entry: Family) -> str:
    return "\n".join(_lines(entry)).rstrip() + "\n"


def _lines(entry: Family) -> Iterator[str]:
    yield from (
        f"# {entry.title}",
        "",
        f"`commodel show models {entry.name}` prints a summary of this page.",
        "",
    )
    yield from _definition(entry)
    yield from ("## Parameters", "")
    if entry.parameters:
        yield from ("| parameter | unit | meaning |", "|---|---|---|", *map(_row, entry.parameters))
    else:
        yield "The model has no parameters."
    yield from (
        "",
        "## Probes",
        "",
        _probes(entry),
        "",
        "## Assumptions and limits",
        "",
        f"The model neglects: {entry.ignores}.",
        "",
    )
    yield from (f"- {line}" for line in _limits(entry))
    if entry.settings:
        yield from (
            "",
            "## Settings",
            "",
            "The first value is the default.",
            "",
            "| setting | values | meaning |",
        )
        yield "|---|---|---|"
        for name, setting in entry.settings.items():
            values = ", ".join(f"`{value}`" for value in setting.values)
            yield f"| `{name}` | {values} | {setting.meaning} |"
    published = read_published_sets(entry.name)
    if published:
        yield from ("", "## Published values", "")
        yield from (f"- `{path}`: {values.source}" for path, values in published.items())
    yield from ("", "## Citation", "", f"{entry.citation}.")


def _stem(entry: Family) -> str:
    return entry.name.replace("-", "_")


def _definition(entry: Family) -> Iterator[str]:
    """Yield the docstring of the model's file: paragraphs, and indented lines as formulas."""
    module = importlib.import_module(f"commodel.models.families.{_stem(entry)}")
    for block in (module.__doc__ or "").strip().split("\n\n"):
        lines = block.splitlines()
        if all(line.startswith("    ") for line in lines):
            for line in lines:
                yield from ("```math", maths(line), "```", "")
        else:
            yield from (*lines, "")


def _row(parameter: Parameter) -> str:
    return f"| `{parameter.symbol}` | {parameter.unit or '1'} | {parameter.about} |"


def _probes(entry: Family) -> str:
    named = ", ".join(f"`{name}`" for name in entry.probes) or "none"
    there = ", ".join(f"`{name}`" for name in entry.probes_without_mpi)
    return f"Fitted from {named}" + (f". On an overlay network: from {there}." if there else ".")


def _limits(entry: Family) -> Iterator[str]:
    if entry.uses_bytes:
        yield "Predicted times grow with the message size."
    else:
        yield "Predicted times do not depend on the message size."
    if entry.pipelined:
        yield "The model has its own equation for the time between waves of a stream."
    elif entry.independent:
        yield "Ranks proceed independently: the model predicts streams of waves and overlapping steps."
    else:
        yield "The model adds up steps that all ranks share: it predicts no stream of waves."
    if entry.table_fit:
        yield "Measured collectives alone are enough to fit the model: `commodel fit table`."
    else:
        yield "The model needs probes: measured collectives alone do not determine its parameters."
    if entry.by_class:
        yield (
            "On a network of several levels, parameters may have a value for each distance class, such as `L.beyond`. "
            "The model neglects link sharing."
        )
    elif not entry.has_classes:
        yield (
            "The model predicts the same time for ranks near and far. On a network of several levels, its interval "
            "covers the fastest and the slowest distance class that was probed."
        )
    if entry.limits:
        yield "The validity of a prediction may give reasons that only this model has."


def families() -> dict[str, Family]:
    return {name: find_family(name) for name in list_family_names()}


def pages() -> dict[str, str]:
    """Return the text of every page by its file name."""
    return {f"{name}.md": page(entry) for name, entry in families().items()}
