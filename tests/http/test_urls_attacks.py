# SPDX-License-Identifier: LicenseRef-Undeclared
"""Who has a token of a part and means harm: what is another's stays as it was, byte by byte, and whose work it
is waits for nobody."""

import json
import socket
import threading
import time

import pytest

from harness import INDEX, ORIGIN, PLAIN, eventually, q, seconds

SHOP = "https://shop.example.org"
KEY = "abcdef0123456789"
MAIN, THEIRS = ORIGIN + "/products.xml", SHOP + "/theirs.xml"
SHOP_INDEX = SHOP + "/sitemap_index.xml"
TOKENS = {
    "site": ("--site", SHOP, "--role", "admin"),
    "admin": ("--site", ORIGIN, "--role", "admin"),
    "prefix": ("--prefix", ORIGIN + "/blog/"),
    "own": ("--site", ORIGIN, "--own"),
    "read": ("--role", "read"),
}
WRITERS = ("site", "prefix", "own")  # who may write something, and not what is attacked


class World:
    def __init__(self, server):
        self.server = server
        self.tokens = {}
        for name, options in TOKENS.items():
            self.tokens[name] = server.make_token(name, *options)
        self.ids = {}
        for url in (MAIN, THEIRS):
            made = server.api("POST", "/v1/urlsets", {"url": url, "with": ["images", "alternates", "news"], "expires": None})
            assert made.status == 201, made
            self.ids[url] = made.json()["id"]
        rows = [{"loc": f"{ORIGIN}/{folder}/{i}", "lastmod": "2026-01-31T10:20:30Z"} for folder in ("blog", "shop") for i in range(20)]
        listed = server.api("POST", "/v1/urls?urlset=" + q(MAIN), rows)
        assert listed.json()["created"] == 40, listed
        self.revision = listed.json()["revision"]
        assert server.api("POST", "/v1/urls", {"loc": SHOP + "/p", "urlset": THEIRS}).status == 201
        assert server.api("POST", "/v1/sitemaps", {"loc": ORIGIN + "/blog/entry.xml"}, token=self.tokens["own"]).status == 201

    def call(self, who, method, target, json_body=None, **more):
        return self.server.api(method, target, json_body, token=self.tokens[who], **more)

    def public(self):
        """What crawlers see of the site that is attacked; its own rows may have changed their index's date."""
        seen = {}
        for path in ("/products.xml", "/products.xml.gz", "/robots.txt", f"/{KEY}.txt"):
            reply = self.server.get(path)
            seen[path] = (reply.status, reply.get("ETag"), reply.body)
        return seen


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    from harness import Server

    config = f"""[catalogue]
write_timeout = 60s
[site "main"]
origin = {ORIGIN}
index = /sitemap_index.xml
indexnow_key = {KEY}
indexnow_endpoint = http://127.0.0.1:1/
[site "shop"]
origin = {SHOP}
"""
    server = Server(tmp_path_factory.mktemp("attacks"), config=config, sites=()).start()
    yield World(server)
    try:
        server.stop()
    finally:
        server.kill()


@pytest.fixture(autouse=True)
def nothing_of_anothers_changed(w):
    before = w.public()
    yield
    assert w.public() == before


def urls(**fields):
    return {"loc": ORIGIN + "/shop/1", "urlset": MAIN, **fields}


