"""Bokeh's documents, as BokehJS reads them. They are what Bokeh's own Python models would be written as, which takes
those dozens of times as long: each model by its name, with the properties that differ from its defaults.
"""

import bokeh


def document(root: dict, place: str, prefix: str) -> dict:
    """As `bokeh.embed.json_item`, the ids of its models being the prefix and a number."""
    config = model("DocumentConfig", notifications=model("Notifications"))
    doc = {"version": bokeh.__version__, "title": "", "config": config, "roots": [root]}
    return numbered({"target_id": place, "root_id": root, "doc": doc, "version": bokeh.__version__}, prefix)


def model(name: str, **attributes: object) -> dict:
    """One that stands in two places of a chart is defined at the first, and named by its id at the second."""
    return {"type": "object", "name": name, "id": None} | ({"attributes": attributes} if attributes else {})


def value(constant: object) -> dict:
    return {"type": "value", "value": constant}


def fields(**columns: str) -> dict:
    return {name: {"type": "field", "field": column} for name, column in columns.items()}


def entries(items: dict) -> dict:
    return {"type": "map", "entries": [[key, content] for key, content in items.items()]}


def numbered(item: dict, prefix: str) -> object:
    """Ids for its models, in the order in which they are met."""
    ids: dict[int, str] = {}
    defined: set[int] = set()

    def walk(part: object) -> object:
        if isinstance(part, list):
            return [walk(inner) for inner in part]
        if not isinstance(part, dict):
            return part
        if "id" not in part:
            return {key: identity(inner) if key == "root_id" else walk(inner) for key, inner in part.items()}
        own = identity(part)
        if id(part) in defined:
            return {"id": own}
        defined.add(id(part))
        return {key: own if key == "id" else walk(inner) for key, inner in part.items()}

    def identity(part: dict) -> str:
        return ids.setdefault(id(part), f"{prefix}-{len(ids)}")

    return walk(item)
