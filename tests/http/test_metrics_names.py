# SPDX-License-Identifier: LicenseRef-Undeclared
"""Metrics in the documents, the alerts and the dashboard are exported by the server, and all exported metrics are
documented: names, and labels with their values."""

import json
import os
import re

import pytest

from engines import Bing
from exposition import SUFFIXES, Values
from harness import INDEX, eventually, request_bytes, write_gzip
from test_tls import ask as tls_ask
from test_tls import TlsConnection, make_pair, settings

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGE = "docs/metrics.md"
ALERTS = "deploy/prometheus/alerts.yml"
DASHBOARD = "deploy/grafana/dashboards/sitemapd.json"
NAME = re.compile(r"\b(?:sitemapd|process)_[a-z0-9_]+\b")
DOCUMENTED = re.compile(r"`((?:sitemapd|process)_[a-z0-9_]+)(?:\{([a-z,]*)\})?`")
SELECTOR = re.compile(r'\b((?:sitemapd|process)_[a-z0-9_]+)\{([^{}]*)\}')
MATCHER = re.compile(r'([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
# Labels that take any value of a known shape, and those that Prometheus adds.
OPEN = {"route": r"[a-z-]+", "status": r"[1-5][0-9][0-9]|other", "crawler": r"[A-Za-z0-9._-]+", "index": r"\S+", "source": r".+", "version": r"\S+"}
ADDED = {"job", "instance", "le"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


@pytest.fixture(scope="module")
def families(tmp_path_factory):
    """Of a server that has all there is: a source that serves its files, TLS."""
    from harness import Server

    folder = tmp_path_factory.mktemp("all")
    files = folder / "files"
    files.mkdir()
    write_gzip(files / "a.xml.gz", b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://www.example.com/</loc></url></urlset>')
    pair = make_pair(folder, "pair")
    bing = Bing()
    bing.sitemaps[INDEX] = {"Status": "Success", "LastCrawled": "/Date(1764150000000)/"}
    server = Server(folder, "--source", str(files), sites=(), config=settings(*pair, more=f"[admin]\ntls_cert = {pair[0]}\ntls_key = {pair[1]}\n"
                                                                                       f'[source "up"]\nupstream = http://127.0.0.1:9/i.xml\n'
                                                                                       f"[fetch]\nallow_address = 127.0.0.2\n{bing.config()}")).start()

    def text():
        with TlsConnection(server.admin) as connection:
            connection.send(request_bytes("GET", "/metrics", host=server.admin))
            return connection.reply("GET").body.decode()

    try:
        eventually(lambda: tls_ask(server, "GET", "/sitemap_index.xml").status == 200, "scanned")
        tls_ask(server, "GET", "/sitemap_index.xml", [("User-Agent", "Googlebot/2.1")])
        eventually(lambda: 'route="metrics"' in text() and 'crawler="googlebot"' in text(), "the first scrape and the crawler are counted")
        eventually(lambda: "sitemapd_engine_last_read_age_seconds" in text(), "an engine has answered")
        found = Values(text()).families
        server.stop()
    finally:
        server.kill()
        bing.server.shutdown()
    assert f'index="{INDEX}"' and all(family.samples for family in found.values())
    return found


def labels(family):
    return {k for _, pairs in family.samples for k, _ in pairs} - {"le"}


def base(name, families):
    for suffix in SUFFIXES:
        if name.endswith(suffix) and families.get(name[: -len(suffix)]) and families[name[: -len(suffix)]].type == "histogram":
            return name[: -len(suffix)]
    return name


def expressions():
    """(where, PromQL) of the rules and the dashboard."""
    rules = read(ALERTS)
    for match in re.finditer(r"^ +expr: (?:\|-?\n((?: {10}.*\n)+)|(.*)\n)", rules, re.M):
        yield ALERTS, match.group(1) or match.group(2)
    board = json.loads(read(DASHBOARD))
    found = [t["expr"] for p in board["panels"] for t in p.get("targets", ())]
    found += [v["query"]["query"] for v in board["templating"]["list"] if v["type"] == "query"]
    for expression in found:
        yield DASHBOARD, expression


def test_what_is_exported_is_documented(families):
    """By its HELP, and by name and labels beside a question of the page, once; and nothing else is."""
    named = {}
    for line in read(PAGE).splitlines():
        question, _, metrics = line.partition(" | ")
        for name, label in DOCUMENTED.findall(metrics) if line.startswith("| ") else ():
            assert name not in named, f"{name} is listed twice"
            assert len(question.split()) > 3, f"{name} answers no question"
            named[name] = set(filter(None, label.split(",")))
    assert named == {name: labels(family) for name, family in families.items()}
    texts = [family.help for family in families.values()]
    assert all(text.endswith(".") for text in texts) and len(set(texts)) == len(texts)


def test_reasons_and_encodings_are_documented(families):
    text = read(PAGE)
    for family in families.values():
        for _, pairs in family.samples:
            for label, value in pairs:
                if label not in OPEN and label not in ADDED:
                    assert f"`{value}`" in text, (family.name, label, value)


@pytest.mark.parametrize("path", [PAGE, "docs/operations.md", "docs/api.md", "docs/security.md", "README.md", "deploy/prometheus/prometheus.yml", ALERTS, DASHBOARD])
def test_what_is_named_is_exported(families, path):
    allowed = {"sitemapd_index", "sitemapd_test"}
    for name in NAME.findall(read(path)):
        assert base(name, families) in families or name in allowed, f"{path} names {name}"


def test_there_are_expressions_and_they_select_what_there_is(families):
    """A histogram is only named by its series, and a matcher only asks for what can be there."""
    count = 0
    for where, expression in expressions():
        count += 1
        for name in NAME.findall(expression):
            family = families[base(name, families)]
            assert (family.type == "histogram") == (name != family.name), f"{where}: {name}: {expression}"
        for name, inner in SELECTOR.findall(expression):
            family = families[base(name, families)]
            for label, operator, value in MATCHER.findall(inner):
                if label in ADDED or value.startswith("$"):
                    assert label in ADDED | labels(family), (where, expression)
                    continue
                assert label in labels(family), f"{where}: {name} has no {label}: {expression}"
                if operator == "=" and label not in OPEN:
                    known = {v for _, pairs in family.samples for k, v in pairs if k == label}
                    assert value in known, f"{where}: {label}={value}: {expression}"
                elif operator == "=":
                    assert re.fullmatch(OPEN[label], value), (where, expression)
    assert count >= 30