@pytest.mark.parametrize("who", [*WRITERS, "read"])
def test_nothing_of_anothers_urlset_is_written(w, who):
    """Each call refused, on the urlset, its rows, its page's entry and its history."""
    path, index = "/v1/urlsets/" + w.ids[MAIN], q(MAIN)
    for method, target, body in (
        ("POST", "/v1/urlsets", {"url": ORIGIN + "/blog/mine.xml"}),
        ("PATCH", path, {"max_pages": 1}),
        ("PATCH", path, {"expires": "1m"}),
        ("PATCH", path, {"index": SHOP_INDEX}),
        ("PATCH", path, {"frozen": True}),
        ("DELETE", path + "?max_removed=1000", None),
        ("DELETE", f"/v1/indexes/{w.ids[MAIN]}?max_removed=1000", None),
        ("PATCH", f"/v1/indexes/{w.ids[MAIN]}", {"frozen": True}),
        ("POST", "/v1/urls", urls(lastmod=None)),
        ("POST", "/v1/urls", urls(images=["https://evil.example/x.jpg"])),
        ("POST", "/v1/urls", [urls(lastmod="2026-02-01")]),
        ("DELETE", f"/v1/urls?urlset={index}&loc={q(ORIGIN + '/shop/1')}", None),
        ("DELETE", f"/v1/sitemaps?loc={q(MAIN)}", None),
        ("POST", "/v1/sitemaps", {"loc": MAIN, "lastmod": "2000-01-01"}),
        ("POST", "/v1/sitemaps", {"loc": ORIGIN + "/blog/x.xml", "index": MAIN}),
        ("POST", "/v1/urls", {"loc": ORIGIN + "/blog/x", "urlset": INDEX}),
        ("POST", f"/v1/history/{w.revision}/undo?max_removed=1000&on_conflict=overwrite", None),
        ("POST", f"/v1/restore?index={index}&to={w.revision - 1}&max_removed=1000&on_conflict=overwrite", None),
        ("POST", f"/v1/restore?index={q(INDEX)}&to=1&max_removed=1000", None),
    ):
        reply = w.call(who, method, target, body)
        assert reply.status in (403, 404, 422), (who, method, target, reply)
    id = w.server.api("GET", f"/v1/urls?urlset={index}&loc={q(ORIGIN + '/shop/1')}").json()["urls"][0]["id"]
    assert w.call(who, "DELETE", "/v1/urls/" + id).status in (403, 404)


@pytest.mark.parametrize("who", WRITERS)
@pytest.mark.parametrize("source", [None, "*", "environment", "urlset:/products.xml"])
def test_a_replace_removes_ones_own_alone(w, who, source):
    target = f"/v1/urls?urlset={q(MAIN)}&max_removed=1000000" + (f"&source={q(source)}" if source else "")
    if (who, source) == ("prefix", "*"):  # anybody's below its prefix, and no more
        tried = w.call(who, "PUT", target + "&dry_run=1", []).json()
        assert tried["removed"] == 20 and all("/blog/" in row["loc"] for row in tried["rows"]), tried
        return
    reply = w.call(who, "PUT", target, [])
    assert reply.status in (403, 404, 422) or reply.json()["removed"] == 0, reply
    reply = w.call(who, "PUT", f"/v1/sitemaps?index={q(INDEX)}&max_removed=1000000" + (f"&source={q(source)}" if source else ""), [])
    assert reply.status in (403, 404, 422) or w.server.api("GET", f"/v1/sitemaps?loc={q(MAIN)}").json()["sitemaps"], reply


@pytest.mark.parametrize("who", WRITERS)
def test_what_is_not_ones_own_is_not_read(w, who):
    """History, diff, copies and pages as they stand: of another nothing, of a prefix its part."""
    for target in (f"/v1/history/{w.revision}", f"/v1/history?index={q(MAIN)}", f"/v1/diff?index={q(MAIN)}&from={w.revision - 1}",
                   f"/v1/history?loc={q(ORIGIN + '/shop/1')}", f"/v1/render?urlset={q(MAIN)}", f"/v1/urls?urlset={q(MAIN)}",
                   f"/v1/urls?urlset={q(MAIN)}&contains=/shop/", f"/v1/urls?urlset={q(MAIN)}&prefix={q(ORIGIN + '/shop/')}", f"/v1/urlsets/{w.ids[MAIN]}"):
        for accept in ("application/json", "application/x-ndjson"):
            reply = w.call(who, "GET", target, headers=[("Accept", accept)])
            if who != "own" or "history" in target or "diff" in target:
                assert b"/shop/1" not in reply.body, (who, target, reply)


