"""The console in a browser: what a person sees and does, by hand and by keyboard, and what it must not do."""

import glob
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

import pytest
from browser import HOSTILE, URLSET, Console, write
from origin import Origin, answer, index, urlset
from harness import INDEX, ORIGIN, Server, ask, eventually, q
from selenium.webdriver.common.keys import Keys

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../server/console")
VIEWS = ("overview", "entries", f"entries?index={q(ORIGIN)}/empty.xml", "sites", "index/1", "urlset/2", "sources", "checks", "problems", "crawlers", "crawler/googlebot", "history", "change/2", "access")
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
    assert sum(os.path.getsize(path) for path in paths) <= 90 * 1024
    for path in glob.glob(FILES + "/*.js"):
        with open(path, "rb") as file:
            subprocess.run(["node", "--input-type=module", "--check"], stdin=file, check=True)


# ---- signing in ---------------------------------------------------------------------------------


def test_sign_in_and_out(console, server):
    console.sign_in("smd_wrong")
    console.wait_text("not known")
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


def test_a_revoked_token_is_told_and_forgotten(console, server):
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
    assert "Needs a look" in text and "folder: 1 file is refused" in text
    assert "255\nsitemaps" in text and INDEX in text
    assert re.search(r"Googlebot has seen all index pages up to ", text)
    assert "other sitemaps are not observed" in text
    assert "folder: 4 sitemaps listed, 1 refused" in text


def test_every_view_is_shown_to_a_reader_without_a_button_that_writes(console, server, news):
    acts = {"Register a sitemap", "Register a page URL", "Change", "Remove", "Freeze", "Thaw", "Add a site", "Add an index", "Read it now",
            "Replace by a file", "Put back as it was", "Undo it", "End"}
    seen = set()
    page = server.api("GET", f"/v1/urls?urlset={q(NEWS)}&limit=1").json()["urls"][0]["id"]
    for role in ("boss", "reader"):
        console.open("overview", server.tokens[role])
        first = server.api("GET", f"/v1/sitemaps?loc={q(ORIGIN + '/shop/')}").json()["sitemaps"][0]
        for view in VIEWS + ("entry/" + first["id"], "url/" + page):
            console.go(view)
            assert "cannot be shown" not in console.title(), (role, view, console.text())
            assert console.driver.execute_script("return document.querySelectorAll('h1').length") == 1
            if role == "boss":
                seen |= set(console.buttons())
            else:
                assert acts.isdisjoint(console.buttons()), (view, console.buttons())
    assert acts - {"Thaw"} <= seen  # whoever may has them


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
    console.wait_text("None is like that")


def test_what_is_looked_through_tells_how_far_it_is(console, server):
    console.open("entries?warned=1", server.tokens["reader"])
    console.wait_text("Choose an index")
    console.go(f"entries?index={q(INDEX)}&warned=1")
    console.wait_text("1 found")
    assert re.search(r"25\d of 25\d looked at, 1 found", console.text())
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


def test_a_crawler(console, server):
    console.open("crawler/googlebot", server.tokens["reader"])
    text = console.text()
    assert console.title() == "Googlebot"
    assert INDEX in text and "Fetched anew (200)" in text and "whoever says its name counts" in text


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
    console.errors()  # the policy tells of it, as it should


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
    console.wait_text("Registered. It is in " + INDEX, "#status")
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
    console.press("Undo it")
    console.press("See what would change", "dialog")
    console.wait_text("3 removed", "dialog")
    assert entry_of(server, locs[0]) is not None
    console.press("Do it", "dialog")
    console.wait_text("Undone: 3 removed", "#status")
    assert entry_of(server, locs[0]) is None
    console.wait(lambda: "Undoes" in console.text(), "the undo's own change")


def test_restore_asks_for_the_number_that_goes(console, server):
    site = "https://restore.example.org"
    server.api("POST", "/v1/sites", {"origin": site})
    before = server.register(site + "/first.xml").json()["revision"]
    server.bulk([f"{site}/{i}.xml" for i in range(9)])
    index = next(i for i in server.api("GET", f"/v1/indexes?site={q(site)}").json()["indexes"])
    console.open("index/" + index["id"], server.tokens["boss"])
    console.press("Put back as it was")
    console.fill("to", str(before), "dialog")
    console.press("See what would change", "dialog")
    console.wait_text("9 removed", "dialog")
    console.press("Do it", "dialog")
    console.wait_text("must be the number 9", "dialog [role=alert]")
    console.fill("max_removed", "9", "dialog")
    console.press("Do it", "dialog")
    console.wait_text("Put back: 9 removed", "#status")
    assert server.api("GET", "/v1/indexes/" + index["id"]).json()["entries"] == 1


