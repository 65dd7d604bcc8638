"""Field types of experiment and platform files: mappings with known keys (`FileMapping`), texts
from a white list, sizes, times and axes.

Every text that may become part of a command line is checked here. A text that is a whole argument
may not start with '-'.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import GroupedMetadata
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainValidator,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from commodel import units
from commodel.errors import MAX_SHOWN_MISTAKES, UserError, find_similar_name, suggest_name
from commodel.files import quantities
from commodel.files import yaml as yamltext
from commodel.files.quantities import MAX_SETTING_LENGTH, parse_setting
from commodel.files.yaml import Document
from commodel.records import compute_digest
from commodel.units import show_value

Parse = Callable[[Any], Any]


def make_refusal(message: str, *path: str | int) -> PydanticCustomError:
    """Return an error in pydantic's form; `path` is that of the wrong value within the validated
    one."""
    return PydanticCustomError("refused", "{message}", {"message": message, "path": path})


def _copy_error(error: Mapping[str, Any]) -> InitErrorDetails:
    """Return a reported pydantic error in the form in which pydantic accepts one."""
    context = error.get("ctx", {})
    kind = (
        PydanticCustomError("refused", "{message}", context)
        if error["type"] == "refused"
        else error["type"]
    )
    return InitErrorDetails(type=kind, loc=error["loc"], input=error["input"], ctx=context)


class FileMapping(BaseModel):
    """A mapping in a file, with a fixed set of keys. After loading it has its location, for
    errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    _document: Document | None = PrivateAttr(None)
    _path: tuple[str | int, ...] = PrivateAttr(())

    @model_validator(mode="wrap")
    @classmethod
    def _refuse_unknown_keys(cls, data: Any, validate: Callable[[Any], Any]) -> Any:
        """Refuse unknown keys, together with the mistakes in known ones."""
        if not isinstance(data, dict):
            raise make_refusal(
                f"found {show_value(data)}, wanted a mapping with the keys {', '.join(cls.model_fields)}"
            )
        unknown = [key for key in data if key not in cls.model_fields]
        if not unknown:
            return validate(data)
        details = []
        for number, key in enumerate(unknown):
            hint = f"; {suggest_name(key, cls.model_fields)}" if number < MAX_SHOWN_MISTAKES else ""
            details.append(
                InitErrorDetails(
                    type=make_refusal(f"found an unknown key{hint}"), loc=(key,), input=key
                )
            )
        try:
            validate({key: value for key, value in data.items() if key in cls.model_fields})
        except ValidationError as errors:
            details += [_copy_error(error) for error in errors.errors(include_url=False)]
        raise ValidationError.from_exception_data(cls.__name__, details)

    @property
    def name(self) -> str:
        return self._document.file.stem if self._document else ""

    @property
    def path(self) -> tuple[str | int, ...]:
        """The place of this part in its file."""
        return self._path

    @property
    def digest(self) -> str:
        return compute_digest(self.model_dump(mode="json", warnings="none"))

    def set_location(self, document: Document, path: tuple[str | int, ...] = ()) -> None:
        """Record the document and the place of this part, for errors about it."""
        self._document = document
        self._path = path

    def error(self, path: tuple[str | int, ...], message: str) -> UserError:
        """Return an error about the value at `path`, which is relative to this part."""
        if self._document is None:
            return UserError(message, key=yamltext.key_name((*self._path, *path)))
        return self._document.error((*self._path, *path), message)


def convert_user_errors(parse: Parse) -> Parse:
    """Return `parse` with its UserErrors as pydantic errors, to which pydantic adds the place of
    the value."""

    def parse_for_pydantic(value: Any) -> Any:
        try:
            return parse(value)
        except UserError as error:
            raise make_refusal(error.message) from None

    return parse_for_pydantic


@dataclass(frozen=True)
class FieldRule(GroupedMetadata):
    """How a field of type `Annotated[type, FieldRule]` is read: pydantic's validator of its value,
    and its schema."""

    validator: PlainValidator | BeforeValidator | WrapValidator
    schema: WithJsonSchema

    def __iter__(self) -> Iterator[object]:
        yield self.validator
        yield self.schema


def convert(parse: Parse, **schema: Any) -> FieldRule:
    """Return the rule of a field from a function that converts a value of the file or raises a
    UserError."""
    return FieldRule(PlainValidator(convert_user_errors(parse)), WithJsonSchema(schema))


def match_text(pattern: str, wanted: str, limit: int = 64) -> FieldRule:
    allowed = re.compile(pattern)

    def parse(value: Any) -> str:
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise UserError(
                f"found the number {show_value(value)}, wanted {wanted}; put it in quotes"
            )
        if not isinstance(value, str) or not allowed.fullmatch(value):
            raise UserError(f"found {show_value(value)}, wanted {wanted}")
        if len(value) > limit:
            raise UserError(f"found {len(value)} characters, wanted at most {limit}")
        return value

    return convert(parse, type="string", pattern=f"^(?:{pattern})$", maxLength=limit)


def limit_count(low: int, high: int) -> FieldRule:
    return convert(
        lambda value: units.parse_count(value, low, high),
        anyOf=[
            {"type": "integer", "minimum": low, "maximum": high},
            {"type": "string", "examples": ["1e3"]},
        ],
    )


