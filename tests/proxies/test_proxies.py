# SPDX-License-Identifier: LicenseRef-Undeclared
"""What crawlers get through each proxy is what sitemapd sent: bytes, tags, encodings, and who it is for."""

import contextlib
import gzip
import http.client
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time

import pytest

from harness import ETAG, ORIGIN, TOKEN, ask, gunzip, locs, request_bytes, seconds, sitemapd
from origin import Origin, answer, index, urlset
from proxies import EXAMPLES, NAMES, PATIENCE, Proxy, Server, TlsConnection, example, free_port

XML = "/sitemap_index.xml"
GZ = XML + ".gz"
OTHER = "https://www.example.org"
FILE = "/sitemaps/a.xml"
GZIP = {"Accept-Encoding": "gzip"}


def until(check, what, within=PATIENCE):
    end = time.monotonic() + within
    while not (value := check()):
        assert time.monotonic() < end, f"not within {within} s: {what}"
        time.sleep(0.1)
    return value


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Two sites, one with a served folder."""
    folder = tmp_path_factory.mktemp("server")
    files = folder / "files"
    files.mkdir()
    urls = "".join(f"<url><loc>{ORIGIN}/sitemaps/{n}</loc></url>\n" for n in range(500))
    (files / "a.xml").write_text(f'<?xml version="1.0"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n')
    with gzip.open(files / "b.xml.gz", "wb") as file:
        file.write((files / "a.xml").read_bytes())
    log = f"[log]\naccess_log = {folder}/access.log\naccess_format = json\n"
    config = log + f'[server]\ntrusted_proxies = 127.0.0.1\n[source "files"]\ndirectory = {files}\nurl = {ORIGIN}/sitemaps/\nserve = yes\nsettle = 100ms\n'
    one = Server(folder, sites=(ORIGIN, OTHER), config=config).start()
    until(lambda: one.get(FILE).status == 200 and len(locs(one.get(XML).body)) == 2, "the folder is read")
    assert one.register(OTHER + "/o.xml").status == 201
    for n in range(299):
        assert one.register(f"{ORIGIN}/s/{n:03}.xml", lastmod="2026-01-31").status == 201
    time.sleep(1.1)  # dates count where the second of the change is over
    assert one.register(f"{ORIGIN}/s/last.xml").status == 201
    time.sleep(1.1)
    yield one
    try:
        one.stop()
    finally:
        one.kill()


@pytest.fixture(scope="module", params=NAMES)
def proxy(request, server, tmp_path_factory):
    one = Proxy(request.param, tmp_path_factory.mktemp(request.param), server.public).start()
    yield one
    one.stop()


@pytest.fixture
def make(server, tmp_path):
    made = []

    def make_one(name, changes=None, backend=None):
        made.append(Proxy(name, tmp_path, backend or server.public, changes))
        return made[-1].start()

    yield make_one
    for one in made:
        one.stop()


def same(through, direct):
    assert (through.status, through.body) == (direct.status, direct.body)
    for name in ("ETag", "Last-Modified", "Content-Type", "Content-Encoding", "Cache-Control", "Content-Length", "X-Robots-Tag"):
        assert through[name] == direct[name], name
    assert "accept-encoding" in (through["Vary"] or "accept-encoding").lower()


def test_the_cache_of_the_nginx_example_has_a_place():
    """nginx makes the last folder alone; the one above is Debian's package's own."""
    path = re.search(r"^proxy_cache_path (\S+) ", example("nginx.conf", {}), re.M).group(1)
    assert os.path.isdir(os.path.dirname(path)), path


@pytest.mark.parametrize("target", [XML, GZ, "/robots.txt", FILE, "/sitemaps/b.xml.gz"])
@pytest.mark.parametrize("headers", [{}, GZIP, {"Accept-Encoding": "gzip, deflate, br"}, {"Accept-Encoding": "br, gzip;q=0"}, {"Accept-Encoding": "gzip;q=0.5"}])
def test_bytes_and_tags(proxy, server, target, headers):
    """Twice, so that a cache has answered as well."""
    direct = server.get(target, headers)
    assert direct.status == 200 and ETAG.match(direct["ETag"])
    for _ in range(2):
        same(proxy.ask(target, headers), direct)


def test_one_form_is_not_given_for_another(proxy, server):
    plain, packed = server.get(XML), server.get(XML, GZIP)
    assert plain["ETag"] != packed["ETag"] and gunzip(packed.body) == plain.body
    for _ in range(3):
        same(proxy.ask(XML), plain)
        same(proxy.ask(XML, GZIP), packed)


@pytest.mark.parametrize("target", [XML, GZ, FILE, "/robots.txt"])
@pytest.mark.parametrize("headers", [{}, GZIP])
def test_not_modified(proxy, server, target, headers):
    tag = server.get(target, headers)["ETag"]
    for value in (tag, "W/" + tag, f'"other", {tag}', f'W/"other", W/{tag}', "*"):
        reply = proxy.ask(target, {**headers, "If-None-Match": value})
        assert (reply.status, reply.body) == (304, b""), value
        assert reply["ETag"].removeprefix("W/") == tag
    assert proxy.ask(target, {**headers, "If-None-Match": '"other"'}).status == 200
    date = server.get(target)["Last-Modified"]
    assert date or target == "/robots.txt"
    if date:
        assert proxy.ask(target, {**headers, "If-Modified-Since": date}).status == 304


def test_head(proxy, server):
    for target in (XML, FILE, "/robots.txt"):
        direct, through = server.get(target, GZIP, method="HEAD"), proxy.ask(target, GZIP, "HEAD")
        assert (through.status, through.body, through["ETag"]) == (200, b"", direct["ETag"])
        assert through["Content-Length"] in (direct["Content-Length"], None)


def test_the_host_selects_the_site(proxy, server):
    assert locs(proxy.ask(XML, host="www.example.org").body) == [OTHER + "/o.xml"]
    assert len(locs(proxy.ask(XML).body)) == 302
    assert OTHER.encode() in proxy.ask("/robots.txt", host="www.example.org").body
    assert proxy.ask(XML, host="evil.example").status == 421


def test_nobody_outside_names_another_host(proxy):
    """The server trusts this proxy's X-Forwarded-Host: what a client sends as one must not get there as such."""
    reply = proxy.ask(XML, {"X-Forwarded-Host": "www.example.org", "X-Sitemapd-Refresh": "yes"})
    assert len(locs(reply.body)) == 302
    assert len(locs(proxy.ask(XML).body)) == 302, "nor is it kept for others"


