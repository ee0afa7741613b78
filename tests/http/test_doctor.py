# SPDX-License-Identifier: LicenseRef-Undeclared
"""`sitemapd doctor`: before a good server it finds nothing; each fault that a proxy, a robots.txt, an
index or a sitemap can have is found, with what to do."""

import gzip
import http.client
import http.server
import os
import re
import socket
import ssl
import threading
import time

import pytest

from harness import DATA, Server, seconds, sitemapd

XML = "/sitemap_index.xml"
URLSET = '<?xml version="1.0"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>\n'
DATES = ("2026-01-02", "2026-01-03")
PLACE = "http://pages.invalid"  # in a body: the folder /maps of the server that answers


class Proxy:
    """A web server in front of sitemapd: it passes on what `pages` does not answer. `flaws` are
    functions that spoil an answer (status, headers as a dict, body) on its way."""

    def __init__(self, tls=None):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                outer.answer(self)

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        class Threads(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):  # clients that give up are part of these tests
                pass

        self.server = Threads(("127.0.0.1", 0), Handler)
        scheme = "http"
        if tls:
            scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        self.origin = f"{scheme}://{'localhost' if tls else '127.0.0.1'}:{self.port}"
        self.index = self.origin + XML
        self.pages, self.flaws, self.requests = {}, [], []
        self.backend = None
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def fetch(self, handler):
        page = self.pages.get(handler.path)
        if callable(page):
            return page(handler)
        if page is not None:
            status, headers, body = page
            placed = lambda body: body.replace(PLACE.encode(), f"{self.origin}/maps".encode())
            return status, headers, body(placed) if callable(body) else placed(body)
        if self.backend is None:
            return 404, {}, b""
        backend = http.client.HTTPConnection(self.backend, timeout=seconds(60))
        passed = {k: v for k, v in handler.headers.items() if k.lower() != "connection"}
        backend.request(handler.command, handler.path, headers=passed)
        reply = backend.getresponse()
        headers = {k.title(): v for k, v in reply.getheaders() if k.lower() not in ("connection", "content-length")}
        body = reply.read()
        backend.close()
        return reply.status, {k.replace("Etag", "ETag"): v for k, v in headers.items()}, body

    def answer(self, handler):
        self.requests.append((handler.command, handler.path, handler.headers))
        status, headers, body = self.fetch(handler)
        if handler.path == XML:
            for flaw in self.flaws:
                status, headers, body = flaw(handler, status, dict(headers), body)
        if status is None:
            handler.wfile.write(body)
            handler.close_connection = True
            return
        handler.send_response_only(status)
        if status != 304 and "Transfer-Encoding" not in headers and headers.pop("no-length", None) is None:
            headers = {"Content-Length": str(len(body)), **headers}
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Connection", "close")
        handler.end_headers()
        if handler.command == "GET" and status != 304:
            handler.wfile.write(body)
        handler.close_connection = True


