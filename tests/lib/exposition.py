# SPDX-License-Identifier: LicenseRef-Undeclared
"""A strict parser of the Prometheus text format 0.0.4, for our own /metrics: it rejects what the format forbids, and
what `promtool check metrics` would report. Standard library only."""

import math
import re

NAME = re.compile(r"[a-z_][a-z0-9_]*$")  # the format allows capitals and colons; we do not use them
HELP = re.compile(r"# HELP (\S+) (\S.*)$")
TYPE = re.compile(r"# TYPE (\S+) (counter|gauge|histogram)$")
SAMPLE = re.compile(r"([a-z_][a-z0-9_]*)(?:\{(.*)\})? ([-+0-9.eE]+|[-+]?Inf|NaN)$")
LABEL = re.compile(r'([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(,|$)')
ESCAPE = re.compile(r"\\(.)")
SUFFIXES = ("_bucket", "_sum", "_count")
# Base units are seconds and bytes (https://prometheus.io/docs/practices/naming/).
OTHER_UNITS = re.compile(r"_(ms|us|ns|milliseconds|microseconds|nanoseconds|minutes|hours|kb|mb|kib|mib|kilobytes|megabytes|percent)(_|$)")


class Family:
    def __init__(self, name, help):
        self.name, self.help, self.type = name, help, None
        self.samples = {}  # (name, frozenset of label pairs): value


def labels_of(text, line):
    found, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match, f"malformed labels: {line}"
        name, value, comma = match.groups()
        assert name not in found and not name.startswith("__"), line
        found[name] = ESCAPE.sub(lambda m: "\n" if m.group(1) == "n" else m.group(1), value)
        at = match.end()
        assert bool(comma) == (at < len(text)), f"a comma too much: {line}"
    return found


def read_sample(line, family):
    match = SAMPLE.match(line)
    assert match, f"malformed: {line}"
    name, labels, value = match.groups()
    assert family is not None and family.type, f"before HELP and TYPE: {line}"
    allowed = [family.name + s for s in SUFFIXES] if family.type == "histogram" else [family.name]
    assert name in allowed, f"is not of {family.name}: {line}"
    key = (name, frozenset(labels_of(labels or "", line).items()))
    assert key not in family.samples, f"twice: {line}"
    family.samples[key] = float(value)


def check_histogram(family):
    """Buckets ascend and add up, in the order they are written."""
    series = {}
    for (name, labels), value in family.samples.items():
        rest = frozenset((k, v) for k, v in labels if k != "le")
        one = series.setdefault(rest, {"buckets": []})
        if name.endswith("_bucket"):
            one["buckets"].append((float(dict(labels)["le"]), value))
        else:
            assert "le" not in dict(labels), name
            one[name.rpartition("_")[2]] = value
    for labels, one in series.items():
        bounds = [bound for bound, _ in one["buckets"]]
        counts = [count for _, count in one["buckets"]]
        assert bounds == sorted(set(bounds)) and bounds[-1] == math.inf, (family.name, labels)
        assert counts == sorted(counts), (family.name, labels)
        assert counts[-1] == one["count"] and one["sum"] >= 0, (family.name, labels)
        # A value lies in its bucket: the sum is no more than all at their upper bounds.
        if counts[-2] == counts[-1]:
            upper = sum((count - before) * bound for (bound, count), before in zip(one["buckets"][:-1], [0] + counts))
            assert one["sum"] <= upper * 1.000001, (family.name, labels)


def check_family(family):
    name = family.name
    assert NAME.match(name) and name.startswith(("sitemapd_", "process_")), name
    assert family.type, f"{name} has no TYPE"
    assert name.endswith("_total") == (family.type == "counter"), f"{name} is a {family.type}"
    assert not name.endswith(SUFFIXES), name
    assert not OTHER_UNITS.search(name), f"{name} is in no base unit"
    for word in ("counter", "gauge", "histogram", "metric"):
        assert word not in name.split("_"), f"{name} names its type"
    if family.type == "histogram":
        check_histogram(family)
    elif family.type == "counter":
        assert all(value >= 0 for value in family.samples.values()), name
    kinds = {frozenset(k for k, _ in labels) - {"le"} for _, labels in family.samples}
    assert len(kinds) <= 1, f"{name} has samples with other labels: {kinds}"


def parse(text):
    """All families by name; AssertionError where the text is not in the format."""
    assert text.endswith("\n") and "\r" not in text
    families, family = {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            match = HELP.match(line)
            assert match, line
            assert match.group(1) not in families, f"announced twice: {line}"
            family = families[match.group(1)] = Family(*match.groups())
        elif line.startswith("# TYPE "):
            match = TYPE.match(line)
            assert match and family and match.group(1) == family.name and not family.type, line
            family.type = match.group(2)
        else:
            read_sample(line, family)
    for each in families.values():
        check_family(each)
    return families


class Values:
    """The values of a scrape, by name and labels."""

    def __init__(self, text):
        self.families = parse(text)

    def get(self, name, **labels):
        base = name
        for suffix in SUFFIXES:
            if name not in self.families and name.endswith(suffix):
                base = name[: -len(suffix)]
        return self.families[base].samples.get((name, frozenset(labels.items())), 0.0)

    def all(self, name):
        """The values of a family by the one label that it has."""
        return {next(iter(labels))[1]: value for (_, labels), value in self.families[name].samples.items()}
