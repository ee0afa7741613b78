# SPDX-License-Identifier: LicenseRef-Undeclared
"""The console in a browser: what a person sees and does, by hand and by keyboard, and what it must not do."""

import calendar
import csv
import glob
import io
import itertools
import os
import re
import sqlite3
import subprocess
import time

import pytest
from selenium.webdriver.common.keys import Keys

from browser import HOSTILE, URLSET, Console, write
from engines import Google
from harness import INDEX, ORIGIN, Server, ask, eventually, q, sitemapd
from origin import Origin, answer, index, urlset

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../server/console")
VIEWS = ("overview", "entries", f"entries?index={q(ORIGIN)}/empty.xml", "sites", "index/1", "urlset/2", "sources", "checks", "problems", "crawlers", "crawler/googlebot", "history", "change/2", "access", "charts")
SHOP = "https://shop.example.org"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


def get(server, path, headers=(), method="GET"):
    return ask(server.admin, method, path, headers, host=server.admin)


# ---- the files ----------------------------------------------------------------------------------


def test_files_need_no_token_and_have_their_headers(server):
    types = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
    names = sorted(os.path.basename(path) for path in glob.glob(FILES + "/*"))
    assert {"index.html", "console.css", "main.js", "api.js", "dom.js"} < set(names)
    for name in names + [""]:
        reply = get(server, "/console/" + name)
        assert reply.status == 200, name
        assert reply["Content-Type"] == types[(name or "index.html").rpartition(".")[2]]
        assert reply["Content-Security-Policy"] == POLICY
        assert reply["Referrer-Policy"] == "no-referrer"
        assert reply["Cross-Origin-Opener-Policy"] == reply["Cross-Origin-Resource-Policy"] == "same-origin"
        assert reply["X-Content-Type-Options"] == "nosniff"
        assert reply["Cache-Control"] == "no-cache"
        again = get(server, "/console/" + name, {"If-None-Match": reply["ETag"]})
        assert (again.status, again.body, again["ETag"]) == (304, b"", reply["ETag"])
        assert again["Content-Security-Policy"] == POLICY
        head = get(server, "/console/" + name, method="HEAD")
        assert (head.status, head.body, head["Content-Length"]) == (200, b"", str(len(reply.body)))
        if name and name != "index.html":
            with open(f"{FILES}/{name}", "rb") as file:
                assert file.read() == reply.body


def test_other_paths(server):
    for path in ("/", "/console"):
        reply = get(server, path)
        assert (reply.status, reply["Location"], reply.body) == (308, "/console/", b"")
    assert get(server, "/console/none.js").status == 404
    assert get(server, "/console/..%2fmain.js").status == 404
    assert get(server, "/console/main.js", method="POST").status == 405
    assert server.get("/console/").status == 404  # the crawlers' listener has none


def test_it_can_be_left_out(tmp_path):
    server = Server(tmp_path, config="[admin]\nconsole = no\n").start()
    assert [get(server, path).status for path in ("/", "/console/", "/console/main.js")] == [404, 404, 404]
    assert get(server, "/healthz").status == 200
    server.stop()


def test_the_files_are_small_and_parse():
    paths = glob.glob(FILES + "/*")
    assert sum(os.path.getsize(path) for path in paths) <= 130 * 1024
    for path in glob.glob(FILES + "/*.js"):
        with open(path, "rb") as file:
            subprocess.run(["node", "--input-type=module", "--check"], stdin=file, check=True)


# ---- signing in ---------------------------------------------------------------------------------


def test_sign_in_and_out(console, server):
    console.sign_in("smd_wrong")
    console.wait_text("Unknown or revoked")
    assert console.driver.switch_to.active_element.get_attribute("name") == "token"
    console.fill("token", server.tokens["reader"]).send_keys(Keys.ENTER)
    console.wait(lambda: console.title() == "Overview")
    console.wait_text("reader (read)", ".who")
    assert server.tokens["reader"] not in console.driver.current_url + console.driver.page_source
    assert console.driver.get_cookies() == []
    assert console.driver.execute_script("return localStorage.length") == 0
    console.press("Sign out", ".who")
    console.one("main [name=token]")
    assert console.driver.execute_script("return sessionStorage.length") == 0
    console.driver.refresh()
    console.one("main [name=token]")
    assert not any("token=" in url or "smd_" in url for url in console.asked())


def test_a_revoked_token_is_reported_and_forgotten(console, server):
    console.open("overview", server.tokens["doomed"])
    console.wait_text("Overview")
    assert server.api("DELETE", "/v1/tokens/doomed").status == 204
    console.driver.execute_script("location.hash = '#/entries'")
    console.one("main [name=token]")
    console.wait_text("revoked")
    assert console.driver.execute_script("return sessionStorage.length") == 0


def test_a_tab_out_of_sight_forgets_its_token(console, server):
    console.open("overview", server.tokens["reader"])
    console.driver.execute_script("""
        const turn = (hidden) => {
          Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
          document.dispatchEvent(new Event('visibilitychange'));
        };
        const now = Date.now;
        turn(true);
        Date.now = () => now() + 29 * 60000;
        turn(false);
        window.kept = sessionStorage.length;
        turn(true);
        Date.now = () => now() + 60 * 60000;
        turn(false);""")
    assert console.driver.execute_script("return window.kept") == 1
    console.wait_text("30 minutes")
    assert console.driver.execute_script("return sessionStorage.length") == 0


# ---- what is seen -------------------------------------------------------------------------------


def test_overview(console, server):
    console.open("overview", server.tokens["reader"])
    text = console.text()
    assert "Needs attention" in text and "folder: 1 file is rejected" in text
    assert "255\nsitemaps" in text and INDEX in text
    assert re.search(r"Googlebot has the newest version of the page it fetches, as of ", text)
    assert "The view of a sitemap shows which crawlers fetched it" in text
    assert "folder: 4 sitemaps listed, 1 rejected" in text


def test_every_view_is_shown_to_a_reader_without_a_button_that_writes(console, server, news):
    acts = {"Register a sitemap", "Register a page URL", "Change", "Remove", "Freeze", "Thaw", "Add a site", "Add an index", "Add a source", "Scan now",
            "Replace from a file", "Restore", "Undo", "Revoke", "New token"}
    seen = set()
    page = server.api("GET", f"/v1/urls?urlset={q(NEWS)}&limit=1").json()["urls"][0]["id"]
    for role in ("boss", "reader"):
        console.open("overview", server.tokens[role])
        first = server.api("GET", f"/v1/sitemaps?loc={q(ORIGIN + '/shop/')}").json()["sitemaps"][0]
        views = VIEWS + ("entry/" + first["id"], "url/" + page)
        looks = itertools.count()

        def look():
            patience = next(looks) / 4  # what follows a view takes long on a busy machine: each round waits longer for it
            for view in views:
                console.go(view)
                time.sleep(patience)
                assert "cannot be shown" not in console.title(), (role, view, console.text())
                assert console.driver.execute_script("return document.querySelectorAll('h1').length") == 1
                if role == "boss":
                    seen.update(console.buttons())
                else:
                    assert acts.isdisjoint(console.buttons()), (view, console.buttons())
            return role != "boss" or acts - {"Thaw"} <= seen

        eventually(look, "a token that may act has all buttons, some of them with what follows the view", within=240)


def test_entries_go_by_pages_and_are_found(console, server):
    console.open(f"entries?index={q(INDEX)}", server.tokens["reader"])
    console.wait_text("1 to 100 of 255 sitemaps")
    assert len(console.all("tbody tr")) == 100
    console.press("Next 100")
    console.wait_text("101 to 200 of 255")
    console.press("Next 100")
    console.wait_text("201 to 255 of 255")
    assert "Next 100" not in console.buttons()
    console.press("Back")
    console.wait_text("101 to 200 of 255")
    console.fill("text", "/many/024")  # as one types, without the host
    console.wait(lambda: len(console.all("tbody tr")) == 10, "ten entries")
    assert "text=%2Fmany%2F024" in console.driver.current_url
    console.fill("text", "/none")
    console.wait_text("No match")