def child(*paths, dates=DATES):
    urls = "".join(
        f"<url><loc>{PLACE}{p}</loc><lastmod>{dates[i % len(dates)]}</lastmod></url>"
        for i, p in enumerate(paths)
    )
    return 200, {"Content-Type": "application/xml"}, URLSET.format(urls).encode()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A proxy with sixty sitemaps, and sitemapd behind it with the index of them."""
    proxy = Proxy()
    server = Server(tmp_path_factory.mktemp("doctor"), sites=(proxy.origin,)).start()
    locs = [f"{proxy.origin}/maps/{n:02}.xml" for n in range(60)]
    assert server.bulk([{"loc": loc, "lastmod": "2026-01-02T03:04:05Z"} for loc in locs]).status == 200
    time.sleep(1.1)  # within its first second a page has no 304 by date, and doctor would report that
    proxy.backend, proxy.sitemapd = server.public, server
    yield proxy
    try:
        server.stop()
    finally:
        server.kill()
        proxy.close()


@pytest.fixture
def proxy(world):
    world.pages = {f"/maps/{n:02}.xml": child("/a", "/b") for n in range(60)}
    world.flaws, world.requests = [], []
    return world


def doctor(url, *args):
    """Exit status and findings. All levels and words are known ones, and wrong is what exits 1."""
    command = sitemapd("doctor", url, "--json", "--timeout", "30", *args)
    assert command.err == "", command
    found = command.lines()
    for finding in found:
        assert finding["level"] in ("ok", "note", "warning", "wrong"), finding
        assert set(finding) == {"level", "check", "code", "what", "todo", "url", "line", "column", "count"}, finding
        assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", finding["code"]), finding
        assert (finding["todo"] is None) == (finding["level"] == "ok"), finding
    assert command.code == (1 if any(f["level"] == "wrong" for f in found) else 0), command
    return found


def only(found, level, check, words=""):
    """This is found, and nothing else but what is well."""
    bad = [f for f in found if f["level"] != "ok"]
    assert [(f["level"], f["check"]) for f in bad] == [(level, check)], bad
    assert words in bad[0]["what"], bad
    return bad[0]


def has(found, level, check, words=""):
    matching = [f for f in found if (f["level"], f["check"]) == (level, check) and words in f["what"]]
    assert matching, found
    return matching[0]


# ---- good servers -------------------------------------------------------------------------------

CHECKS = [
    "reach", "redirect", "status", "type", "gzip", "vary", "etag", "cache", "not-modified", "identity", "head",
    "robots", "index", "child", "child", "child", "child", "child",
]


def test_a_good_server_through_a_good_proxy(proxy):
    found = doctor(proxy.index)
    assert [(f["check"], f["level"]) for f in found] == [(check, "ok") for check in CHECKS]
    asked = [path for _, path, _ in proxy.requests if path.startswith("/maps/")]
    assert asked == [f"/maps/{n:02}.xml" for n in (0, 14, 29, 44, 59)]  # spread, with both ends


def test_what_crawlers_send(proxy):
    doctor(proxy.index, "--sample", "0")
    first = proxy.requests[0][2]
    assert first["Host"] == f"127.0.0.1:{proxy.port}" and "gzip" in first["Accept-Encoding"]
    assert "sitemapd-doctor" in first["User-Agent"]


def test_the_sample(proxy):
    def children(count):
        return [f for f in doctor(proxy.index, "--sample", count) if f["check"] == "child"]

    assert len(children("0")) == 0 and len(children("1")) == 1 and len(children("1000")) == 60


def test_for_people(proxy):
    command = sitemapd("doctor", proxy.index)
    assert command.code == 0, command
    lines = command.out.splitlines()
    assert lines[-1] == f"0 wrong, 0 warnings, {len(CHECKS)} ok"
    assert [line.split()[:2] for line in lines[:-1]] == [["ok", check] for check in CHECKS]
    proxy.flaws = [drop("ETag", "Last-Modified")]
    command = sitemapd("doctor", proxy.index)
    assert command.code == 1 and command.out.splitlines()[-1].startswith("1 wrong, 0 warnings, ")
    line = next(line for line in command.out.splitlines() if line.startswith("wrong"))
    assert line.split()[1] == "etag" and " -> have the proxy pass ETag on" in line


def test_a_site_is_enough(proxy):
    assert {f["level"] for f in doctor(proxy.origin + "/")} == {"ok"}
    assert {f["level"] for f in doctor(proxy.origin)} == {"ok"}
    proxy.pages["/robots.txt"] = (404, {}, b"")
    only(doctor(proxy.origin), "warning", "robots", "404")


def test_the_server_itself_by_connect(proxy):
    found = doctor("http://www.example.test" + XML, "--connect", proxy.sitemapd.public, "--sample", "0")
    assert has(found, "ok", "not-modified") and has(found, "ok", "etag")


def test_an_index_of_https_by_connect(proxy):
    """Past the proxy that ends TLS; without --connect the two are two."""
    for host, args, level in (
        ("www.example.test", ("--connect", f"127.0.0.1:{proxy.port}"), "ok"),
        (f"127.0.0.1:{proxy.port}", (), "warning"),
    ):
        proxy.pages["/robots.txt"] = (200, {}, f"Sitemap: https://{host}{XML}\n".encode())
        has(doctor(f"http://{host}{XML}", "--sample", "0", *args), level, "robots")


def test_before_there_is_dns(proxy):
    """What the site has by https is fetched past the proxy that will end TLS, its robots.txt too; other hosts are others.
    Asked by its address, it says how to ask."""
    listed = "".join(f"<sitemap><loc>https://{host}/a.xml</loc></sitemap>" for host in ("www.example.test", "cdn.example.test"))
    index = f'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{listed}</sitemapindex>'
    proxy.pages[XML] = (200, {"Content-Type": "application/xml"}, index.encode())
    proxy.pages["/a.xml"] = (200, {"Content-Type": "application/xml"}, URLSET.format("<url><loc>https://www.example.test/1</loc></url>").encode())
    proxy.pages["/robots.txt"] = (200, {}, f"Sitemap: https://www.example.test{XML}\n".encode())
    found = doctor(f"http://www.example.test{XML}", "--connect", f"127.0.0.1:{proxy.port}")
    assert [f["what"] for f in found if f["check"] == "child" and f["level"] == "ok"] == ["https://www.example.test/a.xml: 1 URL"], found
    by_site = doctor("http://www.example.test", "--connect", f"127.0.0.1:{proxy.port}")
    assert [(f["level"], f["code"]) for f in by_site] == [(f["level"], f["code"]) for f in found], by_site
    (cross,) = (f for f in found if f["check"] == "cross-host")
    assert "cdn.example.test" in cross["what"] and not [f for f in found if f["check"] == "index" and f["level"] != "ok"], found
    proxy.pages["/robots.txt"] = (200, {}, b"User-agent: *\nDisallow: /a.xml\n")
    found = doctor(f"http://www.example.test{XML}", "--connect", f"127.0.0.1:{proxy.port}")
    assert any(f["check"] == "child" and "www.example.test/a.xml: robots.txt disallows" in f["what"] for f in found), found
    del proxy.pages["/a.xml"]
    found = doctor(f"http://www.example.test{XML}", "--connect", f"127.0.0.1:{proxy.port}")
    (gone,) = (f for f in found if f["check"] == "child" and "/a.xml: answers 404" in f["what"])
    assert gone["what"].startswith("https://www.example.test/") and gone["todo"].startswith("if --connect names sitemapd itself, --sample 0 skips its sitemaps"), gone
    proxy.pages["/a.xml"] = (404, {"Content-Type": "text/html"}, b"<title>404</title>")
    found = doctor(f"http://www.example.test{XML}", "--connect", f"127.0.0.1:{proxy.port}")
    (gone,) = (f for f in found if f["check"] == "child" and "/a.xml: answers 404" in f["what"])
    assert gone["todo"].endswith("not on the server that --connect names, --sample 0 skips it"), gone

    (asked,) = (f for f in doctor(proxy.index) if f["check"] == "index" and f["level"] == "warning")
    assert "lists sitemaps of https://www.example.test," in asked["what"], asked
    assert asked["todo"].endswith(f" sitemapd doctor http://www.example.test{XML} --connect 127.0.0.1:{proxy.port}"), asked


def test_the_gz_page(proxy):
    assert {f["level"] for f in doctor(proxy.index + ".gz")} == {"ok"}


def test_other_framings(proxy):
    def chunked(handler, status, headers, body):
        pieces = [body[i : i + 700] for i in range(0, len(body), 700)]
        framed = b"".join(b"%x;x=y\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\nTrailer: x\r\n\r\n"
        return status, {**headers, "Transfer-Encoding": "chunked"}, framed

    def until_close(handler, status, headers, body):
        return status, {**headers, "no-length": ""}, body

    def early_hints(handler, status, headers, body):
        handler.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        return status, headers, body

    for framing in (chunked, until_close, early_hints):
        proxy.flaws = [framing]
        assert {f["level"] for f in doctor(proxy.index)} == {"ok"}, framing


# ---- what a proxy spoils ------------------------------------------------------------------------


def drop(*names):
    def flaw(handler, status, headers, body):
        return status, {k: v for k, v in headers.items() if k not in names}, body

    return flaw


def put(name, value):
    def flaw(handler, status, headers, body):
        return status, {**headers, name: value(headers, handler) if callable(value) else value}, body

    return flaw


def recode(change, **more):
    """Changes the body of what is gzip."""

    def flaw(handler, status, headers, body):
        if headers.get("Content-Encoding") == "gzip" and body:
            body = change(body)
        return status, {**headers, **{k.replace("_", "-"): v for k, v in more.items()}}, body

    return flaw


def plain_always(handler, status, headers, body):
    if headers.pop("Content-Encoding", None) and body:
        body = gzip.decompress(body)
    return status, headers, body


def gzip_always(handler, status, headers, body):
    if handler.command == "GET" and status == 200 and "Content-Encoding" not in headers:
        return status, {**headers, "Content-Encoding": "gzip"}, gzip.compress(body)
    return status, headers, body


def never_304(handler, status, headers, body):
    if status != 304:
        return status, headers, body
    handler.headers.replace_header("If-None-Match", '"none"')
    return handler_fetch(handler)


def handler_fetch(handler):
    return WORLD[0].fetch(handler)


WORLD = [None]


@pytest.fixture(autouse=True)
def remember(world):
    WORLD[0] = world


def suffixed(handler, status, headers, body):
    """Apache's mod_deflate: a suffix on the tag, which it then does not know."""
    if status == 304:
        status, headers, body = never_304(handler, status, headers, body)
    return status, {**headers, "ETag": headers["ETag"][:-1] + '-gzip"'}, body


