# SPDX-License-Identifier: LicenseRef-Undeclared
"""The rights of tokens: every call of the API with each kind of token, and the rules of a scope."""

import hashlib
import itertools
import json
import os
import re
import signal
import sqlite3
import time

import pytest

from harness import INDEX, ORIGIN, Server, eventually, problem, q, sitemapd

SHOP = "https://shop.example.org"
BLOG = ORIGIN + "/blog/"
KINDS = {
    "root": ("--role", "admin"),
    "admin": ("--site", ORIGIN, "--role", "admin"),
    "write": ("--site", ORIGIN),
    "read": ("--role", "read"),
    "own": ("--site", ORIGIN, "--own"),
    "prefix": ("--prefix", BLOG),
    "other": ("--site", SHOP, "--role", "admin"),
}
HASH = lambda token: hashlib.sha256(token.encode()).hexdigest()


class World:
    def __init__(self, server):
        self.server, self.number = server, itertools.count()
        self.tokens = {kind: self.token(kind, *options) for kind, options in KINDS.items()}
        self.tokens["expired"] = "a-token-that-was"
        for token in self.tokens.values():
            eventually(lambda: server.api("GET", "/v1/token", token=token).status == 200 or token == "a-token-that-was", "the token is known")

    def token(self, name, *options):
        made = self.server.cli("token", "add", name, *options)
        assert made.code == 0, made
        return made.out.strip()

    def loc(self, folder="/"):
        return f"{ORIGIN}{folder}n{next(self.number)}.xml"

    def entry(self, folder="/"):
        reply = self.server.api("POST", "/v1/sitemaps", {"loc": self.loc(folder)})
        assert reply.status == 201, reply
        return reply

    def made(self, folder="/"):
        return self.entry(folder).json()["sitemap"]["loc"]

    def site(self, origin=None):
        if origin is None:
            return self.server.api("POST", "/v1/sites", {"origin": f"https://s{next(self.number)}.example.net"}).json()["id"]
        return [s["id"] for s in self.server.api("GET", "/v1/sites").json()["sites"] if s["origin"] == origin][0]

    def source(self):
        name = f"s{next(self.number)}"
        made = self.server.api("POST", "/v1/sources", {"name": name, "upstream": ORIGIN + "/list.xml", "check": False})
        assert made.status == 201, made
        return name

    def index(self):
        return self.server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/x{next(self.number)}/index.xml"}).json()["id"]

    def urlset(self, folder=""):
        path = f"{folder}u{next(self.number)}.xml"
        made = self.server.api("POST", "/v1/urlsets", {"url": f"{ORIGIN}/{path}", "index": INDEX})
        assert made.status == 201, made
        return made.json()

    def page_url(self, folder=""):
        row = {"loc": f"{ORIGIN}/{folder}p{next(self.number)}", "urlset": self.urlset(folder)["url"]}
        made = self.server.api("POST", "/v1/urls", row)
        assert made.status == 201, made
        return {**row, "path": made["Location"]}

    def spare(self):
        name = f"spare{next(self.number)}"
        self.token(name, "--site", ORIGIN)
        return name


@pytest.fixture(scope="module")
def w(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "files").mkdir()
    (folder / "expired.sha256").write_text(HASH("a-token-that-was") + "\n", encoding="utf-8")
    config = f'[source "files"]\ndirectory = {folder}/files\nurl = {ORIGIN}/files/\nsettle = 0s\n'
    config += f'[token "expired"]\nsha256_file = {folder}/expired.sha256\nrole = admin\nexpires = 2020-01-31\n'
    (folder / "bing.key").write_text("a-key")
    (folder / "bing.key").chmod(0o600)
    config += f'[engine "bing"]\napi_key_file = {folder}/bing.key\nendpoint = http://127.0.0.1:9/\n'  # where nobody is asked
    server = Server(folder, sites=(ORIGIN, SHOP), config=config).start()
    try:
        yield World(server)
        server.stop()
    finally:
        server.kill()


def row(root, admin, write, read, own, prefix, other):
    return dict(root=root, admin=admin, write=write, read=read, own=own, prefix=prefix, other=other)