def choose_from(*names: str) -> FieldRule:
    def parse(value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            raise UserError(
                f"found {show_value(value)}; {suggest_name(value if isinstance(value, str) else '', names)}"
            )
        return value

    return convert(parse, enum=list(names))


def convert_quantity(parse: Parse, example: str, unit_optional: bool = True) -> FieldRule:
    """Return the rule of a number above 0 with a unit.

    Zero is refused: no measurement takes no time or has no error.
    """

    def parse_positive(value: Any) -> float:
        number = parse(value)
        if not number:
            raise UserError(f"found {show_value(value)}, wanted more than 0")
        return number

    return convert(
        parse_positive, type=["number", "string"] if unit_optional else "string", examples=[example]
    )


def read_names(all_word: str) -> FieldRule:
    """Return the rule of a list of names, or of the word that means all names."""

    def parse(value: Any, handler: Callable[[Any], Any]) -> Any:
        if value == all_word:
            return value
        if not isinstance(value, str | list) or not value:
            raise make_refusal(f"found {show_value(value)}, wanted '{all_word}' or a list of names")
        return handler([value] if isinstance(value, str) else value)

    name_list = TypeAdapter(tuple[NAME, ...]).json_schema() | {"minItems": 1}
    schema = {"anyOf": [{"const": all_word}, TypeAdapter(NAME).json_schema(), name_list]}
    return FieldRule(WrapValidator(parse), WithJsonSchema(schema))


def read_axis(item: Any, parse: Parse | None = None, auto: str = "") -> FieldRule:
    """Return the rule of an axis: one value, a list, or, with `parse` for its ends, a range.

    `auto` is a word in place of the values, which are then chosen later.
    """

    def expand(value: Any) -> Sequence[Any]:
        if auto and value == auto:
            return []
        if auto and isinstance(value, str) and find_similar_name(value, [auto]):
            raise UserError(f"found {show_value(value)}; did you mean '{auto}'?")
        is_range = isinstance(value, dict) or (
            isinstance(value, str) and (":" in value or "," in value)
        )
        if parse and is_range:
            return quantities.expand_axis(value, parse)
        if value == []:
            raise UserError("found an empty list, wanted at least one value")
        return quantities.check_entry_count(value) if isinstance(value, list) else [value]

    entry = TypeAdapter(item).json_schema()
    forms = [entry, {"type": "array", "items": entry, "minItems": 1}]
    if auto:
        forms.insert(0, {"const": auto})
    if parse:
        forms += [
            _make_range_schema(entry, "factor", "each entry is this times the last"),
            _make_range_schema(entry, "step", "added each time"),
        ]
    return FieldRule(BeforeValidator(convert_user_errors(expand)), WithJsonSchema({"anyOf": forms}))


def _make_range_schema(end: dict[str, Any], growth: str, meaning: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "from": end | {"description": "first entry"},
            "to": end | {"description": "no entry is above this"},
            growth: {"type": ["number", "string"], "description": meaning},
        },
        "required": ["from", "to", growth],
        "additionalProperties": False,
    }


def _parse_title(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value) > 200:
        raise UserError(
            f"found {show_value(value)}, wanted one line of text, at most 200 characters"
        )
    return value


def _format_setting(value: Any) -> Any:
    """Return a number or boolean of YAML as text, since settings of SimGrid and parameters of
    operations are texts."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, int | float) else value


def _parse_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UserError(f"found {show_value(value)}, wanted true or false")
    return value


FLAG = Annotated[bool, convert(_parse_flag, type="boolean")]
TITLE = Annotated[str, convert(_parse_title, type="string", maxLength=200)]
NAME_PATTERN = r"[a-z0-9][a-z0-9-]{0,40}"
NAME = Annotated[str, match_text(NAME_PATTERN, "a name of a-z, 0-9 and -", 41)]
NODE_TYPE = Annotated[
    str,
    match_text(
        r"(?!same$)[a-z][a-z0-9-]{0,20}",
        "a name of a-z, 0-9 and - ('same': two ranks of one node)",
        21,
    ),
]
WORD = Annotated[
    str, match_text(r"[A-Za-z0-9_][A-Za-z0-9_.:,+-]*", "a word of A-Z, a-z, 0-9 and _ . : , + -")
]
HOST = Annotated[
    str, match_text(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "a host name of A-Z, a-z, 0-9 and _ . -", 253)
]
FILE = Annotated[
    str,
    match_text(
        r"[A-Za-z0-9_][A-Za-z0-9_./-]*",
        "a file in the folder of this one, of A-Z, a-z, 0-9 and _ . / -",
        200,
    ),
]
TABLE = Annotated[
    str,
    match_text(
        r"[A-Za-z0-9_][A-Za-z0-9_./-]*", "a file in the project, of A-Z, a-z, 0-9 and _ . / -", 200
    ),
]
SPEC = Annotated[
    str,
    match_text(
        r"[A-Za-z0-9_][A-Za-z0-9_.:,^@=+/() -]*",
        "A-Z, a-z, 0-9, space and _ . : , ^ @ = + / ( ) - only",
        200,
    ),
]
SETTING_KEY = Annotated[
    str, match_text(r"[A-Za-z][A-Za-z0-9/_-]*", "a SimGrid setting of A-Z, a-z, 0-9 and / _ -")
]
PARAMETER = Annotated[
    str,
    match_text(r"[A-Za-z0-9_][A-Za-z0-9_.,^@+/-]*", "A-Z, a-z, 0-9 and _ . , ^ @ + / - only", 200),
    BeforeValidator(_format_setting),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]
SETTING = Annotated[
    str,
    match_text(r"[A-Za-z0-9:.;+/_-]+", "A-Z, a-z, 0-9 and : . ; + / _ - only", 20_000),
    BeforeValidator(_format_setting),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]
SETTING_NAME = Annotated[
    str, convert(parse_setting, type=["string", "integer", "number"], maxLength=MAX_SETTING_LENGTH)
]
SIZE = Annotated[
    int,
    convert(
        units.parse_bytes, type=["integer", "number", "string"], examples=[4096, "64KiB", "1 MB"]
    ),
]
RANKS = Annotated[int, limit_count(1, units.MAX_COUNT)]