def test_collisions_of_paths(w):
    """A site's own administrator takes no name that is another's within it, and no two lists share one."""
    made = lambda url, **more: w.call("admin", "POST", "/v1/urlsets", {"url": url, **more})
    for url, code in (
        (INDEX, "urlset-exists"), (ORIGIN + "/a/../sitemap_index.xml", "urlset-exists"), (ORIGIN + "/%73itemap_index.xml", "urlset-exists"),
        (ORIGIN + "/sitemap_index-2.xml", "index-covers-index"), (ORIGIN + "/products-2.xml", "index-covers-index"),
        (ORIGIN + "/products-1000.xml", "index-covers-index"), (ORIGIN + "/%70roducts-2.xml", "index-covers-index"),
        (ORIGIN + "/robots.txt", "index-path"), (f"{ORIGIN}/{KEY}.txt", "index-path"), (ORIGIN + "/products.xml.gz", "index-path"),
        (ORIGIN + "/x.xml?a=b", "index-path"), (ORIGIN + "/x.xml%3Fa", "index-path"), (ORIGIN + "/x\r\nSet-Cookie: a=b.xml", "loc-control-character"),
        (ORIGIN + ":8443/x.xml", "token-of-another-site"), ("http://www.example.com/x.xml", "token-of-another-site"),
        ("https://user@www.example.com/x.xml", "loc-credentials"), (SHOP + "/x.xml", "token-of-another-site"),
    ):
        reply = made(url)
        assert reply.json().get("code") == code, (url, reply)
    for pattern in ("../x-{n}.xml", "sitemap_index-{n}.xml", "{stem}/../{n}{suffix}", "{stem}{n}{n}{suffix}", "{stem}-{n}\n{suffix}", "{stem}?{n}{suffix}"):
        reply = made(ORIGIN + "/pattern.xml", page_pattern=pattern)
        assert (reply.status, reply.json()["code"]) == (422, "index-pattern"), (pattern, reply)
    # a list whose further pages would have the name of another that is there
    assert made(ORIGIN + "/wide-7.xml").status == 201
    assert made(ORIGIN + "/wide.xml").json()["code"] == "index-covers-index"
    assert made(ORIGIN + "/products-1001.xml").status == 201  # past its max_pages
    raised = w.call("admin", "PATCH", "/v1/urlsets/" + w.ids[MAIN], {"max_pages": 1001})
    assert (raised.status, raised.json()["code"]) == (422, "index-covers-index"), raised


def test_a_trial_of_a_setting_counts_rows_alone(w):
    tried = w.call("site", "PATCH", f"/v1/urlsets/{w.ids[THEIRS]}?dry_run=1", {"max_pages": 7}).json()
    assert (tried["max_pages"], tried["rows"], tried["rows_total"]) == (1000, [], 0), tried


def test_a_urlset_moves_within_its_site(w):
    path = "/v1/urlsets/" + w.ids[MAIN]
    for who, index in (("admin", SHOP_INDEX), ("admin", THEIRS), ("admin", MAIN), ("admin", ORIGIN + "/none.xml")):
        for dry in ("", "?dry_run=1"):
            reply = w.call(who, "PATCH", path + dry, {"index": index})
            assert reply.status in (403, 404, 422), (index, reply)
    assert w.server.api("GET", path).json()["index"] == INDEX


PUBLICATION = {"name": "N", "language": "en"}


@pytest.mark.parametrize("value", [
    {"images": ["javascript:alert(1)"]}, {"images": ["data:image/png;base64,AA"]}, {"images": ["file:///etc/passwd"]}, {"images": [1]},
    {"images": [["x"]]}, {"images": ["https://e.example/" + "a" * 2100]}, {"images": [f"https://e.example/{i}" for i in range(1001)]},
    {"images": ["https://e.example/\x01"]}, {"images": "https://e.example/"},
    {"alternates": {'de" href="x': ORIGIN}}, {"alternates": {"a" * 500: ORIGIN}}, {"alternates": {"": ORIGIN}}, {"alternates": {"de": ORIGIN, "DE": SHOP}},
    {"alternates": {"x-0": ORIGIN}}, {"alternates": {a + b: "https://e.example/" for a in "abcdefghijklmnopq" for b in "abcdefghijklmnopqr"}}, {"alternates": [["de", ORIGIN]]},
    {"news": {"publication": PUBLICATION, "publication_date": "2026-01-01", "title": "\x01"}}, {"news": {"publication": PUBLICATION, "publication_date": "2026-01-01", "title": "\ufffe"}},
    {"news": {"publication": PUBLICATION, "publication_date": "2999-01-01", "title": "t"}}, {"news": {"publication": PUBLICATION, "publication_date": "2026-01-01", "title": " \t "}},
    {"news": {"publication": PUBLICATION, "publication_date": "2026-01-01", "title": "t" * 2049}}, {"news": {"publication": PUBLICATION, "title": "t"}}, {"news": []},
    {"news": {"publication": PUBLICATION, "publication_date": "2026-01-01", "title": "t", "evil": 1}},
], ids=lambda value: json.dumps(value)[:40])
def test_values_that_are_refused(w, value):
    reply = w.server.api("POST", "/v1/urls", {"loc": SHOP + "/p", "urlset": THEIRS, **value})
    assert reply.status == 422 and reply.json()["field"].split(".")[0].split("[")[0] == next(iter(value)), reply