def test_urlsets_stand_beside_indexes(console, server):
    site = "https://urlsets.example.org"
    server.api("POST", "/v1/sites", {"origin": site})
    assert server.api("POST", "/v1/urlsets", {"url": site + "/products.xml"}).status == 201
    assert server.api("POST", "/v1/urls", {"loc": site + "/hat", "urlset": site + "/products.xml"}).status == 201
    console.open("sites", server.tokens["boss"])
    console.wait_text("Urlsets of " + site)
    row = next(row.text for row in console.all("tr") if "/products.xml" in row.text)
    assert " 1 dates alone 1 " in row.replace("\n", " "), row  # one page URL, on one page


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
    assert head == ["URL", "Last modified", "Has", "Page", "Source", "Changed", "Leaves", "State"]
    row = next(row.text for row in console.all("tbody tr") if "/news/007" in row.text)
    assert "2 images, de, x-default, news: " + HOSTILE in row and "in 18 h" in row, row
    console.press("Next 100")
    console.wait_text("101 to 150 of 150 page URLs")
    console.fill("text", "/news/01")
    console.wait(lambda: len(console.all("tbody tr")) == 10, "ten page URLs")
    console.go(f"entries?index={q(NEWS)}&mode=contains&text=/007")
    console.wait_text("150 of 150 looked at, 1 found")
    console.go(f"entries?index={q(NEWS)}&warned=1")
    console.wait_text("150 of 150 looked at, 1 found")
    console.go(f"entries?index={q(NEWS)}&mode=loc&text=/news/007")
    console.wait(lambda: len(console.all("tbody tr")) == 1, "the one")
    console.one("td.url a").click()
    console.wait(lambda: console.title() == "Page URL")
    text = console.text()
    for part in (NEWS_SITE + "/a.jpg", NEWS_SITE + "/b.jpg", "de " + NEWS_SITE + "/de/7", "x-default", HOSTILE, "The <b>Times</b> (en)", NEWS, "Leaves"):
        assert part in text, part
    assert console.all("main img, main b") == [] and "Remove" not in console.buttons()


def test_a_urlset_has_a_page_of_its_own(console, server, news):
    console.open("urlset/" + news["id"], server.tokens["reader"])
    text = console.text()
    assert console.title() == "Urlset /news/all.xml"
    for part in ("150", "news, images, alternates; they leave after 2d", NEWS_SITE + "/sitemap_index.xml", "Its page URLs", "Its history", "1 page, as crawlers see them"):
        assert part in text, (part, text)
    next(link for link in console.all("main a") if link.text == "Its history").click()
    console.wait_text("added a urlset")
    console.go("entries?index=" + q(NEWS_SITE + "/sitemap_index.xml"))
    assert not {"Change", "Remove"} & set(console.buttons())  # its page is nobody's to change
    next(link for link in console.all("main td a") if link.text == "Its page URLs").click()
    console.wait_text("1 to 100 of 150 page URLs")


def test_a_page_url_is_registered_changed_removed_and_that_undone(console, server, news):
    loc = NEWS_SITE + "/news/by-hand"
    console.open(f"entries?index={q(NEWS)}&mode=loc&text={q(loc)}", server.tokens["writer"])
    console.press("Register a page URL")
    console.fill("loc", NEWS_SITE + "/elsewhere", "dialog").send_keys(Keys.ENTER)
    console.wait_text("outside-directory", "dialog [role=alert]")
    console.fill("loc", loc, "dialog").send_keys(Keys.ENTER)
    console.wait_text(f"Registered. It is in {NEWS}, page 1.", "#status")
    server.api("POST", "/v1/urls", {"loc": loc, "urlset": NEWS, "images": [NEWS_SITE + "/c.jpg"]})
    console.press("Change")
    today = made_at()[:10]
    console.fill("lastmod", today, "dialog").send_keys(Keys.ENTER)
    console.wait_text("Bing wants time and offset", "#status")
    found = page_url(server, loc)
    assert (found["lastmod"], found["images"]) == (today, [NEWS_SITE + "/c.jpg"])
    console.press("Remove")
    console.wait_text("It leaves the urlset. The page itself", "dialog")
    console.press("Remove", "dialog")
    console.wait_text("Removed", "#status")
    assert page_url(server, loc) is None
    latest = server.api("GET", f"/v1/history?index={q(NEWS)}&limit=1").json()["changes"][0]["revision"]
    console.go(f"change/{latest}")
    assert "by-hand" in console.text()
    assert not [text for text in console.buttons() if text.startswith("Put /sitemap_index")]
    assert "Put /news/all.xml back to here" in console.buttons()
    console.press("Undo it")
    console.press("See what would change", "dialog")
    console.wait_text("1 new", "dialog")
    console.press("Do it", "dialog")
    console.wait_text("Undone: 1 new", "#status")
    assert page_url(server, loc)["images"] == [NEWS_SITE + "/c.jpg"]
    server.api("DELETE", f"/v1/urls?urlset={q(NEWS)}&loc={q(loc)}")


def test_a_change_of_extensions_is_told_in_the_history(console, server, news):
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
    assert "not observed" in console.text()


