# SPDX-License-Identifier: LicenseRef-Undeclared
"""Makes docs/console-overview.png, console-undo.png and console-crawler.png again, of a server with a little of everything.

usage: SITEMAPD_BIN=PROGRAM python3 tests/console/pictures.py FOLDER
"""

import pathlib
import sqlite3
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "lib"))

from browser import URLSET, Console, open_browser, write  # noqa: E402
from harness import ORIGIN, Server, eventually, q, sitemapd  # noqa: E402
from origin import Origin, answer, index, urlset  # noqa: E402

CRAWLERS = {"Googlebot": ("", "-2", "-3"), "bingbot": ("", "-2", "-3"), "YandexBot": ("",)}


def crawl(server, names):
    for name in names:
        for page in CRAWLERS[name]:
            server.get(f"/sitemap_index{page}.xml", {"User-Agent": f"Mozilla/5.0 (compatible; {name}/2.0)"})


def visit_for_weeks(server, folder):
    """Days before today, as of a log that was imported."""
    lines = []
    for back in range(60, 0, -1):
        at = time.strftime("%d/%b/%Y:10:00:00 +0000", time.gmtime(time.time() - back * 86400))
        for status, times in ((200, 1 + back * 7 % 5), (304, 4 + back * 11 % 9)):
            lines += times * [f'66.249.66.1 - - [{at}] "GET /sitemap_index.xml HTTP/1.1" {status} 500 "-" "Mozilla/5.0 (compatible; Googlebot/2.1)"\n']
    write(folder / "access.log", "".join(lines))
    assert server.cli("crawlers", "import", str(folder / "access.log"), "--site", ORIGIN).code == 0
    server.stop()
    with sqlite3.connect(server.database) as db:
        db.executemany("INSERT OR REPLACE INTO local_site_day SELECT site, day - ?1, entries - ?1 * 97 % (70 * ?1), max(urls - 211 * ?1, 0) FROM local_site_day WHERE day = (SELECT max(day) FROM local_site_day)", [(back,) for back in range(1, 61)])
    server.start()


def part(number, stamp):
    return {"loc": f"{ORIGIN}/catalogue/{number // 1000:03d}/{number % 1000:03d}.xml", "lastmod": stamp}


def scene(folder, origin):
    base, site = f"http://{origin.address}:{origin.port}", folder / "products"
    site.mkdir()
    for name in ("hats", "coats", "shoes"):
        write(site / f"{name}.xml", URLSET.format(f"{ORIGIN}/products/{name}"))
    write(site / "bags.xml", "<urlset><url>")
    parts = [f"{base}/s/{name}.xml" for name in ("a", "b", "c", "gone")]
    origin.answers["/list.xml"] = answer(200, index(*parts))
    for loc in parts[:3]:
        origin.answers[loc.removeprefix(base)] = answer(200, urlset(loc + "/page"))
    origin.answers["/s/gone.xml"] = answer(404)
    server = Server(folder, sites=(), config=(
        f'[fetch]\nallow_address = {origin.address}\nrate = 1000\n[site "main"]\norigin = {ORIGIN}\n'
        f'[source "products"]\ndirectory = {site}\nurl = {ORIGIN}/products/\nsettle = 100ms\n'
        f'[site "shop"]\norigin = {base}\n[source "shop"]\nupstream = {base}/list.xml\n')).start()
    tokens = {name: sitemapd("token", "add", name, "--role", role, database=server.database).out.split()[-1]
              for name, role in (("sre", "admin"), ("anna", "write"), ("pipeline", "write"))}
    eventually(lambda: server.api("GET", "/v1/token", token=tokens["pipeline"]).status == 200, "the tokens are known")
    send = lambda name, rows, call="/v1/sitemaps": server.api("POST", call, rows, token=tokens[name])
    for first in range(0, 128_450, 64_225):
        assert send("pipeline", [part(n, f"2026-{1 + n % 10:02d}-{1 + n % 28:02d}T08:15:00Z") for n in range(first, first + 64_225)]).status == 200
    assert server.api("POST", "/v1/urlsets", {"url": ORIGIN + "/pages.xml"}).status == 201
    assert send("pipeline", [{"loc": f"{ORIGIN}/page/{n}"} for n in range(60_000)], "/v1/urls?urlset=" + q(ORIGIN + "/pages.xml")).status == 200
    crawl(server, CRAWLERS)
    rows = [part(n, "2026-11-22T09:00:00Z") for n in range(100)] + [{"loc": f"{ORIGIN}/news/{n}.xml", "lastmod": "2026-11-22"} for n in range(300)]
    assert send("anna", rows).status == 200
    crawl(server, ["Googlebot"])
    eventually(lambda: server.api("GET", "/v1/checks?state=gone").json()["checks"], "one elsewhere is gone")
    eventually(lambda: len(server.api("GET", "/v1/crawlers").json()["crawlers"]) == 3, "the crawlers")
    return server, tokens["sre"]


def picture(console, path, height):
    console.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 1120, "height": height, "deviceScaleFactor": 1, "mobile": False})
    console.driver.save_screenshot(str(path))


def main(out):
    driver = open_browser()
    with tempfile.TemporaryDirectory() as folder, Origin() as origin:
        server, token = scene(pathlib.Path(folder), origin)
        try:
            console = Console(driver, server)
            console.media(False, 1120)
            console.open("overview", token)
            change = server.api("GET", "/v1/history?kind=list&limit=1").json()["changes"][0]["revision"]
            console.go(f"change/{change}")
            console.press("Undo")
            console.press("Preview", "dialog")
            console.wait_text("Result: ", "dialog")
            picture(console, out / "console-undo.png", 1000)
            visit_for_weeks(server, pathlib.Path(folder))
            console = Console(driver, server)
            console.open("overview", token)
            picture(console, out / "console-overview.png", 1000)
            console.go("crawler/googlebot")
            picture(console, out / "console-crawler.png", 1000)
        finally:
            server.stop()
            driver.quit()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(pathlib.Path(sys.argv[1]))
