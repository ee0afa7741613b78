# SPDX-License-Identifier: LicenseRef-Undeclared
"""Page URLs through the API: what a token may touch, and the errors for what it may not; a row's way
through write, page, history and undo."""

import urllib.parse

import pytest

from harness import INDEX, ORIGIN, problem

SHOP = "https://shop.example.org"
URLSET, OTHER = ORIGIN + "/part/urls.xml", SHOP + "/urls.xml"
q = lambda text: urllib.parse.quote(text, safe="")


@pytest.fixture
def server(start):
    server = start(sites=(ORIGIN, SHOP))
    for url in (URLSET, OTHER):
        made = server.api("POST", "/v1/urlsets", {"url": url, "with": ["images"]})
        assert made.status == 201, made
        assert server.api("POST", "/v1/urls", {"loc": url.replace("urls.xml", "page"), "urlset": url}).status == 201
    return server


def without_detail(reply):
    """What of a refusal depends on what was asked: not on whether it exists."""
    problem = reply.json()
    return reply.status, problem["code"], problem.get("field")


TENANTS = [("site", ["--site", ORIGIN, "--role", "admin"]), ("prefix", ["--prefix", ORIGIN + "/part/"]), ("own", ["--site", ORIGIN, "--own"])]


@pytest.mark.parametrize("name, options", TENANTS)
def test_what_is_anothers_is_as_what_is_not_there(server, name, options):
    bearer = server.make_token(name, *options)
    anothers = server.api("GET", "/v1/urls?urlset=" + q(OTHER)).json()["urls"][0]["id"]
    urlset = [u["id"] for u in server.api("GET", "/v1/urlsets").json()["urlsets"] if u["url"] == OTHER][0]
    for method, there, nowhere, body in (
        ("GET", f"/v1/urls?urlset={q(OTHER)}", f"/v1/urls?urlset={q(SHOP + '/none.xml')}", None),
        ("GET", f"/v1/urls/{anothers}", "/v1/urls/9-9-9", None),
        ("GET", f"/v1/urlsets/{urlset}", "/v1/urlsets/999", None),
        ("GET", f"/v1/render?urlset={q(OTHER)}", f"/v1/render?urlset={q(SHOP + '/none.xml')}", None),
        ("PUT", f"/v1/urls?urlset={q(OTHER)}", f"/v1/urls?urlset={q(SHOP + '/none.xml')}", []),
        ("POST", f"/v1/urls?urlset={q(OTHER)}", f"/v1/urls?urlset={q(SHOP + '/none.xml')}", {"loc": SHOP + "/x"}),
        ("DELETE", f"/v1/urls?urlset={q(OTHER)}&loc={q(SHOP + '/page')}", f"/v1/urls?urlset={q(SHOP + '/none.xml')}&loc={q(SHOP + '/page')}", None),
    ):
        seen = [without_detail(server.api(method, target, body, token=bearer)) for target in (there, nowhere)]
        assert seen[0] == seen[1] and seen[0][0] >= 400, (method, there, seen)
    assert [u["loc"] for u in server.api("GET", "/v1/urls?urlset=" + q(OTHER)).json()["urls"]] == [SHOP + "/page"]


def test_a_prefix_writes_below_it_alone(server):
    bearer = server.make_token("part", "--prefix", ORIGIN + "/part/a/")
    rows = lambda: {u["loc"]: u["source"] for u in server.api("GET", "/v1/urls?urlset=" + q(URLSET)).json()["urls"]}
    write = lambda loc: server.api("POST", "/v1/urls", {"loc": loc, "urlset": URLSET}, token=bearer).status
    assert write(ORIGIN + "/part/a/1") == 201 and write(ORIGIN + "/part/1") in (403, 404, 422)
    assert rows() == {ORIGIN + "/part/page": "environment", ORIGIN + "/part/a/1": "part"}
    seen = server.api("GET", "/v1/urls?urlset=" + q(URLSET), token=bearer).json()["urls"]
    assert [u["loc"] for u in seen] == [ORIGIN + "/part/a/1"]


