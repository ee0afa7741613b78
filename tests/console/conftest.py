# SPDX-License-Identifier: LicenseRef-Undeclared
"""One server and one browser for all tests of the console. What the browser's console reports as an
error fails the test that caused it, and so does a request to elsewhere."""

import pytest

from browser import HOSTILE, URLSET, Console, open_browser, write
from harness import ORIGIN, Server, eventually, sitemapd


@pytest.fixture(scope="session")
def driver():
    driver = open_browser()
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """With a source that has a good and a broken file, entries, crawlers that came, and tokens."""
    folder = tmp_path_factory.mktemp("console")
    source = folder / "source"
    source.mkdir()
    for name in ("a", "b", "c", "d"):
        write(source / f"{name}.xml", URLSET.format(ORIGIN + "/files/" + name))
    write(source / "broken.xml", "<urlset><url>")
    config = f'[source "folder"]\ndirectory = {source}\nurl = {ORIGIN}/files/\nsettle = 100ms\n'
    server = Server(folder, config=config).start()
    server.source = source
    server.tokens = {}
    for name, role in (("reader", "read"), ("writer", "write"), ("boss", "admin"), ("doomed", "read")):
        done = sitemapd("token", "add", name, "--role", role, database=server.database)
        server.tokens[name] = done.out.split()[-1]
    server.bulk([{"loc": f"{ORIGIN}/many/{i:04d}.xml", "lastmod": "2026-01-31T10:00:00Z"} for i in range(250)])
    server.register(ORIGIN + "/shop/", lastmod="2026-01-31")  # has warnings
    assert server.api("POST", "/v1/urlsets", {"url": ORIGIN + "/empty.xml", "with": ["images"]}).json()["id"] == "2"
    server.get("/sitemap_index.xml", {"User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1)"})
    server.get("/sitemap_index.xml", {"User-Agent": HOSTILE})
    eventually(lambda: server.api("GET", "/v1/crawlers").json()["crawlers"], "the crawler")
    eventually(lambda: (lambda s: s["problems"] and s["listed"] == 4 and not s["scanning"])(server.api("GET", "/v1/sources").json()["sources"][0]), "the good files and the broken one")
    yield server
    try:
        server.stop()
    finally:
        server.kill()


@pytest.fixture
def console(driver, server):
    console = Console(driver, server)
    console.leave()
    console.asked()
    yield console
    errors, asked = console.errors(), console.asked()
    assert errors == []
    own = (f"http://{server.admin}/", "about:blank", "data:")
    assert [url for url in asked if not url.startswith(own)] == []
