"""The tables of YAML keys in docs/keys.md, from the JSON schemas of experiments and platforms."""

import json
from pathlib import Path

SCHEMAS = Path(__file__).resolve().parents[1] / "workflow" / "schemas"


def describe_keys(kind: str) -> str:
    """Return a table of the keys of a kind of file, `experiment` or `platform`, and one for each of
    its sections."""
    schema = json.loads((SCHEMAS / f"{kind}.schema.json").read_text(encoding="utf-8"))
    sections = {name: _table(section) for name, section in schema["$defs"].items()}
    parts = [_table(schema), *(f"### {name}\n\n{table}" for name, table in sections.items())]
    return "\n\n".join(parts) + "\n"


def _table(section: dict) -> str:
    required = section.get("required", ())
    rows = [
        f"| `{key}` | {_values(about)} | {'required' if key in required else _default(about)} | {_text(about)} |"
        for key, about in section["properties"].items()
    ]
    return "\n".join(["| key | values | default | meaning |", "|---|---|---|---|", *rows])


def _text(about: dict) -> str:
    return about.get("description", "").replace("|", "∣").replace("$", "")


def _default(about: dict) -> str:
    value = about.get("default")
    if value == [] and "`auto`" in _alternatives(about):
        return "`auto`"
    if value in (None, "", [], {}):
        return "none"
    if isinstance(value, bool):
        return "`yes`" if value else "`no`"
    if isinstance(value, float) and about.get("type") == "string":
        return f"`{value / 3600:g} h`" if value >= 3600 else f"`{value:g} s`"
    return f"`{value}`"


def _values(about: dict) -> str:
    """Return the values that a key may have, in words."""
    found = list(dict.fromkeys(_alternatives(about)))
    if "number" in found:
        found = [text for text in found if not text.startswith("such as")]
    return ", ".join(found) or "text"


def _alternatives(about: dict) -> list[str]:
    if "anyOf" in about:
        ways = [one for one in about["anyOf"] if one.get("type") != "null"]
        single = [
            text
            for one in ways
            if one.get("type") not in ("array", "object")
            for text in _alternatives(one)
        ]
        if single and any(one.get("type") == "array" for one in ways):
            single.append("or a list")
        if single and any("from" in one.get("properties", {}) for one in ways):
            single.append("or a [range](#ranges)")
        return single or [text for one in ways for text in _alternatives(one)]
    if "$ref" in about:
        name = about["$ref"].rpartition("/")[2]
        return [f"[{name}](#{name.lower()})"]
    if "enum" in about or "const" in about:
        return [f"`{value}`" for value in about.get("enum", [about.get("const")])]
    if about.get("type") == "array":
        return ["list of " + ", ".join(dict.fromkeys(_alternatives(about.get("items", {}))))]
    if about.get("type") == "object":
        return ["names with their values"]
    examples = about.get("examples")
    if examples:
        return [f"such as `{examples[len(examples) // 2]}`"]
    kinds = about.get("type", "string")
    names = {"string": "text", "boolean": "`yes`, `no`", "integer": "number", "number": "number"}
    return [names.get(kind, "text") for kind in ([kinds] if isinstance(kinds, str) else kinds)]