def test_what_is_looked_through_reports_how_far_it_is(console, server):
    console.open("entries?warned=1", server.tokens["reader"])
    console.wait_text("Choose an index")
    console.go(f"entries?index={q(INDEX)}&warned=1")
    console.wait_text("1 found")
    assert re.search(r"25\d of 25\d read, 1 found", console.text())
    assert [row.text.split("\n")[0].split(" ")[0] for row in console.all("tbody tr")] == [ORIGIN + "/shop/"]
    console.go(f"entries?index={q(INDEX)}&mode=contains&text=y/017")
    console.wait_text("10 found")
    assert len(console.all("tbody tr")) == 10
    console.go(f"entries?index={q(INDEX)}&mode=contains&text=y/")
    console.wait_text("contains", "main [role=alert]")  # too short: the API's own words


def test_problems_have_their_place(console, server):
    console.open("problems", server.tokens["reader"])
    text = console.text()
    assert "broken.xml" in text and "malformed-xml" in text or "truncated" in text
    assert re.search(r"\d+, column \d+", text)
    assert "What to do" in text and re.search("Fix the program that writes the file|Write the file under another name", text)


def test_a_crawler(console, server):
    console.open("crawler/googlebot", server.tokens["reader"])
    text = console.text()
    assert console.title() == "Googlebot"
    assert INDEX in text and "Downloaded (200)" in text and "every client that uses its name counts" in text


def test_imported_days_are_kept_apart_from_counted_ones(console, driver, tmp_path):
    day = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 3 * 86400))
    stamp = time.strftime("%d/%b/%Y:10:00:00 +0000", time.gmtime(time.time() - 3 * 86400))
    line = f'66.249.66.1 - - [{stamp}] "GET /sitemap_index.xml HTTP/1.1" 200 500 "-" "Mozilla/5.0 (compatible; Googlebot/2.1)"\n'
    write(tmp_path / "access.log", line)
    other = Server(tmp_path)
    assert sitemapd("site", "add", ORIGIN, database=other.database).code == 0
    assert sitemapd("add", ORIGIN + "/a.xml", database=other.database).code == 0
    assert sitemapd("crawlers", "import", str(tmp_path / "access.log"), "--site", ORIGIN, database=other.database).code == 0
    other.start()
    try:
        there = Console(driver, other)
        eventually(lambda: other.api("GET", "/v1/crawlers").json()["crawlers"], "the imported day")
        there.open("crawlers", other.token)
        assert f"Earlier days, from {day} on, were imported from logs." in there.text() and "Counting began" in there.text()
    finally:
        console.leave()
        console.asked()
        other.kill()


def test_what_search_engines_say(console, driver, tmp_path):
    read = {"lastSubmitted": "2026-11-20T08:00:00Z", "lastDownloaded": "2026-11-26T09:30:00Z"}
    broken = f"{ORIGIN}/a-directory-with-a-long-name/{'and-another-one-' * 8}/products.xml"
    with Google() as google:
        google.sitemaps[INDEX] = {**read, "errors": "3", "warnings": 1, "contents": [{"submitted": 1200}]}
        google.children[INDEX] = [{"path": broken, **read, "errors": 3}]
        config = f'[fetch]\nallow_address = 127.0.0.2\n[site "main"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\n' + google.config()
        other = Server(tmp_path, sites=(), config=config).start()
        try:
            assert other.register(ORIGIN + "/a.xml").status == other.register(broken).status == 201
            eventually(lambda: other.api("GET", "/v1/engines").json()["engines"][0]["errors"] == 3, "it was asked")
            with sqlite3.connect(other.database) as db:  # days before this one
                db.executemany("INSERT INTO local_engine_day SELECT engine, site, day - ?1, sitemaps, ?1 % 4, ?1 % 3, urls, read_at FROM local_engine_day WHERE day = (SELECT max(day) FROM local_engine_day)", [(i,) for i in range(1, 60)])
            there = Console(driver, other)
            there.open("crawlers", other.token)
            there.wait_text("What search engines report")
            assert "3 errors" in there.text() and "Answers" in there.text()
            there.go("engine/google")
            there.wait_text(broken)
            assert there.title() == "What Google reports" and "in the index:" in there.text() and "1,200" in there.text()
            assert len(there.all("main svg path.line")) == 2
            for width in (1280, 900, 390):
                there.media(False, width)
                assert driver.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0, width
            if os.environ.get("PICTURES"):
                for dark, width in ((False, 1280), (True, 390)):
                    for view in ("crawlers", "engine/google"):
                        there.media(dark, width, 1400)
                        there.go(view)
                        there.wait_text("Google")
                        driver.save_screenshot(os.path.join(os.environ["PICTURES"], f"{view.replace('/', '-')}-{width}.png"))
            ids = {one["loc"]: one["id"] for one in other.api("GET", "/v1/sitemaps").json()["sitemaps"]}
            there.go("entry/" + ids[broken])
            there.wait_text("Google: 3 errors")
            there.go("entry/" + ids[ORIGIN + "/a.xml"])
            there.wait_text("Google: no report on this one; 3 errors and 1 warning in the index, which was read")
            assert there.errors() == []
        finally:
            console.leave()
            console.asked()
            console.media(False, 1280)
            other.kill()