def test_the_log_names_the_client(proxy, server):
    """The one that the proxy saw, whatever the client says of itself."""
    target = f"/sitemaps/none-{proxy.name}.xml"
    connection = TlsConnection(proxy.address, source="127.0.0.2")
    connection.send(request_bytes("GET", target, {"X-Forwarded-For": "192.0.2.66"}))
    assert connection.reply().status == 404
    connection.close()

    def logged():
        with open(os.path.join(server.folder, "access.log"), encoding="utf-8") as log:
            return [json.loads(line)["remote"] for line in log if target in line]

    assert until(logged, "logged") == ["127.0.0.2"]


@contextlib.contextmanager
def before_nodes(server, folder):
    """The HAProxy of several machines, of which there is one; its address for crawlers."""
    address, port = f"127.0.0.1:{free_port()}", server.admin.rpartition(":")[2]
    config = folder / "haproxy.cfg"
    config.write_text(example("haproxy-shared.cfg", {
        "bind :8080": f"bind {address}", "bind :8081": f"bind 127.0.0.1:{free_port()}",
        "server a a:8080 port 8081": f"server a {server.public} port {port}", "server a a:8081": f"server a {server.admin}",
        **{f"    server {name} {name}:808{end}\n": "" for name in "bc" for end in ("0 port 8081", "1")},
    }), encoding="utf-8")
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(["haproxy", "-db", "-f", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield address
    finally:
        process.terminate()
        process.wait()


def test_before_nodes_the_log_names_the_client(server, tmp_path):
    target = "/sitemaps/none-shared.xml"

    def asked(address, what):
        connection = http.client.HTTPConnection(address, timeout=PATIENCE, source_address=("127.0.0.2", 0))
        try:
            connection.request("GET", what, headers={"Host": "www.example.com", "X-Forwarded-For": "192.0.2.66", "X-Forwarded-Host": "www.example.org"})
            reply = connection.getresponse()
            return reply.status, reply.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()

    with before_nodes(server, tmp_path) as address:
        until(lambda: asked(address, XML)[0] == 200, "the proxy asks the node")
        assert b"https://www.example.org/" not in asked(address, XML)[1]
        assert asked(address, target)[0] == 404

    def logged():
        with open(os.path.join(server.folder, "access.log"), encoding="utf-8") as log:
            return [json.loads(line)["remote"] for line in log if target in line]

    assert until(logged, "logged") == ["127.0.0.2"]


def test_ranges_of_files(proxy, server):
    whole = server.get(FILE)
    for _ in range(2):
        part = proxy.ask(FILE, {"Range": "bytes=100-299"})
        assert (part.status, part.body, part["ETag"]) == (206, whole.body[100:300], whole["ETag"])
        assert part["Content-Range"] == f"bytes 100-299/{len(whole.body)}"
        assert proxy.ask(FILE).body == whole.body
    assert proxy.ask(FILE, {"Range": "bytes=5-", "If-Range": whole["ETag"]}).status == 206
    assert proxy.ask(FILE, {"Range": "bytes=5-", "If-Range": '"other"'}).body == whole.body
    page = proxy.ask(XML, {"Range": "bytes=0-9"})
    body = server.get(XML).body
    # sitemapd gives pages whole; nginx cuts what it has in its cache.
    assert (page.status, page.body) in ((200, body), (206, body[:10])) and page["ETag"] == server.get(XML)["ETag"]


@pytest.mark.parametrize("target", ["/v1/sites", "/v1/sitemaps", "/metrics", "/healthz", "/readyz", "/openapi.json", "/"])
def test_the_admin_listener_is_not_reachable(proxy, target):
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for path in (target, "/sitemaps/.." + target, "/sitemaps/%2e%2e" + target, "//sitemap_index.xml/.." + target):
        assert proxy.ask(path, headers).status in (400, 404), path


def test_only_reading(proxy, server):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        reply = proxy.ask(XML, {"Content-Type": "application/json"}, method, body=b"[]")
        assert reply.status in (403, 404, 405), (method, reply)
    assert server.get(XML).status == 200


def test_a_change_shows_by_itself(proxy, server):
    """A cache asks again after its ten seconds."""
    loc = f"{ORIGIN}/fresh/{proxy.name}.xml"
    proxy.ask(XML)
    assert server.register(loc).status == 201
    try:
        until(lambda: loc in locs(proxy.ask(XML).body), "the change shows", 15 + PATIENCE)
        same(proxy.ask(XML), server.get(XML))
    finally:
        time.sleep(1.1)  # dates count where a second saw one change, for the tests that follow
        assert server.api("DELETE", "/v1/sitemaps?loc=" + loc).status == 204
        until(lambda: loc not in locs(proxy.ask(XML).body) and loc.encode() not in proxy.ask(XML, GZIP).xml(), "and is gone", 15 + PATIENCE)


def test_purge(make, server):
    """nginx's cache has a change at once, where deploy/proxies/purge follows the changes; nobody else may ask for that."""
    one = make("nginx", {"proxy_cache_valid 200 301 10s;": "proxy_cache_valid 200 301 1h;"})
    before, packed = one.ask(XML), one.ask(XML, GZIP)
    command = [os.path.join(EXAMPLES, "purge"), f"http://{server.admin}", f"https://{one.address}"]
    loc = ORIGIN + "/purged.xml"
    assert server.register(loc).status == 201
    try:
        assert one.ask(XML)["ETag"] == before["ETag"], "an hour is not over"
        process = subprocess.Popen(
            [sys.executable, *command], env={**os.environ, "SITEMAPD_TOKEN": TOKEN}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            until(lambda: loc in locs(one.ask(XML).body), "the page was fetched again")
            until(lambda: one.ask(XML, GZIP)["ETag"] != packed["ETag"], "its other form, too")
            same(one.ask(XML), server.get(XML))
            assert server.register(loc, lastmod="2026-02-03").status == 200
            until(lambda: b"2026-02-03" in one.ask(XML).body, "and again, as it goes on")
        finally:
            process.terminate()
            said = process.communicate()[0].decode()
        assert f"refreshed {ORIGIN}{XML}\n" in said
    finally:
        time.sleep(1.1)
        assert server.api("DELETE", "/v1/sitemaps?loc=" + loc).status == 204
        time.sleep(1.1)


def test_a_page_is_there_while_sitemapd_is_not(make, tmp_path_factory):
    own = Server(tmp_path_factory.mktemp("own")).start()
    try:
        assert own.register(ORIGIN + "/a.xml").status == 201
        one = make("nginx", {"proxy_cache_valid 200 301 10s;": "proxy_cache_valid 200 301 1s;"}, own.public)
        page = one.ask(XML)
        assert page.status == 200
        own.stop()
        time.sleep(1.5)
        for _ in range(3):
            same(one.ask(XML), page)
    finally:
        own.kill()


def test_sitemaps_are_there_while_who_makes_them_is_not(make):
    """Down, overrun or saying nonsense; what it says of a visitor goes to nobody else."""
    with Origin("127.0.0.1") as cms:
        one = make("nginx", {"server 127.0.0.1:8090;": f"server 127.0.0.1:{cms.port};", "proxy_cache_valid 200 5m;": "proxy_cache_valid 200 1s;"})
        page = urlset(ORIGIN + "/page")
        path = "/post-sitemap2.xml"
        cms.answers[path] = answer(200, page, Set_Cookie="visitor=1", Cache_Control="no-store", Content_Type="text/xml")
        first = one.ask(path, {"Cookie": "visitor=2"})
        assert (first.status, first.body, first["Set-Cookie"]) == (200, page, None)
        assert "visitor" not in "".join(cms.asked)
        packed = one.ask(path, GZIP)
        assert packed["Content-Encoding"] == "gzip" and gunzip(packed.body) == page, "packed here, of the one form that is kept"
        for fault in (answer(503), answer(429), cms.cut(b"nonsense\r\n\r\n"), cms.cut(b"")):
            cms.answers[path] = fault
            time.sleep(1.1)  # what is kept is no longer fresh
            for _ in range(2):
                reply = one.ask(path)
                assert (reply.status, reply.body) == (200, page), fault
        cms.answers[path] = answer(200, urlset(ORIGIN + "/other"), Content_Type="text/xml")
        until(lambda: one.ask(path).body == urlset(ORIGIN + "/other"), "it is well again, and what it says counts")
    time.sleep(1.1)
    assert one.ask(path).body == urlset(ORIGIN + "/other"), "nobody listens there any more"


def test_a_weakened_tag_still_matches(make, server):
    """A proxy that compresses by itself weakens the tag: the client sends that one, and it is known."""
    one = make("nginx", {
        "gzip off;": "gzip on; gzip_types application/xml; gzip_proxied any;",
        'proxy_set_header Accept-Encoding $sitemapd_encoding;': 'proxy_set_header Accept-Encoding "";',
        "proxy_cache sitemapd;\n        proxy_cache_key $host$request_uri|": "proxy_cache off;\n        proxy_cache_key $host$request_uri|",
    })
    weak = one.ask(XML, GZIP)
    direct = server.get(XML)
    assert weak["Content-Encoding"] == "gzip" and weak.xml() == direct.body
    assert weak["ETag"] == "W/" + direct["ETag"], "or this proves nothing"
    assert one.ask(XML, {**GZIP, "If-None-Match": weak["ETag"]}).status == 304
    assert ask(server.public, "GET", XML, {"If-None-Match": weak["ETag"]}).status == 304


def test_forwarded_host(make, server):
    """A proxy that has to send a Host of its own names the site in X-Forwarded-Host."""
    one = make("nginx", {
        "proxy_set_header Host $host; # selects the site": "proxy_set_header Host backend.internal;",
        'proxy_set_header X-Forwarded-Host "";': "proxy_set_header X-Forwarded-Host $host;",
    })
    assert locs(one.ask(XML, host="www.example.org").body) == [OTHER + "/o.xml"]
    assert len(locs(one.ask(XML, {"X-Forwarded-Host": "www.example.org"}).body)) == 302


# ---- the rules that migrate prints ------------------------------------------------------------

# What robots.txt names, what the old index lists; what goes to sitemapd, and what is redirected.
SWITCHES = {
    "plain": ("/sitemap_index.xml", ["/post-sitemap.xml"], ["/sitemap_index.xml", "/sitemap_index-2.xml.gz", "/sitemap_index.xml?utm=1"], []),
    "drupal": ("/sitemap.xml", ["/sitemap.xml?page=1", "/sitemap.xml?page=2"], ["/sitemap.xml", "/sitemap.xml.gz", "/sitemap-2.xml"], []),
    "next": ("/sitemap.xml", ["/sitemap-0.xml", "/sitemap-2.xml"], ["/sitemap.xml", "/sitemap-page-2.xml"], []),
    "query": ("/?sitemap=index", ["/?sitemap=posts", "/sitemap"], ["/sitemap_index.xml"], ["/?sitemap=index"]),
    "odd": ("/a%20b$'(c).xml", ["/a%20b$'(c)/x.xml", "/axb.xml"], ["/a%20b$'(c).xml", "/a%20b$'(c)-3.xml"], []),
}  # fmt: skip

RULES = {
    "nginx": "daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{ }}\n{user}http {{ access_log off; {places}\n"
             "server {{ listen {address}; server_name www.example.com;\n{rules}\nlocation / {{ proxy_pass http://{old}; }}\n}} }}\n",
    "apache": "ServerName localhost\nListen {address}\nPidFile {folder}/pid\nErrorLog {folder}/error.log\nMutex file:{folder}\n{modules}"
              "<VirtualHost *>\nServerName www.example.com\nServerAlias shop.example.com\nAllowEncodedSlashes NoDecode\n{rules}\nProxyPass / http://{old}/ nocanon\n</VirtualHost>\n",
    "caddy": "{{\n admin off\n auto_https off\n}}\nhttp://www.example.com:{port} {{\n bind 127.0.0.1\n{rules}\nhandle {{\n reverse_proxy {old}\n}}\n}}\n",
    "haproxy": "defaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\nfrontend all\n bind {address}\n{rules}\n"
               " default_backend old\nbackend sitemapd\n server sitemapd {new}\nbackend old\n server old {old}\n",
}  # fmt: skip
APACHE = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in ("mpm_event", "authz_core", "rewrite", "proxy", "proxy_http"))
RUN = {"apache": ["apache2", "-D", "FOREGROUND", "-f"], "nginx": ["nginx", "-p", "{folder}", "-e", "{folder}/error.log", "-c"], "caddy": ["caddy", "run", "--adapter", "caddyfile", "--config"], "haproxy": ["haproxy", "-db", "-f"]}


class Who(http.server.BaseHTTPRequestHandler):
    """Answers with who it is, and what it was asked for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = f"{self.server.name} {self.headers['Host']} {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def backends():
    made = []
    for name in ("old", "new"):
        one = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Who)
        one.name = name
        threading.Thread(target=one.serve_forever, daemon=True).start()
        made.append(one)
    yield {one.name: f"127.0.0.1:{one.server_port}" for one in made}
    for one in made:
        one.shutdown()
        one.server_close()


def migrate_rules(name, site, named, members):
    with Origin() as origin:
        origin.answers["/robots.txt"] = answer(200, f"Sitemap: {site}{named}\n".encode())
        origin.answers[named] = answer(200, index(*(site + member for member in members)))
        for member in members:
            origin.answers[member] = answer(200, urlset(site + "/a"))
        done = sitemapd("migrate", site, "--connect", f"{origin.address}:{origin.port}", "--proxy", name)
    assert done.code == 0, done
    return done.out


@contextlib.contextmanager
def web_server(name, rules, backends, tmp_path):
    """One with these rules of `migrate`, and the old server for all else. Yields what it says to a request."""
    rules = rules.replace("127.0.0.1:8080", backends["new"])
    address = f"127.0.0.1:{free_port()}"
    places = " ".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config = tmp_path / "config"
    user = "user root;\n" if os.getuid() == 0 else ""
    config.write_text(RULES[name].format(rules=rules, address=address, port=address.rpartition(":")[2], places=places, folder=tmp_path, user=user, modules=APACHE, **backends))
    env = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen([word.format(folder=tmp_path) for word in RUN[name]] + [str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)

    def says(target, host="www.example.com"):
        reply = ask(address, "GET", target, host=host)
        return reply["Location"] if reply.status == 301 else reply.body.decode() if reply.status == 200 else reply.status

    def answers():
        assert process.poll() is None, (tmp_path / "log").read_text() + config.read_text()
        with contextlib.suppress(OSError, EOFError):
            return says("/other")

    try:
        assert until(answers, f"{name} is ready") == f"old {'www.example.com' if name != 'nginx' else backends['old']} /other"
        yield says
    finally:
        process.terminate()
        process.wait(seconds(30))


@pytest.mark.parametrize("case", SWITCHES)
@pytest.mark.parametrize("name", RUN)
def test_rules_that_migrate_prints(name, case, backends, tmp_path):
    """They start as they are, pass on the index and robots.txt, and leave each sitemap to the old server."""
    named, members, ours, redirected = SWITCHES[case]
    site = "http://www.example.com"
    with web_server(name, migrate_rules(name, site, named, members), backends, tmp_path) as says:
        for target in (*ours, "/robots.txt"):
            assert str(says(target)).startswith("new www.example.com /"), target
        for target in members:
            assert str(says(target)).startswith("old "), target
        for target in redirected:
            assert says(target) == site + "/sitemap_index.xml"


def test_rules_of_two_sites_in_one_frontend(backends, tmp_path):
    """HAProxy combines ACLs of one name by OR: each site passes on its own paths alone."""
    sites = {"www.example.com": "/sitemap.xml", "shop.example.com": "/wp-sitemap.xml"}
    rules = "".join(migrate_rules("haproxy", f"http://{host}", named, ["/a.xml"]) for host, named in sites.items())
    with web_server("haproxy", rules, backends, tmp_path) as says:
        for host, named in sites.items():
            assert says(named, host) == f"new {host} {named}"
            for other in {*sites.values()} - {named}:
                assert says(other, host) == f"old {host} {other}"