def test_a_row_from_write_to_undo(server):
    page = lambda: server.get("/part/urls.xml").body
    before = page()
    made = server.api("POST", "/v1/urls", {"loc": ORIGIN + "/part/n", "urlset": URLSET, "images": ["https://cdn.example.net/1.jpg"]})
    assert made.status == 201 and made.json()["url"]["images"] == ["https://cdn.example.net/1.jpg"] and made["Location"].startswith("/v1/urls/")
    assert b"<url><loc>https://www.example.com/part/n</loc><image:image><image:loc>https://cdn.example.net/1.jpg</image:loc></image:image></url>" in page()
    stale = server.api("POST", "/v1/urls", {"loc": ORIGIN + "/part/n", "urlset": URLSET, "images": []}, headers=[("If-Match", '"x"')])
    assert stale.status == 412
    kept = server.api("POST", "/v1/urls", {"loc": ORIGIN + "/part/n", "urlset": URLSET, "lastmod": "2026-01-31T10:20:30Z"}).json()
    assert (kept["updated"], kept["url"]["images"]) == (1, ["https://cdn.example.net/1.jpg"])
    cleared = server.api("POST", "/v1/urls", {"loc": ORIGIN + "/part/n", "urlset": URLSET, "images": None}).json()
    assert cleared["updated"] == 1 and "images" not in cleared["url"]
    undone = server.api("POST", f"/v1/history/{cleared['revision']}/undo")
    assert undone.status == 200 and b"<image:loc>" in page(), undone
    restored = server.api("POST", f"/v1/restore?to={made.json()['revision'] - 1}&index={q(URLSET)}&max_removed=1")
    assert restored.status == 200 and page() == before, restored
    entry = server.api("GET", "/v1/sitemaps?loc=" + q(URLSET)).json()["sitemaps"][0]
    assert entry["source"] == "urlset:/part/urls.xml" and entry["index"] == INDEX


def test_a_site_of_the_configuration_has_urlsets(start):
    """Nothing in a configuration names them: they are made, changed, removed and brought back as those of any site."""
    server = start(config=f'[site "main"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\n', sites=())
    assert server.api("POST", "/v1/indexes", {"url": ORIGIN + "/part/index.xml"}).json()["code"] == "managed-by-config"
    made = server.api("POST", "/v1/urlsets", {"url": URLSET})
    assert made.status == 201, made
    path = f"/v1/urlsets/{made.json()['id']}"
    assert server.api("POST", "/v1/urls", {"loc": ORIGIN + "/part/a", "urlset": URLSET}).status == 201
    assert server.api("PATCH", path, {"max_pages": 3}).status == 200
    for pages in (0, -1, 50001, 1.5, "7"):
        for method, target, more in (("PATCH", path, {}), ("POST", "/v1/urlsets", {"url": ORIGIN + "/more.xml"})):
            refused = problem(server.api(method, target, {**more, "max_pages": pages}), 422, "wrong-type", "max_pages")
            assert refused["detail"] == "must be an integer from 1 to 50000", refused
    server.restart()
    removed = server.api("DELETE", path + "?max_removed=1")
    assert removed.status == 200, removed
    assert server.api("POST", f"/v1/history/{removed.json()['revision']}/undo").status == 200
    assert b"/part/a<" in server.get("/part/urls.xml").body