ALL = row(200, 200, 200, 200, 200, 200, 200)
ADMIN = row(200, 200, 403, 403, 403, 403, 403)
by_loc = lambda loc: f"/v1/sitemaps?loc={q(loc)}"
# (method, path of the document, how its target and body are made, what each kind of token is answered)
CALLS = [
    ("GET", "/v1/sitemaps", lambda w: ("/v1/sitemaps", None), ALL),
    ("GET", "/v1/sitemaps/{id}", lambda w: (w.entry()["Location"], None), row(200, 200, 200, 200, 200, 404, 404)),
    ("GET", "/v1/sitemaps/{id}", lambda w: (w.entry("/blog/")["Location"], None), row(200, 200, 200, 200, 200, 200, 404)),
    ("POST", "/v1/sitemaps", lambda w: ("/v1/sitemaps", {"loc": w.loc()}), row(201, 201, 201, 403, 201, 403, 403)),
    ("POST", "/v1/sitemaps", lambda w: ("/v1/sitemaps", {"loc": w.loc("/blog/")}), row(201, 201, 201, 403, 201, 201, 403)),
    ("POST", "/v1/sitemaps", lambda w: ("/v1/sitemaps", {"loc": w.made()}), row(200, 200, 200, 403, 403, 403, 403)),
    ("POST", "/v1/sitemaps", lambda w: ("/v1/sitemaps", {"loc": w.made("/blog/")}), row(200, 200, 200, 403, 403, 200, 403)),
    ("POST", "/v1/sitemaps", lambda w: ("/v1/sitemaps", [{"loc": w.loc("/blog/")}, {"loc": w.loc()}]), row(200, 200, 200, 403, 200, 403, 403)),
    ("POST", "/v1/sitemaps", lambda w: ("/v1/sitemaps", [{"loc": w.loc("/blog/")}, {"loc": w.made("/blog/")}]), row(200, 200, 200, 403, 403, 200, 403)),
    ("POST", "/v1/sitemaps", lambda w: ("/v1/sitemaps?source=environment", {"loc": w.loc("/blog/")}), row(201, 403, 403, 403, 403, 403, 403)),
    ("PUT", "/v1/sitemaps", lambda w: (f"/v1/sitemaps?index={q(INDEX)}&max_removed=99", []), row(200, 200, 200, 403, 200, 200, 403)),
    ("PUT", "/v1/sitemaps", lambda w: (f"/v1/sitemaps?index={q(INDEX)}&source=*&prefix={q(ORIGIN + '/none/')}", []), row(200, 200, 200, 403, 403, 403, 403)),
    ("PUT", "/v1/sitemaps", lambda w: (f"/v1/sitemaps?index={q(INDEX)}&source=*&prefix={q(BLOG + 'none/')}", []), row(200, 200, 200, 403, 403, 200, 403)),
    ("PUT", "/v1/sitemaps", lambda w: (f"/v1/sitemaps?index={q(INDEX)}&source=environment&prefix={q(BLOG + 'none/')}", []), row(200, 403, 403, 403, 403, 403, 403)),
    ("PUT", "/v1/sitemaps", lambda w: (f"/v1/sitemaps?index={q(INDEX)}&max_removed=99", [{"loc": w.loc()}]), row(200, 200, 200, 403, 200, 403, 403)),
    ("DELETE", "/v1/sitemaps", lambda w: (by_loc(w.made()), None), row(204, 204, 204, 403, 403, 403, 404)),
    ("DELETE", "/v1/sitemaps", lambda w: (by_loc(w.made("/blog/")), None), row(204, 204, 204, 403, 403, 204, 404)),
    ("DELETE", "/v1/sitemaps/{id}", lambda w: (w.entry()["Location"], None), row(204, 204, 204, 403, 403, 404, 403)),
    ("DELETE", "/v1/sitemaps/{id}", lambda w: (w.entry("/blog/")["Location"], None), row(204, 204, 204, 403, 403, 204, 403)),
    ("GET", "/v1/sites", lambda w: ("/v1/sites", None), ALL),
    ("POST", "/v1/sites", lambda w: ("/v1/sites", {"origin": f"https://n{next(w.number)}.example.net"}), row(201, 403, 403, 403, 403, 403, 403)),
    ("GET", "/v1/sites/{id}", lambda w: (f"/v1/sites/{w.site(ORIGIN)}", None), row(200, 200, 200, 200, 200, 200, 404)),
    ("PATCH", "/v1/sites/{id}", lambda w: (f"/v1/sites/{w.site(ORIGIN)}", {"max_indexes": 400}), ADMIN),
    ("PATCH", "/v1/sites/{id}", lambda w: (f"/v1/sites/{w.site(ORIGIN)}", {"frozen": False}), ADMIN),
    ("DELETE", "/v1/sites/{id}", lambda w: (f"/v1/sites/{w.site()}", None), row(200, 403, 403, 403, 403, 403, 403)),
    ("GET", "/v1/indexes", lambda w: ("/v1/indexes", None), ALL),
    ("POST", "/v1/indexes", lambda w: ("/v1/indexes", {"url": f"{ORIGIN}/x{next(w.number)}/index.xml"}), row(201, 201, 403, 403, 403, 403, 403)),
    ("GET", "/v1/indexes/{id}", lambda w: (f"/v1/indexes/{w.index()}", None), row(200, 200, 200, 200, 200, 200, 404)),
    ("PATCH", "/v1/indexes/{id}", lambda w: (f"/v1/indexes/{w.index()}", {"frozen": True}), ADMIN),
    ("DELETE", "/v1/indexes/{id}", lambda w: (f"/v1/indexes/{w.index()}", None), ADMIN),
    ("GET", "/v1/urlsets", lambda w: ("/v1/urlsets", None), ALL),
    ("POST", "/v1/urlsets", lambda w: ("/v1/urlsets", {"url": f"{ORIGIN}/u{next(w.number)}.xml", "index": INDEX}), row(201, 201, 403, 403, 403, 403, 403)),
    ("GET", "/v1/urlsets/{id}", lambda w: (f"/v1/urlsets/{w.urlset()['id']}", None), row(200, 200, 200, 200, 200, 200, 404)),
    ("PATCH", "/v1/urlsets/{id}", lambda w: (f"/v1/urlsets/{w.urlset()['id']}", {"frozen": True}), ADMIN),
    ("DELETE", "/v1/urlsets/{id}", lambda w: (f"/v1/urlsets/{w.urlset()['id']}", None), ADMIN),
    ("GET", "/v1/urls", lambda w: (f"/v1/urls?urlset={q(w.urlset()['url'])}", None), row(200, 200, 200, 200, 200, 200, 404)),
    ("GET", "/v1/urls/{id}", lambda w: (w.page_url()["path"], None), row(200, 200, 200, 200, 200, 404, 404)),
    ("GET", "/v1/urls/{id}", lambda w: (w.page_url("blog/")["path"], None), row(200, 200, 200, 200, 200, 200, 404)),
    ("POST", "/v1/urls", lambda w: ("/v1/urls", {"loc": w.loc(), "urlset": w.urlset()["url"]}), row(201, 201, 201, 403, 201, 403, 403)),
    ("POST", "/v1/urls", lambda w: ("/v1/urls", {"loc": w.loc("/blog/"), "urlset": w.urlset("blog/")["url"]}), row(201, 201, 201, 403, 201, 201, 403)),
    ("PUT", "/v1/urls", lambda w: (f"/v1/urls?urlset={q(w.urlset()['url'])}", [{"loc": w.loc()}]), row(200, 200, 200, 403, 200, 403, 403)),
    ("DELETE", "/v1/urls", lambda w: (f"/v1/urls?urlset={q((p := w.page_url())['urlset'])}&loc={q(p['loc'])}", None), row(204, 204, 204, 403, 403, 403, 403)),
    ("DELETE", "/v1/urls/{id}", lambda w: (w.page_url()["path"], None), row(204, 204, 204, 403, 403, 404, 403)),
    ("DELETE", "/v1/urls/{id}", lambda w: (w.page_url("blog/")["path"], None), row(204, 204, 204, 403, 403, 204, 403)),
    ("GET", "/v1/render", lambda w: w.made() and (f"/v1/render?index={q(INDEX)}", None), row(200, 200, 200, 200, 200, 403, 404)),
    ("GET", "/v1/backup", lambda w: ("/v1/backup", None), row(200, 403, 403, 403, 403, 403, 403)),
    ("GET", "/v1/sites/{id}/copy", lambda w: (f"/v1/sites/{w.site(ORIGIN)}/copy", None), row(200, 403, 403, 403, 403, 403, 403)),
    ("POST", "/v1/sites/import", lambda w: ("/v1/sites/import", None), row(415, 415, 403, 403, 403, 403, 415)),
    ("GET", "/v1/sources", lambda w: ("/v1/sources", None), ALL),
    ("POST", "/v1/sources/{name}/scan", lambda w: ("/v1/sources/files/scan", None), row(200, 200, 200, 403, 403, 403, 403)),
    ("POST", "/v1/sources", lambda w: ("/v1/sources", {"name": f"s{next(w.number)}", "upstream": ORIGIN + "/list.xml", "check": False}), row(201, 201, 403, 403, 403, 403, 403)),
    ("GET", "/v1/sources/{name}", lambda w: (f"/v1/sources/{w.source()}", None), row(200, 200, 200, 200, 200, 404, 404)),
    ("PATCH", "/v1/sources/{name}", lambda w: (f"/v1/sources/{w.source()}", {"poll": 3600}), row(200, 200, 403, 403, 403, 403, 404)),
    ("DELETE", "/v1/sources/{name}", lambda w: (f"/v1/sources/{w.source()}", None), row(204, 204, 403, 403, 403, 403, 404)),
    ("GET", "/v1/checks", lambda w: ("/v1/checks", None), ALL),
    ("POST", "/v1/checks", lambda w: (f"/v1/checks?loc={q(w.made())}", None), row(404, 404, 404, 403, 404, 404, 404)),
    ("GET", "/v1/history", lambda w: ("/v1/history", None), row(200, 200, 200, 200, 403, 403, 200)),
    ("GET", "/v1/history/{revision}", lambda w: (f"/v1/history/{w.entry().json()['revision']}", None), row(200, 200, 200, 200, 403, 403, 404)),
    ("POST", "/v1/history/{revision}/undo", lambda w: (f"/v1/history/{w.entry().json()['revision']}/undo", None), row(200, 200, 200, 403, 403, 403, 404)),
    ("GET", "/v1/crawlers", lambda w: ("/v1/crawlers", None), row(200, 200, 200, 200, 200, 200, 200)),
    ("GET", "/v1/crawlers/{name}/pages", lambda w: (f"/v1/crawlers/googlebot/pages?index={q(INDEX)}", None), row(200, 200, 200, 200, 200, 200, 404)),
    ("GET", "/v1/engines", lambda w: ("/v1/engines", None), ALL),
    ("GET", "/v1/stats", lambda w: ("/v1/stats", None), ALL),
    ("GET", "/v1/engines/{name}/sitemaps", lambda w: ("/v1/engines/bing/sitemaps", None), ALL),
    ("GET", "/v1/diff", lambda w: (f"/v1/diff?index={q(INDEX)}&from={w.entry().json()['revision']}", None), row(200, 200, 200, 200, 403, 403, 404)),
    ("POST", "/v1/restore", lambda w: (f"/v1/restore?index={q(INDEX)}&to={w.entry().json()['revision']}", None), row(200, 200, 200, 403, 403, 403, 403)),
    ("GET", "/v1/changes", lambda w: ("/v1/changes", None), ALL),
    ("GET", "/v1/token", lambda w: ("/v1/token", None), ALL),
    ("GET", "/v1/tokens", lambda w: ("/v1/tokens", None), row(200, 200, 403, 403, 403, 403, 200)),
    ("DELETE", "/v1/tokens/{name}", lambda w: (f"/v1/tokens/{w.spare()}", None), row(204, 204, 403, 403, 403, 403, 404)),
]
CODES = {401: {"unauthorized"}, 403: {"token-role", "token-of-another-site", "outside-token-scope", "needs-token-of-all-sites", "needs-token-of-whole-site"}, 404: {"not-found", "index-unknown", "urlset-unknown"}, 415: {"content-type-not-supported"}}


