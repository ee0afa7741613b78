# SPDX-License-Identifier: LicenseRef-Undeclared
"""/openapi.json is true: every operation and every status that it documents is provoked on the running
server and the reply held against it, and nothing is answered, routed or read that it does not name."""

import gzip
import itertools
import json
import os
import re
import sqlite3
import urllib.parse

import pytest

from harness import INDEX, ORIGIN, TOKEN, Connection, Server, ask, eventually, request_bytes, seconds
from schema import Invalid, SchemaError, Validator

METHODS = ("get", "put", "post", "delete", "patch")
SHOP = "https://shop.example.org"
MANAGED = "https://managed.example.org"
NO_INDEX = ORIGIN + "/none.xml"
NO_URLSET = ORIGIN + "/none.xml"
SAMPLE_URLSET = ORIGIN + "/products.xml"  # of the examples, too
URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
WRONG = "smd_" + "w" * 43
JSON, NDJSON, COPY = "application/json", "application/x-ndjson", "application/vnd.sqlite3"
# What any reply may have; the document says of Cache-Control what there is to say.
COMMON = {"date", "connection", "content-length", "content-type", "cache-control", "x-content-type-options", "x-request-id"}

REQUEST_ID = re.compile(r"[0-9a-f]{16}")


def q(text):
    return urllib.parse.quote(text, safe="")


# ---- the document -------------------------------------------------------------------------------

class Document:
    def __init__(self, tree):
        self.tree = tree
        self.validator = Validator(tree)
        self.operations = {}
        for path, item in tree["paths"].items():
            for method, operation in item.items():
                if method != "parameters":
                    assert method in METHODS, (path, method)
                    assert operation["operationId"] not in self.operations, "an operationId twice"
                    self.operations[operation["operationId"]] = (method.upper(), path, operation)

    def follow(self, node):
        return self.validator.resolve(node["$ref"]) if "$ref" in node else node

    def response(self, name, status):
        responses = self.operations[name][2]["responses"]
        assert str(status) in responses, f"{name} answers {status}, which is not documented"
        return self.follow(responses[str(status)])

    def statuses(self):
        return {(n, int(s)) for n, (_, _, o) in self.operations.items() for s in o["responses"]}

    def parameters(self, name, place):
        method, path, operation = self.operations[name]
        every = self.tree["paths"][path].get("parameters", []) + operation.get("parameters", [])
        return {p["name"]: p for p in map(self.follow, every) if p["in"] == place}

    def body_schema(self, name, kind=JSON):
        return self.operations[name][2]["requestBody"]["content"][kind]["schema"]

    def check(self, name, status, reply):
        """Holds a reply against what is documented for it."""
        assert reply.status == status, (name, status, reply)
        response = self.response(name, status)
        kind, content = reply["Content-Type"], response.get("content", {})
        assert reply["Cache-Control"] == "no-store", reply
        assert REQUEST_ID.fullmatch(reply["X-Request-Id"]), reply
        if not content:
            assert kind is None and reply.body == b"", reply
        else:
            assert kind in content, f"{name} {status}: {kind} is not among {list(content)}"
            assert reply["X-Content-Type-Options"] == "nosniff", reply
            schema = content[kind]["schema"]
            value = reply.json() if re.search("[/+]json$", kind) else reply.body.decode("utf-8", "replace")
            self.validator.check(value, schema)
            self.validator.check(value, schema, closed=True)
            if kind == "application/problem+json":
                assert value["status"] == status, value
        headers = {n.lower(): self.follow(h) for n, h in response.get("headers", {}).items()}
        for header, rule in headers.items():
            value = reply.get(header)
            assert value is not None or not rule.get("required"), f"{name} {status}: without {header}"
            if value is not None:
                self.validator.check(value, rule["schema"], at=header)
        extra = {n.lower() for n, _ in reply.headers} - COMMON - set(headers)
        assert not extra, f"{name} {status}: headers that are not documented: {extra}"


@pytest.fixture(scope="module")
def document(world):
    return Document(ask(world.server.admin, "GET", "/openapi.json", host=world.server.admin).json())


# ---- servers in the states that it takes --------------------------------------------------------

SERVERS = []


@pytest.fixture(scope="module", autouse=True)
def servers_end():
    yield
    try:
        for server in SERVERS:
            if server.process is not None:
                server.stop()
    finally:
        for server in SERVERS:
            server.kill()
        SERVERS.clear()


