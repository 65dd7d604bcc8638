"""Typed records from JSON and YAML data (`read_json_record`, `parse_record`). Pydantic checks them,
and each mistake becomes an error line with its key, the found and the wanted value."""

import json
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from commodel.errors import Mistakes, UserError
from commodel.files.atomic import MAX_FILE_BYTES
from commodel.files.safe_paths import AnyPath
from commodel.files.safe_reading import read_text
from commodel.files.yaml import Document, KeyPath
from commodel.units import show_value

Record = TypeVar("Record")
WANTED_WORDS = {  # by the type of pydantic's error, in place of pydantic's words
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_type": "true or false",
    "predicate_failed": "a name",
    "string_pattern_mismatch": "'fan.A.B' or 'row.A.B' of two node types A and B",
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "dataclass_type", "model_type"), "a mapping"),
    "too_short": "at least one value",
}
PYDANTIC_PREFIX = "Input should be "


def read_json_record(form: TypeAdapter[Record], path: AnyPath) -> Record:
    """Return the record in a JSON file, with each value of exactly the type of its field."""
    text = read_text(path, MAX_FILE_BYTES, "a smaller file")
    try:
        return form.validate_json(text, strict=True)
    except ValidationError as errors:
        first = errors.errors(include_url=False)[0]
        if first["type"] == "json_invalid":
            raise UserError(f"cannot read: {first['ctx']['error']}", file=path) from None
        raise make_user_error(errors, Document(path, json.loads(text), {})) from None


def parse_record(
    form: TypeAdapter[Record], data: object, document: Document, within: KeyPath = ()
) -> Record:
    """Return a record from the data of a document, or of its part `within`.

    The data are passed as JSON, since pydantic's strict mode makes no tuples from Python's lists.
    """
    try:
        return form.validate_json(json.dumps(data), strict=True)
    except ValidationError as errors:
        raise make_user_error(errors, document, within) from None


def make_user_error(errors: ValidationError, document: Document, within: KeyPath = ()) -> UserError:
    """Return all mistakes as one error with a line for each, in the order of the file, missing keys
    last."""

    def place(error: ErrorDetails) -> KeyPath:
        """Return the part of a pydantic path that the document has: the path also names members of
        unions."""
        path = (*within, *error["loc"], *error.get("ctx", {}).get("path", ()))
        while not document.has(path):
            path = path[:-1]
        return path

    by_place: dict[KeyPath, list[ErrorDetails]] = {}
    for error in errors.errors(include_url=False):
        by_place.setdefault(place(error), []).append(error)

    def sort_key(path: KeyPath) -> tuple[bool, int]:
        is_missing = all(error["type"] == "missing" for error in by_place[path])
        return is_missing, document.line(path) or 0

    mistakes = Mistakes()
    for path in sorted(by_place, key=sort_key):
        mistakes.add(document.error(path, _make_message(by_place[path])))
    try:
        mistakes.raise_any()
    except UserError as error:
        return error
    raise AssertionError("pydantic found no mistake")


def _make_message(mistakes: list[ErrorDetails]) -> str:
    """Return the message for all mistakes at one place; a value that matches none of several types
    has one for each."""
    first = mistakes[0]
    match first["type"]:
        case "refused":
            return str(first["ctx"]["message"])
        case "missing" if isinstance(first["loc"][-1], int):
            return f"found {first['loc'][-1]} values, wanted more"
        case "missing":
            return f"found no key '{first['loc'][-1]}'"
        case "too_long":
            return (
                f"found {first['ctx']['actual_length']:,} values, wanted at most "
                f"{first['ctx']['max_length']:,}"
            )
        case "unexpected_keyword_argument" | "extra_forbidden":
            return "found an unknown key"
        case _ if first["input"] != first["input"]:
            return "found 'nan', wanted a number"
        case _:
            wanted = dict.fromkeys(
                WANTED_WORDS.get(error["type"], error["msg"].removeprefix(PYDANTIC_PREFIX))
                for error in mistakes
            )
            return f"found {show_value(first['input'])}, wanted {' or '.join(wanted)}"
