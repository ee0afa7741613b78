# SPDX-License-Identifier: LicenseRef-Undeclared
"""One life of the server under memcheck: it starts, is written to, read from and reloaded, and ends. A block
that is lost, or a read of what was never written, ends it with status 99, and `Server.stop` says so."""

import os
import signal

from harness import ORIGIN, Server, eventually, locs

XML = "/sitemap_index.xml"
URLSET = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    "<url><loc>https://www.example.com/files/page</loc></url></urlset>\n"
)
CONFIG = f"""[site "shop"]
origin = {ORIGIN}
index = {XML}
{{more}}
[log]
access_log = {{folder}}/access.log
[source "files"]
directory = {{folder}}/files
url = {ORIGIN}/files/
settle = 0s
serve = yes
"""


def test_a_life(tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.xml").write_text(URLSET)
    old = (1_700_000_000, 1_700_000_000)
    os.utime(files / "a.xml", old)
    server = Server(tmp_path, sites=(), config=CONFIG.format(folder=tmp_path, more=""))
    server.start()
    try:
        live(server, files, tmp_path)
        server.stop()
        (tmp_path / "sitemapd.conf").write_text(CONFIG.format(folder=tmp_path, more=""))
        server.start()  # what it keeps on disk is read
        assert server.get(XML).status == 200
        server.stop(signal.SIGINT)
    finally:
        server.kill()


def live(server, files, folder):
    mine = [f"{ORIGIN}/products/{n}.xml" for n in range(600)]
    eventually(lambda: f"{ORIGIN}/files/a.xml" in locs(server.get(XML).body), "the source is scanned", 120)
    assert server.bulk(mine).status == 200
    assert server.replace(mine[:580], max_removed="100").status == 200
    assert server.register(f"{ORIGIN}/one.xml", lastmod="2026-11-01").status == 201
    assert server.register("not a url").status == 422
    assert server.api("POST", "/v1/sitemaps", body=b"{", content_type="application/json").status == 400
    assert server.api("DELETE", f"/v1/sitemaps?loc={ORIGIN}/one.xml").status == 204
    assert server.api("GET", "/v1/sitemaps?limit=5").status == 200
    assert server.api("GET", "/v1/sites").status == 200
    assert server.api("GET", "/v1/indexes").status == 200
    assert server.api("GET", "/v1/sources").status == 200
    assert server.api("GET", "/v1/changes?since=0").status in (200, 410)
    assert server.api("GET", "/v1/nothing").status == 404
    assert server.api("GET", "/v1/sites", token="wrong").status == 401
    assert server.api("GET", "/readyz", token=None).status == 200
    page = server.get(XML, [("Accept-Encoding", "gzip")])
    assert page.status == 200 and page["ETag"]
    assert server.get(XML, [("Accept-Encoding", "gzip"), ("If-None-Match", page["ETag"])]).status == 304
    assert server.get(XML, method="HEAD").status == 200
    assert server.get("/sitemap_index.xml.gz").status == 200
    assert set(mine[:580]) <= set(locs(server.get(XML).body))
    assert server.get("/robots.txt").status == 200
    assert server.get("/files/a.xml").body == URLSET.encode()
    assert server.get("/nothing").status == 404
    assert server.metrics()
    (files / "b.xml").write_text(URLSET)
    os.utime(files / "b.xml", (1_700_000_000, 1_700_000_000))
    assert server.api("POST", "/v1/sources/files/scan").status in (200, 202)
    eventually(lambda: f"{ORIGIN}/files/b.xml" in locs(server.get(XML).body), "the new file is found", 120)
    # A reload that changes something, and one that is refused.
    path = os.path.join(folder, "sitemapd.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(CONFIG.format(folder=folder, more="cross_host = cdn.example.com"))
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: server.register("https://cdn.example.com/x.xml", index=XML).status == 201, "the cross host is taken", 60)
    with open(path, "w", encoding="utf-8") as file:
        file.write("[server]\nno_such_setting = 1\n")
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: "no_such_setting" in server.log(), "the reload is refused", 60)
    server.process.send_signal(signal.SIGUSR1)
    assert server.get(XML).status == 200