@pytest.mark.parametrize("number", range(len(CALLS)), ids=lambda i: f"{CALLS[i][0]} {CALLS[i][1]} {i}")
def test_each_call_with_each_kind_of_token(w, number):
    method, _, make, expected = CALLS[number]
    everything = lambda: [w.server.api("GET", t).body for t in ("/v1/sites", f"/v1/sitemaps?limit=1000")]
    for kind, status in {**expected, "expired": 401}.items():
        target, body = make(w)
        before = everything()
        reply = w.server.api(method, target, body, token=w.tokens[kind])
        assert reply.status == status, (kind, method, target, body, reply)
        if status >= 400:
            assert reply.json()["code"] in CODES[status], (kind, reply)
            assert everything() == before, (kind, method, target)
    target, body = make(w)
    assert w.server.api(method, target, body, token="smd_" + "w" * 43).status in (401, 429)


def test_the_table_has_every_call(w):
    paths = w.server.api("GET", "/openapi.json").json()["paths"]
    documented = {(m.upper(), p) for p, item in paths.items() for m in item if m != "parameters" and p.startswith("/v1/")}
    assert {(method, path) for method, path, *_ in CALLS} == documented


# ---- prefixes


def fresh(start, *prefixes):
    server = start(sites=(ORIGIN, SHOP))
    tokens = [server.cli("token", "add", f"t{i}", "--prefix", p).out.strip() for i, p in enumerate(prefixes)]
    eventually(lambda: all(server.api("GET", "/v1/token", token=t).status == 200 for t in tokens), "the tokens are known")
    return server, *tokens