def replace_by_a_file(console, server, file, view, lines):
    """Four rows, of which the file has one, and another: it is asked, approved and done."""
    write(file, "".join(line + "\n" for line in lines))
    console.open(view, server.tokens["boss"])
    console.press("Replace by a file")
    console.one("dialog [name=file]").send_keys(str(file))
    console.press("Go on", "dialog")
    console.wait_text("1 new, 3 removed", "dialog")
    assert "This list would remove 3 URLs, more than the shrink guard" in console.text("dialog")
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


def test_read_a_source_now(console, server):
    write(server.source / "later.xml", URLSET.format(ORIGIN + "/files/later"))
    console.open("sources", server.tokens["writer"])
    console.press("Read it now")
    console.press("Read it now", "dialog")
    console.wait_text("folder was read", "#status")
    assert entry_of(server, ORIGIN + "/files/later.xml") is not None
    os.unlink(server.source / "later.xml")
    eventually(lambda: entry_of(server, ORIGIN + "/files/later.xml") is None, "it is gone, and no news for the next test")


def test_end_a_token_from_the_list(console, server):
    console.open("access", server.tokens["boss"])
    assert "writer" in console.text() and "write" in console.text()
    next(b for b in console.all("main td button") if b.get_attribute("aria-label") == "End reader").click()
    console.wait_text("cannot be brought back", "dialog")
    console.press("Cancel", "dialog")
    assert any(t["name"] == "reader" for t in server.api("GET", "/v1/tokens").json()["tokens"])


# ---- live ---------------------------------------------------------------------------------------


def test_changes_are_told_and_rows_stay_until_asked_for(console, server):
    console.open(f"entries?index={q(INDEX)}&text=/live/", server.tokens["reader"])
    console.wait_text("None is like that")
    console.wait(lambda: any("wait=50" in url for url in console.asked()), "the long poll")
    server.register(ORIGIN + "/live/1.xml")
    console.wait_text("1 change of index pages", "#status")
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
    console.wait_text("1 change of index pages", "#status")


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


def test_how_sitemaps_elsewhere_were_found(there, elsewhere):
    there.open("checks", elsewhere.token)
    rows = {row.text.split("\n")[0]: row.text for row in there.all("tbody tr")}
    assert len(rows) == 4
    found = {name: next(text for text in rows.values() if f"/s/{name}.xml" in text) for name in ("good", "gone", "short", "page")}
    assert "Good" in found["good"] and "Not a sitemap" in found["page"] and "Broken" in found["short"] and "truncated" in found["short"]
    assert "Gone" in found["gone"] and "answers 404" in found["gone"]
    there.go("checks?source=shop&state=gone")
    assert "Those of shop" in there.text() and len(there.all("tbody tr")) == 1
    assert [link.text for link in there.all("main .buttons a[aria-current]")] == ["Gone"]
    there.press("Look now")
    there.wait_text("/s/gone.xml: Gone.", "#status")


def test_reasons_lead_to_where_something_can_be_done(there, elsewhere):
    there.open("overview", elsewhere.token)
    assert "1 gone" in there.text() and "1 broken" in there.text() and "1 not a sitemap" in there.text()
    links = {row.find_element("css selector", "code").text: row.find_element("css selector", "a").get_attribute("href").partition("#")[2] for row in there.all(".health li")}
    assert links == {"source-checks": "/checks?source=shop", "frozen": "/sites"}
    for view in ("overview", "problems", "sources", "checks"):
        there.media(False, 390)
        there.go(view)
        assert there.driver.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0, view


def test_the_list_of_sitemaps_shows_how_each_was_found(there, elsewhere):
    there.open(f"entries?index={q(elsewhere.base)}/sitemap_index.xml", elsewhere.token)
    there.wait_text("/s/gone.xml")
    rows = {name: next(row.text for row in there.all("tbody tr") if f"/s/{name}.xml" in row.text) for name in ("good", "gone", "short", "page")}
    assert "Good" in rows["good"] and "Gone Put the file back" in rows["gone"] and "Broken Correct" in rows["short"] and "Not a sitemap Serve" in rows["page"], rows
    there.go(f"entries?index={q(ORIGIN)}/sitemap_index.xml")
    there.wait_text("/many/0000.xml")
    assert "not observed" in there.text() and "Good" not in there.text()


def test_an_index_of_a_frozen_site_is_not_told_as_thawed(there, elsewhere):
    frozen = next(i for i in elsewhere.api("GET", "/v1/indexes").json()["indexes"] if i["site"] == ORIGIN)
    there.open("index/" + frozen["id"], elsewhere.token)
    there.press("Thaw")
    there.press("Thaw", "dialog")
    there.wait_text("/sitemap_index.xml stays frozen, since its site is.", "#status")


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
        assert "3 sitemaps are gone there, but the shrink guard keeps them" in there.text()
        there.press("Let 3 go")
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
