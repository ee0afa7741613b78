# SPDX-License-Identifier: LicenseRef-Undeclared
"""The documents as they are installed: their links lead somewhere, what they refer to lies where they say, and the
alerts and the table of symptoms know each other."""

import os
import re
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("SITEMAPD_BUILD", os.path.join(ROOT, "build", "dev"))
HOME = "file:///usr/share/doc/sitemapd/"
ALERT = re.compile(r"^      - alert: (\w+)\n((?:(?!      - |  - ).*\n)+)", re.M)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(r"(?<![\w./-])((?:deploy|docs|config)/[\w./-]*[\w/])")
# Of the source alone: what builds, and what needs an image that was built.
SOURCE_ONLY = ("deploy/quickstart", "deploy/release", "deploy/lib", "deploy/systemd", "deploy/compose", "deploy/kubernetes", "deploy/container", "deploy/helm")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What a package has in /usr/share/doc/sitemapd."""
    prefix = tmp_path_factory.mktemp("prefix")
    subprocess.run(["cmake", "--install", BUILD, "--component", "documents", "--prefix", prefix], check=True, stdout=subprocess.PIPE)
    return str(prefix / "share" / "doc" / "sitemapd")


def documents(folder):
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".md"):
                yield os.path.join(path, name)


def anchors(text):
    """Of the headings, as renderers make them, and of the rows."""
    found = set(re.findall(r'<a id="([^"]+)"></a>', text))
    for heading in re.findall(r"^#+ (.+)$", text, re.M):
        found.add(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
    return found


def test_links(installed):
    paths = sorted(documents(installed))
    assert {"README.md", "CHANGELOG.md", "docs/operations.md", "docs/metrics.md"} <= {os.path.relpath(p, installed) for p in paths}
    count = 0
    for path in paths:
        for link in LINK.findall(read(path)):
            if "://" in link:
                continue
            count += 1
            target, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
            assert os.path.exists(target), f"{os.path.relpath(path, installed)}: {link}"
            if anchor:
                assert anchor in anchors(read(target)), f"{os.path.relpath(path, installed)}: {link}"
    assert count > 20


def test_tables(installed):
    """Each block of rows is a table: a head, the line below it, and rows of as many cells."""
    count = 0
    for path in documents(installed):
        text = re.sub(r"^ *```.*?^ *```$", "", read(path), flags=re.M | re.S)
        for block in re.findall(r"(?:^ *\|.*\n?)+", text, re.M):
            rows = [re.split(r"(?<!\\)\|", line.strip()) for line in block.splitlines()]
            where = (os.path.relpath(path, installed), block.splitlines()[0])
            assert len(rows) > 2 and all(re.fullmatch(r" ?:?-+:? ?", cell) for cell in rows[1][1:-1]), where
            assert all(len(row) == len(rows[0]) and row[0] == row[-1] == "" for row in rows), where
            count += 1
    assert count > 50


def test_paths_that_are_named(installed):
    """Each is in the source, and what an operator is sent to is in the package."""
    for name in ["README.md", *(f"docs/{n}" for n in os.listdir(os.path.join(ROOT, "docs")) if n.endswith(".md"))]:
        for path in PATH.findall(read(ROOT, name)):
            assert os.path.exists(os.path.join(ROOT, path)), f"{name}: {path}"
            assert os.path.exists(os.path.join(installed, path)) or path.startswith(SOURCE_ONLY), f"{name}: {path} is not installed"


def test_a_script_runs(installed):
    assert os.access(os.path.join(installed, "deploy", "proxies", "purge"), os.X_OK)


def alerts():
    return ALERT.findall(read(ROOT, "deploy", "prometheus", "alerts.yml"))


def test_each_alert_has_its_row(installed):
    """runbook_url leads to the very row, which names the alert."""
    for name, rule in alerts():
        (url,) = re.findall(r"^          runbook_url: (\S+)$", rule, re.M)
        assert url.startswith(HOME), (name, url)
        path, _, anchor = url[len(HOME):].partition("#")
        rows = [line for line in read(installed, path).splitlines() if f'<a id="{anchor}"></a>`{name}`' in line]
        assert anchor == name and len(rows) == 1 and rows[0].startswith("| "), (name, rows)


def test_each_row_has_its_alerts():
    names = [name for name, _ in alerts()]
    assert len(names) == len(set(names)) > 20
    text = read(ROOT, "docs", "operations.md")
    assert sorted(re.findall(r'<a id="([^"]+)"></a>', text)) == sorted(names)
    assert {name for name in re.findall(r"\bSitemapd[A-Z]\w+", text)} <= set(names)


def test_the_symptoms_come_first():
    text = read(ROOT, "docs", "operations.md")
    first = text.split("\n## ")[1]
    assert first.startswith("What is wrong?")
    rows = [line for line in first.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 25 and all(len(row.strip("| ").split(" | ")) in (2, 3) for row in rows)
    assert all(row.split(" | ")[-1].strip(" |") for row in rows), "each says what to do"
    assert first.count('<a id="') == text.count('<a id="')


def test_log_events_that_are_named():
    """What a document says is in the log is an event that the server logs, and not a reason of /readyz."""
    paths = [os.path.join(path, name) for top in ("server", "db") for path, _, names in os.walk(os.path.join(ROOT, top)) for name in names]
    sources = "".join(read(path) for path in paths if path.endswith(".c"))
    events = set(re.findall(r'\w*(?:log|report|record|event)\w*\([^;"]*(?:"[^"]*"[^;"]*)?"([a-z]+(?:-[a-z]+)+)"', sources))
    count = 0
    for path in documents(os.path.join(ROOT, "docs")):
        for name in re.findall(r"`([a-z]+(?:-[a-z]+)+)` in the log", re.sub(r"\n +|\n", " ", read(path))):
            assert name in events, (os.path.basename(path), name)
            count += 1
    assert count > 20


def test_configurations_are_valid(tmp_path):
    """A reader pastes them as they are. Only files that they name may be missing."""
    path, count = tmp_path / "sitemapd.conf", 0
    for name in sorted(os.listdir(os.path.join(ROOT, "docs"))):
        for block in re.findall(r"^```ini\n(.*?)^```", read(ROOT, "docs", name), re.M | re.S) if name.endswith(".md") else ():
            path.write_text(block)
            run = subprocess.run([os.path.join(BUILD, "sitemapd"), "check-config", path], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            mistakes = [line for line in run.stderr.splitlines() if "cannot be read: No such file" not in line]
            assert not mistakes, (name, block, mistakes)
            count += 1
    assert count > 10