def test_there_is_no_way_around_a_prefix(start):
    server, blog, names = fresh(start, "HTTPS://WWW.Example.com:443/a/../blog/", ORIGIN + "/sitemaps/%62log-")
    assert server.api("GET", "/v1/token", token=blog).json()["prefix"] == BLOG
    assert server.api("GET", "/v1/token", token=names).json()["prefix"] == ORIGIN + "/sitemaps/blog-"
    post = lambda loc, token: server.api("POST", "/v1/sitemaps", {"loc": loc}, token=token).status
    for loc in ("/blog/a.xml", "/blog/x/../b.xml", "/%62log/c.xml", "/shop/../blog/d.xml", "/blog/%2e%2e/blog/e.xml", "/blog/a.xml?x=/../"):
        assert post(ORIGIN + loc, blog) == 201, loc
    assert post("https://WWW.EXAMPLE.COM:443/blog/f.xml", blog) == 201
    for loc in ("/blogger/a.xml", "/blog", "/blog.xml", "/blog/../a.xml", "/blog/%2e%2e/a.xml", "/blog/%2E%2E/a.xml", "/blog/./../shop/a.xml",
                "/blog/.%2e/a.xml", "/BLOG/a.xml", "//blog/a.xml", "/blog%2Fa.xml", "/x?/blog/", "/"):
        assert post(ORIGIN + loc, blog) in (403, 422), loc
    for loc in ("http://www.example.com/blog/a.xml", "https://www.example.com:8443/blog/a.xml", SHOP + "/blog/a.xml", "https://www.example.com.evil.example/blog/a.xml"):
        assert post(loc, blog) == 403, loc
    assert post(ORIGIN + "/sitemaps/blog-1.xml", names) == 201 and post(ORIGIN + "/sitemaps/blog1.xml", names) == 403
    seen = {e["loc"] for e in server.api("GET", "/v1/sitemaps").json()["sitemaps"]}
    assert all(loc.startswith((BLOG, ORIGIN + "/sitemaps/blog-")) for loc in seen) and len(seen) == 8


def test_what_a_token_of_its_own_entries_may_not_name(server):
    """The error names the field that is at fault."""
    token = server.make_token("mine", "--site", ORIGIN, "--own")
    assert server.register(ORIGIN + "/theirs.xml").status == 201
    register = lambda loc, query="": server.api("POST", "/v1/sitemaps" + query, {"loc": ORIGIN + loc}, token=token)
    problem(register("/new.xml", "?source=other"), 403, "outside-token-scope", "source")
    problem(register("/theirs.xml"), 403, "outside-token-scope", "loc")
    assert register("/new.xml", "?source=mine").status == 201


@pytest.mark.parametrize("prefix", [ORIGIN + "/blog", ORIGIN + "/blog/x.y", "/blog/", "ftp://www.example.com/blog/", ORIGIN + "/blog/?x=/", ORIGIN + "/blog/#x/", "https://unknown.example/blog/", ORIGIN + "/" + "a" * 500 + "/"])
def test_invalid_prefixes(start, prefix):
    server = start(sites=(ORIGIN, SHOP))
    assert server.cli("token", "add", "bad", "--prefix", prefix).code in (1, 2)
    assert server.cli("token", "add", "bad", "--prefix", SHOP + "/x/", "--site", ORIGIN).code == 1
    for options in (("--prefix", BLOG, "--role", "admin"), ("--own", "--role", "admin"), ("--own", "--role", "read"), ("--expires", "2020-01-31"), ("--expires", "0d"), ("--expires", "soon")):
        assert server.cli("token", "add", "bad", *options).code == 2, options
    outcome = server.cli("token", "add", "bad", "--role", "owner")
    assert outcome.code == 1 and outcome.err == 'sitemapd: --role: "owner" must be read, write or admin\n', outcome