def test_pages_are_held_to_less_than_the_protocol_allows(start):
    server = start()
    assert server.api("POST", "/v1/urlsets", {"url": URLSET, "max_page_urls": 999}).json()["field"] == "max_page_urls"
    assert server.api("POST", "/v1/urlsets", {"url": URLSET, "max_page_bytes": 1048575}).json()["field"] == "max_page_bytes"
    made = server.api("POST", "/v1/urlsets", {"url": URLSET, "max_page_urls": 1000})
    assert (made.status, made.json()["max_page_urls"], made.json()["max_page_bytes"]) == (201, 1000, 52428800), made
    path = f"/v1/urlsets/{made.json()['id']}"
    add = lambda first, last, text="": server.bulk([{"loc": f"{ORIGIN}/part/{i}{text}"} for i in range(first, last)], f"/v1/urls?urlset={URLSET}")
    pages = lambda: {page["number"]: page["entries"] for page in server.api("GET", path).json()["pages"]}
    assert add(0, 2500).status == 200
    assert pages() == {1: 1000, 2: 1000, 3: 500}
    # Larger pages take what comes from then on; what was lowered keeps what it has, and gets no more.
    assert server.api("PATCH", path, {"max_page_urls": 2000}).json()["max_page_urls"] == 2000
    assert add(2500, 5000).status == 200
    assert pages() == {1: 2000, 2: 2000, 3: 1000}
    assert server.api("PATCH", path, {"max_page_urls": 1000}).status == 200
    server.restart()
    assert add(5000, 5010).status == 200
    assert pages() == {1: 2000, 2: 2000, 3: 1000, 4: 10}
    assert server.api("DELETE", f"/v1/urls?loc={ORIGIN}/part/0&urlset={URLSET}").status in (200, 204)
    assert add(5010, 5011).status == 200
    assert pages()[1] == 1999
    # Bytes: of long URLs some five hundred are a mebibyte.
    assert server.api("PATCH", path, {"max_page_urls": 50000, "max_page_bytes": 1048576}).status == 200
    assert add(6000, 8000, "/" + "x" * 1900).status == 200
    shown = server.api("GET", path).json()["pages"]
    assert all(page["bytes"] <= 1048576 for page in shown) and len(shown) > 4, shown
    assert sum(page["entries"] for page in shown) == 5010 + 2000
    assert server.cli("urlset", "set", URLSET, "--max-page-urls", "3000").code == 0
    assert '"max_page_urls":3000' in server.cli("urlset", "list", "--json").out
    assert server.cli("urlset", "set", URLSET, "--max-page-bytes", "5").code == 2
    assert server.cli("check").code == 0
    news = server.api("POST", "/v1/urlsets", {"url": ORIGIN + "/part/news.xml", "with": ["news"], "max_page_urls": 5000})
    assert news.json()["max_page_urls"] == 1000, "Google's limit"


def test_hints_are_dropped_and_reported_once(server):
    row = {"loc": ORIGIN + "/part/h", "urlset": URLSET, "priority": 0.5, "changefreq": "daily"}
    single = server.api("POST", "/v1/urls", row).json()
    assert single["created"] == 1 and single["url"]["warnings"] == ["hint-dropped"], single
    many = server.api("POST", "/v1/urls", [{**row, "loc": ORIGIN + f"/part/{i}"} for i in range(3)]).json()
    once = [{"line": 1, "loc": ORIGIN + "/part/0", "codes": ["hint-dropped"]}]
    assert (many["created"], many["warnings"], many["warnings_total"]) == (3, once, 1), many
    lines = b"".join(b'{"loc":"%s/part/%d"%s}\n' % (ORIGIN.encode(), i, b',"priority":1' if i > 0 else b"") for i in range(3))
    result = server.api("POST", "/v1/urls?urlset=" + q(URLSET), body=lines, content_type="application/x-ndjson").json()
    assert (result["unchanged"], result["warnings"]) == (3, [{"line": 2, "loc": ORIGIN + "/part/1", "codes": ["hint-dropped"]}]), result


def test_a_list_says_what_another_source_owns(server):
    bearer = server.make_token("one", "--site", ORIGIN)
    change = lambda rows, **more: server.api("PUT", f"/v1/urls?urlset={q(URLSET)}" + "".join(f"&{k}={v}" for k, v in more.items()), rows, token=bearer)
    page, new = ORIGIN + "/part/page", {"loc": ORIGIN + "/part/new"}
    (owner,) = {u["source"] for u in server.api("GET", "/v1/urls?urlset=" + q(URLSET)).json()["urls"]}
    for dated in ({"lastmod": "2026-01-01"}, {"images": [ORIGIN + "/a.jpg"]}):
        listed = [{"loc": page, **dated}, new]
        rejected = [{"line": 1, "loc": page, "code": "owned-by-another", "field": "loc", "detail": f'is owned by "{owner}", in {URLSET}; it was not changed'}]
        assert problem(change(listed), 422)["rejected"] == rejected
        skipped = change(listed, on_error="skip", dry_run=1).json()
        assert (skipped["created"], skipped["unchanged"], skipped["rejected"]) == (1, 0, rejected)
    kept = change([{"loc": page}, new]).json()
    assert (kept["created"], kept["unchanged"], kept["spared"], kept["rejected"]) == (1, 1, 1, [])