def same_tag(handler, status, headers, body):
    return status, {**headers, "ETag": '"same"'} if status == 200 else headers, body


def other_text(handler, status, headers, body):
    return status, headers, body + b"<!-- -->" if "Content-Encoding" not in headers and status == 200 else body


def no_head(handler, status, headers, body):
    return (405, {}, b"") if handler.command == "HEAD" else (status, headers, body)


def all_of(*flaws):
    def flaw(handler, *answer):
        for one in flaws:
            answer = one(handler, *answer)
        return answer

    return flaw


FLAWS = [
    (put("Content-Type", "text/html"), "wrong", "type", "text/html", "what answers here"),
    (put("Content-Type", "text/plain"), "warning", "type", "text/plain", "Content-Type"),
    (drop("Content-Type"), "warning", "type", "Content-Type is missing", "Content-Type"),
    (recode(gzip.compress), "wrong", "gzip", "compressed twice", "turn compression off"),
    (recode(lambda b: b[:-9]), "wrong", "gzip", "cannot be decoded", "proxy"),
    (recode(lambda b: b[:50] + bytes([b[50] ^ 255]) + b[51:]), "wrong", "gzip", "cannot be decoded", "proxy"),
    (recode(gzip.decompress), "wrong", "gzip", "cannot be decoded", "declares gzip"),
    (recode(lambda b: b, Content_Encoding="br"), "wrong", "gzip", "br, which was not requested", "Accept-Encoding"),
    (plain_always, "warning", "gzip", "uncompressed", "Accept-Encoding"),
    (gzip_always, "wrong", "identity", "Content-Encoding: gzip", "Vary"),
    (drop("Vary"), "wrong", "vary", "no Vary", "gzip_vary on"),
    (put("Vary", "*"), "warning", "vary", "Vary: *", "Accept-Encoding"),
    (drop("ETag", "Last-Modified"), "wrong", "etag", "ETag and Last-Modified are missing", "pass ETag"),
    (drop("ETag"), "warning", "etag", "only Last-Modified", "pass ETag"),
    (put("ETag", lambda h, _: "W/" + h["ETag"]), "warning", "etag", "weak", "pass ETag"),
    (never_304, "wrong", "not-modified", "instead of 304", "If-None-Match"),
    (suffixed, "wrong", "not-modified", "instead of 304", "DeflateAlterETag"),
    (put("Cache-Control", "private, max-age=0"), "warning", "cache", "private", "Cache-Control"),
    (put("Cache-Control", "no-store"), "warning", "cache", "no-store", "Cache-Control"),
    (put("Set-Cookie", "id=1"), "warning", "cache", "Set-Cookie", "no cookies"),
    (all_of(same_tag), "warning", "identity", "same strong ETag", "own tags"),
    (other_text, "warning", "identity", "content differs", "purge"),
    (no_head, "warning", "head", "405", "HEAD"),
]


@pytest.mark.parametrize("flaw, level, check, words, todo", FLAWS, ids=[f"{c}-{w}" for _, _, c, w, _ in FLAWS])
def test_what_a_proxy_spoils(proxy, flaw, level, check, words, todo):
    proxy.flaws = [flaw]
    found = doctor(proxy.index)
    if check == "identity" and words == "same strong ETag":  # that tag is also unknown to the server
        assert has(found, level, check, words)["todo"].count(todo)
        return
    assert todo in only(found, level, check, words)["todo"]


def test_a_date_is_asked_for_once_its_second_is_over(proxy):
    """Until then 200 is right (RFC 9110 8.8.2.2)."""
    loc = f"{proxy.origin}/maps/00.xml"
    proxy.flaws = [drop("ETag")]
    for lastmod in ("2026-01-02T03:04:06Z", "2026-01-02T03:04:05Z"):
        time.sleep(1.1 - time.time() % 1)  # the second is young, and the page's date belongs to this version alone
        assert proxy.sitemapd.bulk([{"loc": loc, "lastmod": lastmod}]).status == 200
        only(doctor(proxy.index), "warning", "etag", "only Last-Modified")


@pytest.mark.parametrize(
    "status, todo",
    [
        (401, "password"), (403, "bots"), (404, "forwards this path"), (410, "forwards this path"), (421, "Host"),
        (429, "rate limit"), (500, "logs"), (502, "sitemapd is running"), (503, "healthcheck"), (504, "sitemapd is running"),
        (302, "Location"),
    ],
)
def test_status(proxy, status, todo):
    proxy.flaws = [lambda handler, *_: (status, {"Content-Type": "text/html"}, b"<html>no</html>")]
    assert todo in only(doctor(proxy.index), "wrong", "status", f"{status} instead of 200")["todo"]


def test_a_page_for_people_with_200(proxy):
    page = (200, {"Content-Type": "text/html"}, b"<!doctype html><html><body>Not found</body></html>")
    proxy.pages[XML] = page
    found = doctor(proxy.index)
    has(found, "wrong", "type", "text/html")
    assert "login" in has(found, "wrong", "index", "html-not-index")["todo"]