def test_a_prefix_sees_and_replaces_its_part(start):
    server, blog = fresh(start, BLOG)
    for loc in (ORIGIN + "/a.xml", ORIGIN + "/z.xml", BLOG + "a.xml", BLOG + "b.xml"):
        assert server.register(loc).status == 201
    ask = lambda target: server.api("GET", target, token=blog)
    locs = lambda target: [e["loc"] for e in ask(target).json()["sitemaps"]]
    part = [BLOG + "a.xml", BLOG + "b.xml"]
    assert locs("/v1/sitemaps") == locs(f"/v1/sitemaps?prefix={q(ORIGIN + '/')}") == locs(f"/v1/sitemaps?index={q(INDEX)}") == part
    assert locs(f"/v1/sitemaps?prefix={q(BLOG + 'b')}") == [BLOG + "b.xml"] and locs(f"/v1/sitemaps?prefix={q(ORIGIN + '/a')}") == []
    assert locs(f"/v1/sitemaps?loc={q(ORIGIN + '/a.xml')}") == [] and locs(f"/v1/sitemaps?loc={q(BLOG + 'a.xml')}") == part[:1]
    first = ask("/v1/sitemaps?limit=1").json()
    assert locs(f"/v1/sitemaps?limit=1&after={first['next']}") == part[1:]
    # A search looks at its part alone.
    for query, found in (("contains=.xml", part), (f"contains=.xml&prefix={q(ORIGIN + '/')}", part), ("warned=1", []), (f"contains=.xml&prefix={q(ORIGIN + '/a')}", [])):
        outcome = ask(f"/v1/sitemaps?index={q(INDEX)}&{query}").json()
        assert [e["loc"] for e in outcome["sitemaps"]] == found and outcome["next"] is None and outcome["looked_at"] == (0 if query.endswith(q('/a')) else 2), outcome
    passed = server.api("GET", f"/v1/sitemaps?index={q(INDEX)}&limit=1&contains=.xml&prefix={q(ORIGIN + '/')}").json()["next"]
    assert locs(f"/v1/sitemaps?index={q(INDEX)}&contains=.xml&after={passed}") == part
    # A cursor of who sees more is not a way past the prefix.
    wide = server.api("GET", f"/v1/sitemaps?limit=1&prefix={q(ORIGIN + '/')}").json()["next"]
    assert locs(f"/v1/sitemaps?after={wide}") == part
    for index in (ask("/v1/indexes").json()["indexes"][0], ask(f"/v1/indexes/{ask('/v1/indexes').json()['indexes'][0]['id']}").json()):
        assert index["entries"] is None and index["bytes"] is None and index["pages"][0]["entries"] is None and index["pages"][0]["bytes"] is None
    reply = server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}&source=*&max_removed=1", [{"loc": BLOG + "b.xml"}, {"loc": BLOG + "c.xml"}], token=blog)
    assert reply.status == 200 and (reply.json()["created"], reply.json()["removed"]) == (1, 1)
    assert [e["loc"] for e in server.api("GET", f"/v1/sitemaps?prefix={q(ORIGIN + '/')}").json()["sitemaps"]] == sorted([ORIGIN + "/a.xml", ORIGIN + "/z.xml", BLOG + "b.xml", BLOG + "c.xml"])
    # What the shrink guard says reveals nothing of the whole.
    held = server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}&source=*", [], token=blog)
    assert held.status == 409 and not re.search(r"\d", held.json()["detail"]), held


def test_an_index_that_is_not_there(start):
    """A token for one site reads that its own index is unknown, by a path, too; of another site's it learns nothing."""
    other = "https://other.example"
    server = start(sites=(ORIGIN, other))
    token = server.cli("token", "add", "mine", "--site", ORIGIN).out.strip()
    eventually(lambda: server.api("GET", "/v1/token", token=token).status == 200, "the token is known")
    for name, status, code in (
        (ORIGIN + "/none.xml", (404, 422), "index-unknown"),
        ("/sitemap_index.xml", (404, 422), "index-unknown"),
        (ORIGIN + ".example/none.xml", (403, 403), "token-of-another-site"),
        (other + "/none.xml", (403, 403), "token-of-another-site"),
        (other + "/sitemap_index.xml", (403, 403), "token-of-another-site"),
    ):
        whole = server.api("PUT", f"/v1/sitemaps?index={q(name)}", [{"loc": ORIGIN + "/a.xml"}], token=token)
        one = server.api("POST", "/v1/sitemaps", {"loc": ORIGIN + "/a.xml", "index": name}, token=token)
        restored = server.api("POST", f"/v1/restore?index={q(name)}&to=1", token=token)
        for reply, wanted in ((whole, status[0]), (one, status[1]), (restored, status[0])):
            assert (reply.status, reply.json()["code"]) == (wanted, code), (name, reply)


def test_an_entry_that_is_gone(start):
    """A token for one site that repeats a removal by id reads that its own entry is gone; of another site's it learns nothing."""
    other = "https://other.example"
    server = start(sites=(ORIGIN, other))
    token = server.cli("token", "add", "mine", "--site", ORIGIN).out.strip()
    eventually(lambda: server.api("GET", "/v1/token", token=token).status == 200, "the token is known")
    own, theirs = (server.register(origin + "/a.xml").json()["sitemap"]["id"] for origin in (ORIGIN, other))
    assert server.api("DELETE", f"/v1/sitemaps/{own}", token=token).status == 204
    problem(server.api("DELETE", f"/v1/sitemaps/{own}", token=token), 404, "not-found")
    problem(server.api("DELETE", f"/v1/sitemaps/{theirs}", token=token), 403, "token-of-another-site")
    assert server.api("DELETE", f"/v1/sitemaps/{theirs}").status == 204
    problem(server.api("DELETE", f"/v1/sitemaps/{theirs}", token=token), 403, "token-of-another-site")
    problem(server.api("DELETE", "/v1/sitemaps/77-0-1", token=token), 403, "token-of-another-site")


