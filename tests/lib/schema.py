# SPDX-License-Identifier: LicenseRef-Undeclared
"""JSON Schema (2020-12), the part that openapi.json uses. Strict: an unknown keyword or format is an error of the document.
With `closed`, every member of an object must be described: the document allows further members in replies, but
all members that the server sends today must be in it."""

import datetime
import json
import re
import urllib.parse

IGNORED = {"description", "title", "default", "examples", "example"}
TYPES = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}


class Invalid(AssertionError):
    pass


class SchemaError(Exception):
    """The schema itself is wrong, or uses what is not known here."""


def is_iri(text):
    parts = urllib.parse.urlsplit(text)
    return bool(parts.scheme and parts.netloc) and not re.search(r"[\x00-\x20<>\"{}|\\^`]", text)


def is_time(text):
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text):
        return False
    try:
        datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return False
    return True


def is_date(text):
    return bool(re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text)) and is_time(text + "T00:00:00Z")


FORMATS = {"uri": lambda t: t.isascii() and is_iri(t), "iri": is_iri, "date": is_date, "date-time": is_time}


def same(a, b):
    """Equal as JSON: true is not 1."""
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


class Validator:
    def __init__(self, document):
        self.document = document

    def resolve(self, ref):
        """What a `#/…` points to."""
        if not ref.startswith("#/"):
            raise SchemaError(f"a reference out of the document: {ref}")
        node = self.document
        for part in ref[2:].split("/"):
            part = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or part not in node:
                raise SchemaError(f"{ref} points nowhere")
            node = node[part]
        return node

    def check(self, value, schema, closed=False, at="$"):
        """Raises Invalid, which says where and why."""
        known = self.walk(value, schema, closed, at)
        if closed:
            self.close(value, known, at)

    @staticmethod
    def close(value, known, at):
        if isinstance(value, dict) and known is not None and set(value) - known:
            raise Invalid(f"{at}: members that are not documented: {sorted(set(value) - known)}")

    def walk(self, value, schema, closed, at):
        """The names of the members that the schema describes; None where it describes none at all."""
        if not isinstance(schema, dict):
            raise SchemaError(f"{at}: no schema: {schema!r}")
        known = None
        for keyword in schema:
            if keyword in IGNORED:
                continue
            method = getattr(self, "do_" + keyword.lstrip("$"), None)
            if method is None:
                raise SchemaError(f"{at}: unknown keyword {keyword}")
            more = method(value, schema[keyword], schema, closed, at)
            if more is not None:
                known = more | (known or set())
        return known

    def do_ref(self, value, ref, schema, closed, at):
        return self.walk(value, self.resolve(ref), closed, at)

    def do_type(self, value, types, schema, closed, at):
        types = [types] if isinstance(types, str) else types
        if not set(types) <= set(TYPES):
            raise SchemaError(f"{at}: unknown type in {types}")
        if not any(TYPES[t](value) for t in types):
            raise Invalid(f"{at}: {value!r} is not of type {types}")

    def do_const(self, value, const, schema, closed, at):
        if not same(value, const):
            raise Invalid(f"{at}: {value!r} is not {const!r}")

    def do_enum(self, value, values, schema, closed, at):
        if not any(same(value, v) for v in values):
            raise Invalid(f"{at}: {value!r} is not one of {values}")

    def do_pattern(self, value, pattern, schema, closed, at):
        if isinstance(value, str) and not re.search(pattern, value):
            raise Invalid(f"{at}: {value!r} does not match {pattern}")

    def do_format(self, value, name, schema, closed, at):
        if name not in FORMATS:
            raise SchemaError(f"{at}: unknown format {name}")
        if isinstance(value, str) and not FORMATS[name](value):
            raise Invalid(f"{at}: {value!r} is no {name}")

    def do_maxLength(self, value, limit, schema, closed, at):
        if isinstance(value, str) and len(value) > limit:
            raise Invalid(f"{at}: longer than {limit}")

    def do_minimum(self, value, limit, schema, closed, at):
        if TYPES["number"](value) and value < limit:
            raise Invalid(f"{at}: {value} is less than {limit}")

    def do_maximum(self, value, limit, schema, closed, at):
        if TYPES["number"](value) and value > limit:
            raise Invalid(f"{at}: {value} is more than {limit}")

    def do_required(self, value, names, schema, closed, at):
        if isinstance(value, dict) and set(names) - set(value):
            raise Invalid(f"{at}: without {sorted(set(names) - set(value))}")

    def do_properties(self, value, properties, schema, closed, at):
        if isinstance(value, dict):
            for name in value:
                if name in properties:
                    self.check(value[name], properties[name], closed, f"{at}.{name}")
        return set(properties)

    def do_additionalProperties(self, value, rule, schema, closed, at):
        if not isinstance(value, dict):
            return None
        rest = set(value) - set(schema.get("properties", {}))
        if rule is False and rest:
            raise Invalid(f"{at}: members that are not allowed: {sorted(rest)}")
        if not isinstance(rule, bool):
            for name in rest:
                self.check(value[name], rule, closed, f"{at}.{name}")
        return None if rule is False else rest

    def do_items(self, value, items, schema, closed, at):
        if isinstance(value, list):
            for i, item in enumerate(value):
                self.check(item, items, closed, f"{at}[{i}]")

    def do_allOf(self, value, parts, schema, closed, at):
        known = [self.walk(value, part, closed, at) for part in parts]
        known = [k for k in known if k is not None]
        return set().union(*known) if known else None

    def do_oneOf(self, value, parts, schema, closed, at):
        fit, misfits = [], []
        for part in parts:
            try:
                known = self.walk(value, part, closed, at)
                if closed:  # an open part fits its longer brother's values, too
                    self.close(value, known, at)
                fit.append(known)
            except Invalid as why:
                misfits.append(str(why))
        if len(fit) != 1:
            raise Invalid(f"{at}: fits {len(fit)} of {len(parts)} in oneOf: {misfits}")
        return fit[0]
