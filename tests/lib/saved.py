# SPDX-License-Identifier: LicenseRef-Undeclared
"""A catalogue with all kinds of objects, and the replies that it gave, for tests of backup, restore and upgrade."""

import hashlib
import pathlib
import sqlite3

from harness import INDEX, ORIGIN, Server, q, sitemapd

SHOP = "https://shop.example.org"
URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}</loc></url></urlset>'


def make(folder):
    """A backup in `folder`, and the facts: tokens, pages with their tags, robots.txt, an export."""
    folder = pathlib.Path(folder)
    maps = folder / "maps"
    maps.mkdir()
    for name in ("one", "two", "three"):
        (maps / f"{name}.xml").write_text(URLSET.format(f"{SHOP}/{name}"))
    (maps / "broken.xml").write_text(URLSET[:70])
    server = Server(folder, token=None, sites=(ORIGIN,)).start()
    try:
        facts = fill(server, maps)
    finally:
        server.stop()
    backup = folder / "backup.db"
    assert sitemapd("backup", backup, database=server.database).code == 0
    database = sqlite3.connect(backup, isolation_level=None)
    database.executescript("PRAGMA journal_mode=DELETE; VACUUM")
    database.close()
    return backup, facts


def fill(server, maps):
    server.token = pathlib.Path(server.database + ".token").read_text().strip()
    entries = [
        {"loc": f"{ORIGIN}/sitemaps/{i:05}.xml", "lastmod": f"2026-{i % 12 + 1:02}-{i % 28 + 1:02}T08:{i % 60:02}:00Z", "digest": f"d{i}"}
        for i in range(1300)
    ]
    assert server.bulk(entries).status == 200
    for entry in entries[::7]:
        assert server.api("DELETE", f"/v1/sitemaps?loc={q(entry['loc'])}").status == 204
    for line in f"""site add {SHOP} --cross-host cdn.example.net --host-alias shop.example.net --max-indexes 40
index add {SHOP}/archive/index.xml --pattern {{stem}}_{{n}}{{suffix}}
add https://cdn.example.net/a&b.xml --index {SHOP}/archive/index.xml --lastmod 2026-05-06
add {SHOP}/archive/Ünï.xml --lastmod 2026-05
index add {SHOP}/gone/index.xml
add {SHOP}/gone/x.xml
index remove {SHOP}/gone/index.xml --max-removed 1
scan {maps} --url {SHOP}/maps/ --source maps
urlset add {SHOP}/archive/urls.xml --index {SHOP}/archive/index.xml --with images
url add {SHOP}/archive/a --urlset {SHOP}/archive/urls.xml --lastmod 2026-07-08
url add {SHOP}/archive/b --urlset {SHOP}/archive/urls.xml --image {SHOP}/b.png""".splitlines():
        assert server.cli(*line.split()).code == 0, line
    shop = next(s["id"] for s in server.api("GET", "/v1/sites").json()["sites"] if s["origin"] == SHOP)
    assert server.api("PATCH", f"/v1/sites/{shop}", {"robots": "User-agent: *\nDisallow: /cart\n"}).status == 200
    facts = {"tokens": {"first": server.token, "saved": server.cli("token", "add", "saved", "--site", ORIGIN).out.strip()}, "pages": {}}
    for url in (INDEX, f"{SHOP}/sitemap_index.xml", f"{SHOP}/archive/index.xml", f"{SHOP}/archive/urls.xml"):
        host, path = url[8:].split("/", 1)
        reply = server.get(f"/{path}", {"Accept-Encoding": "identity"}, host=host)
        facts["pages"][url] = {"sha256": hashlib.sha256(reply.body).hexdigest(), "etag": reply["ETag"], "last_modified": reply["Last-Modified"]}
    facts["robots"] = server.get("/robots.txt", host="shop.example.org").body.decode()
    facts["since"] = server.api("GET", "/v1/changes?since=0").json()["next"]
    facts["entry"] = server.api("GET", "/v1/sitemaps?limit=1").json()["sitemaps"][0]["id"]
    facts["export"] = server.cli("export").out
    return facts