def test_own_entries(start):
    server = start(sites=(ORIGIN,))
    token = server.cli("token", "add", "mine", "--own").out.strip()
    eventually(lambda: server.api("GET", "/v1/token", token=token).status == 200, "the token is known")
    assert server.register(ORIGIN + "/theirs.xml").status == 201
    call = lambda method, target, body=None: server.api(method, target, body, token=token)
    assert call("POST", "/v1/sitemaps", {"loc": ORIGIN + "/mine.xml"}).status == 201
    assert call("POST", "/v1/sitemaps", {"loc": ORIGIN + "/mine.xml", "lastmod": "2026-01-31"}).status == 200
    # A list leaves alone what another registered, and says so where it would have it otherwise.
    listed = [{"loc": ORIGIN + "/theirs.xml", "lastmod": "2020-01-31"}, {"loc": ORIGIN + "/new.xml"}]
    assert call("PUT", f"/v1/sitemaps?index={q(INDEX)}", listed).json()["rejected"][0]["code"] == "owned-by-another"
    reply = call("PUT", f"/v1/sitemaps?index={q(INDEX)}", [{"loc": ORIGIN + "/theirs.xml"}, {"loc": ORIGIN + "/new.xml"}])
    assert reply.status == 200 and (reply.json()["created"], reply.json()["removed"], reply.json()["updated"]) == (1, 1, 0), reply
    theirs = server.api("GET", f"/v1/sitemaps?loc={q(ORIGIN + '/theirs.xml')}").json()["sitemaps"][0]
    assert theirs["lastmod"] is None and call("DELETE", f"/v1/sitemaps/{theirs['id']}").json()["code"] == "outside-token-scope"
    # Taken over by nobody: it may not be moved into another index either.
    assert server.api("POST", "/v1/indexes", {"url": ORIGIN + "/other.xml"}).status == 201
    assert call("POST", "/v1/sitemaps", {"loc": ORIGIN + "/theirs.xml", "index": ORIGIN + "/other.xml"}).status == 403
    skipped = call("POST", "/v1/sitemaps?on_error=skip", [{"loc": ORIGIN + "/theirs.xml", "lastmod": "2020-01-31"}, {"loc": ORIGIN + "/more.xml"}]).json()
    assert skipped["created"] == 1 and skipped["rejected"][0]["code"] == "outside-token-scope"
    # Refused as a whole, a list shows which lines it is for.
    refused = call("POST", "/v1/sitemaps", [{"loc": ORIGIN + "/more.xml"}, {"loc": ORIGIN + "/theirs.xml", "lastmod": "2020-01-31"}])
    outcome = refused.json()
    assert (refused.status, outcome["code"], outcome["rejected_total"]) == (403, "outside-token-scope", 1), refused
    assert [(r["line"], r["loc"], r["code"]) for r in outcome["rejected"]] == [(2, ORIGIN + "/theirs.xml", "outside-token-scope")], outcome


# ---- who one is


def test_a_token_reports_itself(start):
    server = start(sites=(ORIGIN,))
    token = server.cli("token", "add", "blog", "--prefix", BLOG, "--own", "--expires", "90d").out.strip()
    eventually(lambda: server.api("GET", "/v1/token", token=token).status == 200, "the token is known")
    me = server.api("GET", "/v1/token", token=token).json()
    assert {k: me[k] for k in ("name", "site", "prefix", "role", "own")} == {"name": "blog", "site": ORIGIN, "prefix": BLOG, "role": "write", "own": True}
    assert me["expires_at"] > "2026"
    root = server.api("GET", "/v1/token").json()
    assert (root["name"], root["site"], root["role"], root["expires_at"]) == ("environment", None, "admin", None)
    listed = lambda: {t["name"]: t for t in server.api("GET", "/v1/tokens").json()["tokens"]}
    eventually(lambda: listed()["blog"]["last_used_at"], "its use is noted")
    blog = listed()["blog"]
    hour = time.strftime("%Y-%m-%dT%H:00:00Z", time.strptime(blog["last_used_at"], "%Y-%m-%dT%H:%M:%SZ"))
    assert blog["last_used_at"] == max(hour, blog["created_at"]) and blog["managed"] is False
    revision = server.metrics()["sitemapd_catalogue_revision"]
    unused = server.cli("token", "add", "unused", "--role", "read").out.strip()
    eventually(lambda: "unused" in listed(), "the token is known")
    assert listed()["unused"]["last_used_at"] is None
    made = eventually(lambda: server.metrics()["sitemapd_catalogue_revision"] > revision and server.metrics()["sitemapd_catalogue_revision"], "its revision")
    assert server.api("GET", "/v1/token", token=unused).status == 200
    eventually(lambda: listed()["unused"]["last_used_at"], "its use is noted")
    assert server.metrics()["sitemapd_catalogue_revision"] == made, "that makes no revision"
    assert "unused" in server.cli("token", "list").out and '"last_used_at":"20' in server.cli("token", "list", "--json").out
    assert server.api("DELETE", "/v1/tokens/unused").status == 204
    assert server.api("GET", "/v1/token", token=unused).status == 401
    assert server.api("DELETE", "/v1/tokens/environment").status == 404, "not one of the catalogue's"


# ---- tokens of the configuration


def configured(folder, name, token, *lines):
    path = os.path.join(folder, name + ".sha256")
    with open(path, "w", encoding="utf-8") as file:
        file.write(HASH(token) + "  -\n")
    return f'[token "{name}"]\nsha256_file = {path}\n' + "".join(line + "\n" for line in lines)


def who(server, token):
    reply = server.api("GET", "/v1/token", token=token)
    return reply.json()["name"] if reply.status == 200 else reply.status


def test_tokens_of_the_configuration(start, tmp_path):
    base = f'[site "main"]\norigin = {ORIGIN}\n'
    blog = configured(tmp_path, "blog", "one", f"prefix = {BLOG}")
    server = start(sites=(), config=base + blog + configured(tmp_path, "ops", "two", "role = admin"))
    assert who(server, "one") == "blog" and who(server, "two") == "ops"
    assert server.api("POST", "/v1/sitemaps", {"loc": BLOG + "a.xml"}, token="one").status == 201
    assert server.api("POST", "/v1/sitemaps", {"loc": ORIGIN + "/a.xml"}, token="one").status == 403
    listed = {t["name"]: t for t in server.api("GET", "/v1/tokens").json()["tokens"]}
    assert listed["blog"]["managed"] and listed["blog"]["prefix"] == BLOG
    assert server.api("DELETE", "/v1/tokens/blog").json()["code"] == "managed-by-config"
    assert server.cli("token", "revoke", "blog").code == 1 and server.cli("token", "add", "blog").code == 1
    assert who(server, "one") == "blog"

    def reload(config, good=True):
        count = lambda: server.metrics()['sitemapd_config_reloads_total{result="%s"}' % ("applied" if good else "refused")]
        before = count()
        (tmp_path / "sitemapd.conf").write_text(config, encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: count() > before, "it was read again")

    # Another token under the name: the old one ends at once, and what it registered stays.
    reload(base + configured(tmp_path, "blog", "three", f"prefix = {BLOG}"))
    assert who(server, "one") == 401 and who(server, "two") == 401 and who(server, "three") == "blog"
    assert server.api("GET", "/v1/sitemaps", token="three").json()["sitemaps"][0]["source"] == "blog"
    # One of the catalogue's with the name of one of the configuration's is refused, clearly.
    assert server.cli("token", "add", "deploy").code == 0
    reload(base + configured(tmp_path, "blog", "three", f"prefix = {BLOG}") + configured(tmp_path, "deploy", "four"), good=False)
    assert "deploy" in server.wait_for_log("not created by the configuration")[0]
    assert who(server, "four") == 401 and who(server, "three") == "blog"
    reload(base)
    assert who(server, "three") == 401