def test_markup_in_values_is_text(w):
    evil = "]]></news:name><x/><!--&#x26;&amp;\"'"
    row = {"loc": SHOP + "/evil", "urlset": THEIRS, "images": ["https://e.example/?a=1&b=<'>".replace("<", "%3C").replace(">", "%3E")],
           "news": {"publication": {"name": evil, "language": "en"}, "publication_date": "2026-01-01", "title": evil}}
    assert w.server.api("POST", "/v1/urls", row).status == 201
    page = w.server.get("/theirs.xml", host="shop.example.org").body
    escaped = b"]]&gt;&lt;/news:name&gt;&lt;x/&gt;&lt;!--&amp;#x26;&amp;amp;&quot;&apos;"
    assert b"<news:name>" + escaped + b"</news:name>" in page and b"<news:title>" + escaped + b"</news:title>" in page
    assert w.server.api("DELETE", f"/v1/urls?urlset={q(THEIRS)}&loc={q(SHOP + '/evil')}").status == 204


def test_a_list_that_is_cut_off_changes_nothing(w):
    """NDJSON whose sender leaves in the middle: by length, in a chunk, and at the end of a line."""
    address, port = w.server.admin.rsplit(":", 1)
    body = b"".join(b'{"loc":"%s/cut/%d"}\n' % (SHOP.encode(), i) for i in range(5000))
    for framing, part in (("Content-Length: %d" % len(body), body[:-100]), ("Content-Length: %d" % len(body), body[: len(body) // 2]),
                          ("Transfer-Encoding: chunked", b"%x\r\n%b\r\n" % (len(body), body)), ("Transfer-Encoding: chunked", b"%x\r\n%b" % (len(body), body[:1000]))):
        with socket.create_connection((address, int(port)), timeout=seconds(60)) as s:
            s.sendall(f"POST /v1/urls?urlset={q(THEIRS)} HTTP/1.1\r\nHost: {w.server.admin}\r\nAuthorization: Bearer {w.tokens['site']}\r\n"
                      f"Content-Type: application/x-ndjson\r\n{framing}\r\n\r\n".encode() + part)
    assert w.call("site", "POST", "/v1/urls", {"loc": SHOP + "/p", "urlset": THEIRS}).status == 200  # behind them, if they were
    assert w.server.api("GET", "/v1/urlsets/" + w.ids[THEIRS]).json()["entries"] == 1


def test_a_key_is_its_tokens_alone(w):
    row = {"loc": SHOP + "/keyed", "urlset": THEIRS}
    key = [("Idempotency-Key", '"same"')]
    first = w.server.api("POST", "/v1/urls", row, headers=key)
    assert first.status == 201
    assert w.call("site", "POST", "/v1/urls", row, headers=key).status == 200  # done again, not answered from another's
    assert w.call("own", "POST", "/v1/urls", row, headers=key).status == 403
    assert w.server.api("POST", "/v1/urls", {**row, "lastmod": "2026-01-01"}, headers=key).status == 422
    assert w.server.api("POST", "/v1/urls", row, headers=key).json()["revision"] == first.json()["revision"]
    assert w.server.api("DELETE", f"/v1/urls?urlset={q(THEIRS)}&loc={q(SHOP + '/keyed')}").status == 204


@pytest.mark.masses
def test_dry_runs_and_undos_of_masses_leave_others_their_turn(w):
    """One site's administrator keeps four large changes under way, tried and done: another's single writes are
    taken within the bound that every list has, and none is refused."""
    count = 60000 if PLAIN else 6000
    body = b"".join(b'{"loc":"%s/m/%d"}\n' % (SHOP.encode(), i) for i in range(count))
    target = f"/v1/urls?urlset={q(THEIRS)}&max_removed=1000000"
    stop, busy, failed = threading.Event(), [], []

    def masses(number):
        while not stop.is_set():
            for dry in ("&dry_run=1", ""):
                method, data = ("POST", body) if number % 2 else ("PUT", b"")
                reply = w.call("site", method, target + dry, body=data, content_type="application/x-ndjson")
                if reply.status not in (200, 409, 503):
                    failed.append(reply)
                busy.append(reply.status)

    threads = [threading.Thread(target=masses, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: len(busy) >= 4 or failed, "they are under way", 120)
        for i in range(10):
            began = time.monotonic()
            reply = w.call("own", "POST", "/v1/sitemaps", {"loc": f"{ORIGIN}/blog/turn{i}.xml"})
            assert reply.status == 201, reply
            assert time.monotonic() - began < seconds(60)
            assert w.server.get("/robots.txt").status == 200
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failed == []
    assert w.call("site", "PUT", target, body=b"", content_type="application/x-ndjson").status == 200
