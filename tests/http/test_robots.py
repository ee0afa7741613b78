# SPDX-License-Identifier: LicenseRef-Undeclared
"""A site's own robots.txt: set by API, command line and configuration, served with the Sitemap lines
behind it, each URL once."""

import json

import pytest

from harness import INDEX, ORIGIN, eventually, problem
from test_sites import SHOP, site_add, site_id

OWN = "User-agent: *\nDisallow: /cart\n"
LINE = f"Sitemap: {INDEX}\n"


def robots(server, host="www.example.com"):
    reply = server.get("/robots.txt", host=host)
    return reply.body.decode() if reply.status == 200 else reply.status


def patch(server, value, site=ORIGIN, token=""):
    return server.api("PATCH", f"/v1/sites/{site_id(server, site)}", {"robots": value}, token=token)


@pytest.fixture
def filled(server):
    """One with an entry, so that there is a page to name."""
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    return server


def test_the_api_sets_and_clears_it(filled):
    assert robots(filled) == LINE
    tag = filled.get("/robots.txt")["ETag"]
    reply = patch(filled, OWN)
    assert reply.status == 200 and reply.json()["robots"] == OWN
    assert robots(filled) == OWN + LINE, "what is acknowledged is served"
    assert filled.get("/robots.txt", {"If-None-Match": tag}).status == 200
    me = f"/v1/sites/{site_id(filled, ORIGIN)}"
    assert filled.api("GET", me).json()["robots"] == OWN
    assert "robots" not in filled.api("GET", "/v1/sites").json()["sites"][0], "a list leaves the text out"
    # What is not named stays; the same text again is not a change.
    revision = filled.metrics()["sitemapd_catalogue_revision"]
    assert patch(filled, OWN).status == 200 and filled.metrics()["sitemapd_catalogue_revision"] == revision
    assert filled.api("PATCH", me, {"host_aliases": ["example.com"]}).json()["robots"] == OWN
    filled.restart()
    assert robots(filled) == OWN + LINE
    assert patch(filled, False).json()["robots"] is False and robots(filled) == 404
    assert patch(filled, None).json()["robots"] is None and robots(filled) == LINE
    assert filled.get("/robots.txt")["ETag"] == tag, "undone, it has its old tag"
    assert patch(filled, "no line end").status == 200 and robots(filled) == "no line end\n" + LINE
    assert patch(filled, "").status == 200 and robots(filled) == LINE


def test_a_site_is_made_with_it(server):
    reply = server.api("POST", "/v1/sites", {"origin": SHOP, "robots": OWN})
    assert reply.status == 201 and reply.json()["robots"] == OWN
    assert robots(server, "shop.example.org") == OWN
    done = server.cli("site", "remove", SHOP)
    assert done.code == 0, done
    assert server.api("POST", "/v1/sites", {"origin": SHOP}).json()["robots"] is None


@pytest.mark.parametrize(
    "text, words",
    [
        ("<!DOCTYPE html><title>404</title>", "page of HTML"),
        ("\n <html>", "page of HTML"),
        ("User-agent: *\nDisallow: /\x07", "control character"),
        ("a: \x9b", "control character"),
        ("#" * (500 * 1024 + 1), "longer than 500 KiB"),
    ],
    ids=["html", "html behind space", "control", "C1", "long"],
)
def test_invalid_robots_txt_is_rejected(filled, tmp_path, text, words):
    assert patch(filled, OWN).status == 200
    reply = problem(patch(filled, text), 422, "robots-malformed")
    assert reply["field"] == "robots" and words in reply["detail"]
    assert robots(filled) == OWN + LINE
    path = tmp_path / "robots"
    path.write_text(text)
    result = filled.cli("site", "update", ORIGIN, "--robots", path)
    assert result.code == 1 and words in result.err and "robots-malformed" in result.err, result
    assert robots(filled) == OWN + LINE


def test_a_text_with_other_line_ends_and_bytes(filled, tmp_path):
    """Lines end with CR as well (RFC 9309 2.2). Of a file in an old encoding the comments are repaired, for crawlers skip them;
    elsewhere such a byte is refused."""
    assert patch(filled, f"User-agent: *\rSitemap: {INDEX}\rDisallow: /cart\r").status == 200
    assert robots(filled) == f"User-agent: *\rDisallow: /cart\r\n{LINE}"
    path = tmp_path / "robots"
    path.write_bytes(b"# B\xfccher\n" + OWN.encode())
    assert filled.cli("site", "update", ORIGIN, "--robots", path).code == 0
    eventually(lambda: robots(filled) == "# B?cher\n" + OWN + LINE, "it is served")
    path.write_bytes(b"User-agent: *\nDisallow: /b\xfccher\n")
    result = filled.cli("site", "update", ORIGIN, "--robots", path)
    assert result.code == 1 and "is not text in UTF-8" in result.err
    assert robots(filled) == "# B?cher\n" + OWN + LINE