class World:
    """A server with three sites, one of them the configuration's, and small limits; others in the
    states that some statuses need, started when first asked for."""

    CONFIG = f'[limits]\nmax_body = 1K\nmax_bulk = 2K\nmax_bulk_entries = 20\n[site "managed"]\norigin = {MANAGED}\n'
    CONFIG += '[engine "bing"]\napi_key_file = {folder}/bing.key\nendpoint = http://127.0.0.1:9/\n'
    CONFIG += '[token "configured"]\nsha256_file = {folder}/configured.sha256\n'

    def __init__(self, folders):
        self.folders = folders
        self.number = itertools.count()
        self.others = {}
        hashes = folders.mktemp("hashes")
        (hashes / "configured.sha256").write_text("a" * 64 + "  -\n", encoding="utf-8")
        (hashes / "bing.key").write_text("a-key", encoding="utf-8")
        (hashes / "bing.key").chmod(0o600)
        self.server = self.start("world", sites=(ORIGIN, SHOP), config=self.CONFIG.replace("{folder}", str(hashes)))
        self.api = self.server.api
        self.shop_token = self.server.make_token("shop", "--site", SHOP, "--role", "admin")
        self.reader_token = self.server.make_token("reader", "--role", "read")
        self.part_token = self.server.make_token("part", "--prefix", ORIGIN + "/part/")
        self.server.make_token("spare")
        made = self.api("POST", "/v1/urlsets", {"url": SAMPLE_URLSET, "with": ["images"]})
        assert made.status == 201, made

    def start(self, name, config="", **options):
        """With the source `files`: one good file and one that is refused."""
        folder = self.folders.mktemp(name)
        self.write_file(folder, "files/good.xml")
        self.write_file(folder, "files/broken.xml", text="<urlset><url>")
        config += f'[source "files"]\ndirectory = {folder}/files\nurl = {ORIGIN}/files/\nsettle = 0s\n'
        server = Server(folder, config=config, **options)
        SERVERS.append(server)
        server.start()
        eventually(lambda: (lambda s: s["last_scan_at"] and not s["scanning"])(self.source(server)), "the first scan is over")
        return server

    def write_file(self, folder, path, text=f"{URLSET}<url><loc>{ORIGIN}/</loc></url></urlset>"):
        os.makedirs(folder / "files", exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")

    def source(self, server, name="files"):
        return [s for s in server.api("GET", "/v1/sources").json()["sources"] if s["name"] == name][0]

    def other(self, name):
        if name not in self.others:
            self.others[name] = getattr(self, "make_" + name)()
        return self.others[name]

    def make_guessed(self):
        return self.start("guessed")

    def when_guessed(self, ask_it):
        """The answer to one wrong token more than a minute takes; the minute may end just before it is asked."""
        for _ in range(100):
            reply = ask_it(self.other("guessed"))
            if reply.status == 429:
                break
        return reply

    def when_reserved(self, ask_it):
        for _ in range(100):
            reply = ask_it(self.other("reserved"))
            if reply.status == 429:
                break
        return reply

    def make_crowded(self):
        """Its one place for a request that waits is taken."""
        server = self.start("crowded", config="[admin]\nmax_suspended = 1\n")
        server.waiter = None
        return server

    def crowded(self):
        server = self.other("crowded")
        place = 'sitemapd_http_suspended{listener="admin"}'
        if server.metrics()[place] == 0:
            server.waiter = Connection(server.admin)
            since = server.api("GET", "/v1/changes").json()["next"]
            authorised = [("Authorization", f"Bearer {TOKEN}")]
            server.waiter.send(request_bytes("GET", f"/v1/changes?since={since}&wait=60", authorised, host=server.admin))
            eventually(lambda: server.metrics()[place] == 1, "the place is taken")
        return server

    def when_crowded(self, ask_it):
        """The answer while the place is taken: the wait of a minute may end just before it is asked."""
        for _ in range(5):
            reply = ask_it(self.crowded())
            if reply.status == 503:
                break
        return reply

    def make_reserved(self):
        """Metrics, and the details of /readyz, are for tokens for all sites."""
        server = self.start("reserved", config="[admin]\nmetrics_token = yes\n")
        server.shop = server.cli("token", "add", "shop", "--site", ORIGIN).out.strip()
        return server

    def make_locked(self):
        """Another process holds the write lock of its catalogue."""
        server = self.start("locked").restart(write_timeout=f"{int(seconds(200))}ms")
        server.lock = sqlite3.connect(server.database, timeout=60, isolation_level=None)
        server.lock.execute("BEGIN IMMEDIATE")
        self.write_file(server.folder, "files/new.xml")  # a scan has something to write
        return server

    def make_lost(self):
        """Its catalogue is gone, and no page is in memory."""
        server = self.start("lost")
        os.rename(server.database, server.database + ".aside")
        eventually(lambda: ask(server.admin, "GET", "/readyz", host=server.admin).status == 503, "it sees that")
        return server

    def make_unmounted(self):
        """The folder of its source is gone."""
        server = self.start("unmounted")
        os.rename(server.folder / "files", server.folder / "aside")
        return server

    # Things to work on, new each time.

    def loc(self, origin=ORIGIN):
        return f"{origin}/made/{next(self.number)}.xml"

    def entry(self, origin=ORIGIN, **fields):
        """What registering it answered."""
        reply = self.api("POST", "/v1/sitemaps", {"loc": self.loc(origin), **fields})
        assert reply.status == 201, reply
        return reply

    def entry_path(self, origin=ORIGIN):
        return self.entry(origin)["Location"]

    def site(self, **fields):
        reply = self.api("POST", "/v1/sites", {"origin": f"https://site{next(self.number)}.example.net", **fields})
        assert reply.status == 201, reply
        return reply.json()

    def site_path(self, origin):
        found = [s["id"] for s in self.api("GET", "/v1/sites").json()["sites"] if s["origin"] == origin]
        return f"/v1/sites/{found[0]}"

    def index(self, origin=ORIGIN, entries=0):
        """A new index with so many entries."""
        url = f"{origin}/index{next(self.number)}.xml"
        reply = self.api("POST", "/v1/indexes", {"url": url})
        assert reply.status == 201, reply
        for _ in range(entries):
            self.entry(origin, index=url)
        return reply.json()

    def urlset(self, origin=ORIGIN, rows=0, **fields):
        """A new urlset with so many page URLs."""
        url = f"{origin}/urlset{next(self.number)}.xml"
        reply = self.api("POST", "/v1/urlsets", {"url": url, **fields})
        assert reply.status == 201, reply
        for _ in range(rows):
            self.row(url, origin)
        return reply.json()

    def row(self, urlset=None, origin=ORIGIN, **fields):
        """What registering a page URL answered."""
        reply = self.api("POST", "/v1/urls", {"loc": self.loc(origin), "urlset": urlset or self.urlset(origin)["url"], **fields})
        assert reply.status == 201, reply
        return reply

    def index_path(self, url):
        found = [i["id"] for i in self.api("GET", "/v1/indexes?limit=1000").json()["indexes"] if i["url"] == url]
        return f"/v1/indexes/{found[0]}"


@pytest.fixture(scope="module")
def world(tmp_path_factory, servers_end):
    return World(tmp_path_factory)


# ---- the recipes --------------------------------------------------------------------------------

# One request of each operation, for what is refused whatever it names.
SAMPLES = {
    "getHealth": ("GET", "/healthz", None),
    "getReadiness": ("GET", "/readyz", None),
    "getMetrics": ("GET", "/metrics", None),
    "getOpenApi": ("GET", "/openapi.json", None),
    "listSitemaps": ("GET", "/v1/sitemaps", None),
    "registerSitemaps": ("POST", "/v1/sitemaps", {"loc": f"{ORIGIN}/sample.xml"}),
    "replaceSitemaps": ("PUT", f"/v1/sitemaps?index={q(INDEX)}", [{"loc": f"{ORIGIN}/sample.xml"}]),
    "removeSitemapByLoc": ("DELETE", f"/v1/sitemaps?loc={q(ORIGIN + '/sample.xml')}", None),
    "getSitemap": ("GET", "/v1/sitemaps/none", None),
    "removeSitemap": ("DELETE", "/v1/sitemaps/none", None),
    "listUrls": ("GET", f"/v1/urls?urlset={q(SAMPLE_URLSET)}", None),
    "registerUrls": ("POST", f"/v1/urls?urlset={q(SAMPLE_URLSET)}", {"loc": f"{ORIGIN}/sample"}),
    "replaceUrls": ("PUT", f"/v1/urls?urlset={q(SAMPLE_URLSET)}", [{"loc": f"{ORIGIN}/sample"}]),
    "removeUrlByLoc": ("DELETE", f"/v1/urls?urlset={q(NO_URLSET)}&loc={q(ORIGIN + '/sample')}", None),
    "getUrl": ("GET", "/v1/urls/none", None),
    "removeUrl": ("DELETE", "/v1/urls/none", None),
    "listUrlsets": ("GET", "/v1/urlsets", None),
    "addUrlset": ("POST", "/v1/urlsets", {"url": f"{ORIGIN}/sample/urls.xml"}),
    "getUrlset": ("GET", "/v1/urlsets/999", None),
    "changeUrlset": ("PATCH", "/v1/urlsets/999", {"max_pages": 3}),
    "removeUrlset": ("DELETE", "/v1/urlsets/999", None),
    "listSites": ("GET", "/v1/sites", None),
    "addSite": ("POST", "/v1/sites", {"origin": "https://sample.example.net"}),
    "getSite": ("GET", "/v1/sites/999", None),
    "changeSite": ("PATCH", "/v1/sites/999", {"cross_hosts": []}),
    "removeSite": ("DELETE", "/v1/sites/999", None),
    "listIndexes": ("GET", "/v1/indexes", None),
    "addIndex": ("POST", "/v1/indexes", {"url": f"{ORIGIN}/sample/index.xml"}),
    "getIndex": ("GET", "/v1/indexes/999", None),
    "changeIndex": ("PATCH", "/v1/indexes/999", {"frozen": True}),
    "removeIndex": ("DELETE", "/v1/indexes/999", None),
    "listCrawlers": ("GET", "/v1/crawlers", None),
    "listCrawlerPages": ("GET", "/v1/crawlers/googlebot/pages", None),
    "listEngines": ("GET", "/v1/engines", None),
    "getStats": ("GET", "/v1/stats", None),
    "listEngineSitemaps": ("GET", "/v1/engines/bing/sitemaps", None),
    "getToken": ("GET", "/v1/token", None),
    "listTokens": ("GET", "/v1/tokens", None),
    "revokeToken": ("DELETE", "/v1/tokens/none", None),
    "renderPage": ("GET", f"/v1/render?index={q(INDEX)}", None),
    "getBackup": ("GET", "/v1/backup", None),
    "copySite": ("GET", "/v1/sites/999/copy", None),
    "importSite": ("POST", "/v1/sites/import", b"not a copy"),
    "listSources": ("GET", "/v1/sources", None),
    "scanSource": ("POST", "/v1/sources/files/scan", None),
    "addSource": ("POST", "/v1/sources", {"name": "nobodys", "upstream": "http://127.0.0.1:9/i.xml"}),
    "getSource": ("GET", "/v1/sources/files", None),
    "changeSource": ("PATCH", "/v1/sources/none", {"poll": 3600}),
    "removeSource": ("DELETE", "/v1/sources/none", None),
    "listChecks": ("GET", "/v1/checks", None),
    "pollSitemap": ("POST", f"/v1/checks?loc={q(ORIGIN + '/none.xml')}", None),
    "listHistory": ("GET", "/v1/history", None),
    "getHistory": ("GET", "/v1/history/999999", None),
    "undoChange": ("POST", "/v1/history/999999/undo", None),
    "getDiff": ("GET", f"/v1/diff?from=999999&to=999999&index={q(INDEX)}", None),
    "restoreIndex": ("POST", f"/v1/restore?to=999999&index={q(INDEX)}", None),
    "listChanges": ("GET", "/v1/changes", None),
}
OPEN = ("getHealth", "getReadiness", "getMetrics", "getOpenApi")
LISTS = ("registerSitemaps", "replaceSitemaps", "registerUrls", "replaceUrls")
RECIPES = {}


def recipe(name, status, how):
    """Another way to `status`: `how` takes the World and returns the reply."""
    RECIPES.setdefault((name, status), []).append(how)


def sample(name, server, query="", headers=(), token="", host=None, body=None, **more):
    """Sends the operation's sample, changed as said."""
    method, target, content = SAMPLES[name]
    if query:
        path, _, own = target.partition("?")
        own = [p for p in own.split("&") if p and p.partition("=")[0] != query.partition("=")[0]]
        target = path + "?" + "&".join(own + [query])
    headers = list(headers)
    if token or (name not in OPEN and token is not None):
        headers.append(("Authorization", f"Bearer {token or server.token}"))
    if content is not None and not any(n == "Content-Type" for n, _ in headers):
        headers.append(("Content-Type", COPY if isinstance(content, bytes) else JSON))
    if body is None:
        body = b"" if content is None else content if isinstance(content, bytes) else json.dumps(content).encode()
    return ask(server.admin, method, target, headers, body, host=host or server.admin, **more)


def everywhere(name):
    recipe(name, 400, lambda w: sample(name, w.server, headers=[("Host", "localhost")]))
    recipe(name, 414, lambda w: sample(name, w.server, query="x=" + "a" * 9000))
    recipe(name, 421, lambda w: sample(name, w.server, host="evil.example"))
    recipe(name, 431, lambda w: sample(name, w.server, headers=[("X-Long", "a" * 10000)]))
    if SAMPLES[name][2] is None:
        recipe(name, 413, lambda w: sample(name, w.server, headers=[("Content-Length", "9000")], length=False))


def everywhere_in_v1(name):
    recipe(name, 400, lambda w: sample(name, w.server, query="nonsense=1"))
    recipe(name, 400, lambda w: sample(name, w.server, query="nonsense=%zz"))
    recipe(name, 400, lambda w: sample(name, w.server, query="nonsense=1&nonsense=1"))
    recipe(name, 401, lambda w: sample(name, w.server, token=None))
    # From an address of its own: so many of one are not let in any more.
    recipe(name, 401, lambda w: sample(name, w.server, token=WRONG, source=f"127.0.0.{100 + list(SAMPLES).index(name)}"))
    recipe(name, 429, lambda w: w.when_guessed(lambda server: sample(name, server, token=WRONG)))
    recipe(name, 503, lambda w: w.when_crowded(lambda server: sample(name, server)))
    if name != "importSite":  # an invalid copy is rejected first
        recipe(name, 503, lambda w: sample(name, w.other("lost")))


def with_body(name):
    recipe(name, 400, lambda w: sample(name, w.server, body=b"{"))
    recipe(name, 411, lambda w: sample(name, w.server, body=b"", length=False, headers=[("Content-Type", JSON)]))
    recipe(name, 415, lambda w: sample(name, w.server, headers=[("Content-Type", "text/plain")]))
    recipe(name, 413, lambda w: sample(name, w.server, body=b'{"x": "' + b"a" * 3000 + b'"}'))
    recipe(name, 413, lambda w: sample(name, w.server, body=b"", length=False, headers=[("Content-Length", "9" * 11)]))


def with_file(name):
    recipe(name, 411, lambda w: sample(name, w.server, body=b"", length=False))
    recipe(name, 413, lambda w: sample(name, w.server, body=b"", length=False, headers=[("Content-Length", "9" * 17)]))
    recipe(name, 415, lambda w: sample(name, w.server, headers=[("Content-Type", JSON)]))


def with_list(name):
    target = SAMPLES[name][1]
    send = lambda w, body, headers=(): w.api(SAMPLES[name][0], target, body=body, content_type=NDJSON, headers=headers)
    line = b'{"loc": "https://www.example.com/made/list.xml"}\n'
    packed = [("Content-Encoding", "gzip")]
    recipe(name, 413, lambda w: send(w, b"b14\r\n" + b"\n" * 0xb14 + b"\r\n0\r\n\r\n", [("Transfer-Encoding", "chunked")]))
    recipe(name, 413, lambda w: send(w, line * 21))
    recipe(name, 413, lambda w: send(w, gzip.compress(b"\n" * 1000000), packed))
    recipe(name, 415, lambda w: send(w, line, [("Content-Encoding", "br")]))
    recipe(name, 400, lambda w: send(w, line, packed))
    recipe(name, 400, lambda w: send(w, gzip.compress(line)[:-4], packed))
    recipe(name, 400, lambda w: sample(name, w.server, query="on_error=perhaps"))
    recipe(name, 422, lambda w: send(w, line + b'{"loc": "relative"}\n{"lastmod": 7}\n'))
    recipe(name, 422, lambda w: sample(name, w.server, query="source=a%20b"))


for name in SAMPLES:
    everywhere(name)
    if name not in OPEN:
        everywhere_in_v1(name)
    if SAMPLES[name][0] != "GET" and name not in ("pollSitemap", "importSite"):  # neither waits for the writer
        recipe(name, 503, lambda w, name=name: sample(name, w.other("locked")))
    if SAMPLES[name][2] is not None:
        (with_file if name == "importSite" else with_body)(name)
    if name in LISTS:
        with_list(name)


def get(name, target):
    """A GET that has an ETag: 200, and 304 where the client has it."""
    where = target if callable(target) else lambda w: target
    recipe(name, 200, lambda w: w.api("GET", where(w)))

    def again(w):
        path = where(w)
        reply = w.api("GET", path)
        for _ in range(10):  # what moved by itself meanwhile, as a source that was scanned, has another tag
            tag = reply["ETag"]
            reply = w.api("GET", path, headers=[("If-None-Match", tag)])
            if reply.status != 200 or reply["ETag"] == tag:
                break
        return reply

    recipe(name, 304, again)


def of_shop(method, target, body=None):
    """A call with the token of another site."""
    return lambda w: w.api(method, target(w) if callable(target) else target, body, token=w.shop_token)


def by_reader(method, target, body=None):
    """A call that needs more than the role of its token."""
    return lambda w: w.api(method, target, body, token=w.reader_token)


def in_frozen(w, method, target):
    """A call on an entry of a frozen index; `target` makes its path of what registering it answered."""
    index = w.index()
    entry = w.entry(index=index["url"])
    assert w.api("PATCH", f"/v1/indexes/{index['id']}", {"frozen": True}).status == 200
    return w.api(method, target(entry))


for name in OPEN:
    recipe(name, 200, lambda w, name=name: sample(name, w.server))
recipe("getReadiness", 200, lambda w: sample("getReadiness", w.other("locked")))
recipe("getReadiness", 503, lambda w: sample("getReadiness", w.other("lost")))
recipe("getReadiness", 200, lambda w: sample("getReadiness", w.other("reserved"), token=None))
recipe("getReadiness", 401, lambda w: sample("getReadiness", w.other("reserved"), token=WRONG, source="127.0.0.98"))
recipe("getMetrics", 200, lambda w: sample("getMetrics", w.other("reserved"), token=w.other("reserved").token))
recipe("getMetrics", 401, lambda w: sample("getMetrics", w.other("reserved"), token=None))
recipe("getMetrics", 403, lambda w: sample("getMetrics", w.other("reserved"), token=w.other("reserved").shop))
for name in ("getReadiness", "getMetrics"):
    recipe(name, 429, lambda w, name=name: w.when_reserved(lambda server: sample(name, server, token=WRONG)))

# /v1/sitemaps
get("listSitemaps", "/v1/sitemaps")
get("listSitemaps", lambda w: f"/v1/sitemaps?limit=1&index={q(w.index(entries=2)['url'])}")
get("listSitemaps", lambda w: f"/v1/sitemaps?prefix={q(ORIGIN + '/made/')}&source=environment")
get("listSitemaps", lambda w: f"/v1/sitemaps?loc={q(w.entry(lastmod='2026', digest='d').json()['sitemap']['loc'])}")
lines = [("Accept", NDJSON)]
get("listSitemaps", lambda w: f"/v1/sitemaps?index={q(w.index(entries=2)['url'])}&contains=.xml&warned=0&limit=1")
recipe("listSitemaps", 400, lambda w: w.api("GET", "/v1/sitemaps?warned=1"))
recipe("listSitemaps", 200, lambda w: w.api("GET", f"/v1/sitemaps?index={q(w.index(entries=2)['url'])}", headers=lines))
recipe("listSitemaps", 400, lambda w: w.api("GET", "/v1/sitemaps?limit=1", headers=lines))
recipe("listSitemaps", 404, of_shop("GET", f"/v1/sitemaps?index={q(INDEX)}"))
recipe("listSitemaps", 404, lambda w: w.api("GET", f"/v1/sitemaps?index={q(NO_INDEX)}", headers=lines))
recipe("listSitemaps", 400, lambda w: w.api("GET", "/v1/sitemaps?after=nonsense"))
recipe("listSitemaps", 404, lambda w: w.api("GET", f"/v1/sitemaps?index={q(NO_INDEX)}"))
recipe("listSitemaps", 404, of_shop("GET", f"/v1/sitemaps?index={q(INDEX)}"))
recipe("listSitemaps", 422, lambda w: w.api("GET", "/v1/sitemaps?prefix=relative"))
recipe("listSitemaps", 422, lambda w: w.api("GET", "/v1/sitemaps?loc=relative"))

post = lambda w, body, query="", **more: w.api("POST", "/v1/sitemaps" + query, body, **more)
recipe("registerSitemaps", 201, lambda w: w.entry())
recipe("registerSitemaps", 201, lambda w: w.entry(lastmod="2026-01-31", digest="one"))
recipe("registerSitemaps", 200, lambda w: post(w, {"loc": w.entry().json()["sitemap"]["loc"], "lastmod": "2026-01-31"}))
recipe("registerSitemaps", 200, lambda w: post(w, [{"loc": w.loc()}, {"loc": w.loc(), "lastmod": None, "digest": None, "index": INDEX}]))
recipe("registerSitemaps", 200, lambda w: post(w, [], "?source=other"))
recipe("registerSitemaps", 200, lambda w: post(w, [{"loc": "x"}, {"loc": w.loc(), "lastmod": "never"}, {"loc": w.loc(), "x": 1}], "?on_error=skip"))
recipe("registerSitemaps", 200, lambda w: w.api(
    "POST", f"/v1/sitemaps?index={q(INDEX)}", body=gzip.compress(json.dumps({"loc": w.loc()}).encode()), content_type=NDJSON,
    headers=[("Content-Encoding", "gzip")]))
recipe("registerSitemaps", 400, lambda w: post(w, [{"loc": w.loc()}], headers=[("If-Match", '"x"')]))
recipe("registerSitemaps", 403, of_shop("POST", "/v1/sitemaps", {"loc": f"{ORIGIN}/a.xml"}))
recipe("registerSitemaps", 403, of_shop("POST", f"/v1/sitemaps?index={q(INDEX)}", {"loc": f"{ORIGIN}/a.xml"}))


recipe("registerSitemaps", 200, lambda w: post(w, {"loc": w.loc()}, "?dry_run=1"))
recipe("registerSitemaps", 200, lambda w: post(w, [{"loc": w.loc(), "source": "other", "position": 4000, "index": INDEX}]))
recipe("registerSitemaps", 422, of_shop("POST", "/v1/sitemaps", {"loc": f"{SHOP}/a.xml", "source": "other"}))


def moving(w):
    """A list that empties another index."""
    url = f"{ORIGIN}/moving{next(w.number)}/index.xml"
    assert add(w, url).status == 201
    rows = [url.replace("index", name) for name in ("a", "b")]
    assert post(w, [{"loc": row, "index": url} for row in rows]).status == 200
    return post(w, [{"loc": row, "index": INDEX} for row in rows])


recipe("registerSitemaps", 409, moving)
recipe("registerSitemaps", 412, lambda w: post(w, {"loc": w.entry().json()["sitemap"]["loc"]}, headers=[("If-Match", '"x"')]))
recipe("registerSitemaps", 412, lambda w: post(w, {"loc": w.loc()}, headers=[("If-Match", "*")]))
recipe("registerSitemaps", 422, lambda w: post(w, {"loc": "relative"}))
recipe("registerSitemaps", 422, lambda w: post(w, {"loc": w.loc(), "index": NO_INDEX}))
recipe("registerSitemaps", 422, lambda w: post(w, [{"loc": w.loc(), "index": NO_INDEX}]))
recipe("registerSitemaps", 422, lambda w: post(w, [{"loc": w.loc()}], f"?index={q(NO_INDEX)}"))


def put(w, url, entries, query="", **more):
    return w.api("PUT", f"/v1/sitemaps?index={q(url)}{query}", entries, **more)


recipe("replaceSitemaps", 200, lambda w: put(w, w.index()["url"], [{"loc": w.loc()}, {"loc": w.loc(), "lastmod": "2026-01-31"}]))
recipe("replaceSitemaps", 200, lambda w: put(w, w.index(entries=2)["url"], [], "&max_removed=2&source=*"))
recipe("replaceSitemaps", 200, lambda w: put(w, w.index()["url"], [{"loc": w.loc()}], f"&prefix={q(ORIGIN + '/made/')}&source=other"))
recipe("replaceSitemaps", 200, lambda w: put(w, w.index()["url"], [{"loc": "x"}, {"loc": w.loc(), "lastmod": "never"}], "&on_error=skip"))
recipe("replaceSitemaps", 400, lambda w: put(w, INDEX, {"loc": w.loc()}))
recipe("replaceSitemaps", 400, lambda w: w.api("PUT", "/v1/sitemaps", []))
recipe("replaceSitemaps", 400, lambda w: put(w, INDEX, [], headers=[("If-None-Match", "*")]))
recipe("replaceSitemaps", 412, lambda w: put(w, INDEX, [], headers=[("If-Match", '"x"')]))
recipe("replaceSitemaps", 403, of_shop("PUT", f"/v1/sitemaps?index={q(INDEX)}", []))
recipe("replaceSitemaps", 404, lambda w: put(w, NO_INDEX, []))
recipe("replaceSitemaps", 409, lambda w: put(w, w.index(entries=3)["url"], []))
recipe("replaceSitemaps", 422, lambda w: put(w, INDEX, [], "&prefix=relative"))
recipe("replaceSitemaps", 422, lambda w: put(w, w.index()["url"], [{"loc": w.loc(SHOP)}]))

recipe("replaceSitemaps", 200, lambda w: put(w, w.index()["url"], [{"loc": w.loc()}], "&dry_run=1"))
recipe("renderPage", 200, lambda w: w.api("GET", f"/v1/render?index={q(w.index(entries=2)['url'])}&page=1"))
recipe("renderPage", 400, lambda w: w.api("GET", "/v1/render"))
recipe("renderPage", 404, lambda w: w.api("GET", f"/v1/render?index={q(w.index()['url'])}"))
recipe("renderPage", 404, lambda w: w.api("GET", f"/v1/render?index={q(NO_INDEX)}"))
recipe("renderPage", 404, of_shop("GET", f"/v1/render?index={q(INDEX)}"))
recipe("getBackup", 200, lambda w: w.api("GET", "/v1/backup"))
recipe("getBackup", 403, of_shop("GET", "/v1/backup"))


def copied(w):
    """A site that is gone when its copy is here."""
    site = w.site()
    body = w.api("GET", f"/v1/sites/{site['id']}/copy").body
    assert w.api("DELETE", f"/v1/sites/{site['id']}").status == 200
    return body


bring = lambda w, body, server=None, **more: (server or w.server).api("POST", "/v1/sites/import", body=body, content_type=COPY, **more)
recipe("copySite", 200, lambda w: w.api("GET", f"/v1/sites/{w.site()['id']}/copy"))
recipe("copySite", 403, of_shop("GET", lambda w: w.site_path(SHOP) + "/copy"))
recipe("copySite", 404, lambda w: w.api("GET", "/v1/sites/999/copy"))
recipe("importSite", 201, lambda w: bring(w, copied(w)))
recipe("importSite", 403, lambda w: bring(w, b"", token=w.shop_token))
recipe("importSite", 409, lambda w: bring(w, w.api("GET", f"/v1/sites/{w.site()['id']}/copy").body))
recipe("importSite", 422, lambda w: bring(w, b"not a copy"))
recipe("importSite", 503, lambda w: bring(w, copied(w), w.other("locked")))
recipe("importSite", 503, lambda w: bring(w, copied(w), w.other("lost")))

by_loc = lambda w, loc, **more: w.api("DELETE", f"/v1/sitemaps?loc={q(loc)}", **more)
registered = lambda w: w.entry().json()["sitemap"]["loc"]
recipe("removeSitemapByLoc", 204, lambda w: by_loc(w, registered(w)))
recipe("removeSitemapByLoc", 400, lambda w: w.api("DELETE", "/v1/sitemaps"))
recipe("removeSitemapByLoc", 404, lambda w: by_loc(w, w.loc()))
recipe("removeSitemapByLoc", 404, lambda w: by_loc(w, registered(w), token=w.shop_token))
recipe("removeSitemapByLoc", 403, by_reader("DELETE", f"/v1/sitemaps?loc={q(NO_INDEX)}"))
recipe("removeSitemapByLoc", 409, lambda w: in_frozen(w, "DELETE", lambda made: "/v1/sitemaps?loc=" + q(made.json()["sitemap"]["loc"])))
recipe("removeSitemapByLoc", 412, lambda w: by_loc(w, registered(w), headers=[("If-Match", '"x"')]))
recipe("removeSitemapByLoc", 422, lambda w: by_loc(w, "relative"))

get("getSitemap", World.entry_path)
recipe("getSitemap", 404, lambda w: w.api("GET", "/v1/sitemaps/none"))
recipe("getSitemap", 404, of_shop("GET", World.entry_path))
recipe("removeSitemap", 204, lambda w: w.api("DELETE", w.entry_path()))
recipe("removeSitemap", 403, of_shop("DELETE", World.entry_path))
recipe("removeSitemap", 404, lambda w: w.api("DELETE", "/v1/sitemaps/none"))
recipe("removeSitemap", 409, lambda w: in_frozen(w, "DELETE", lambda made: made["Location"]))
recipe("removeSitemap", 412, lambda w: w.api("DELETE", w.entry_path(), headers=[("If-Match", '"x"')]))


def removed_while_it_matches(w):
    made = w.entry()
    return w.api("DELETE", made["Location"], headers=[("If-Match", made["ETag"])])


recipe("removeSitemap", 204, removed_while_it_matches)

# /v1/urls
of_urls = lambda url, query="": f"/v1/urls?urlset={q(url)}{query}"
own = lambda w, **more: w.urlset(**more)["url"]
with_all = {"with": ["images", "videos", "alternates", "news"], "expires": "900w"}
NEWS = {"publication": {"name": "The Bugle", "language": "en"}, "publication_date": "2026-01-31", "title": "One & two"}
VIDEO = {"thumbnail_loc": "https://cdn.example.net/1.jpg", "title": "One", "description": "Two", "content_loc": "https://cdn.example.net/1.mp4", "duration": 60, "rating": 4.5,
         "view_count": 7, "tag": ["a"], "live": False, "restriction": {"deny": ["DE"]}, "platform": {"allow": ["web"]}, "uploader": {"name": "U", "info": ORIGIN + "/u"}}
EXTENDED = {"images": ["https://cdn.example.net/1.jpg"], "videos": [VIDEO], "alternates": {"de-CH": ORIGIN + "/de", "x-default": ORIGIN + "/"}, "news": NEWS}
rows = lambda w, body, query="", **more: w.api("POST", "/v1/urls" + query, body, **more)
get("listUrls", lambda w: of_urls(own(w, rows=2), "&limit=1"))
get("listUrls", lambda w: of_urls(own(w, rows=1), f"&prefix={q(ORIGIN + '/made/')}&source=environment"))
get("listUrls", lambda w: of_urls(w.row(own(w, **with_all), lastmod="2026", **EXTENDED).json()["url"]["urlset"]))
get("listUrls", lambda w: of_urls(own(w, rows=2), "&contains=.xml&warned=0&limit=1"))
recipe("listUrls", 200, lambda w: w.api("GET", of_urls(own(w, rows=2)), headers=lines))
recipe("listUrls", 400, lambda w: w.api("GET", "/v1/urls"))
recipe("listUrls", 404, lambda w: w.api("GET", of_urls(NO_URLSET)))
recipe("listUrls", 404, lambda w: w.api("GET", of_urls(INDEX)))
recipe("listUrls", 404, of_shop("GET", lambda w: of_urls(own(w))))
recipe("listUrls", 422, lambda w: w.api("GET", of_urls(own(w), "&prefix=relative")))
recipe("registerUrls", 201, lambda w: w.row())
recipe("registerUrls", 201, lambda w: w.row(own(w, **with_all), lastmod="2026-01-31", digest="one", **EXTENDED))
recipe("registerUrls", 200, lambda w: rows(w, [{"loc": w.loc(), "urlset": own(w)}, {"loc": w.loc(), "urlset": own(w), "images": None}]))
recipe("registerUrls", 200, lambda w: rows(w, [{"loc": "x"}, {"loc": w.loc(), "images": ["x"]}], f"?urlset={q(own(w, **with_all))}&on_error=skip"))
recipe("registerUrls", 200, lambda w: rows(w, {"loc": w.loc()}, f"?urlset={q(own(w))}&dry_run=1"))
recipe("registerUrls", 400, lambda w: rows(w, [{"loc": w.loc()}], headers=[("If-Match", '"x"')]))
recipe("registerUrls", 409, lambda w: in_frozen_urlset(w, "POST", lambda made: of_urls(made.json()["url"]["urlset"]), lambda made: {"loc": w.loc()}))
recipe("registerUrls", 412, lambda w: rows(w, {"loc": w.loc(), "urlset": own(w)}, headers=[("If-Match", "*")]))
recipe("registerUrls", 422, lambda w: rows(w, {"loc": w.loc()}))
recipe("registerUrls", 422, lambda w: rows(w, {"loc": w.loc(), "urlset": NO_URLSET}))
recipe("registerUrls", 422, lambda w: rows(w, {"loc": w.loc(), "urlset": own(w), "images": ["https://a.example/1"]}))
recipe("registerUrls", 422, lambda w: rows(w, {"loc": w.loc(), "urlset": own(w, **with_all), "images": ["https://a.example/1", "x"]}))
recipe("registerUrls", 403, by_reader("POST", "/v1/urls", {"loc": ORIGIN + "/a"}))
place = lambda w, url, body, query="", **more: w.api("PUT", of_urls(url, query), body, **more)
recipe("replaceUrls", 200, lambda w: place(w, own(w), [{"loc": w.loc()}, {"loc": w.loc(), "lastmod": "2026-01-31"}]))
recipe("replaceUrls", 200, lambda w: place(w, own(w, rows=2), [], "&max_removed=2&source=*&dry_run=1"))
recipe("replaceUrls", 400, lambda w: place(w, own(w), {"loc": w.loc()}))
recipe("replaceUrls", 400, lambda w: w.api("PUT", "/v1/urls", []))
recipe("replaceUrls", 403, by_reader("PUT", of_urls(NO_URLSET), []))
recipe("replaceUrls", 404, lambda w: place(w, NO_URLSET, []))
recipe("replaceUrls", 409, lambda w: place(w, own(w, rows=3), []))
recipe("replaceUrls", 412, lambda w: place(w, own(w), [], headers=[("If-Match", '"x"')]))
recipe("replaceUrls", 422, lambda w: place(w, own(w), [{"loc": w.loc(SHOP)}]))


def in_frozen_urlset(w, method, target, body=lambda made: None):
    """A call on a page URL of a frozen urlset; `target` makes its path of what registering it answered."""
    urlset = w.urlset()
    made = w.row(urlset["url"])
    assert w.api("PATCH", f"/v1/urlsets/{urlset['id']}", {"frozen": True}).status == 200
    return w.api(method, target(made), body(made))


def changed_while_frozen(w):
    path = urlset_path(w)
    assert w.api("PATCH", path, {"frozen": True}).status == 200
    return w.api("PATCH", path, {"max_pages": 7})


def row_by_loc(w, made=None, **more):
    row = (made or w.row()).json()["url"]
    return w.api("DELETE", of_urls(row["urlset"], f"&loc={q(row['loc'])}"), **more)


recipe("removeUrlByLoc", 204, row_by_loc)
recipe("removeUrlByLoc", 400, lambda w: w.api("DELETE", "/v1/urls?loc=" + q(w.loc())))
recipe("removeUrlByLoc", 400, lambda w: w.api("DELETE", of_urls(NO_URLSET)))
recipe("removeUrlByLoc", 403, by_reader("DELETE", of_urls(NO_URLSET, f"&loc={q(ORIGIN + '/a')}")))
recipe("removeUrlByLoc", 404, lambda w: w.api("DELETE", of_urls(own(w), "&loc=" + q(w.loc()))))
recipe("removeUrlByLoc", 409, lambda w: in_frozen_urlset(
    w, "DELETE", lambda made: of_urls(made.json()["url"]["urlset"], "&loc=" + q(made.json()["url"]["loc"]))))
recipe("removeUrlByLoc", 412, lambda w: row_by_loc(w, headers=[("If-Match", '"x"')]))
recipe("removeUrlByLoc", 422, lambda w: w.api("DELETE", of_urls(own(w), "&loc=relative")))
row_path = lambda w: w.row()["Location"]
get("getUrl", row_path)
recipe("getUrl", 404, lambda w: w.api("GET", "/v1/urls/none"))
recipe("getUrl", 404, lambda w: w.api("GET", w.entry_path().replace("sitemaps", "urls")))
recipe("getUrl", 404, of_shop("GET", row_path))
recipe("removeUrl", 204, lambda w: w.api("DELETE", row_path(w)))
recipe("removeUrl", 403, of_shop("DELETE", row_path))
recipe("removeUrl", 404, lambda w: w.api("DELETE", "/v1/urls/none"))
recipe("removeUrl", 409, lambda w: in_frozen_urlset(w, "DELETE", lambda made: made["Location"]))
recipe("removeUrl", 412, lambda w: w.api("DELETE", row_path(w), headers=[("If-Match", '"x"')]))

# /v1/urlsets
urlset_path = lambda w, **more: f"/v1/urlsets/{w.urlset(**more)['id']}"
get("listUrlsets", "/v1/urlsets?limit=2")
get("listUrlsets", f"/v1/urlsets?site={q(ORIGIN)}")
recipe("listUrlsets", 404, lambda w: w.api("GET", "/v1/urlsets?site=" + q("https://none.example")))
recipe("addUrlset", 201, lambda w: w.api("POST", "/v1/urlsets", {"url": f"{ORIGIN}/urlset{next(w.number)}.xml", "index": INDEX, "max_pages": 5, "page_pattern": "{stem}_{n}{suffix}", **with_all}))
recipe("addUrlset", 201, lambda w: repeated(w, "POST", "/v1/urlsets", {"url": f"{ORIGIN}/urlset{next(w.number)}.xml"}))
recipe("addUrlset", 403, by_reader("POST", "/v1/urlsets", {"url": ORIGIN + "/no.xml"}))
recipe("addUrlset", 409, lambda w: w.api("POST", "/v1/urlsets", {"url": own(w)}))
recipe("addUrlset", 422, lambda w: w.api("POST", "/v1/urlsets", {"url": ORIGIN + "/no.xml", "with": ["audio"]}))
recipe("addUrlset", 422, lambda w: w.api("POST", "/v1/urlsets", {"url": ORIGIN + "/no.txt"}))
recipe("addUrlset", 422, lambda w: w.api("POST", "/v1/urlsets", {"url": ORIGIN + "/no.xml", "index": NO_INDEX}))
get("getUrlset", lambda w: urlset_path(w, rows=2))
recipe("getUrlset", 404, lambda w: w.api("GET", "/v1/urlsets/1"))
recipe("getUrlset", 404, of_shop("GET", urlset_path))
recipe("changeUrlset", 200, lambda w: w.api("PATCH", urlset_path(w), {"frozen": True}))
recipe("changeUrlset", 200, lambda w: w.api("PATCH", urlset_path(w), {"max_pages": 7}))
recipe("changeUrlset", 400, lambda w: w.api("PATCH", urlset_path(w), {"max_pages": 7}, headers=[("If-Match", "*")]))
recipe("changeUrlset", 403, by_reader("PATCH", "/v1/urlsets/999", {"max_pages": 7}))
recipe("changeUrlset", 404, lambda w: w.api("PATCH", "/v1/urlsets/1", {"max_pages": 7}))
recipe("changeUrlset", 422, lambda w: w.api("PATCH", urlset_path(w), {"with": ["news"]}))
recipe("changeUrlset", 422, lambda w: w.api("PATCH", urlset_path(w), {}))
recipe("changeUrlset", 409, lambda w: changed_while_frozen(w))
recipe("removeUrlset", 200, lambda w: w.api("DELETE", urlset_path(w)))
recipe("removeUrlset", 200, lambda w: w.api("DELETE", urlset_path(w, rows=2) + "?max_removed=2&dry_run=1"))
recipe("removeUrlset", 403, by_reader("DELETE", "/v1/urlsets/999"))
recipe("removeUrlset", 404, lambda w: w.api("DELETE", "/v1/urlsets/1"))
recipe("removeUrlset", 409, lambda w: w.api("DELETE", urlset_path(w, rows=2)))
recipe("renderPage", 200, lambda w: w.api("GET", f"/v1/render?urlset={q(own(w, rows=2))}"))
recipe("renderPage", 400, lambda w: w.api("GET", f"/v1/render?urlset={q(INDEX)}&index={q(INDEX)}"))

# /v1/sites
get("listSites", "/v1/sites")
get("listSites", "/v1/sites?limit=1")
recipe("addSite", 201, lambda w: w.api("POST", "/v1/sites", {"origin": f"https://new{next(w.number)}.example.net"}))
recipe("addSite", 201, lambda w: w.api("POST", "/v1/sites", {
    "origin": f"https://new{next(w.number)}.example.net", "cross_hosts": ["cdn.example.net"], "host_aliases": [f"alias{next(w.number)}.example.net"],
    "max_indexes": 7, "index": "/x/index.xml"}))
recipe("addSite", 201, lambda w: w.api("POST", "/v1/sites", {"origin": f"https://new{next(w.number)}.example.net", "index": False}))
recipe("addSite", 403, of_shop("POST", "/v1/sites", {"origin": "https://forbidden.example.net"}))
recipe("addSite", 409, lambda w: w.api("POST", "/v1/sites", {"origin": ORIGIN}))
recipe("addSite", 409, lambda w: w.api("POST", "/v1/sites", {"origin": MANAGED}))
recipe("addSite", 422, lambda w: w.api("POST", "/v1/sites", {"origin": "relative"}))
recipe("addSite", 422, lambda w: w.api("POST", "/v1/sites", {"origin": "https://new.example.net", "index": "/x.html"}))
recipe("addSite", 422, lambda w: w.api("POST", "/v1/sites", {"origin": "https://new.example.net", "host_aliases": ["a b"]}))
get("getSite", lambda w: w.site_path(ORIGIN))
get("getSite", lambda w: w.site_path(MANAGED))
recipe("getSite", 404, lambda w: w.api("GET", "/v1/sites/999"))
recipe("getSite", 404, of_shop("GET", lambda w: w.site_path(ORIGIN)))
patch = lambda w, path, **fields: w.api("PATCH", path, fields)
recipe("changeSite", 200, lambda w: patch(w, f"/v1/sites/{w.site()['id']}", cross_hosts=["cdn.example.net"], max_indexes=9))
recipe("changeSite", 200, lambda w: patch(w, f"/v1/sites/{w.site()['id']}", host_aliases=[f"alias{next(w.number)}.example.net"]))
recipe("changeSite", 200, lambda w: patch(w, f"/v1/sites/{w.site()['id']}"))
recipe("changeSite", 403, of_shop("PATCH", lambda w: w.site_path(ORIGIN), {}))
recipe("changeSite", 403, of_shop("PATCH", lambda w: w.site_path(SHOP), {"max_indexes": 501}))
recipe("changeSite", 409, of_shop("PATCH", lambda w: w.site_path(SHOP), {"cross_hosts": ["www.example.com"]}))
recipe("changeSite", 404, lambda w: patch(w, "/v1/sites/999"))
recipe("changeSite", 409, lambda w: patch(w, w.site_path(MANAGED), cross_hosts=["cdn.example.net"]))
recipe("changeSite", 422, lambda w: patch(w, w.site_path(ORIGIN), cross_hosts=["a b"]))
recipe("changeSite", 422, lambda w: patch(w, w.site_path(ORIGIN), origin="https://other.example.net"))
remove = lambda w, path: w.api("DELETE", path)


def filled_site(w):
    site = w.site()
    w.entry(site["origin"])
    return f"/v1/sites/{site['id']}"


recipe("removeSite", 200, lambda w: remove(w, f"/v1/sites/{w.site()['id']}"))
recipe("removeSite", 200, lambda w: remove(w, filled_site(w) + "?max_removed=1"))
recipe("removeSite", 403, of_shop("DELETE", lambda w: w.site_path(SHOP)))
recipe("removeSite", 403, of_shop("DELETE", lambda w: w.site_path(ORIGIN)))
recipe("removeSite", 404, lambda w: remove(w, "/v1/sites/999"))
recipe("removeSite", 409, lambda w: remove(w, filled_site(w)))
recipe("removeSite", 409, lambda w: remove(w, w.site_path(MANAGED)))

# /v1/crawlers


def crawled(w, what=""):
    """What is reported about a crawler that came, with a change that it has not seen."""
    url = w.index(entries=1)["url"]
    path = url[len(ORIGIN):]
    count = lambda: [c["days"][-1]["ok"] for c in w.api("GET", "/v1/crawlers").json()["crawlers"]]
    before = count()
    assert w.server.get(path, [("User-Agent", "Googlebot/2.1")]).status == 200
    eventually(lambda: count() != before, "it is counted")
    w.entry(index=url)
    return w.api("GET", "/v1/crawlers" + what.replace("URL", q(url)))


recipe("listCrawlers", 200, lambda w: crawled(w))
recipe("listCrawlers", 200, lambda w: crawled(w, f"?site={q(ORIGIN)}"))
recipe("listCrawlers", 404, lambda w: w.api("GET", "/v1/crawlers?site=none"))
recipe("listCrawlers", 404, of_shop("GET", f"/v1/crawlers?site={q(ORIGIN)}"))
recipe("listCrawlerPages", 200, lambda w: crawled(w, "/googlebot/pages?stale=1&limit=1"))
recipe("listCrawlerPages", 200, lambda w: crawled(w, "/googlebot/pages?index=URL"))
recipe("listCrawlerPages", 400, lambda w: w.api("GET", "/v1/crawlers/googlebot/pages?stale=2"))
recipe("listCrawlerPages", 400, lambda w: w.api("GET", "/v1/crawlers/googlebot/pages?after=nonsense"))
recipe("listCrawlerPages", 404, lambda w: w.api("GET", "/v1/crawlers/nobody/pages"))
recipe("listCrawlerPages", 404, lambda w: w.api("GET", "/v1/crawlers/googlebot/pages?index=none"))
recipe("listCrawlerPages", 404, of_shop("GET", lambda w: f"/v1/crawlers/googlebot/pages?index={q(INDEX)}"))

# /v1/engines
recipe("getStats", 200, lambda w: w.api("GET", f"/v1/stats?site={q(ORIGIN)}&step=7d"))
recipe("getStats", 404, of_shop("GET", f"/v1/stats?site={q(ORIGIN)}"))
recipe("listEngines", 200, lambda w: w.api("GET", "/v1/engines"))
recipe("listEngines", 404, of_shop("GET", f"/v1/engines?site={q(ORIGIN)}"))
recipe("listEngineSitemaps", 200, lambda w: w.api("GET", f"/v1/engines/bing/sitemaps?site={q(ORIGIN)}"))
recipe("listEngineSitemaps", 404, lambda w: w.api("GET", "/v1/engines/google/sitemaps"))
recipe("listEngineSitemaps", 404, of_shop("GET", f"/v1/engines/bing/sitemaps?site={q(ORIGIN)}"))

# /v1/indexes
get("listIndexes", "/v1/indexes")
get("listIndexes", f"/v1/indexes?limit=1&site={q(ORIGIN)}")
recipe("listIndexes", 400, lambda w: w.api("GET", "/v1/indexes?after=nonsense"))
recipe("listIndexes", 404, lambda w: w.api("GET", "/v1/indexes?site=none"))
recipe("listIndexes", 404, of_shop("GET", f"/v1/indexes?site={q(ORIGIN)}"))
add = lambda w, url, **fields: w.api("POST", "/v1/indexes", {"url": url, **fields})
recipe("addIndex", 201, lambda w: add(w, f"{ORIGIN}/new{next(w.number)}.xml"))
recipe("addIndex", 201, lambda w: add(w, f"{ORIGIN}/new{next(w.number)}.xml", page_pattern="{stem}_page_{n}{suffix}"))
recipe("addIndex", 403, of_shop("POST", "/v1/indexes", {"url": f"{ORIGIN}/forbidden.xml"}))
recipe("addIndex", 409, lambda w: add(w, INDEX))
recipe("addIndex", 409, lambda w: add(w, MANAGED + "/new.xml"))
recipe("addIndex", 422, lambda w: add(w, f"{ORIGIN}/new.html"))
recipe("addIndex", 422, lambda w: add(w, "https://unknown.example.net/index.xml"))
recipe("addIndex", 422, lambda w: add(w, f"{ORIGIN}/{'a' * 900}.xml"))
recipe("addIndex", 422, lambda w: add(w, f"{ORIGIN}/new.xml", page_pattern="x"))


def covering(w):
    """An index whose second page would have the URL of an entry."""
    stem = w.loc()[: -len(".xml")]
    assert post(w, {"loc": stem + "-2.xml"}).status == 201
    return add(w, stem + ".xml")


recipe("addIndex", 422, covering)
get("getIndex", lambda w: f"/v1/indexes/{w.index()['id']}")
get("getIndex", lambda w: f"/v1/indexes/{w.index(entries=2)['id']}")
recipe("getIndex", 404, lambda w: w.api("GET", "/v1/indexes/999"))
recipe("getIndex", 404, of_shop("GET", lambda w: w.index_path(INDEX)))
recipe("changeIndex", 200, lambda w: patch(w, f"/v1/indexes/{w.index()['id']}", frozen=True))
recipe("changeIndex", 200, lambda w: patch(w, f"/v1/indexes/{w.index()['id']}", frozen=False))
recipe("changeIndex", 403, of_shop("PATCH", lambda w: w.index_path(INDEX), {"frozen": False}))
recipe("changeIndex", 403, by_reader("PATCH", "/v1/indexes/1", {"frozen": False}))
recipe("changeIndex", 404, lambda w: patch(w, "/v1/indexes/999", frozen=True))
recipe("changeIndex", 422, lambda w: patch(w, w.index_path(INDEX)))
recipe("changeIndex", 422, lambda w: patch(w, w.index_path(INDEX), frozen="yes"))
recipe("removeIndex", 200, lambda w: remove(w, f"/v1/indexes/{w.index()['id']}"))
recipe("removeIndex", 200, lambda w: remove(w, f"/v1/indexes/{w.index(entries=2)['id']}?max_removed=2"))
recipe("removeIndex", 403, of_shop("DELETE", lambda w: w.index_path(INDEX)))
recipe("removeIndex", 404, lambda w: remove(w, "/v1/indexes/999"))
recipe("removeIndex", 409, lambda w: remove(w, f"/v1/indexes/{w.index(entries=2)['id']}"))
recipe("removeIndex", 409, lambda w: remove(w, w.index_path(MANAGED + "/sitemap_index.xml")))

# /v1/token, /v1/tokens
get("getToken", "/v1/token")
recipe("getToken", 200, of_shop("GET", "/v1/token"))
get("listTokens", "/v1/tokens")
get("listTokens", "/v1/tokens?limit=1")
recipe("listTokens", 200, of_shop("GET", "/v1/tokens"))
recipe("listTokens", 403, by_reader("GET", "/v1/tokens"))


def revoked(w):
    name = f"token{next(w.number)}"
    w.server.make_token(name)
    return w.api("DELETE", f"/v1/tokens/{name}")


recipe("revokeToken", 204, revoked)
recipe("revokeToken", 403, by_reader("DELETE", "/v1/tokens/reader"))
recipe("revokeToken", 404, lambda w: w.api("DELETE", "/v1/tokens/none"))
recipe("revokeToken", 404, of_shop("DELETE", "/v1/tokens/spare"))
recipe("revokeToken", 409, lambda w: w.api("DELETE", "/v1/tokens/configured"))

# /v1/sources
def upstream(w, **fields):
    """Makes a source of an upstream that nobody answers; its name."""
    name = f"up{next(w.number)}"
    reply = w.api("POST", "/v1/sources", {"name": name, "upstream": "http://127.0.0.1:9/i.xml", "site": ORIGIN, **fields})
    assert reply.status == 201, reply
    return name, reply


recipe("addSource", 201, lambda w: upstream(w)[1])
recipe("addSource", 403, of_shop("POST", "/v1/sources", {"name": "a", "upstream": ORIGIN + "/i.xml"}))
recipe("addSource", 409, lambda w: w.api("POST", "/v1/sources", {"name": "files", "upstream": ORIGIN + "/i.xml"}))
recipe("addSource", 422, lambda w: w.api("POST", "/v1/sources", {"name": "a", "upstream": "nothing"}))
get("getSource", "/v1/sources/files")
recipe("getSource", 200, lambda w: w.api("GET", "/v1/sources/" + upstream(w)[0]))
recipe("getSource", 404, lambda w: w.api("GET", "/v1/sources/none"))
recipe("changeSource", 200, lambda w: w.api("PATCH", "/v1/sources/" + upstream(w)[0], {"poll": 3600}))
recipe("changeSource", 403, by_reader("PATCH", "/v1/sources/none", {"poll": 3600}))
recipe("changeSource", 404, lambda w: w.api("PATCH", "/v1/sources/none", {"poll": 3600}))
recipe("changeSource", 409, lambda w: w.api("PATCH", "/v1/sources/files", {"settle": 3}))
recipe("changeSource", 422, lambda w: w.api("PATCH", "/v1/sources/" + upstream(w)[0], {"poll": 1}))
recipe("removeSource", 204, lambda w: w.api("DELETE", "/v1/sources/" + upstream(w)[0]))
recipe("removeSource", 403, by_reader("DELETE", "/v1/sources/none"))
recipe("removeSource", 404, lambda w: w.api("DELETE", "/v1/sources/none"))
recipe("removeSource", 409, lambda w: w.api("DELETE", "/v1/sources/files"))

# /v1/checks
get("listChecks", "/v1/checks")
recipe("listChecks", 404, lambda w: w.api("GET", f"/v1/checks?site={q('https://none.example')}"))
recipe("listChecks", 422, lambda w: w.api("GET", "/v1/checks?site=none"))
recipe("pollSitemap", 403, by_reader("POST", f"/v1/checks?loc={q(ORIGIN + '/none.xml')}"))
recipe("pollSitemap", 404, lambda w: w.api("POST", f"/v1/checks?loc={q(ORIGIN + '/none.xml')}"))
recipe("pollSitemap", 400, lambda w: w.api("POST", "/v1/checks?loc=none"))


def polled(w):
    """Of an address that is not opened: it is reported as unreachable."""
    origin = f"http://127.0.0.1:{7000 + next(w.number)}"
    assert w.api("POST", "/v1/sites", {"origin": origin, "check": True}).status == 201
    assert w.api("POST", "/v1/sitemaps", {"loc": origin + "/a.xml"}).status == 201
    eventually(lambda: w.api("GET", f"/v1/checks?site={q(origin)}").json()["checks"], "it is watched")
    reply = w.api("POST", f"/v1/checks?loc={q(origin + '/a.xml')}")
    assert reply.json()["check"]["state"] == "unreachable", reply
    return reply


recipe("pollSitemap", 200, polled)

get("listSources", "/v1/sources")
recipe("listSources", 200, of_shop("GET", "/v1/sources"))
scan = lambda w, query="": w.api("POST", "/v1/sources/files/scan" + query)


def listed_as_failing(w):
    server = w.other("unmounted")
    assert sample("scanSource", server).json()["code"] == "scan-failed"
    assert w.source(server)["failure"] and w.source(server)["failed_at"]
    return server.api("GET", "/v1/sources")


def scanned_new_file(w):
    name = f"files/{next(w.number)}.xml"
    w.write_file(w.server.folder, name)
    reply = scan(w, "?max_removed=0")
    eventually(lambda: w.api("GET", f"/v1/sitemaps?loc={q(f'{ORIGIN}/{name}')}").json()["sitemaps"], "it is listed")
    return reply


recipe("listSources", 200, listed_as_failing)
recipe("scanSource", 200, scan)
recipe("scanSource", 200, scanned_new_file)
recipe("scanSource", 403, of_shop("POST", "/v1/sources/files/scan"))
recipe("scanSource", 404, lambda w: w.api("POST", "/v1/sources/none/scan"))
recipe("scanSource", 503, lambda w: sample("scanSource", w.other("unmounted")))

# /v1/history, /v1/diff, /v1/restore


def last_change(w, **query):
    more = "".join(f"&{key}={q(value)}" for key, value in query.items())
    return w.api("GET", f"/v1/history?limit=1{more}").json()["changes"][0]["revision"]


def of_entry(w):
    """The revision of a registration."""
    return last_change(w, loc=w.entry().json()["sitemap"]["loc"])


undo = lambda w, revision, query="": w.api("POST", f"/v1/history/{revision}/undo{query}")
restore = lambda w, url, to, **more: w.api("POST", f"/v1/restore?index={q(url)}&to={to}", **more)
get("listHistory", lambda w: f"/v1/history?index={q(w.index(entries=2)['url'])}&limit=1&since=2020-01-01&kind=registration")
get("listHistory", lambda w: f"/v1/history?loc={q(w.entry().json()['sitemap']['loc'])}&site={q(ORIGIN)}")
recipe("listHistory", 400, lambda w: w.api("GET", "/v1/history?since=yesterday"))
recipe("listHistory", 404, lambda w: w.api("GET", f"/v1/history?index={q(NO_INDEX)}"))
recipe("listHistory", 404, of_shop("GET", f"/v1/history?site={q(ORIGIN)}"))
recipe("listHistory", 422, lambda w: w.api("GET", "/v1/history?loc=relative"))
get("getHistory", lambda w: f"/v1/history/{of_entry(w)}")
of_part = lambda method, target: lambda w: w.api(method, target, token=w.part_token)
recipe("listHistory", 403, of_part("GET", "/v1/history"))
recipe("getHistory", 200, lambda w: w.api("GET", f"/v1/history/{of_entry(w)}", headers=lines))
recipe("getHistory", 403, of_part("GET", "/v1/history/1"))
recipe("undoChange", 403, of_part("POST", "/v1/history/1/undo"))
recipe("undoChange", 403, by_reader("POST", "/v1/history/1/undo"))
recipe("getDiff", 403, of_part("GET", f"/v1/diff?from=1&index={q(INDEX)}"))
recipe("getHistory", 404, lambda w: w.api("GET", "/v1/history/999999"))
recipe("getHistory", 404, of_shop("GET", lambda w: f"/v1/history/{of_entry(w)}"))
recipe("undoChange", 200, lambda w: undo(w, of_entry(w)))
recipe("undoChange", 200, lambda w: undo(w, of_entry(w), "?dry_run=1&on_conflict=overwrite&max_removed=1"))
recipe("undoChange", 400, lambda w: undo(w, of_entry(w), "?dry_run=perhaps"))
recipe("undoChange", 404, lambda w: undo(w, 999999))
recipe("undoChange", 409, lambda w: w.index() and undo(w, last_change(w, kind="index-add")))
recipe("getDiff", 200, lambda w: w.api("GET", f"/v1/diff?from={of_entry(w) - 1}&to=999999&index={q(INDEX)}"))
recipe("getDiff", 400, lambda w: w.api("GET", "/v1/diff?from=1"))
recipe("getDiff", 404, lambda w: w.api("GET", f"/v1/diff?from=1&to=2&index={q(NO_INDEX)}"))
recipe("restoreIndex", 200, lambda w: restore(w, w.index(entries=1)["url"], last_change(w)))
recipe("restoreIndex", 403, of_shop("POST", f"/v1/restore?to=1&index={q(INDEX)}"))
recipe("restoreIndex", 404, lambda w: restore(w, NO_INDEX, 1))


def emptying(w):
    """An index back to when it had nothing."""
    url = w.index()["url"]
    empty = last_change(w, kind="index-add")
    assert post(w, [{"loc": w.loc(), "index": url} for _ in range(3)]).status == 200
    return restore(w, url, empty)


recipe("restoreIndex", 409, emptying)

# /v1/changes
recipe("listChanges", 200, lambda w: w.api("GET", "/v1/changes?since=0"))


def changes_of_a_removal(w):
    since = w.api("GET", "/v1/changes").json()["next"]
    remove(w, filled_site(w) + "?max_removed=1")
    reply = w.api("GET", f"/v1/changes?since={since}")
    assert any(page["removed"] for page in reply.json()["pages"]), reply
    return reply


recipe("listChanges", 200, changes_of_a_removal)
recipe("listChanges", 200, lambda w: w.api("GET", f"/v1/changes?wait=0&since={w.api('GET', '/v1/changes').json()['next']}"))
recipe("listChanges", 400, lambda w: w.api("GET", "/v1/changes?since=nonsense"))
recipe("listChanges", 410, lambda w: w.api("GET", f"/v1/changes?since={'0' * 32}-1-1"))


# Idempotency-Key


def under_key(w, name):
    """A call under the key of another one."""
    key = [("Idempotency-Key", f"key-{next(w.number)}")]
    assert post(w, {"loc": w.loc()}, headers=key).status == 201
    return sample(name, w.server, headers=key)


def repeated(w, method, target, body=None):
    """The answer to a call that was made before."""
    key = [("Idempotency-Key", f"key-{next(w.number)}")]
    assert w.api(method, target, body, headers=key).status < 300
    reply = w.api(method, target, body, headers=key)
    assert reply["Idempotency-Replayed"] == "true"
    return reply


for name in SAMPLES:
    if SAMPLES[name][0] != "GET" and name not in ("scanSource", "pollSitemap"):
        recipe(name, 422, lambda w, name=name: under_key(w, name))
        recipe(name, 400, lambda w, name=name: sample(name, w.server, headers=[("Idempotency-Key", "a b")]))
for name in ("scanSource", "pollSitemap"):
    recipe(name, 400, lambda w, name=name: sample(name, w.server, headers=[("Idempotency-Key", "a")]))
recipe("registerSitemaps", 201, lambda w: repeated(w, "POST", "/v1/sitemaps", {"loc": w.loc()}))
recipe("registerSitemaps", 200, lambda w: repeated(w, "POST", "/v1/sitemaps", [{"loc": w.loc()}]))
recipe("replaceSitemaps", 200, lambda w: repeated(w, "PUT", f"/v1/sitemaps?index={q(w.index()['url'])}", [{"loc": w.loc()}]))
recipe("removeSitemap", 204, lambda w: repeated(w, "DELETE", w.entry_path()))
recipe("removeSitemapByLoc", 204, lambda w: repeated(w, "DELETE", f"/v1/sitemaps?loc={q(registered(w))}"))
recipe("changeSite", 200, lambda w: repeated(w, "PATCH", f"/v1/sites/{w.site()['id']}", {"cross_hosts": []}))
recipe("removeSite", 200, lambda w: repeated(w, "DELETE", f"/v1/sites/{w.site()['id']}"))
recipe("addIndex", 201, lambda w: repeated(w, "POST", "/v1/indexes", {"url": f"{ORIGIN}/again{next(w.number)}/index.xml"}))
recipe("changeIndex", 200, lambda w: repeated(w, "PATCH", f"/v1/indexes/{w.index()['id']}", {"frozen": True}))
recipe("removeIndex", 200, lambda w: repeated(w, "DELETE", f"/v1/indexes/{w.index()['id']}"))


@pytest.mark.parametrize("name, status", sorted(RECIPES), ids=lambda v: str(v))
def test_replies(document, world, name, status):
    for how in RECIPES[name, status]:
        document.check(name, status, how(world))


def test_every_status_has_a_recipe(document):
    """But 504, which is every writing call's in a catalogue that several machines share (test_shared_postgresql.py)."""
    unknown = {(name, status) for name, status in document.statuses() if status == 504}
    assert {name for name, _ in unknown} >= {name for name, status in document.statuses() if status == 409}
    assert document.statuses() - unknown - set(RECIPES) == set(), "documented, without a recipe"
    assert set(RECIPES) - document.statuses() == set(), "provoked, but not documented"


# ---- routes -------------------------------------------------------------------------------------


def test_every_call_has_a_sample_and_its_path_parameters(document):
    assert set(SAMPLES) == set(document.operations)
    for name, (_, path, _) in document.operations.items():
        assert set(document.parameters(name, "path")) == set(re.findall(r"\{(\w+)\}", path)), name


def test_methods_of_each_path(document, world):
    for path, item in document.tree["paths"].items():
        methods = {m.upper() for m in item if m != "parameters"}
        allow = methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
        target = re.sub(r"\{\w+\}", "none", path)
        reply = world.api("OPTIONS", target)
        assert reply.status == 204 and set(reply["Allow"].split(", ")) == allow, (path, reply)
        for method in {m.upper() for m in METHODS} - methods:
            reply = world.api(method, target)
            assert reply.status == 405 and set(reply["Allow"].split(", ")) == allow, (path, method, reply)
            document.validator.check(reply.json(), {"$ref": "#/components/schemas/Problem"}, closed=True)
        if "GET" in methods:
            volatile = ("date", "x-request-id", "content-length") if path == "/metrics" else ("date", "x-request-id")
            plain = lambda r: (r.status, sorted((n.lower(), v) for n, v in r.headers if n.lower() not in volatile))

            def agree():  # a scan may begin between the two
                whole, head = world.api("GET", target), world.api("HEAD", target)
                assert head.body == b"", (path, head)
                return plain(head) == plain(whole)

            eventually(agree, path)
    assert world.api("GET", "/v1/none").status == 404
    assert world.api("BREW", "/v1/sites").status == 501


# ---- requests -----------------------------------------------------------------------------------


def numbers_and_words(document):
    """(operation, parameter, values that are taken, values that are not)"""
    for name in document.operations:
        for parameter, rule in document.parameters(name, "query").items():
            schema = document.follow(rule["schema"])
            if schema.get("type") == "integer":
                good = [schema["minimum"]] + ([schema["maximum"]] if "maximum" in schema else [2**31])
                bad = [schema["minimum"] - 1, "x", "1.0", ""] + ([schema["maximum"] + 1] if "maximum" in schema else [])
                yield name, parameter, good, bad
            elif "enum" in schema:
                yield name, parameter, schema["enum"], ["x", schema["enum"][0].upper()]


def test_bounds_of_parameters(document, world):
    seen = 0
    for name, parameter, good, bad in numbers_and_words(document):
        for value in good:
            reply = sample(name, world.server, query=f"{parameter}={value}")
            lacks = reply.status == 400 and reply.json()["code"] == "missing-parameter" and reply.json()["field"] != parameter
            assert reply.status != 400 or lacks, (name, parameter, value, reply)
        for value in bad:
            reply = sample(name, world.server, query=f"{parameter}={value}")
            assert reply.status == 400 and reply.json()["field"] == parameter, (name, parameter, value, reply)
        seen += 1
    assert seen >= 9


def test_defaults_of_parameters(document, world):
    for name in document.operations:
        for parameter, rule in document.parameters(name, "query").items():
            if "default" not in rule["schema"] or "Idempotency-Key" in document.parameters(name, "header"):
                continue  # of what writes, the second answer is another

            def agree():  # a poll or a scan may end between the two
                plain, given = sample(name, world.server), sample(name, world.server, query=f"{parameter}={rule['schema']['default']}")
                assert plain.status == given.status == 200, (name, parameter)
                return plain.body == given.body

            eventually(agree, (name, parameter))


def test_required_parameters(document, world):
    for name in document.operations:
        method, path, _ = document.operations[name]
        for parameter, rule in document.parameters(name, "query").items():
            if rule.get("required"):
                reply = world.api(method, path, [] if method == "PUT" else None)
                needed = {n for n, r in document.parameters(name, "query").items() if r.get("required")}
                assert reply.status == 400 and reply.json()["field"] in needed, (name, parameter, reply)


VALUES = [None, True, False, 0, 1, -1, 1.5, 85899, 85900, "", "x", "x" * 257, [], ["a.example"], [1], [None], {}, {"a": 1}]


@pytest.mark.parametrize("name", ["registerSitemaps", "addSite", "changeSite", "addIndex", "changeIndex", "addUrlset", "changeUrlset", "addSource"])
def test_bodies_are_taken_as_their_schema_says(document, world, name):
    """What the schema refuses the server refuses, and it blames no type that the schema allows."""
    schema = document.body_schema(name)
    one = document.follow(schema["oneOf"][0] if "oneOf" in schema else schema)
    method, target, base = SAMPLES[name]
    thing = {"changeSite": world.site, "changeIndex": world.index, "changeUrlset": world.urlset}.get(name)
    if thing is not None:
        target = target.rpartition("/")[0] + "/" + thing()["id"]
    other = ("directory",) if name == "addSource" else ()  # what is only for folders, of an upstream
    for member in list(one["properties"]) + ["unknown"]:
        for value in VALUES:
            body = {**base, member: value}
            if name == "addSite" and member != "origin":
                body["origin"] = f"https://body{next(world.number)}.example.net"
            reply = world.api(method, target, body)
            try:
                document.validator.check(body, schema)
            except Invalid:
                assert reply.status == 422 and reply.json()["field"] in (member, *other), (body, reply)
            else:
                assert reply.status in (200, 201, 403, 404, 409, 422), (body, reply)
                assert reply.status < 400 or reply.json()["code"] != "wrong-type", (body, reply)
    for member in one.get("required", []):
        body = {k: v for k, v in base.items() if k != member}
        reply = world.api(method, target, body)
        assert reply.status == 422 and reply.json()["field"] == member, (body, reply)


def test_examples_of_bodies_are_taken(document, world):
    site = world.site()
    targets = {"changeSite": f"/v1/sites/{site['id']}", "replaceSitemaps": f"/v1/sitemaps?index={q(INDEX)}&max_removed=100&source=example",
               "replaceUrls": f"/v1/urls?urlset={q(SAMPLE_URLSET)}&max_removed=100&source=example",
               "changeUrlset": f"/v1/urlsets/{world.urlset()['id']}"}
    for name, (method, path, operation) in document.operations.items():
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            for example in examples_of(document, content):
                body = example.encode() if kind == NDJSON else json.dumps(example).encode()
                reply = world.api(method, targets.get(name, path), body=body, content_type=kind)
                assert reply.status in (200, 201) or (name in ("addSite", "addUrlset") and reply.status == 409), (name, example, reply)


# ---- the document itself ------------------------------------------------------------------------


def nodes(node, at="#"):
    yield at, node
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from nodes(child, f"{at}/{str(key).replace('~', '~0').replace('/', '~1')}")


def examples_of(document, content):
    schema = content["schema"]
    found = [content["example"]] if "example" in content else []
    parts = [schema] + schema.get("oneOf", [])
    for part in map(document.follow, parts):
        found += part.get("examples", [])
    return found


def test_it_has_the_version_of_the_program(document, world):
    version = world.server.cli("--version").out.split()[1]
    assert document.tree["info"]["version"] == version and re.fullmatch(r"\d+\.\d+\.\d+\S*", version)


def test_the_document_is_whole(document):
    tree = document.tree
    assert tree["openapi"] == "3.1.0" and tree["servers"]
    info = tree["info"]
    assert info["title"] and info["version"] and info["description"] and info["license"]["name"]
    assert len({"url", "identifier"} & set(info["license"])) == 1
    tags = [t["name"] for t in tree["tags"]]
    assert tags == sorted(set(tags)) and all(t["description"] for t in tree["tags"])
    used_tags = {t for _, _, o in document.operations.values() for t in o["tags"]}
    assert used_tags == set(tags)
    schemes = set(tree["components"]["securitySchemes"])
    for name, (_, _, operation) in document.operations.items():
        assert re.fullmatch(r"[a-z][A-Za-z]+", name) and operation["summary"] and operation["description"], name
        assert all(set(s) <= schemes for s in operation.get("security", tree["security"]))
        assert list(operation["responses"]) == sorted(operation["responses"])
        assert any(s[0] == "2" for s in operation["responses"]) and any(s[0] == "4" for s in operation["responses"])
        for status in operation["responses"]:
            assert document.response(name, status)["description"], (name, status)
        for place in ("query", "header", "path"):
            for rule in document.parameters(name, place).values():
                assert rule["description"] and rule["schema"], (name, rule)
                assert place != "path" or rule["required"] is True


def test_references_resolve_and_every_component_is_used(document):
    used = set()
    for at, node in nodes(document.tree):
        if isinstance(node, dict) and "$ref" in node:
            assert set(node) == {"$ref"}, at
            document.validator.resolve(node["$ref"])
            used.add(node["$ref"])
    for kind, components in document.tree["components"].items():
        for name in components if kind != "securitySchemes" else ():
            assert f"#/components/{kind}/{name}" in used, f"{kind}/{name} is not used"


def test_examples_fit_their_schemas(document):
    count = 0
    for at, node in nodes(document.tree):
        if not isinstance(node, dict):
            continue
        if "schema" in node and "example" in node:
            document.validator.check(node["example"], node["schema"], closed=True, at=at)
            count += 1
        if isinstance(node.get("examples"), list):
            for example in node["examples"]:
                document.validator.check(example, node, closed=True, at=at)
                count += 1
    assert count >= 8
    for name in SAMPLES:
        if SAMPLES[name][2] is not None and not isinstance(SAMPLES[name][2], bytes):
            document.validator.check(SAMPLES[name][2], document.body_schema(name), closed=True)


def test_defaults_fit_their_schemas(document):
    for at, node in nodes(document.tree):
        if isinstance(node, dict) and "default" in node and "type" in node:
            document.validator.check(node["default"], node, at=at)


def test_the_validator_is_strict():
    tree = {"a": {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}}}
    v = Validator(tree)
    both = {"allOf": [{"$ref": "#/a"}, {"properties": {"y": {"type": ["string", "null"]}}}]}
    either = {"oneOf": [{"const": 1}, {"type": "integer"}, {"type": "null"}]}
    for value, schema, closed in (
        ({"x": 1, "z": 2}, {"$ref": "#/a"}, False), ({"x": 1, "y": None}, both, True), (None, either, True), (7, either, True),
        ({"x": {"any": 1}}, {"type": "object"}, True), ("https://a.example/", {"format": "uri"}, True), (["a"], {"items": {"enum": ["a"]}}, True),
    ):
        v.check(value, schema, closed)
    for value, schema in (
        ({"x": 1, "z": 2}, {"$ref": "#/a"}), ({"x": True}, {"$ref": "#/a"}), ({}, {"$ref": "#/a"}), ({"x": 1, "y": 2}, both),
        ({"x": 1, "z": 2}, both), (1, either), (True, either), ({"b": 1}, {"additionalProperties": False}), ({"b": 1}, {"additionalProperties": {"type": "null"}}),
        ("a b", {"format": "uri"}), ("2026-02-30T00:00:00Z", {"format": "date-time"}), (1, {"const": True}), ("ab", {"maxLength": 1}),
        (0, {"minimum": 1}), (2, {"maximum": 1}), ("b", {"pattern": "^a"}), ([1], {"items": {"type": "string"}}), ("x", {"enum": ["y"]}),
    ):
        with pytest.raises(Invalid):
            v.check(value, schema, closed=True)
    for schema in ({"nullable": True}, {"$ref": "#/none"}, {"$ref": "other.json#/a"}, {"type": "float"}, {"format": "colour"}, True):
        with pytest.raises(SchemaError):
            v.check("x", schema)
