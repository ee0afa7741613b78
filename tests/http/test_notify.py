# SPDX-License-Identifier: LicenseRef-Undeclared
"""[notify]: notifications when a source begins to fail, and when it has recovered."""

import itertools
import json

import pytest

from harness import ORIGIN, Server, eventually, faster
from origin import Origin, answer, urlset


@pytest.fixture(scope="module")
def origin():
    with Origin() as made:
        made.received = []

        def take(connection, head):
            length = next(int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:"))
            body = made.body
            while len(body) < length:
                body += connection.recv(65536)
            made.received += [json.loads(line) for line in body.splitlines()]
            connection.sendall(answer(204, Connection="close"))  # as it does

        made.answers["/hook/secret"] = take
        yield made


def test_both_kinds_of_source(origin, tmp_path):
    """What the folder and the upstream say of themselves; the URL, which may be a secret, in no log."""
    folder, pages = tmp_path / "sitemaps", itertools.count()
    base = f"http://127.0.0.2:{origin.port}"
    config = (
        f"[fetch]\nallow_address = 127.0.0.2\n[notify]\nurl = {base}/hook/secret\n"
        f'[site "here"]\norigin = {ORIGIN}\n[site "there"]\norigin = {base}\nindex = /sitemap_index.xml\ncheck = yes\n'
        f'[source "files"]\ndirectory = {folder}\nurl = {ORIGIN}/\nrescan = 1s\nsettle = 100ms\n'
        f'[source "shop"]\nupstream = {base}/index.xml\ncheck = no\n'
    )
    server = Server(tmp_path, config=config, sites=(), env=faster(5))
    server.start()
    try:
        # One that changes with each poll, beside a digest; and one that is gone.
        origin.answers["/moves.xml"] = lambda connection, _: connection.sendall(answer(200, urlset(f"{base}/{next(pages)}")))
        assert server.register(base + "/moves.xml", lastmod="2026-01-01", digest="one").status == 201
        assert server.register(base + "/gone.xml").status == 201
        poll = lambda path: server.api("POST", f"/v1/checks?loc={base}{path}").json().get("check", {})
        eventually(lambda: "date-stale" in poll("/moves.xml").get("remarks", []), "its date stays")
        failing = lambda: {event["source"]: event for event in origin.received if event["event"] == "source-failing"}
        eventually(lambda: len(failing()) == 2, "both that fail")
        failing = failing()
        assert failing["files"]["site"] == ORIGIN and failing["shop"]["site"] == base
        assert set(failing["shop"]) == {"event", "site", "source", "sentence", "since"} and "404" in failing["shop"]["sentence"]
        one = lambda event: next(({**each, "since": each["since"][:2]} for each in origin.received if each["event"] == event), None)
        eventually(lambda: one("date-stale") and one("sitemap-gone"), "what befell single ones", 60)
        assert one("sitemap-gone") == {"event": "sitemap-gone", "site": base, "source": None, "url": base + "/gone.xml",
                                       "sentence": base + "/gone.xml is gone", "since": "20"}
        assert one("date-stale") == {"event": "date-stale", "site": base, "source": None, "url": base + "/moves.xml",
                                     "sentence": base + "/moves.xml changed, but its date in the index could not be changed", "since": "20"}
        origin.answers["/gone.xml"] = answer(200, urlset(base + "/page"))
        eventually(lambda: poll("/gone.xml").get("state") == "good", "it is there again")
        folder.mkdir()
        eventually(lambda: [event["source"] for event in origin.received if event["event"] == "source-well"] == ["files"], "the one that is well", 60)
        eventually(lambda: one("sitemap-back"), "what is there again", 60)
        assert "secret" not in server.log()
    finally:
        server.stop()


def test_registered_sitemaps_are_reported_site_by_site(origin, tmp_path):
    """The bad sitemaps of one site neither hide those of another nor count as theirs."""
    with Origin("127.0.0.3") as other:
        one, two = (f"http://{at.address}:{at.port}" for at in (origin, other))
        config = f"[fetch]\nallow_address = 127.0.0.2 127.0.0.3\nrate = 1000\n[notify]\nurl = {one}/hook/secret\n" + "".join(
            f'[site "{name}"]\norigin = {base}\nindex = /sitemap_index.xml\ncheck = yes\n' for name, base in (("one", one), ("two", two)))
        server = Server(tmp_path, config=config, sites=(), env=faster(5))
        server.start()
        try:
            origin.received.clear()
            told = lambda event: {each["site"]: each["sentence"].partition(" registered")[0] for each in origin.received if each["event"] == event}
            state = lambda base, n: server.api("POST", f"/v1/checks?loc={base}/none-{n}.xml").json().get("check", {}).get("state")
            assert server.bulk([{"loc": f"{one}/none-{n}.xml"} for n in range(3)]).status == 200
            eventually(lambda: [state(one, n) for n in range(3)] == ["gone"] * 3, "three of one site are gone")
            eventually(lambda: one in told("sitemaps-bad"), "they are reported")
            assert server.register(f"{two}/none-0.xml").status == 201
            eventually(lambda: state(two, 0) == "gone", "one of the other site is gone")
            eventually(lambda: told("sitemaps-bad").get(two) == "1 sitemap", "it is reported")
            other.answers["/none-0.xml"] = answer(200, urlset(two + "/page"))
            eventually(lambda: state(two, 0) == "good", "it is there again")
            eventually(lambda: two in told("sitemaps-well"), "it is reported")
            assert one not in told("sitemaps-well")
        finally:
            server.stop()