def test_wrong_types_and_the_longest(filled):
    for bad in (1, True, [OWN], {"text": OWN}):
        assert problem(patch(filled, bad), 422, "wrong-type")["field"] == "robots"
    text = "# \u00fc\n" + "#" * (500 * 1024 - 5)
    assert patch(filled, text).status == 200 and robots(filled) == text + "\n" + LINE


def test_all_sites_together_are_bounded(server):
    text = "#" * (500 * 1024)
    lines = [json.dumps({"origin": f"https://s{i}.example.net", "robots": text, "index": False}) for i in range(33)]
    codes = [server.api("POST", "/v1/sites", body=line.encode(), content_type="application/json") for line in lines]
    assert [c.status for c in codes] == [201] * 32 + [409]
    assert "16 MiB" in codes[-1].json()["detail"] and codes[-1].json()["field"] == "robots"
    assert patch(server, text[1:], "https://s1.example.net").status == 200, "its own does not count twice"


def test_a_token_of_one_site_sets_its_own_alone(filled):
    site_add(filled, SHOP)
    token = filled.make_token("shop", "--site", SHOP, "--role", "admin")
    assert patch(filled, OWN, SHOP, token).status == 200
    assert robots(filled, "shop.example.org") == OWN
    assert patch(filled, "User-agent: *\nDisallow: /\n", ORIGIN, token).status in (403, 404)
    assert robots(filled) == LINE


def test_the_changes_report_it(filled):
    site_add(filled, SHOP)
    next = filled.api("GET", "/v1/changes?since=0").json()["next"]
    assert patch(filled, OWN, SHOP).status == 200
    result = filled.api("GET", f"/v1/changes?since={next}&wait=5").json()
    assert [(p["url"], p["removed"]) for p in result["pages"]] == [(f"{SHOP}/robots.txt", False)]
    assert result["pages"][0]["etag"] == filled.get("/robots.txt", host="shop.example.org")["ETag"]
    assert filled.api("GET", f"/v1/changes?since={result['next']}").json()["pages"] == []


def test_sitemap_lines_of_own_pages_occur_once(filled):
    foreign = f"Sitemap: {SHOP}/x.xml\nSitemap: {ORIGIN}/other.xml\nSitemap: {ORIGIN}/sitemap_index-2.xml\n"
    foreign += f"# Sitemap: {INDEX}\nSitemap: {INDEX}?page=1\nSitemap: http://www.example.com/other.xml\n"
    ours = [
        f"Sitemap: {INDEX}\r\n", f"SITEMAP:{INDEX}\n", f"  sitemap :\t{INDEX}  # the index\n",
        "Sitemap: https://WWW.example.com:443/sitemap_index.xml\n", "Sitemap: http://example.com/sitemap_index.xml.gz\n",
        "Sitemap: /sitemap_index.xml\n", "Sitemap: /news.xml /more.xml\n", f"sitemap: {INDEX}",
    ]
    assert patch(filled, "\ufeff" + ours[0]).status == 200 and robots(filled) == LINE
    assert patch(filled, OWN + ours[0] + foreign + "".join(ours[1:])).status == 200
    assert robots(filled) == OWN + foreign + LINE
    # A page that comes to be takes its line's place.
    rows = [{"loc": f"{ORIGIN}/{i}.xml"} for i in range(50_000)]
    assert filled.bulk(rows).status == 200
    wanted = OWN + foreign.replace(f"Sitemap: {ORIGIN}/sitemap_index-2.xml\n", "") + LINE + f"Sitemap: {ORIGIN}/sitemap_index-2.xml\n"
    assert robots(filled) == wanted