def test_a_wall_in_place_of_the_index(proxy):
    """Polls and children know it, and so does the index."""
    for title, code, todo in (("Just a moment...", "bot-wall", "bot protection"), ("Site maintenance", "maintenance-page", "503")):
        proxy.pages[XML] = (200, {"Content-Type": "text/html"}, f"<!doctype html><title>{title}</title><body>".encode())
        result = has(doctor(proxy.index), "wrong", "index", f"({code})")
        assert todo in result["todo"] and "line" not in result["what"], result


def test_redirects(proxy):
    proxy.pages["/old.xml"] = (301, {"Location": XML}, b"")
    proxy.pages["/older.xml"] = (302, {"Location": "old.xml"}, b"")
    proxy.pages["/loop.xml"] = (307, {"Location": f"//127.0.0.1:{proxy.port}/loop.xml"}, b"")
    only(doctor(proxy.origin + "/old.xml"), "warning", "redirect", "1 on the way to " + proxy.index)
    only(doctor(proxy.origin + "/older.xml"), "warning", "redirect", "2 on the way")
    found = doctor(proxy.origin + "/loop.xml")
    has(found, "wrong", "redirect", "more than 5")
    proxy.requests.clear()
    doctor(proxy.origin + "/loop.xml")
    assert len([path for _, path, _ in proxy.requests if path == "/loop.xml"]) == 6


def test_a_redirect_to_another_host(proxy):
    proxy.pages["/away.xml"] = (301, {"Location": f"http://localhost:{proxy.port}{XML}"}, b"")
    has(doctor(proxy.origin + "/away.xml"), "warning", "redirect", f"http://localhost:{proxy.port}{XML}")


# ---- what cannot be fetched ---------------------------------------------------------------------


def test_nobody_there():
    with socket.socket() as nobody:  # has the port, and does not listen
        nobody.bind(("127.0.0.1", 0))
        only(doctor(f"http://127.0.0.1:{nobody.getsockname()[1]}/x.xml"), "wrong", "reach", "refused")
    only(doctor("http://no-such-host.invalid/x.xml"), "wrong", "reach", "no-such-host.invalid")


