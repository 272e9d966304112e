"""the keys and methods of selectors.yml -> its schema."""

from __future__ import annotations

from mvbuild.schemas.parts import FILLED, SCALAR, TEMPLATE, Schema, described, either, listed, mapping, ref, text, words
from mvbuild.selection.methods import METHODS
from mvbuild.selection.selectors_file import DEPTHS, FLAGS

_FLAG = either({"type": "boolean"}, text(r"^\s*(?:[tT][rR][uU][eE]|[fF][aA][lL][sS][eE])\s*$"))
_DOCS = {
    "name": "Name of the selection: `--selector nightly`.",
    "description": "Description, for people.",
    "default": "true: the default selection of commands.",
    "definition": "What it selects: text as on the command line, a method with its value, a union or an intersection.",
}


def selectors_schema() -> Schema:
    """The whole file."""
    one = mapping(
        {
            "name": described(text(FILLED), _DOCS["name"]),
            "description": described({}, _DOCS["description"]),
            "default": described(_FLAG, _DOCS["default"]),
            "definition": described(ref("definition"), _DOCS["definition"]),
        },
        required=["name", "definition"],
    )
    file = mapping({"version": {}, "selectors": described(listed(ref("selector")), "Selections by name.")}, required=["selectors"])
    return {
        **file,
        "definitions": {
            "template": TEMPLATE,
            "selector": one,
            "definition": {"anyOf": [text(FILLED), ref("one-method"), ref("method"), _set("union"), _set("intersection")]},
            "exclude": mapping({"exclude": described(listed(ref("definition")), "What to exclude.")}, required=["exclude"]),
            "one-method": mapping(
                dict.fromkeys(METHODS, SCALAR), patternProperties={r"^config\..+": SCALAR}, minProperties=1, maxProperties=1
            ),
            "method": _method(),
        },
    }


def _set(name: str) -> Schema:
    parts = {"anyOf": [ref("definition"), ref("exclude")]}
    some = {"anyOf": [{"type": "string"}, {"not": {"required": ["exclude"]}}, {"required": ["method"]}]}
    return mapping({name: listed(parts, minItems=1, contains=some)}, required=[name])


def _method() -> Schema:
    known = either(words(METHODS), text(r"^config\..+"))
    keys = {
        "method": described(known, "The selection method."),
        "value": described(SCALAR, "The value of the method."),
        **{flag: described(_FLAG, "Also select neighbours in the graph.") for flag in FLAGS},
        **{depth: described(either({"type": "integer", "minimum": 0}), "How many steps.") for depth in DEPTHS},
        "indirect_selection": words(["eager"]),
        "exclude": described(listed(ref("definition")), "What to exclude."),
    }
    return mapping(keys, required=["method", "value"])