@pytest.mark.parametrize("section, why", [
    ('[token "a"]\n', "needs a sha256_file"),
    ('[token "a+b"]\nsha256_file = {good}\n', "a token's name may have only"),
    ('[token "a"]\nsha256_file = {none}\n', "cannot be read"),
    ('[token "a"]\nsha256_file = {bad}\n', "has no SHA-256"),
    ('[token "a"]\nsha256_file = {good}\nprefix = https://www.example.com/blog\n', "must end with a slash"),
    ('[token "a"]\nsha256_file = {good}\nprefix = https://www.example.com/blog/\nrole = admin\n', "role admin cannot be limited"),
    ('[token "a"]\nsha256_file = {good}\nrole = owner\n', "read write admin"),
    ('[token "a"]\nsha256_file = {good}\nexpires = 90d\n', "must be a date or time"),
    ('[token "a"]\nsha256_file = {good}\n[token "b"]\nsha256_file = {good}\n', "is the same token as"),
])
def test_check_config_reports_what_is_wrong_with_a_token(tmp_path, section, why):
    (tmp_path / "good").write_text("a" * 64, encoding="utf-8")
    (tmp_path / "bad").write_text("smd_" + "a" * 43, encoding="utf-8")
    config = tmp_path / "new.conf"
    config.write_text(section.format(good=tmp_path / "good", bad=tmp_path / "bad", none=tmp_path / "none"), encoding="utf-8")
    said = sitemapd("check-config", "--config", str(config))
    assert said.code == 1 and why in said.err + said.out and f"{config}:" in said.err + said.out, said


# ---- freeze