def days_before(server, count):
    """As if the server had run for so long: sizes, fetches with delays, and what engines said."""
    today = int(time.time() // 86400)
    with sqlite3.connect(server.database) as db:
        sites = [0, *(row[0] for row in db.execute("SELECT id FROM site"))]
        for ago in range(1, count):
            db.executemany("INSERT OR REPLACE INTO local_site_day VALUES (?, ?, ?, ?)", [(site, today - ago, 500 - ago, ago) for site in sites])
            for crawler, site, cell in (("googlebot", sites[1], 5), ("bingbot", sites[-1], 20)):
                cells = [0] * 48
                cells[cell], cells[cell + 8] = 9, 2
                # Every fifth day has fetches, but no change.
                lags = b"".join(n.to_bytes(4, "little") for n in (cells if ago % 5 else [0] * 48))
                db.execute("INSERT OR REPLACE INTO local_crawler_day SELECT node, ?, ?, ?, 7, ?, 0, 0, 1, 1, 90, ?, 0 FROM local_crawler", (crawler, site, today - ago, ago, lags))
        db.execute("INSERT INTO local_engine_day SELECT engine, site, day - 1, sitemaps, 4, 2, urls, read_at FROM local_engine_day")


@pytest.fixture
def old(driver, tmp_path):
    """Two sites, a search engine, a past; and nothing wrong but what the test does."""
    with Google() as google:
        for origin in (ORIGIN, SHOP):
            google.sitemaps[origin + "/sitemap_index.xml"] = {"errors": 0, "warnings": 0}
        server = Server(tmp_path, sites=(), config=f'[fetch]\nallow_address = 127.0.0.2\n[site "main"]\norigin = {ORIGIN}\n[site "shop"]\norigin = {SHOP}\n' + google.config()).start()
        server.google = google
        for origin in (ORIGIN, SHOP):
            assert server.register(origin + "/a.xml").status == 201
        server.get("/sitemap_index.xml", [("User-Agent", "Googlebot")], host="www.example.com")
        eventually(lambda: server.api("GET", "/v1/crawlers").json()["crawlers"], "the crawler")
        eventually(lambda: server.api("GET", "/v1/engines").json()["engines"][0]["sites"]["ok"] == 2, "both were asked")
        server.stop()
        days_before(server, 40)
        server.start()
        yield server
        assert Console(driver, server).errors() == []
        server.stop()


def charts_of(console):
    """{heading: lines drawn}"""
    return {part.find_element("css selector", "h2").text: len(part.find_elements("css selector", "svg path.line")) for part in console.all(".charts section")}


def test_charts_have_their_numbers(driver, old):
    there = Console(driver, old)
    there.open("overview", old.token)
    there.wait_text("All charts")
    assert charts_of(there) == {"Sitemaps": 1, "Page URLs": 1, "Fetches by crawler": 2}
    there.go("charts")
    assert charts_of(there) == {"Sitemaps": 1, "Page URLs": 1, "Fetches by crawler": 2, "Median delay from change to visit": 2, "Found by Google": 2}
    for line in there.all(".charts path.line"):
        assert re.fullmatch(r"(?:[ML][0-9.]+,[0-9.]+h\.1)+", line.get_attribute("d"))
    there.all(".charts summary")[3].click()
    rows = [row.text.split() for row in there.all(".charts section:nth-child(4) tbody tr")]
    assert len(rows) == 39 or len(rows) == 40, "each day, also those without a change"
    assert sum(len(row) == 1 for row in rows) in (7, 8), rows
    there.go("charts?site=" + q(SHOP))
    assert charts_of(there)["Fetches by crawler"] == 1 and there.all("[name=site] option:checked")[0].text == SHOP
    there.go("crawler/googlebot")
    there.wait_text("Delay from change to visit")
    assert "50 % within" in there.text() and "90 % within" in there.text()


def test_a_table_is_saved_as_csv(driver, old):
    assert old.register(ORIGIN + "/b.xml?a=%22,%22").status == 201
    there = Console(driver, old)
    there.open("entries?index=" + q(INDEX), old.token)
    there.wait_text("/b.xml")
    driver.execute_script("""
        window.saved = [];
        URL.createObjectURL = (blob) => {
          blob.text().then((text) => saved.push(text));
          return 'data:,';
        };
        HTMLAnchorElement.prototype.click = function () { saved.push(this.download); };""")
    there.press("Save as CSV")
    there.wait(lambda: driver.execute_script("return saved.length") == 2)
    name, text = sorted(driver.execute_script("return saved"), key=len)
    assert re.fullmatch(r"[a-z0-9-]+\.csv", name)
    head, *rows = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"))))
    assert len(rows) == 2 and {len(row) for row in rows} == {len(head)} and head[0] == "URL" and "Actions" not in head
    assert any(f"{ORIGIN}/b.xml?a=%22,%22" in row for row in rows)
    there.go("overview")
    driver.execute_script("saved.length = 0")
    # What a spreadsheet would take for a formula, and a time.
    driver.execute_script("""
        return import('./dom.js').then(({table, time}) => {
          const [node, save] = table('=x', [['A', '', (row) => row], ['B', '', () => time('2026-11-22T10:00:00Z')]], ['=1+1', '-2', 'a "b"', '12,345', 'x;=1+1; -2']);
          document.querySelector('main').append(node);
          save.querySelector('button').click();
        });""")
    there.wait(lambda: driver.execute_script("return saved.length") == 2)
    rows = list(csv.reader(io.StringIO(driver.execute_script("return saved.find((one) => one.includes(','))").removeprefix("\ufeff"))))
    assert rows == [["A", "B"]] + [[one, "2026-11-22T10:00:00Z"] for one in ("'=1+1", "'-2", 'a "b"', "12345", "x;'=1+1; '-2")]


def test_each_site_has_a_line_of_its_health(driver, old):
    there = Console(driver, old)
    there.open("sites", old.token)
    there.wait_text(SHOP)
    assert there.text().count("No problem known") == 2 and "attention" not in there.text()

    def health(origin):
        there.go("sites")
        [part] = [part for part in there.all("main section") if part.find_element("css selector", "h2").text.startswith(origin)]
        return part.find_element("css selector", ".health").text

    shop = next(one["id"] for one in old.api("GET", "/v1/sites").json()["sites"] if one["origin"] == SHOP)
    assert old.api("PATCH", "/v1/sites/" + shop, {"frozen": True}).status == 200
    assert "Thaw it" in health(SHOP) and health(ORIGIN) == "No problem known"
    assert "1 of 2 sites needs attention, listed first." in there.text() and there.all("main section h2")[0].text.startswith(SHOP)
    assert old.api("PATCH", "/v1/sites/" + shop, {"frozen": False}).status == 200
    assert old.api("DELETE", "/v1/sitemaps?loc=" + q(SHOP + "/a.xml")).status == 204
    assert "No sitemaps yet" in health(SHOP)
    with sqlite3.connect(old.database) as db:
        db.execute("UPDATE local_engine_site SET state = 3, why = 'it answers 403' WHERE site = ?", (int(shop),))
        db.execute("UPDATE local_engine_sitemap SET errors = 3 WHERE site <> ?", (int(shop),))
    assert "Google: no access (it answers 403). Give the account access" in health(SHOP)
    assert "Google found 3 errors. See its own console" in health(ORIGIN)
    for view in ("overview", "problems"):
        there.go(view)
        there.wait_text("Google found 3 errors in the sitemaps.")
        assert "All is well" not in there.text() and "Needs attention" in there.text()
    there.open("sites", sitemapd("token", "add", "reader", "--role", "read", database=old.database).out.split()[-1])
    assert [one.text for one in there.all("main section .buttons a")] == ["Charts", "Charts"] and there.all("main section button") == []


def test_the_health_of_a_site_has_its_sources_and_checks(driver, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for name in "abcdefghijkl":
        write(folder / f"{name}.xml", URLSET.format(ORIGIN + "/" + name))
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        config = (f'[fetch]\nallow_address = {origin.address}\nrate = 1000\n[site "main"]\norigin = {ORIGIN}\n[site "shop"]\norigin = {base}\ncheck = yes\n'
                  f'[source "files"]\ndirectory = {folder}\nurl = {ORIGIN}/\nsettle = 50ms\n[source "cms"]\nupstream = {base}/list.xml\n')
        server = Server(tmp_path, sites=(), config=config).start()
        try:
            health = lambda: {part.find_element("css selector", "h2").text.split("\n")[0]: part.find_element("css selector", ".health").text for part in there.all("main section")}
            eventually(lambda: server.api("GET", "/v1/sources").json()["sources"][1]["listed"] == 12 or server.api("GET", "/v1/sources").json()["sources"][0]["listed"] == 12, "they are listed")
            assert server.register(base + "/gone.xml").status == 201
            assert server.register(base + "/good.xml").status == 201
            origin.answers["/good.xml"] = answer(200, urlset(base + "/page"))
            server.api("POST", "/v1/checks?loc=" + q(base + "/gone.xml"))
            eventually(lambda: server.api("GET", "/v1/checks?state=bad").json()["checks"], "it is gone")
            assert [one["loc"] for one in server.api("GET", "/v1/checks?state=bad").json()["checks"]] == [base + "/gone.xml"]
            eventually(lambda: next(one for one in server.api("GET", "/v1/sources").json()["sources"] if one["name"] == "cms")["failure"], "it fails")
            there = Console(driver, server)
            there.open("sites", server.token)
            there.wait_text(base)
            told = health()
            assert "Source cms has been failing since" in told[base] and "It has never been read, so the index has none of its sitemaps." in told[base]
            assert f"1 registered sitemap cannot be read, first {base}/gone.xml: gone." in told[base]
            assert told[ORIGIN] == "No problem known"
            write(folder / "broken.xml", "<urlset><url>")
            for name in "abcdefghijk":
                (folder / f"{name}.xml").unlink()
            eventually(lambda: (lambda s: s["problems_total"] and s["held_removals"])(next(one for one in server.api("GET", "/v1/sources").json()["sources"] if one["name"] == "files")), "they are held")
            there.go("sites")
            told = health()
            assert "Source files: the shrink guard holds 11 removals" in told[ORIGIN] and "Source files: 1 file is rejected" in told[ORIGIN]
            assert there.errors() == []
        finally:
            server.stop()


def test_a_sitemap_shows_which_crawlers_have_it(driver, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    write(folder / "a.xml", URLSET.format(ORIGIN + "/page"))
    server = Server(tmp_path, config=f'[source "files"]\ndirectory = {folder}\nurl = {ORIGIN}/\nsettle = 50ms\nserve = yes\n').start()
    try:
        assert server.register(ORIGIN + "/elsewhere.xml").status == 201
        eventually(lambda: server.api("GET", "/v1/sources").json()["sources"][0]["listed"] == 1, "it is listed")
        ids = {one["loc"]: one["id"] for one in server.api("GET", "/v1/sitemaps").json()["sitemaps"]}
        there = Console(driver, server)
        there.open("entry/" + ids[ORIGIN + "/a.xml"], server.token)
        there.wait_text("No crawler has fetched it from this server yet.")
        there.go("entry/" + ids[ORIGIN + "/elsewhere.xml"])
        there.wait_text("Another server serves this sitemap")

        def current():
            server.get("/a.xml", [("User-Agent", "Googlebot")])
            return server.api("GET", "/v1/sitemaps/" + ids[ORIGIN + "/a.xml"]).json().get("crawlers", [{"current": False}])[0]["current"]

        eventually(current, "it has it")
        there.go("entry/" + ids[ORIGIN + "/a.xml"])
        there.wait_text("Googlebot")
        assert "Up to date" in there.text()
        there.go("entries?index=" + q(INDEX))
        there.wait_text("up to date: Googlebot")
        assert there.errors() == []
    finally:
        server.stop()


def test_hostile_texts_are_text(console, server):
    loc = ORIGIN + "/x%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E.xml"
    assert server.register(loc).status == 201
    write(server.source / (HOSTILE.replace("/", "_") + ".xml"), "<urlset><url>")
    eventually(lambda: server.api("GET", "/v1/sources").json()["sources"][0]["problems_total"] == 2, "the hostile name")
    console.open("problems", server.tokens["reader"])
    assert HOSTILE.replace("/", "_") in console.text()
    for view in VIEWS:
        console.go(view)
        assert console.all("main img") + console.all("main script") == [], view
    console.open(f"entries?mode=loc&text={q(HOSTILE)}&source={q(HOSTILE)}")
    assert console.one("[name=text]").get_attribute("value") == HOSTILE
    assert console.all("main img") == []
    console.open("crawler/" + q(HOSTILE))
    assert HOSTILE in console.text()
    os.unlink(server.source / (HOSTILE.replace("/", "_") + ".xml"))
    eventually(lambda: server.api("GET", "/v1/sources").json()["sources"][0]["problems_total"] == 1, "the hostile name is gone")
    server.api("DELETE", f"/v1/sitemaps?loc={q(loc)}")


def test_markup_from_a_text_is_refused_by_the_browser(console, server):
    console.open("overview", server.tokens["reader"])
    refused = console.driver.execute_script("""
        try { document.body.insertAdjacentHTML('beforeend', '<b>x</b>'); } catch (error) { return error.name; }""")
    assert refused == "TypeError"
    console.errors()  # the policy reports it, as it should


# ---- what is done -------------------------------------------------------------------------------


def entry_of(server, loc):
    found = server.api("GET", f"/v1/sitemaps?loc={q(loc)}").json()["sitemaps"]
    return found[0] if found else None


def test_register_change_remove_by_keyboard(console, server):
    loc = ORIGIN + "/by-hand.xml"
    console.open(f"entries?mode=loc&text={q(loc)}", server.tokens["writer"])
    opener = next(b for b in console.all("main button") if b.text == "Register a sitemap")
    opener.send_keys(Keys.ENTER)
    console.one("dialog[open]")
    console.keys("/relative.xml", Keys.TAB, Keys.TAB, Keys.TAB, Keys.ENTER)
    console.wait_text("loc-relative", "dialog [role=alert]")
    box = console.driver.switch_to.active_element
    assert (box.get_attribute("name"), box.get_attribute("aria-invalid")) == ("loc", "true")
    console.keys(Keys.ESCAPE)
    console.wait(lambda: not console.all("dialog"), "no dialog")
    assert console.driver.switch_to.active_element.text == "Register a sitemap"  # where it was
    console.keys(Keys.ENTER)
    console.one("dialog[open]")
    console.keys(loc, Keys.TAB)
    console.keys("2026-01-01T00:00:00Z", Keys.ENTER)
    console.wait_text("Registered in " + INDEX, "#status")
    assert entry_of(server, loc)["lastmod"] == "2026-01-01T00:00:00Z"

    console.wait(lambda: "Change" in console.buttons(), "the row")
    next(b for b in console.all("main td button") if b.text == "Change").send_keys(Keys.ENTER)
    console.one("dialog [name=lastmod]")
    console.keys(Keys.CONTROL + "a", "2026-02-30", Keys.ENTER)
    console.wait_text("lastmod-invalid", "dialog [role=alert]")
    console.keys(Keys.CONTROL + "a", "2026-02-28", Keys.ENTER)
    console.wait_text("Bing wants time and offset", "#status")
    assert entry_of(server, loc)["lastmod"] == "2026-02-28"

    console.wait_text("2026-02-28", "tbody")
    next(b for b in console.all("main td button") if b.text == "Remove").send_keys(Keys.ENTER)
    console.one("dialog[open]")
    console.keys(Keys.ENTER)
    console.wait_text("Removed", "#status")
    assert entry_of(server, loc) is None


def test_what_another_changed_meanwhile_is_not_overwritten(console, server):
    loc = ORIGIN + "/meanwhile.xml"
    server.register(loc, lastmod="2026-01-01T00:00:00Z")
    console.open(f"entries?mode=loc&text={q(loc)}", server.tokens["writer"])
    console.press("Change")
    box = console.one("dialog [name=lastmod]")
    server.register(loc, lastmod="2026-01-02T00:00:00Z")
    box.clear()
    box.send_keys("2026-01-03T00:00:00Z", Keys.ENTER)
    console.wait_text("precondition-failed", "dialog [role=alert]")
    assert entry_of(server, loc)["lastmod"] == "2026-01-02T00:00:00Z"


def test_undo_shows_first_and_then_does(console, server):
    locs = [f"{ORIGIN}/undo/{i}.xml" for i in range(3)]
    revision = server.bulk(locs).json()["revision"]
    console.open(f"change/{revision}", server.tokens["writer"])
    assert "3 rows of 3" in console.text()
    console.press("Undo")
    console.press("Preview", "dialog")
    console.wait_text("3 removed", "dialog")
    assert entry_of(server, locs[0]) is not None
    console.press("Undo", "dialog")
    console.wait_text("Undone: 3 removed", "#status")
    assert entry_of(server, locs[0]) is None
    console.wait(lambda: "Undoes" in console.text(), "the undo's own change")


def test_an_undone_change_has_no_second_undo(console, server):
    loc = ORIGIN + "/undone.xml"
    revision = server.register(loc).json()["revision"]
    undo = server.api("POST", f"/v1/history/{revision}/undo").json()["revision"]
    console.open(f"change/{revision}", server.tokens["writer"])
    assert f"Undone by\nchange {undo}" in console.text() and "Undo" not in console.buttons()
    console.go(f"change/{undo}")
    assert "Undo" in console.buttons()
    console.go(f"history?loc={q(loc)}")
    assert f"registered {loc} Undone by change {undo}" in console.text("tbody") and f"undid a change: change {revision}: {loc}" in console.text("tbody")


def test_what_of_an_undo_is_left_can_be_undone(console, server):
    locs = [f"{ORIGIN}/rest/{i}.xml" for i in range(3)]
    revision = server.bulk(locs).json()["revision"]
    server.register(locs[1], lastmod="2026-01-02T00:00:00Z")
    assert server.api("POST", f"/v1/history/{revision}/undo").json()["removed"] == 2
    console.open(f"change/{revision}", server.tokens["writer"])
    console.press("Undo the rest")
    console.press("Preview", "dialog")
    console.wait_text("1 row has changed since", "dialog")
    console.one("dialog [name=overwrite]").click()
    console.wait_text("Result: 1 removed", "dialog")
    console.press("Undo", "dialog")
    console.wait_text("Undone: 1 removed", "#status")


def test_history_is_found_by_date_site_and_kind(console, server):
    site = "https://when.example.org"
    server.api("POST", "/v1/sites", {"origin": site})
    server.register(site + "/a.xml")
    server.api("DELETE", f"/v1/sitemaps?loc={q(site + '/a.xml')}")
    today, tomorrow = (time.strftime("%Y-%m-%d", time.localtime(time.time() + back)) for back in (0, 86400))
    console.open(f"history?site={q(site)}&from={today}&to={tomorrow}", server.tokens["reader"])
    rows = [row.text for row in console.all("tbody tr")]
    assert len(rows) == 3 and f"removed {site}/a.xml" in rows[0] and f"registered {site}/a.xml" in rows[1] and f"added a site for {site}" in rows[2], rows
    server.api("POST", "/v1/urlsets", {"url": site + "/pages.xml"})
    console.go(f"history?site={q(site)}&kind=urlset-add")
    console.wait_text(f"added a urlset for {site}/pages.xml")
    console.go(f"history?site={q(site)}&from={tomorrow}")
    console.wait_text("No change matches.")
    console.go(f"history?site={q(site)}&kind=all")
    assert len(console.all("tbody tr")) == 4
    console.one("main .buttons a").click()
    yesterday = time.strftime("%Y-%m-%d", time.localtime(time.time() - 86400))
    console.wait(lambda: console.one("[name=from]").get_attribute("value") == yesterday and console.all("tbody tr"), "the view from yesterday on")
    assert f"from={yesterday}" in console.driver.current_url
    assert [option.text for option in console.all("[name=kind] option")][:3] == ["Everything except dates changed by polls", "Everything", "Dates changed by polls"]


def test_back_closes_a_dialog(console, server):
    """It names the change, and what is still sent from it does not lead away from the view after it."""
    loc = ORIGIN + "/closed.xml"
    revision = server.register(loc).json()["revision"]
    console.open("history", server.tokens["writer"])
    console.go(f"change/{revision}")
    console.press("Undo")
    text = console.text("dialog")
    assert f"Undo change {revision}?" in text and f"registered {loc}" in text and ORIGIN in text and "environment" in text
    console.driver.back()
    console.wait(lambda: console.title() == "History", "the view before")
    assert console.all("dialog") == []


def test_dialogs_fit_and_keep_their_buttons_in_sight(console, server):
    locs = [f"{ORIGIN}/a-directory-with-a-long-name/{'and-another-one-' * 12}/{i:03d}.xml" for i in range(40)]
    revision = server.bulk(locs).json()["revision"]
    for loc in locs:
        server.register(loc, lastmod="2026-01-02T00:00:00Z")
    for view, opener, preview in ((f"change/{revision}", "Undo", True), ("access", "New token", False), ("sources", "Add a source", False)):
        for width, height in ((1280, 900), (900, 600), (390, 600)):
            console.open(view, server.tokens["boss"])
            console.media(False, width, height)
            console.press(opener)
            if preview:
                console.press("Preview", "dialog")
                console.wait_text("40 rows have changed since", "dialog")
            box = console.driver.execute_script(
                "return [...document.querySelectorAll('dialog, dialog h2, dialog .buttons button')].map((node) => { const r = node.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; })")
            assert all(left >= 0 and top >= 0 and right <= width and bottom <= height for left, top, right, bottom in box), (view, width, box)
            assert console.driver.execute_script("const body = document.querySelector('dialog .body'); return body.scrollWidth <= body.clientWidth"), (view, width)
    server.api("DELETE", f"/v1/sitemaps?prefix={q(ORIGIN + '/a-directory-with-a-long-name/')}&max_removed=40")


def test_no_view_is_wider_than_the_window(there, elsewhere):
    there.open("overview", elsewhere.token)
    for width in (1280, 900, 390):
        there.media(False, width)
        for view in ("overview", "entries", "sites", "index/1", "sources", "checks", "problems", "crawlers", "history", "change/2", "access"):
            there.go(view)
            assert there.driver.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0, (view, width)


def test_a_path_is_found_in_all_sites(console, server):
    for site in ("https://path-a.example.org", "https://path-b.example.org"):
        server.api("POST", "/v1/sites", {"origin": site})
        server.bulk([f"{site}/products/{i:03d}.xml" for i in range(70)])
    console.open("entries?text=products", server.tokens["reader"])
    assert console.all("main [role=alert]") == []
    assert len(console.all("tbody tr")) == 100
    console.press("Next 100")
    console.wait_text("101 to 140")
    assert "https://path-b.example.org/products/069.xml" in console.text("tbody")
    console.press("Back")
    console.wait_text("1 to 100")
    console.go("entries?mode=loc&text=/products/007.xml")
    assert sorted(row.text.split()[0] for row in console.all("tbody tr")) == [f"https://path-{name}.example.org/products/007.xml" for name in "ab"]


def test_a_source_is_added_and_removed(console, server):
    console.open("sources", server.tokens["boss"])
    console.press("Add a source")
    assert not console.driver.find_element("css selector", "dialog [name=directory]").is_displayed()
    console.fill("name", "remote", "dialog")
    console.press("Add", "dialog")
    console.wait_text("upstream", "dialog [role=alert]")
    console.fill("upstream", ORIGIN + "/other_index.xml", "dialog").send_keys(Keys.ENTER)
    console.wait_text("Source remote added.", "#status")
    console.wait_text(ORIGIN + "/other_index.xml")
    button = next(b for b in console.all("main button") if b.get_attribute("aria-label") == "Remove remote")
    button.click()
    console.wait_text("Its sitemaps stay in the index", "dialog")
    console.press("Remove", "dialog")
    console.wait_text("The source remote is removed.", "#status")
    assert [source["name"] for source in server.api("GET", "/v1/sources").json()["sources"]] == ["folder"]
    console.press("Add a source")
    console.one("dialog [name=kind] option[value=directory]").click()
    console.fill("name", "second", "dialog")
    console.fill("directory", "/nowhere", "dialog")
    console.fill("url", ORIGIN + "/nowhere/", "dialog").send_keys(Keys.ENTER)
    console.wait_text("source_root", "dialog [role=alert]")


def test_the_command_for_a_token_is_one_that_the_program_takes(console, server):
    console.open("access", server.tokens["boss"])
    console.press("New token")
    console.press("Copy the command", "dialog")
    console.wait_text("name: must be 1 to 64", "dialog [role=alert]")
    console.fill("name", "blog", "dialog")
    console.one("dialog [name=role] option[value=write]").click()
    console.one(f"dialog [name=site] option[value='{ORIGIN}']").click()
    console.fill("prefix", ORIGIN + "/blog/", "dialog")
    console.one("dialog [name=own]").click()
    command = console.text("dialog .command code").split()
    assert command[:3] == ["sitemapd", "token", "add"] and "--expires" in command, command
    done = sitemapd(*command[1:], database=server.database)
    assert done.code == 0, done
    made = eventually(lambda: next((one for one in server.api("GET", "/v1/tokens").json()["tokens"] if one["name"] == "blog"), None), "the token")
    assert (made["role"], made["prefix"], made["own"], made["site"]) == ("write", ORIGIN + "/blog/", True, ORIGIN)
    assert 88 * 86400 < seconds_until(made["expires_at"]) < 91 * 86400
    console.fill("prefix", "https://it's; rm /", "dialog")
    assert "--prefix 'https://it'\\''s; rm /'" in console.text("dialog .command")
    server.api("DELETE", "/v1/tokens/blog")


def seconds_until(stamp):
    return calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ")) - time.time()


def test_restore_asks_for_the_number_that_goes(console, server):
    site = "https://restore.example.org"
    server.api("POST", "/v1/sites", {"origin": site})
    before = server.register(site + "/first.xml").json()["revision"]
    server.bulk([f"{site}/{i}.xml" for i in range(9)])
    index = next(i for i in server.api("GET", f"/v1/indexes?site={q(site)}").json()["indexes"])
    console.open("index/" + index["id"], server.tokens["boss"])
    console.press("Restore")
    console.fill("to", str(before), "dialog")
    console.press("Preview", "dialog")
    console.wait_text("9 removed", "dialog")
    console.press("Restore", "dialog")
    console.wait_text("must be the number 9", "dialog [role=alert]")
    console.fill("max_removed", "9", "dialog")
    console.press("Restore", "dialog")
    console.wait_text("Restored: 9 removed", "#status")
    assert server.api("GET", "/v1/indexes/" + index["id"]).json()["entries"] == 1


def test_urlsets_stand_beside_indexes(console, server):
    site = "https://urlsets.example.org"
    server.api("POST", "/v1/sites", {"origin": site})
    assert server.api("POST", "/v1/urlsets", {"url": site + "/products.xml"}).status == 201
    assert server.api("POST", "/v1/urls", {"loc": site + "/hat", "urlset": site + "/products.xml"}).status == 201
    console.open("sites", server.tokens["boss"])
    console.wait_text("Urlsets of " + site)
    row = next(row.text for row in console.all("tr") if "/products.xml" in row.text)
    assert " 1 none 1 " in row.replace("\n", " "), row  # one page URL, on one page


NEWS_SITE = "https://pages.example.org"
NEWS = NEWS_SITE + "/news/all.xml"


@pytest.fixture(scope="module")
def news(server):
    """A urlset with all that page URLs may have; they leave after two days."""
    server.api("POST", "/v1/sites", {"origin": NEWS_SITE})
    made = server.api("POST", "/v1/urlsets", {"url": NEWS, "with": ["images", "alternates", "news"]}).json()
    rows = [{"loc": f"{NEWS_SITE}/news/{i:03d}"} for i in range(150)]
    rows[7] |= {
        "images": [NEWS_SITE + "/a.jpg", NEWS_SITE + "/b.jpg"],
        "alternates": {"de": NEWS_SITE + "/de/7", "x-default": NEWS_SITE + "/7"},
        "news": {"publication": {"name": "The <b>Times</b>", "language": "en"}, "publication_date": made_at(30 * 3600), "title": HOSTILE},
    }
    rows[8]["lastmod"] = made_at()[:10]
    assert server.api("POST", "/v1/urls?urlset=" + q(NEWS), rows).json()["created"] == 150
    return made


def made_at(back=0):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - back))


def page_url(server, loc):
    return next(iter(server.api("GET", f"/v1/urls?urlset={q(NEWS)}&loc={q(loc)}").json()["urls"]), None)


def test_page_urls_go_by_pages_are_found_and_show_what_they_have(console, server, news):
    console.open("sites", server.tokens["reader"])
    next(link for link in console.all("main a") if link.text == "150").click()
    console.wait_text("1 to 100 of 150 page URLs")
    head = [cell.text for cell in console.all("th")]
    assert head == ["URL", "Last modified", "Extensions", "Page", "Source", "Changed", "Expires", "State"]
    row = next(row.text for row in console.all("tbody tr") if "/news/007" in row.text)
    assert "2 images, de, x-default, news: " + HOSTILE in row and "in 18 h" in row, row
    console.press("Next 100")
    console.wait_text("101 to 150 of 150 page URLs")
    console.fill("text", "/news/01")
    console.wait(lambda: len(console.all("tbody tr")) == 10, "ten page URLs")
    console.go(f"entries?index={q(NEWS)}&mode=contains&text=/007")
    console.wait_text("150 of 150 read, 1 found")
    console.go(f"entries?index={q(NEWS)}&warned=1")
    console.wait_text("150 of 150 read, 1 found")
    console.go(f"entries?index={q(NEWS)}&mode=loc&text=/news/007")
    console.wait(lambda: len(console.all("tbody tr")) == 1, "the one")
    console.one("td.url a").click()
    console.wait(lambda: console.title() == "Page URL")
    text = console.text()
    for part in (NEWS_SITE + "/a.jpg", NEWS_SITE + "/b.jpg", "de " + NEWS_SITE + "/de/7", "x-default", HOSTILE, "The <b>Times</b> (en)", NEWS, "Expires"):
        assert part in text, part
    assert console.all("main img, main b") == [] and "Remove" not in console.buttons()


def test_a_urlset_has_a_page_of_its_own(console, server, news):
    console.open("urlset/" + news["id"], server.tokens["reader"])
    text = console.text()
    assert console.title() == "Urlset /news/all.xml"
    for part in ("150", "news, images, alternates; page URLs expire after 2d", NEWS_SITE + "/sitemap_index.xml", "Page URLs", "History", "1 page"):
        assert part in text, (part, text)
    next(link for link in console.all("main a") if link.text == "History" and "index=" in link.get_attribute("href")).click()
    console.wait_text("added a urlset")
    console.go("entries?index=" + q(NEWS_SITE + "/sitemap_index.xml"))
    assert not {"Change", "Remove"} & set(console.buttons())  # its page is nobody's to change
    next(link for link in console.all("main td a") if link.text == "Page URLs").click()
    console.wait_text("1 to 100 of 150 page URLs")


def test_a_page_url_is_registered_changed_removed_and_that_undone(console, server, news):
    loc = NEWS_SITE + "/news/by-hand"
    console.open(f"entries?index={q(NEWS)}&mode=loc&text={q(loc)}", server.tokens["writer"])
    console.press("Register a page URL")
    console.fill("loc", NEWS_SITE + "/elsewhere", "dialog").send_keys(Keys.ENTER)
    console.wait_text("outside-directory", "dialog [role=alert]")
    console.fill("loc", loc, "dialog").send_keys(Keys.ENTER)
    console.wait_text(f"Registered in {NEWS}, page 1.", "#status")
    server.api("POST", "/v1/urls", {"loc": loc, "urlset": NEWS, "images": [NEWS_SITE + "/c.jpg"]})
    console.press("Change")
    today = made_at()[:10]
    console.fill("lastmod", today, "dialog").send_keys(Keys.ENTER)
    console.wait_text("Bing wants time and offset", "#status")
    found = page_url(server, loc)
    assert (found["lastmod"], found["images"]) == (today, [NEWS_SITE + "/c.jpg"])
    console.press("Remove")
    console.wait_text(f"This removes it from {NEWS}. The page itself", "dialog")
    console.press("Remove", "dialog")
    console.wait_text("Removed", "#status")
    assert page_url(server, loc) is None
    latest = server.api("GET", f"/v1/history?index={q(NEWS)}&limit=1").json()["changes"][0]["revision"]
    console.go(f"change/{latest}")
    assert "by-hand" in console.text()
    assert not [text for text in console.buttons() if text.startswith("Restore /sitemap_index")]
    assert "Restore /news/all.xml to this change" in console.buttons()
    console.press("Undo")
    console.press("Preview", "dialog")
    console.wait_text("1 new", "dialog")
    console.press("Undo", "dialog")
    console.wait_text("Undone: 1 new", "#status")
    assert page_url(server, loc)["images"] == [NEWS_SITE + "/c.jpg"]
    server.api("DELETE", f"/v1/urls?urlset={q(NEWS)}&loc={q(loc)}")


def test_a_change_of_extensions_is_reported_in_the_history(console, server, news):
    loc = NEWS_SITE + "/news/007"
    number = server.api("POST", "/v1/urls", {"loc": loc, "urlset": NEWS, "images": [NEWS_SITE + "/new.jpg"]}).json()["revision"]
    console.open(f"change/{number}", server.tokens["reader"])
    text = console.text()
    assert f"images: {NEWS_SITE}/a.jpg {NEWS_SITE}/b.jpg → {NEWS_SITE}/new.jpg" in text, text
    assert "news: " in text and "→ none" in text
    server.api("POST", f"/v1/history/{number}/undo")


def test_a_span_beyond_all_dates_is_shown(console, server):
    site = "https://long.example.org"
    server.api("POST", "/v1/sites", {"origin": site})
    assert server.api("POST", "/v1/urlsets", {"url": site + "/all.xml", "expires": "999999w"}).status == 201
    server.api("POST", "/v1/urls", {"loc": site + "/1", "urlset": site + "/all.xml"})
    console.open("entries?index=" + q(site + "/all.xml"), server.tokens["reader"])
    console.wait_text("1 to 1 of 1 page URLs")
    assert "not checked" in console.text()


def replace_by_a_file(console, server, file, view, lines):
    """Four rows, of which the file has one, and another: it is asked, approved and done."""
    write(file, "".join(line + "\n" for line in lines))
    console.open(view, server.tokens["boss"])
    console.press("Replace from a file")
    console.one("dialog [name=file]").send_keys(str(file))
    console.press("Preview", "dialog")
    console.wait_text("1 new, 3 removed", "dialog")
    assert "This list would remove 3 URLs, more than the shrink guard allows" in console.text("dialog")
    console.fill("max_removed", "3", "dialog")
    console.press("Replace", "dialog")
    console.wait_text("Done: 1 new, 3 removed", "#status")


def test_a_urlset_is_replaced_by_a_file(console, server, tmp_path):
    site = "https://replace-urls.example.org"
    server.api("POST", "/v1/sites", {"origin": site})
    urlset = server.api("POST", "/v1/urlsets", {"url": site + "/all.xml"}).json()
    server.api("POST", f"/v1/urls?source=boss&urlset={q(urlset['url'])}", [{"loc": f"{site}/{i}"} for i in range(4)])
    replace_by_a_file(console, server, tmp_path / "list.txt", "urlset/" + urlset["id"], [f"{site}/0", f"{site}/new"])
    assert server.api("GET", "/v1/urlsets/" + urlset["id"]).json()["entries"] == 2


def test_freeze_and_thaw(console, server):
    console.open("index/1", server.tokens["boss"])
    console.press("Freeze")
    console.press("Freeze", "dialog")
    console.wait_text("is frozen", "#status")
    assert server.register(ORIGIN + "/frozen.xml").json()["code"] == "frozen"
    console.press("Thaw")
    console.press("Thaw", "dialog")
    console.wait_text("is thawed", "#status")
    assert server.api("GET", "/v1/indexes/1").json()["frozen"] is False


def test_replace_by_a_file(console, server, tmp_path):
    site = "https://replace.example.org"
    server.api("POST", "/v1/sites", {"origin": site})
    index = server.api("GET", f"/v1/indexes?site={q(site)}").json()["indexes"][0]
    server.api("POST", "/v1/sitemaps?source=boss", [{"loc": f"{site}/{i}.xml"} for i in range(4)])
    replace_by_a_file(console, server, tmp_path / "list.txt", "index/" + index["id"], [f"{site}/0.xml", f"{site}/new.xml"])
    assert server.api("GET", "/v1/indexes/" + index["id"]).json()["entries"] == 2


def test_scan_a_source_now(console, server):
    write(server.source / "later.xml", URLSET.format(ORIGIN + "/files/later"))
    console.open("sources", server.tokens["writer"])
    console.press("Scan now")
    console.press("Scan now", "dialog")
    console.wait_text("folder scanned", "#status")
    assert entry_of(server, ORIGIN + "/files/later.xml") is not None
    os.unlink(server.source / "later.xml")
    eventually(lambda: entry_of(server, ORIGIN + "/files/later.xml") is None, "it is gone, and no news for the next test")


def test_revoke_a_token_from_the_list(console, server):
    console.open("access", server.tokens["boss"])
    assert "writer" in console.text() and "write" in console.text()
    next(b for b in console.all("main td button") if b.get_attribute("aria-label") == "Revoke reader").click()
    console.wait_text("cannot be undone", "dialog")
    console.press("Cancel", "dialog")
    assert any(t["name"] == "reader" for t in server.api("GET", "/v1/tokens").json()["tokens"])


# ---- live ---------------------------------------------------------------------------------------


def test_changes_are_reported_and_rows_stay_until_asked_for(console, server):
    console.open(f"entries?index={q(INDEX)}&text=/live/", server.tokens["reader"])
    console.wait_text("No match")
    console.wait(lambda: any("wait=50" in url for url in console.asked()), "the long poll")
    server.register(ORIGIN + "/live/1.xml")
    console.wait_text("1 index page changed", "#status")
    assert "/live/1.xml" not in console.text()
    console.press("Show", "#live")
    console.wait_text("/live/1.xml")


def test_the_overview_moves_by_itself(console, server):
    console.open("overview", server.tokens["reader"])
    before = int(console.one(".tile strong").text)
    console.wait(lambda: any("wait=50" in url for url in console.asked()), "the long poll")
    server.register(ORIGIN + "/live/2.xml")
    console.wait(lambda: int(console.one(".tile strong").text) == before + 1, "the count")


def test_a_hidden_tab_waits_for_nothing(console, server):
    console.open("entries", server.tokens["reader"])
    console.wait(lambda: any("wait=50" in url for url in console.asked()), "the long poll")
    console.driver.execute_script("""
        window.turn = (hidden) => {
          Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
          document.dispatchEvent(new Event('visibilitychange'));
        };
        turn(true);""")
    server.register(ORIGIN + "/live/3.xml")
    assert console.text("#status") == "" and console.asked() == []
    console.driver.execute_script("turn(false)")
    console.wait_text("1 index page changed", "#status")


def test_two_tabs_are_two(console, server):
    console.open("overview", server.tokens["reader"])
    console.driver.switch_to.new_window("tab")
    console.driver.get(console.base)
    console.one("main [name=token]")  # nobody is signed in there
    console.open("overview", server.tokens["boss"])
    console.wait_text("boss (admin)", ".who")
    console.driver.switch_to.window(console.driver.window_handles[0])
    console.wait_text("reader (read)", ".who")
    console.press("Sign out", ".who")
    console.driver.switch_to.window(console.driver.window_handles[1])
    console.driver.execute_script("location.hash = '#/access'")
    console.wait(lambda: console.title() == "Access")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A server whose source is a list elsewhere, with children of several states, beside a site whose only sitemap is gone, and one that is frozen."""
    folder = tmp_path_factory.mktemp("elsewhere")
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        answers = {"good": answer(200, urlset(base + "/s/page")), "gone": answer(404), "short": answer(200, urlset(base + "/s/page")[:-30]), "page": answer(200, b"<!doctype html>")}
        origin.answers.update({f"/s/{name}.xml": bytes_ for name, bytes_ in answers.items()})
        origin.answers["/sitemap_index.xml"] = answer(200, index(*(f"{base}/s/{name}.xml" for name in answers)))
        config = f'[fetch]\nallow_address = 127.0.0.2\nrate = 1000\n[site "shop"]\norigin = {base}\n[source "shop"]\nupstream = {base}/sitemap_index.xml\n'
        other = Server(folder, config=config).start()
        try:
            other.base = base
            eventually(lambda: sum(c["check"]["state"] != "new" for c in checked(other)) == len(answers), "all were looked at")
            other.bulk([{"loc": f"{ORIGIN}/many/{i:04d}.xml"} for i in range(250)])
            site = next(s for s in other.api("GET", "/v1/sites").json()["sites"] if s["origin"] == ORIGIN)
            assert other.api("PATCH", f"/v1/sites/{site['id']}", {"frozen": True}).status == 200
            yield other
        finally:
            other.kill()


def checked(server):
    return server.api("GET", "/v1/checks").json()["checks"]


@pytest.fixture
def there(console, driver, elsewhere):
    yield Console(driver, elsewhere)
    console.leave()
    console.asked()


def test_how_remote_sitemaps_were_found(there, elsewhere):
    there.open("checks", elsewhere.token)
    rows = {row.text.split("\n")[0]: row.text for row in there.all("tbody tr")}
    assert len(rows) == 4
    found = {name: next(text for text in rows.values() if f"/s/{name}.xml" in text) for name in ("good", "gone", "short", "page")}
    assert "Good" in found["good"] and "Not a sitemap" in found["page"] and "Broken" in found["short"] and "truncated" in found["short"]
    assert "Gone" in found["gone"] and "answers 404" in found["gone"]
    there.go("checks?source=shop&state=gone")
    assert "Source shop" in there.text() and len(there.all("tbody tr")) == 1
    assert [link.text for link in there.all("main .buttons a[aria-current]")] == ["Gone"]
    there.press("Check now")
    there.wait_text("/s/gone.xml: Gone.", "#status")


def test_what_to_do_about_a_sitemap_that_the_index_may_not_list(console, driver, tmp_path):
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers["/list.xml"] = answer(200, index(base + "/a.xml", "https://cdn.example.net/b.xml"))
        origin.answers["/a.xml"] = answer(200, urlset(base + "/page"))
        server = Server(tmp_path, config=f'[fetch]\nallow_address = 127.0.0.2\n[site "shop"]\norigin = {base}\n[source "shop"]\nupstream = {base}/list.xml\nindex = {base}/sitemap_index.xml\n').start()
        try:
            eventually(lambda: server.api("GET", "/v1/sources").json()["sources"][0]["problems_total"] == 1, "one is refused")
            there = Console(driver, server).open("problems", server.token)
            there.wait_text("https://cdn.example.net/b.xml")
            assert "Add its host to the cross hosts of the site" in there.text() and "Fix the program that writes the file" not in there.text()
        finally:
            server.kill()
            console.leave()
            console.asked()


def test_reasons_lead_to_where_something_can_be_done(there, elsewhere):
    there.open("overview", elsewhere.token)
    assert "1 gone" in there.text() and "1 broken" in there.text() and "1 not a sitemap" in there.text()
    links = {row.find_element("css selector", "code").text: row.find_element("css selector", "a").get_attribute("href").partition("#")[2] for row in there.all(".health li")}
    assert links == {"source-checks": "/checks?source=shop", "frozen": "/sites"}
    for view in ("overview", "problems", "sources", "checks"):
        there.media(False, 390)
        there.go(view)
        assert there.driver.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0, view


def test_a_token_for_one_site_sees_the_problems_of_its_site_alone(there, elsewhere):
    tokens = {origin: elsewhere.make_token(f"tenant{n}", "--site", origin, "--role", "admin") for n, origin in enumerate((ORIGIN, elsewhere.base))}
    for view in ("overview", "problems"):
        there.open(view, tokens[ORIGIN])
        there.wait_text("Frozen: the server rejects writes")
        assert "Needs attention" in there.text() and "shop" not in there.text() and elsewhere.base not in there.text()
        assert len(there.all(".health li")) == 1
        there.open(view, tokens[elsewhere.base])
        there.wait_text("Source shop: 1 ")
        assert "rozen" not in there.text() and ORIGIN not in there.text()
    # Of a problem of the server only the code is shown.
    there.driver.execute_script("""
        const ask = fetch, reply = JSON.stringify({status: 'degraded', reasons: [{code: 'clock-behind', detail: 'SECRET'}, {code: 'source-failing', detail: 'SECRET'}]});
        window.fetch = (to, ...more) => String(to).endsWith('/readyz') ? Promise.resolve(new Response(reply, {headers: {'Content-Type': 'application/json'}})) : ask(to, ...more);""")
    there.go("overview")
    there.wait_text("The server itself has a problem; its operator can see the details. clock-behind")
    assert "SECRET" not in there.text() and "source-failing" not in there.text()


def test_the_list_of_sitemaps_shows_how_each_was_found(there, elsewhere):
    there.open(f"entries?index={q(elsewhere.base)}/sitemap_index.xml", elsewhere.token)
    there.wait_text("/s/gone.xml")
    rows = {name: next(row.text for row in there.all("tbody tr") if f"/s/{name}.xml" in row.text) for name in ("good", "gone", "short", "page")}
    assert "Good" in rows["good"] and "Gone Restore the file" in rows["gone"] and "Broken Write the file" in rows["short"] and "Not a sitemap Put" in rows["page"], rows
    there.go(f"entries?index={q(ORIGIN)}/sitemap_index.xml")
    there.wait_text("/many/0000.xml")
    assert "not checked" in there.text() and "Good" not in there.text()


def test_an_index_of_a_frozen_site_is_not_reported_as_thawed(there, elsewhere):
    frozen = next(i for i in elsewhere.api("GET", "/v1/indexes").json()["indexes"] if i["site"] == ORIGIN)
    there.open("index/" + frozen["id"], elsewhere.token)
    there.press("Thaw")
    there.press("Thaw", "dialog")
    there.wait_text("/sitemap_index.xml stays frozen, because its site is frozen.", "#status")


def test_a_change_of_many_rows_is_shown_in_steps(there, elsewhere):
    number = elsewhere.api("GET", "/v1/history?kind=list").json()["changes"][0]["revision"]
    there.open(f"change/{number}", elsewhere.token)
    assert "100 rows of 250" in there.text() and len(there.all("tbody tr")) == 100
    there.press("Next 100")
    there.wait_text("200 rows of 250")
    assert "/many/0100.xml" in there.driver.switch_to.active_element.text, "the first of the new ones has the focus"
    there.press("Next 100")
    there.wait_text("250 rows of 250")
    assert "Next 100" not in there.buttons()


def test_what_the_guard_holds_is_let_go_by_its_number(console, tmp_path, driver):
    source = tmp_path / "source"
    (source / "part").mkdir(parents=True)
    for name in ("part/a", "part/b", "part/c", "d"):
        write(source / f"{name}.xml", URLSET.format(f"{ORIGIN}/files/{name}"))
    other = Server(tmp_path, config=f'[source "files"]\ndirectory = {source}\nurl = {ORIGIN}/files/\nsettle = 100ms\n').start()
    try:
        told = lambda: other.api("GET", "/v1/sources").json()["sources"][0]
        eventually(lambda: told()["listed"] == 4, "the files")
        os.rename(source / "part", tmp_path / "aside")  # at once: of a part of them the guard would let some go
        assert other.api("POST", "/v1/sources/files/scan").json()["held_removals"] == 3
        there = Console(driver, other)
        there.open("sources", other.token)
        assert "3 sitemaps are missing there, but the shrink guard keeps them" in there.text()
        there.press("Remove 3")
        there.fill("max_removed", "2", "dialog").send_keys(Keys.ENTER)
        there.wait_text("must be the number 3", "dialog [role=alert]")
        assert told()["held_removals"] == 3
        there.fill("max_removed", "3", "dialog").send_keys(Keys.ENTER)
        there.wait_text("3 removed", "#status")
        assert told()["held_removals"] == 0
        assert there.errors() == []
        assert all(url.startswith((there.base[:-9], "about:", "data:")) for url in there.asked() if "http" in url)
    finally:
        console.leave()
        console.asked()
        other.stop()