def test_pages_of_urlsets_drop_and_restore_their_lines(filled):
    """robots.txt follows at once, keeps its bytes over a restart, and the changes list it."""
    listed = lambda since: [p["etag"] for p in filled.api("GET", f"/v1/changes?since={since}").json()["pages"] if p["url"] == f"{ORIGIN}/robots.txt"]
    cursor = lambda: filled.api("GET", "/v1/changes?since=0").json()["next"]
    text = f"User-agent: *\nSitemap: {ORIGIN}/p.xml\nDisallow:\n"
    assert patch(filled, text).status == 200 and robots(filled) == text + LINE
    before = filled.get("/robots.txt")["ETag"]
    urlset = filled.api("POST", "/v1/urlsets", {"url": f"{ORIGIN}/p.xml"}).json()["id"]
    assert robots(filled) == text + LINE, "it has no page yet"
    for _ in range(2):
        since = cursor()
        assert filled.api("POST", f"/v1/urls?urlset={ORIGIN}/p.xml", {"loc": f"{ORIGIN}/x"}).status == 201
        assert filled.get("/p.xml").status == 200
        assert robots(filled) == "User-agent: *\nDisallow:\n" + LINE
        tag = filled.get("/robots.txt")["ETag"]
        assert tag != before and listed(since) == [tag]
        since = cursor()
        filled.restart()
        assert filled.get("/robots.txt")["ETag"] == tag and listed(since) == []
        assert filled.api("DELETE", f"/v1/urls?urlset={ORIGIN}/p.xml&loc={ORIGIN}/x").status == 204
        assert robots(filled) == text + LINE and listed(since) == [before]
    assert filled.api("DELETE", f"/v1/urlsets/{urlset}").status == 200
    assert robots(filled) == text + LINE


def test_a_robots_file_of_the_configuration(start, tmp_path):
    (tmp_path / "robots.txt").write_text(OWN + f"sitemap: {INDEX}\nSitemap: {SHOP}/x.xml\nSitemap: {ORIGIN}/sitemap.php\n")
    conf = tmp_path / "own.conf"
    conf.write_text(f"[site \"main\"]\norigin = {ORIGIN}\nrobots_file = {tmp_path}/robots.txt\nalias = /sitemap.php -> /sitemap_index.xml\n")
    server = start("--config", str(conf), sites=())
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert robots(server) == OWN + f"Sitemap: {SHOP}/x.xml\n" + LINE
    assert problem(patch(server, OWN), 409, "managed-by-config")
    result = server.cli("site", "update", ORIGIN, "--no-robots")
    assert result.code == 1 and "managed by the configuration file" in result.err


def test_a_section_takes_over_what_the_api_had_set(start, tmp_path):
    """The configuration is the whole of its site's policy; what it puts aside is reported."""
    server = start()
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert patch(server, OWN).status == 200
    conf = tmp_path / "own.conf"
    conf.write_text(f"[site \"main\"]\norigin = {ORIGIN}\n")
    server.stop()
    server = start("--config", str(conf), sites=(), database=server.database)
    assert robots(server) == LINE
    server.wait_for_log("robots-put-aside")
    assert server.api("GET", f"/v1/sites/{site_id(server, ORIGIN)}").json()["robots"] is None


def test_the_command_line_sets_it(filled, tmp_path):
    path = tmp_path / "robots.txt"
    path.write_text(OWN)
    of = lambda *args, **more: filled.cli("site", "update", ORIGIN, *args, **more)
    result = of("--robots", path)
    assert result.code == 0 and "robots.txt: own text of 30 bytes, and the Sitemap lines (before: only the Sitemap lines)" in result.out, result
    eventually(lambda: robots(filled) == OWN + LINE, "it is served")
    assert json.loads(filled.cli("site", "list", "--json").out)["robots"] == OWN
    assert "own text of 30 bytes" in filled.cli("site", "list").out
    assert of("--robots", path).out.startswith(f"{ORIGIN}: unchanged\n")
    assert of("--robots", "-", input="Disallow:\n").code == 0
    eventually(lambda: robots(filled) == "Disallow:\n" + LINE, "from standard input")
    result = of("--robots-off")
    assert result.code == 0 and "served by another server (before: own text of 10 bytes" in result.out
    eventually(lambda: robots(filled) == 404, "off")
    assert of("--no-robots").code == 0
    eventually(lambda: robots(filled) == LINE, "as at first")
    for args, code, words in (
        (("--robots", path, "--no-robots"), 2, "cannot be combined"),
        (("--robots", tmp_path / "none"), 1, "cannot be read"),
        (("--robots", tmp_path), 1, "cannot be read"),
        (("--robots", "-"), 1, "is empty"),
    ):
        result = of(*args, **({"input": ""} if args[-1] == "-" else {}))
        assert result.code == code and words in result.err and result.err.count("\n") == 1, result
    (tmp_path / "nul").write_bytes(b"User-agent: *\n\0Disallow: /\n")
    assert "control character" in of("--robots", tmp_path / "nul").err
    (tmp_path / "latin").write_bytes(b"Disallow: /\xfc\n")
    assert "UTF-8" in of("--robots", tmp_path / "latin").err
    assert robots(filled) == LINE