@pytest.mark.parametrize(
    "answer, words",
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not HTTP/1.1"),
        (b"HTTP/1.1 -12 OK\r\n\r\n", "not HTTP/1.1"),
        (b"HTTP/1.1 000 OK\r\n\r\n", "not HTTP/1.1"),
        (b"", "closed early"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "shorter than Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nabc", "not a number"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk without a length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n", "longer than its length"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc", "closed early"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", "not chunked"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "without a colon"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", "too many headers"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 100000 + b"\r\n\r\n", "too large"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 2000000, "too large"),
        (b"HTTP/1.1 200 OK\r\nA: b", "closed early"),
        (b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" * 20000, "too large"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", "closed early"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_broken_http(proxy, answer, words):
    proxy.pages["/broken.xml"] = (None, {}, answer)
    only(doctor(proxy.origin + "/broken.xml"), "wrong", "reach", words)


def test_what_to_do_about_a_sitemap_that_cannot_be_fetched_depends_on_how_it_fails(proxy):
    proxy.pages.update({f"/maps/{n:02}.xml": (None, {}, b"SSH-2.0-OpenSSH_9.2\r\n\r\n") for n in range(60)})
    found = has(doctor(proxy.index, "--sample", "1"), "wrong", "child", "not HTTP/1.1")
    assert found["code"] == "reach" and found["todo"] == "check which program listens there, and the proxies in between"


def test_an_answer_that_never_comes(proxy):
    listening = socket.create_server(("127.0.0.1", 0))
    with listening:
        command = sitemapd("doctor", f"http://127.0.0.1:{listening.getsockname()[1]}/x.xml", "--timeout", "1", "--json")
    assert command.code == 1 and "no response before the timeout" in command.lines()[0]["what"]


def test_tls(proxy):
    tls = os.path.join(DATA, "tls")
    secure = Proxy(tls=(os.path.join(tls, "localhost.pem"), os.path.join(tls, "localhost.key")))
    try:
        secure.pages = {
            XML: (200, {"Content-Type": "application/xml", "ETag": '"a"', "Vary": "Accept-Encoding"},
                  b'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></sitemapindex>'),
        }
        trusted = ("--ca-file", os.path.join(tls, "localhost.pem"))
        assert "TLS1.3" in has(doctor(secure.index, *trusted), "ok", "reach", "certificate is valid")["what"]
        assert "certificate" in only(doctor(secure.index), "wrong", "reach", "not trusted")["todo"]
        other = f"https://127.0.0.1:{secure.port}{XML}"
        only(doctor(other, *trusted), "wrong", "reach", "does not match")
        only(doctor(secure.index, "--ca-file", "/proc/nowhere"), "wrong", "reach", "cannot read")
    finally:
        secure.close()
    assert "use http://" in only(doctor(proxy.index.replace("http:", "https:")), "wrong", "reach", "does not speak TLS")["todo"]


def test_an_expired_certificate():
    tls = os.path.join(DATA, "tls")
    secure = Proxy(tls=(os.path.join(tls, "expired.pem"), os.path.join(tls, "expired.key")))
    try:
        only(doctor(secure.index, "--ca-file", os.path.join(tls, "ca.pem")), "wrong", "reach", "expired")
    finally:
        secure.close()


# ---- robots.txt ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status, text, level, words",
    [
        (404, "", "warning", "404"),
        (500, "", "wrong", "answers with an error"),
        (429, "", "wrong", "answers with an error"),
        (200, "", "warning", "does not name"),
        (200, "Sitemap: https://www.example.com/other.xml\n", "warning", "does not name"),
        (200, "<!doctype html>\n<title>Shop</title>", "warning", "robots.txt is an HTML page"),
        (200, "User-agent: *\nDisallow: /\n{0}", "wrong", "disallows the index for all crawlers"),
        (200, "User-agent: Googlebot\nUser-agent: x\nDisallow: /*.xml$\n{0}", "wrong", "Googlebot"),
        (200, "User-agent: bingbot\nDisallow: /sitemap\n\n{0}", "wrong", "Bingbot"),
        (200, "User-agent: Googlebot/2.1\nDisallow: /\n\nUser-agent: *\nAllow: /\n{0}", "wrong", "Googlebot"),
        (200, "User-agent: Googlebot;\rDisallow: /\r{0}", "wrong", "Googlebot"),
        (200, "User-agent: *\rDisallow: /\r{0}", "wrong", "all crawlers"),
        (200, "User-agent: googlebot\nUser-agent: bingbot\nDisallow:\n\nUser-agent: *\nDisallow: /\n{0}", "wrong", "for crawlers without a group of their own"),
        (200, "User-agent: googlebot\nUser-agent: bingbot\nDisallow: /\n\nUser-agent: *\nDisallow:\n{0}", "wrong", "for Googlebot and Bingbot"),
        (200, "{0}#" + "x" * (600 << 10), "warning", "longer than 500 KiB"),
    ],
    ids=["404", "500", "429", "empty", "other", "html", "all", "google", "bing", "version", "token", "CR", "others", "both", "long"],
)
def test_robots(proxy, status, text, level, words):
    text = text.format(f"Sitemap: {proxy.index}\n")
    proxy.pages["/robots.txt"] = (status, {"Content-Type": "text/plain"}, text.encode())
    only(doctor(proxy.index, "--sample", "0"), level, "robots", words)


@pytest.mark.parametrize(
    "page, code, words",
    [
        ((404, {}, b""), "status", "names {}, which answers 404"),
        ((500, {}, b""), "status", "names {}, which answers 500"),
        ((200, {"Content-Type": "text/html"}, b"<!doctype html>\n<title>Shop</title>" + b" " * 100000), "not-a-sitemap", "names {}, which is an HTML page"),
        ((None, {}, b"HTTP/1.1"), "reach", "names {}, which cannot be fetched"),
    ],
    ids=["404", "500", "html", "broken"],
)
def test_a_page_of_the_index_that_the_proxy_does_not_pass_on(proxy, page, code, words):
    """The second page answers otherwise than the first, which is good: the sitemaps on it are lost."""
    second = f"{proxy.origin}/sitemap_index-2.xml"
    proxy.pages["/robots.txt"] = (200, {"Content-Type": "text/plain"}, f"Sitemap: {proxy.index}\nSitemap: {second}\n".encode())
    proxy.pages["/sitemap_index-2.xml"] = page
    found = only(doctor(proxy.origin), "wrong", "robots", words.format(second))
    assert (found["code"], found["url"]) == (code, second)
    assert code == "reach" or "forward all pages to sitemapd" in found["todo"], found
    proxy.pages["/sitemap_index-2.xml"] = (200, {"Content-Type": "application/xml"}, b"<sitemapindex>" + b" " * 100000 + b"</sitemapindex>")
    assert {f["level"] for f in doctor(proxy.origin)} == {"ok"}
    proxy.pages["/sitemap_index-2.xml"] = page
    assert {f["level"] for f in doctor(proxy.origin, "--sample", "0")} == {"ok"}, "only the index"


def test_other_sitemap_lines_are_a_sample(proxy):
    lines = "".join(f"Sitemap: {proxy.origin}/gone/{n}.xml\n" for n in range(9)) + "Sitemap: https://other.invalid/s.xml\n"
    proxy.pages["/robots.txt"] = (200, {"Content-Type": "text/plain"}, (f"Sitemap: {proxy.index}\n" + lines).encode())
    found = doctor(proxy.index, "--sample", "3")
    assert [f["url"][-10:] for f in found if f["check"] == "robots" and f["level"] == "wrong"] == ["gone/0.xml", "gone/1.xml", "gone/2.xml"], found


def test_robots_that_forbids_sitemaps(proxy):
    text = f"User-agent: *\nDisallow: /maps/\nAllow: /maps/00.xml\nsitemap:{proxy.index}  # here\n"
    proxy.pages["/robots.txt"] = (200, {}, text.encode())
    found = [f for f in doctor(proxy.index, "--sample", "2") if f["level"] != "ok"]
    assert [(f["check"], f["level"]) for f in found] == [("child", "wrong")] and "/maps/59.xml" in found[0]["what"]


# ---- the index ----------------------------------------------------------------------------------


def index(*entries):
    text = "".join(f"<sitemap>{e}</sitemap>" for e in entries)
    text = f'<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{text}</sitemapindex>'
    headers = {"Content-Type": "text/xml", "Vary": "accept-encoding", "ETag": '"x"', "Last-Modified": "x"}
    return lambda handler: (304 if handler.headers["If-None-Match"] == '"x"' else 200, headers, text.encode())


@pytest.mark.parametrize(
    "entries, level, words",
    [
        ([], "warning", "has no entries"),
        (["<loc>{0}/maps/00.xml</loc>"] * 3, "warning", "2 locs are listed more than once"),
        (["<loc>/relative.xml</loc>", "<loc>{0}/maps/00.xml</loc>"], "wrong", "1 of its locs is invalid"),
        (["<loc>{0}/maps/00.xml</loc><lastmod>yesterday</lastmod>"], "warning", "lastmod is invalid"),
        (["<loc>{0}/maps/00.xml</loc><lastmod>2199-01-01</lastmod>"], "warning", "lastmod is invalid"),
        (["<loc>{0}/maps/00.xml</loc"], "wrong", "malformed-xml"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_indexes(proxy, entries, level, words):
    proxy.pages[XML] = index(*[e.format(proxy.origin) for e in entries])
    only(doctor(proxy.index), level, "index", words)



def test_of_several_sitemap_lines_sitemapds_own_is_checked(proxy):
    """A robots_file stands before them, and may name what was there before."""
    lines = f"Sitemap: {proxy.origin}/old.xml\nSitemap: https://other.example/x.xml\nSitemap: {proxy.origin}{XML}\nSitemap: {proxy.origin}/more.xml\n"
    proxy.pages["/robots.txt"] = (200, {}, lines.encode())
    doctor(proxy.origin, "--sample", "0")
    asked = [path for _, path, _ in proxy.requests]
    assert XML in asked and "/old.xml" not in asked, asked
    proxy.requests.clear()
    proxy.pages["/robots.txt"] = (200, {}, lines.replace(XML, "/maps/index.xml").replace(f"Sitemap: {proxy.origin}/more.xml\n", "").encode())
    doctor(proxy.origin, "--sample", "0")
    asked = [path for _, path, _ in proxy.requests]
    assert "/maps/index.xml" in asked and "/old.xml" not in asked, asked


def test_an_index_below_its_sitemaps(proxy):
    proxy.pages["/deep/index.xml"] = index(f"<loc>{proxy.origin}/maps/00.xml</loc>")
    proxy.pages["/robots.txt"] = (200, {}, f"Sitemap: {proxy.origin}/deep/index.xml".encode())
    only(doctor(proxy.origin + "/deep/index.xml"), "warning", "index", "outside its directory")


def test_a_sitemap_in_place_of_an_index(proxy):
    proxy.pages["/robots.txt"] = (200, {}, f"Sitemap: {proxy.origin}/maps/00.xml".encode())
    found = doctor(proxy.origin + "/maps/00.xml")
    assert "not an index" in has(found, "wrong", "index", "urlset-not-index")["todo"]


# ---- other hosts, and the sitemaps themselves ---------------------------------------------------


def test_cross_hosts(proxy):
    other = Proxy()
    try:
        proxy.pages[XML] = index(f"<loc>{other.origin}/a.xml</loc>", f"<loc>{other.origin}/b.xml</loc>")
        other.pages = {"/a.xml": child("/a", "/b"), "/b.xml": child("/c", "/d")}
        foreign = only(doctor(proxy.index), "warning", "cross-host", "2 sitemaps are on another host, " + other.origin)
        assert foreign["url"] == other.origin + "/a.xml" and f"name the index in {other.origin}/robots.txt" in foreign["todo"]
        assert [path for _, path, _ in other.requests] == ["/robots.txt", "/a.xml", "/b.xml"]
        other.pages["/robots.txt"] = (200, {}, f"Sitemap: {proxy.index}\n".encode())
        assert only(doctor(proxy.index), "note", "cross-host", "names the index")["code"] == "cross-host-proved"
        other.pages["/robots.txt"] = (503, {}, b"")
        only(doctor(proxy.index), "wrong", "cross-host", "does not answer")
        other.pages["/robots.txt"] = (200, {}, b"User-agent: *\nDisallow: /a.xml\n")
        found = doctor(proxy.index)
        has(found, "wrong", "cross-host", "disallows")
        has(found, "wrong", "child", "robots.txt disallows")
    finally:
        other.close()


def nested(handler):
    return index("<loc>https://www.example.com/a.xml</loc>")(handler)


@pytest.mark.parametrize(
    "page, level, words",
    [
        ((404, {}, b"gone"), "wrong", "answers 404"),
        ((403, {}, b"no"), "wrong", "answers 403"),
        ((200, {"Content-Type": "text/html"}, b"<html><body>Not found</body></html>"), "wrong", ": an HTML page (not-a-sitemap)"),
        ((200, {}, URLSET.format(f"<url><loc>{PLACE}/a</loc>").encode()), "wrong", "malformed-xml"),
        ((200, {}, child("/a", "/b")[2][:-20]), "wrong", "truncated"),
        ((200, {}, child("/a", "/b")[2][:-20]), "wrong", ": line 2, column "),
        ((200, {}, URLSET.format("").encode()), "warning", "without URLs (empty)"),
        ((200, {"Content-Encoding": "gzip"}, gzip.compress(gzip.compress(child("/a", "/b")[2]))), "wrong", "twice"),
        ((200, {"Content-Encoding": "gzip"}, child("/a", "/b")[2]), "wrong", "(encoding)"),
        ((200, {"Content-Encoding": "br"}, child("/a", "/b")[2]), "wrong", "(encoding)"),
        ((200, {"Content-Encoding": "aws-chunked"}, child("/a", "/b")[2]), "warning", "(encoding-odd)"),
        ((200, {}, b"<!doctype html><title>Just a moment...</title>"), "wrong", "(bot-wall)"),
        ((403, {"cf-mitigated": "challenge"}, b""), "wrong", "(bot-wall)"),
        ((200, {}, b"<!doctype html><title>Maintenance</title>"), "wrong", "(maintenance-page)"),
        ((200, {}, b"148e2\r\n" + child("/a", "/b")[2]), "wrong", "line 1, column 1: \"148e2\" is before the root element (malformed-xml)"),
        ((200, {"Content-Encoding": "gzip"}, b"\x1f\x8b no"), "wrong", "(malformed-gzip)"),
        (child("/a", "/b", "/c", dates=DATES[:1]), "warning", "same lastmod, 2026-01-02: probably the time of a build (one-lastmod)"),
        (child("/a", "/b", dates=("2026-01-01", "2026-01-03T03:04:06Z")), "warning", ": the index says 2026-01-02T03:04:05Z, but its newest page is dated 2026-01-03T03:04:06Z"),
        (nested, "wrong", "(nested-index)"),
        ((None, {}, b""), "wrong", "cannot be fetched"),
        ((200, {}, b""), "wrong", "empty-file"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_children(proxy, page, level, words):
    proxy.pages["/maps/00.xml"] = page
    assert "/maps/00.xml" in only(doctor(proxy.index, "--sample", "2"), level, "child", words)["what"]


def test_a_304_that_nobody_asked_for_is_no_redirect(proxy):
    proxy.pages["/maps/00.xml"] = (304, {}, b"")
    found = only(doctor(proxy.index, "--sample", "2"), "wrong", "child", "answers 304")
    assert found["todo"].startswith("have the web server answer 200: 304 is for requests with If-None-Match"), found


@pytest.mark.parametrize(
    "page",
    [
        (200, {"Content-Type": "text/plain"}, f"{PLACE}/a\n{PLACE}/b\n".encode()),
        (200, {"Content-Type": "application/gzip"}, lambda placed: gzip.compress(placed(child("/a", "/b")[2]))),
        (200, {"Content-Encoding": "gzip"}, lambda placed: gzip.compress(placed(child("/a")[2])[:30]) + gzip.compress(placed(child("/a")[2])[30:])),
        (200, {"Content-Type": "application/gzip", "Content-Encoding": "gzip"}, lambda placed: gzip.compress(gzip.compress(placed(child("/a")[2])))),
        (200, {"Content-Encoding": ""}, child("/a", "/b")[2]),
        (200, {}, b'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="%s/a"/><updated>2026-01-01T00:00:00Z</updated></entry></feed>' % PLACE.encode()),
        child("/a", "/b", dates=("2026-01-01", "2026-01-03T03:04:05Z")),  # a day: what a date without a time may mean
    ],
    ids=["text", "gz", "members", "gz in gzip", "empty coding", "feed", "newer by a day"],
)
def test_good_children(proxy, page):
    proxy.pages["/maps/00.xml"] = page
    assert {f["level"] for f in doctor(proxy.index, "--sample", "2")} == {"ok"}


@pytest.mark.parametrize("still", [False, True])
def test_dates_of_the_request(proxy, still):
    """A site that changed all over in the last minute says the same a second later."""
    began = time.time()

    def entries():
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began if still else time.time()))
        return [f"<loc>{proxy.origin}/maps/{n}.xml</loc><lastmod>{now}</lastmod>" for n in ("00", "01")]

    proxy.pages[XML] = lambda handler: index(*entries())(handler)
    result = [f for f in doctor(proxy.index, "--sample", "0") if f["code"] == "claims-are-now"]
    assert len(result) == (0 if still else 1), result
    assert still or (result[0]["level"] == "warning" and "migrate" in result[0]["todo"]), result


FOREIGN = "https://other.example.net/x"


def page(loc, more=""):
    return f"<url><loc>{loc}</loc>{more}</url>\n"


@pytest.mark.parametrize(
    "urls, code, line, column, count, level, words, todo",
    [
        ("<url></url>\n" + page(PLACE + "/a"), "loc-missing", 2, 61, 1, "warning", "the loc is missing", "skip"),
        (page(PLACE + "/a") + page("") * 2, "loc-missing", 3, 6, 2, "warning", "2 in all, also line 4", "skip"),
        (page(PLACE + "/a") + page("/b"), "loc-relative", 3, 6, 1, "warning", '"/b" must be an absolute URL', "skip"),
        (page(PLACE + "/a") + page("ftp://h.example/b"), "loc-scheme", 3, 6, 1, "warning", '"ftp://h.example/b" must be', "skip"),
        (page(PLACE + "/a") + page(FOREIGN), "outside-site", 3, 6, 1, "warning", f'"{FOREIGN}" is on another host', "robots.txt"),
        (page(PLACE + "/a", "<lastmod>soon</lastmod>"), "lastmod-invalid", 2, None, 1, "warning", '"soon" is not a W3C', "ignore other dates"),
        (page(PLACE + "/a", "<lastmod>2131-01-01</lastmod>"), "lastmod-in-future", 2, None, 1, "warning", "a day in the future", "ignore other dates"),
        (page(PLACE + "/a") + page(PLACE + "/../b"), "outside-directory", 3, 6, 1, "note", "not in the sitemap's directory", "top"),
        (page("/a"), "no-usable-url", 2, None, 0, "wrong", 'its one URL cannot be used: "/a" must be', "absolute URLs"),
    ],
    ids=lambda v: v if isinstance(v, str) and re.fullmatch("[a-z]+(-[a-z]+)+", v) else "",
)
def test_pages_of_children(proxy, urls, code, line, column, count, level, words, todo):
    """The finding names the sitemap, what is there, where, and what to do."""
    proxy.pages["/maps/00.xml"] = (200, {"Content-Type": "application/xml"}, URLSET.format(urls).encode())
    found = only(doctor(proxy.index, "--sample", "2"), level, "child", words)
    assert (found["code"], found["line"], found["count"]) == (code, line, count), found
    assert found["column"] > 0 if column is None else found["column"] == column, found
    assert found["url"] == proxy.origin + "/maps/00.xml" and todo in found["todo"], found
    assert found["what"].startswith(f"{found['url']}: line {line}, column {found['column']}: "), found
    assert found["what"].endswith(f" ({code})"), found


def test_a_child_of_another_packing(proxy):
    listed = f"{proxy.origin}/maps/00.xml.gz"
    proxy.pages[XML] = index(f"<loc>{listed}</loc>")
    text = (200, {"Content-Type": "application/gzip"}, child("/a", "/b")[2])
    proxy.pages["/maps/00.xml.gz"] = text
    found = only(doctor(proxy.index), "wrong", "child", "is named .gz, but is not gzip")
    assert found["code"] == "not-gzip" and found["url"] == listed and "compress it" in found["todo"]
    packed = lambda placed: gzip.compress(placed(child("/a", "/b")[2]))
    for headers in ({"Content-Type": "application/gzip"}, {"Content-Encoding": "gzip"}):
        proxy.pages["/maps/00.xml.gz"] = (200, headers, packed)
        assert {f["level"] for f in doctor(proxy.index)} == {"ok"}, headers
    proxy.pages[XML] = index(f"<loc>{proxy.origin}/maps/00.xml</loc>")
    proxy.pages["/maps/00.xml"] = (200, {"Content-Type": "application/xml"}, packed)
    assert only(doctor(proxy.index), "warning", "child", "is gzip")["code"] == "gzip-unmarked"


@pytest.mark.parametrize("value", ["noindex", "googlebot: NoIndex, nofollow", "none"])
def test_a_child_that_is_not_to_be_in_results(proxy, value):
    """It costs nothing, and is reported once."""
    for path, (status, headers, body) in list(proxy.pages.items()):
        proxy.pages[path] = (status, {**headers, "X-Robots-Tag": value}, body)
    found = only(doctor(proxy.index), "note", "child", "X-Robots-Tag: noindex")
    assert found["code"] == "noindex" and found["count"] == 5 and found["url"] == proxy.origin + "/maps/00.xml", found
    assert found["todo"].startswith("nothing to do: ")
    assert sitemapd("doctor", proxy.index).out.splitlines()[-1] == f"0 wrong, 0 warnings, 1 note, {len(CHECKS)} ok"


def test_a_child_that_is_redirected(proxy):
    proxy.pages["/maps/00.xml"] = (301, {"Location": "/maps/moved.xml"}, b"")
    proxy.pages["/maps/moved.xml"] = child("/a", "/b")
    found = only(doctor(proxy.index, "--sample", "2"), "warning", "child", "is redirected to " + proxy.origin + "/maps/moved.xml")
    assert found["code"] == "redirect" and found["url"] == proxy.origin + "/maps/00.xml" and "list the URL" in found["todo"]
    proxy.pages["/maps/moved.xml"] = (301, {"Location": "/maps/00.xml"}, b"")
    found = only(doctor(proxy.index, "--sample", "2"), "wrong", "child", "answers 301, after 5 redirects")
    assert found["code"] == "status"


def test_a_sitemap_that_the_proxy_leads_elsewhere(proxy):
    """404 of a sitemap on the site's own host: of sitemapd itself, for the proxy's rule is too wide, or of the proxy, which
    may not pass on a file that sitemapd serves."""
    proxy.pages["/maps/00.xml"] = None  # passed on to sitemapd
    found = only(doctor(proxy.index, "--sample", "1"), "wrong", "child", "/maps/00.xml: answers 404")
    assert "forward only the paths of the index and robots.txt" in found["todo"] and "migrate" in found["todo"]
    found = only(doctor(proxy.index, "--sample", "1", "--connect", f"127.0.0.1:{proxy.port}"), "wrong", "child", "/maps/00.xml: answers 404")
    assert "forward only the paths of the index and robots.txt" in found["todo"] and "--sample 0 skips" in found["todo"]
    proxy.pages["/maps/00.xml"] = (404, {"Content-Type": "text/html"}, b"<title>404</title>")
    found = only(doctor(proxy.index, "--sample", "1"), "wrong", "child", "/maps/00.xml: answers 404")
    assert "forward its path to sitemapd" in found["todo"] and "put the file back" in found["todo"]


@pytest.mark.parametrize(
    "text, code, line, count, words",
    [
        ("Sitemap: {0}\nUser-agent: *\nAllow: /\nsitemap:  {0} # twice\n", "sitemap-line-doubled", 4, 1, "is also on an earlier line"),
        ("Sitemap: {0}\n" * 4, "sitemap-line-doubled", 2, 3, "3 such lines in all"),
        ("Sitemap: /other.xml\nSitemap: {0}\n", "loc-relative", 1, 1, "Sitemap: /other.xml must be an absolute URL"),
        ("Sitemap: {0}\rSitemap: \"{0}?\"\r", "sitemap-line-quoted", 2, 1, "is in quotes"),
        ("Sitemap: {0}\nSitemap: {0}?1 {0}?2\n", "sitemap-line-shared", 2, 2, "is one of several in its line"),
    ],
    ids=["twice", "four times", "relative", "quoted", "shared"],
)
def test_sitemap_lines(proxy, text, code, line, count, words):
    proxy.pages["/robots.txt"] = (200, {"Content-Type": "text/plain"}, text.format(proxy.index).encode())
    found = only(doctor(proxy.index, "--sample", "0"), "warning", "robots", words)
    assert (found["code"], found["line"], found["count"]) == (code, line, count), found
    assert found["url"] == proxy.origin + "/robots.txt" and found["what"].startswith(f"{found['url']}: line {line}: "), found


def test_places_in_an_index(proxy):
    proxy.pages[XML] = index("<loc>{0}/maps/00.xml</loc>".format(proxy.origin), "\n<loc>/relative.xml</loc>")
    found = only(doctor(proxy.index), "wrong", "index", "/relative.xml")
    assert (found["code"], found["line"], found["count"]) == ("loc-relative", 1, 1), found
    proxy.pages[XML] = index("<loc>{0}/maps/00.xml</loc".format(proxy.origin))
    found = only(doctor(proxy.index), "wrong", "index", "line 1, column ")
    assert found["code"] == "malformed-xml" and found["line"] == 1 and found["column"] > 0 and found["what"].count("line 1") == 1, found


# ---- usage --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args, words",
    [
        (["www.example.com/x.xml"], "did you mean https://www.example.com/x.xml?"),
        (["ftp://www.example.com/x.xml"], "loc-scheme"),
        (["https://www.example.com/x.xml", "--connect", "localhost"], "host:port"),
        (["https://www.example.com/x.xml", "--sample", "-1"], "--sample"),
        (["https://www.example.com/x.xml", "--timeout", "0"], "--timeout"),
    ],
    ids=lambda a: " ".join(a) if isinstance(a, list) else "",
)
def test_wrong_usage(args, words):
    command = sitemapd("doctor", *args)
    assert command.code == 2 and words in command.err and command.err.count("\n") == 1 and command.out == "", command


def test_what_it_shows_is_escaped(proxy):
    proxy.flaws = [put("ETag", 'W/"\x1b[31m"')]
    command = sitemapd("doctor", proxy.index, "--sample", "0")
    assert "\x1b" not in command.out and "\\x1b[31m" in command.out
    # C1, as UTF-8 and as a byte: some terminals obey either.
    proxy.flaws = [put("ETag", 'W/"\xc2\x9b31m\x9b32m \xc3\xa9"')]
    command = sitemapd("doctor", proxy.index, "--sample", "0")
    assert "\\xc2\\x9b31m\\x9b32m \xe9" in command.out, command.out
    command = sitemapd("doctor", proxy.index, "--sample", "0", "--json")
    assert "\\u009b31m\ufffd32m \xe9" in command.out and "\x9b" not in command.out, command.out


def test_a_large_sitemap_is_noted(proxy):
    """15 MB and no more is fine; above it some crawlers stop, though the protocol allows 50 MiB."""
    status, headers, body = child("/a", "/b")
    pad = lambda size: body + b"\n" * (size - len(body))
    proxy.pages["/maps/00.xml"] = (status, headers, pad(14_999_000))
    assert [f for f in doctor(proxy.index, "--sample", "60") if f["level"] != "ok"] == []
    proxy.pages["/maps/00.xml"] = (status, headers, pad(15_001_000))
    found = only(doctor(proxy.index, "--sample", "60"), "note", "child", "15 MB uncompressed")
    assert found["code"] == "large" and "max_page_bytes" in found["todo"]