def test_nothing_changes_in_what_is_frozen(start, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    urlset = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://www.example.com/</loc></url></urlset>'
    (files / "one.xml").write_text(urlset, encoding="utf-8")
    config = f'[site "main"]\norigin = {ORIGIN}\n[source "files"]\ndirectory = {files}\nurl = {ORIGIN}/files/\nsettle = 0s\n'
    server = start(sites=(), config=config)
    locs = lambda: [e["loc"] for e in server.api("GET", "/v1/sitemaps").json()["sitemaps"]]
    eventually(lambda: locs() == [ORIGIN + "/files/one.xml"], "the first scan")
    assert server.register(ORIGIN + "/a.xml").status == 201
    page = server.get("/sitemap_index.xml")
    site = server.api("GET", "/v1/sites").json()["sites"][0]["id"]
    index = server.api("GET", "/v1/indexes").json()["indexes"][0]["id"]
    reloads = 0
    for target in (f"/v1/indexes/{index}", f"/v1/sites/{site}"):
        assert server.api("PATCH", target, {"frozen": True}).json()["frozen"] is True, "state, not policy: the site is the configuration's"
        assert server.api("GET", f"/v1/indexes/{index}").json()["frozen"] is True
        health = server.api("GET", "/readyz", token=None).json()
        assert health["status"] == "degraded" and "frozen" in [r["code"] for r in health["reasons"]] and server.metrics()["sitemapd_frozen_indexes"] == 1
        entry = server.api("GET", f"/v1/sitemaps?loc={q(ORIGIN + '/a.xml')}").json()["sitemaps"][0]["id"]
        for method, call, body in (("POST", "/v1/sitemaps", {"loc": ORIGIN + "/b.xml"}), ("POST", "/v1/sitemaps", {"loc": ORIGIN + "/a.xml", "lastmod": "2026-01-31"}),
                                   ("POST", "/v1/sitemaps", [{"loc": ORIGIN + "/b.xml"}]), ("PUT", f"/v1/sitemaps?index={q(INDEX)}&source=*&max_removed=9", []),
                                   ("DELETE", f"/v1/sitemaps?loc={q(ORIGIN + '/a.xml')}", None), ("DELETE", f"/v1/sitemaps/{entry}", None)):
            reply = server.api(method, call, body)
            assert reply.status == 409 and reply.json()["code"] == "frozen", (method, call, reply)
        (files / "one.xml").unlink()
        (files / "two.xml").write_text(urlset, encoding="utf-8")
        assert server.api("POST", "/v1/sources/files/scan?max_removed=9").status == 200
        assert locs() == [ORIGIN + "/files/one.xml", ORIGIN + "/a.xml"] and server.get("/sitemap_index.xml").body == page.body
        server.process.send_signal(signal.SIGHUP)
        reloads += 1
        server.wait_for_log(" reloaded: ", reloads)
        assert server.api("POST", "/v1/sitemaps", {"loc": ORIGIN + "/b.xml"}).status == 409, "no reload undoes it"
        (files / "two.xml").unlink()
        (files / "one.xml").write_text(urlset, encoding="utf-8")
        assert server.api("POST", "/v1/sources/files/scan").status == 200, "nothing is held any more that the thaw would release"
        assert server.api("PATCH", target, {"frozen": False}).json()["frozen"] is False
        assert server.api("POST", "/v1/sources/files/scan").status == 200
    assert server.metrics()["sitemapd_frozen_indexes"] == 0
    # What was held is published by itself after the thaw.
    assert server.cli("freeze", INDEX).code == 0
    eventually(lambda: server.metrics()["sitemapd_frozen_indexes"] == 1, "the command's freeze is seen")
    (files / "three.xml").write_text(urlset, encoding="utf-8")
    assert server.api("POST", "/v1/sources/files/scan").status == 200
    server.wait_for_log("source-frozen")
    assert ORIGIN + "/files/three.xml" not in locs()
    assert server.cli("thaw", INDEX).code == 0
    eventually(lambda: ORIGIN + "/files/three.xml" in locs(), "what was held comes")
    assert server.cli("freeze", ORIGIN).code == 0 and server.cli("add", ORIGIN + "/c.xml").code == 1
    assert server.cli("freeze", ORIGIN + "/none.xml").code == 1


def test_a_freeze_for_all_sites_is_not_lifted_by_one(start):
    """Nor passed by its undo; what the site's own token froze both lift."""
    server = start()
    site = server.api("GET", "/v1/sites").json()["sites"][0]["id"]
    index = server.api("GET", "/v1/indexes").json()["indexes"][0]["id"]
    token = server.cli("token", "add", "one", "--site", ORIGIN, "--role", "admin").out.strip()
    eventually(lambda: server.api("GET", "/v1/token", token=token).status == 200, "the new token")
    made = server.bulk([f"{ORIGIN}/a.xml"]).json()["revision"]
    for target in (f"/v1/sites/{site}", f"/v1/indexes/{index}"):
        patch = lambda frozen, whose: server.api("PATCH", target, {"frozen": frozen}, token=whose)
        by = lambda: server.api("GET", target).json()["frozen_by"]
        undo = lambda whose: server.api("POST", f"/v1/history/{made}/undo?max_removed=1&dry_run=1", token=whose)
        for whose, word in ((token, "site"), (server.token, "all-sites")):
            assert patch(True, whose).status == 200 and by() == word
            assert patch(True, token).status == 200 and by() == word, "it is not lowered"
            for asks in (token, server.token):
                refused = word == "all-sites" and asks == token
                assert undo(asks).status == (409 if refused else 200)
                if refused:
                    assert undo(asks).json()["code"] == "frozen"
            if word == "all-sites":
                refusal = patch(False, token)
                assert refusal.status == 403 and refusal.json()["code"] == "needs-token-of-all-sites", refusal
                assert by() == word
                if "sites" in target:  # whole or not at all
                    refusal = server.api("PATCH", target, {"frozen": False, "cross_hosts": ["c.example.org"]}, token=token)
                    assert refusal.status == 403 and server.api("GET", target).json()["cross_hosts"] == []
        assert patch(False, server.token).status == 200 and by() is None
        assert patch(True, token).status == 200 and patch(False, token).status == 200 and by() is None
        # The higher freeze goes over the lower one.
        assert patch(True, token).status == 200 and patch(True, server.token).status == 200 and by() == "all-sites"
        assert server.cli("index", "list", "--json").lines()[0]["frozen_by"] == "all-sites"
        if "sites" in target:
            assert "frozen by a token for all sites" in server.cli("site", "list").out
        assert patch(False, server.token).status == 200


def test_uses_are_recorded_once_for_each_token(start):
    """Two tokens by turns are not noted again and again, whatever their ids."""
    server = start()
    ids, tokens = [], []
    for wanted in (None, 256 * 3):
        name = f"t{len(tokens)}"
        if wanted:
            with sqlite3.connect(server.database, timeout=60) as catalogue:
                catalogue.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'token'", (ids[0] + wanted - 1,))
        tokens.append(server.cli("token", "add", name).out.strip())
        with sqlite3.connect(server.database, timeout=60) as catalogue:
            ids.append(catalogue.execute("SELECT id FROM token WHERE name = ?", (name,)).fetchone()[0])
        eventually(lambda: server.api("GET", "/v1/token", token=tokens[-1]).status == 200, "the new token")
    assert (ids[1] - ids[0]) % 256 == 0
    listed = lambda: [t["last_used_at"] for t in server.api("GET", "/v1/tokens").json()["tokens"]]
    eventually(lambda: None not in listed(), "both are noted")
    with sqlite3.connect(server.database, timeout=60) as catalogue:
        catalogue.execute("UPDATE local_token_use SET used_at = 0")
    for token in tokens * 5:
        assert server.api("GET", "/v1/token", token=token).status == 200
    assert server.register(f"{ORIGIN}/behind.xml").status == 201  # the writer's queue is empty up to here
    with sqlite3.connect(server.database, timeout=60) as catalogue:
        assert catalogue.execute("SELECT max(used_at) FROM local_token_use").fetchone() == (0,)


def test_no_token_was_used_before_it_was_made(start):
    """Uses are kept to the hour, and the hour began before the token."""
    server = start(sites=(ORIGIN,))
    bearer = server.cli("token", "add", "fresh").out.strip()
    eventually(lambda: server.api("GET", "/v1/token", token=bearer).status == 200, "the token is known")
    outcome = lambda: next(one for one in server.api("GET", "/v1/tokens").json()["tokens"] if one["name"] == "fresh")
    one = eventually(lambda: outcome() if outcome()["last_used_at"] else None, "its use is kept")
    assert one["last_used_at"] >= one["created_at"], one
    line = next(json.loads(line) for line in server.cli("token", "list", "--json").out.splitlines() if '"fresh"' in line)
    assert line["last_used_at"] == one["last_used_at"], line
