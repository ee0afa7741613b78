# SPDX-License-Identifier: LicenseRef-Undeclared
"""IndexNow of mirrored sitemaps: pages that a poll finds added, changed or removed in one that this server serves."""

from pathlib import Path
from urllib.parse import quote

import pytest

from indexnow import KEY, endpoint  # noqa: F401
from harness import eventually
from origin import Origin, answer, index

pytestmark = pytest.mark.faster(10)


class Mirror:
    def __init__(self, start, origin, endpoint, more=""):
        self.origin, self.endpoint = origin, endpoint
        self.base = f"http://{origin.address}:{origin.port}"
        del endpoint.received[:]
        self.origin.answers["/list.xml"] = answer(200, index(self.base + "/a.xml"))
        self.config = (f"[fetch]\nallow_address = 127.0.0.0/8\nrate = 1000\n[site \"m\"]\norigin = {self.base}\nindex = /sitemap_index.xml\n"
                       f"indexnow_key = {KEY}\nindexnow_endpoint = http://127.0.0.2:{endpoint.port}/indexnow\n{more}"
                       f"[source \"shop\"]\nupstream = {self.base}/list.xml\nserve = yes\n")
        self.start = start

    def serve(self):
        self.server = self.start(sites=(), config=self.config)
        eventually(lambda: self.changed_folder(), "replaced copies are kept")
        return self.server

    def changed_folder(self):
        return list(Path(self.server.database + ".children").glob("*/changed"))

    def changed(self):
        return [file for folder in self.changed_folder() for file in folder.iterdir()]

    def put(self, *pages, path="/a.xml"):
        """Pages: a path, or a path and its date."""
        rows = "".join(f"<url><loc>{self.base}{p[0]}</loc><lastmod>{p[1]}</lastmod></url>" if isinstance(p, tuple) else f"<url><loc>{p if '://' in p else self.base + p}</loc></url>" for p in pages)
        body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</urlset>'.encode()
        self.origin.answers[path] = answer(200, body)
        return body

    def poll(self, path="/a.xml"):
        reply = self.server.api("POST", f"/v1/checks?loc={quote(self.base + path, safe='')}")
        assert reply.status == 200 and reply.json()["check"]["state"] == "good", reply

    def notified(self, code=200):
        return [url.removeprefix(self.base) for got, body in self.endpoint.received for url in body["urlList"] if got == code]


def test_what_a_poll_finds_is_reported_once(start, endpoint):  # noqa: F811
    with Origin() as origin:
        m = Mirror(start, origin, endpoint)
        m.put(("/kept", "2025-01-01"), ("/changed", "2025-01-01"), "/gone")
        server = m.serve()
        eventually(lambda: "/a.xml" in origin.paths(), "it is read")
        m.poll()
        assert m.changed() == [], "the first read is not a change"
        m.put(("/kept", "2025-01-01"), ("/changed", "2025-02-02"), "/new", "https://elsewhere.example/page")
        m.poll()
        eventually(lambda: sorted(m.notified()) == ["/changed", "/gone", "/new"], "it is reported")
        eventually(lambda: m.changed() == [], "it was sent")
        body = endpoint.received[0][1]
        assert body["key"] == KEY and body["keyLocation"] == f"{m.base}/{KEY}.txt"
        # The same pages in other bytes are not a change; what came before a restart was reported.
        m.origin.answers["/a.xml"] = answer(200, m.put(("/kept", "2025-01-01"), ("/changed", "2025-02-02"), "/new").replace(b"</url>", b"</url>\n"))
        m.poll()
        eventually(lambda: m.changed() == [], "nothing changed")
        server.restart()
        m.put(("/kept", "2025-01-01"), ("/changed", "2025-02-02"), "/new", "/last")
        m.poll()
        eventually(lambda: m.notified()[3:] == ["/last"], "only what is new is reported")


def test_what_is_refused_outlives_a_kill_and_is_reported_whole(start, endpoint):  # noqa: F811
    with Origin() as origin:
        m = Mirror(start, origin, endpoint)
        m.put("/one")
        server = m.serve()
        eventually(lambda: "/a.xml" in origin.paths(), "it is read")
        m.poll()
        endpoint.answer = 503
        m.put("/one", "/two")
        m.poll()
        eventually(lambda: set(m.notified(503)) == {"/two"}, "it is refused")
        m.put("/one", "/two", "/three")
        m.poll()
        server.kill()
        endpoint.answer = 200
        server.start()
        eventually(lambda: sorted(m.notified()) == ["/three", "/two"], "both are reported")
        eventually(lambda: m.changed() == [], "once")


def test_many_changes_at_once_need_indexnow_bulk(start, endpoint):  # noqa: F811
    with Origin() as origin:
        m = Mirror(start, origin, endpoint)
        m.put(*(f"/old/{i}" for i in range(12000)))
        server = m.serve()
        eventually(lambda: "/a.xml" in origin.paths(), "it is read")
        m.poll()
        pages = [f"/new/{i}" for i in range(12000)]
        m.put(*pages)
        m.poll()
        eventually(lambda: "24000 of 12000 page URLs changed at once" in server.log(), "it is logged")
        eventually(lambda: m.changed() == [], "and dropped")
        assert m.notified() == []
        server.reload(m.config.replace("indexnow_key", "indexnow_bulk = yes\nindexnow_key"))
        m.put(*(f"/old/{i}" for i in range(12000)))
        m.poll()
        eventually(lambda: len(m.notified()) == 24000, "all are reported, batch by batch")
        assert len({*m.notified()}) == 24000 and max(len(body["urlList"]) for _, body in endpoint.received) == 10000
        eventually(lambda: m.changed() == [], "once")


def test_removed_sitemaps_and_sitemaps_without_pages(start, endpoint):  # noqa: F811
    with Origin() as origin:
        m = Mirror(start, origin, endpoint)
        m.put("/one")
        m.put("/two", path="/b.xml")
        origin.answers["/list.xml"] = answer(200, index(m.base + "/a.xml", m.base + "/b.xml"))
        feed = lambda link: answer(200, f'<rss version="2.0"><channel><title>t</title><item><link>{m.base}{link}</link></item></channel></rss>'.encode())
        server = m.serve()
        eventually(lambda: {"/a.xml", "/b.xml"} <= set(origin.paths()), "both are read")
        m.poll()
        m.poll("/b.xml")
        m.poll()
        origin.answers["/a.xml"] = feed("/post")
        m.poll()
        origin.answers["/list.xml"] = answer(200, index(m.base + "/a.xml"))
        assert server.api("POST", "/v1/sources/shop/scan?max_removed=1").status == 200
        origin.answers["/a.xml"] = feed("/other")
        m.poll()
        eventually(lambda: m.changed() == [], "none of it is sent")
        assert m.notified() == []


def test_copies_that_vanish_meanwhile_block_nothing(start, endpoint):  # noqa: F811
    with Origin() as origin:
        m = Mirror(start, origin, endpoint, "indexnow_bulk = yes\n")
        m.put("/none")
        m.serve()
        eventually(lambda: "/a.xml" in origin.paths(), "it is read")
        m.poll()
        endpoint.answer = 503
        m.put(*(f"/page/{i}" for i in range(12000)))  # two batches
        m.poll()
        eventually(lambda: m.notified(503), "it is refused")
        for file in m.changed():
            file.unlink()
        endpoint.answer = 200
        eventually(lambda: len(m.notified()) == 10000, "the batch at hand is sent", 90)
        m.put("/last")
        m.poll()
        eventually(lambda: "/last" in m.notified(), "what changed later is sent", 90)
