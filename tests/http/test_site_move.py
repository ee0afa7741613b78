# SPDX-License-Identifier: LicenseRef-Undeclared
"""A site goes from one server to another while a crawler reads it all the time, back and forth, and whenever the command
is killed: no other status, byte or validator; it is never on no server, and at the end on one."""

import contextlib
import http.client
import http.server
import itertools
import json
import os
import shlex
import sqlite3
import subprocess
import sys
import threading

import pytest

from harness import BIN, TOKEN, Server, ask, environment, eventually, problem, q, sitemapd
from nodes import equal, joined
from origin import urlset
from relay import Relay

SHOP, HOST = "https://shop.example.org", "shop.example.org"
PATHS = ("/sitemap_index.xml", "/sitemap_index.xml.gz", "/products.xml", "/products-2.xml.gz", "/robots.txt")
COPY = "application/vnd.sqlite3"


@pytest.fixture
def pair(tmp_path):
    made = []
    for name in "ab":
        (tmp_path / name).mkdir()
        made.append(Server(tmp_path / name, sites=(), config=f"[fetch]\nsource_root = {tmp_path}/files\n").start())
        assert made[-1].api("POST", "/v1/sites", {"origin": f"https://{name}.example.net"}).status == 201
        assert made[-1].register(f"https://{name}.example.net/own.xml").status == 201
    yield made
    for server in made:
        if server.process is not None:
            server.stop()


def with_shop(server, count=1200):
    """Of which no page is as a fresh import would make it."""
    body = {"origin": SHOP, "host_aliases": ["www.example.org"], "cross_hosts": ["cdn.example.org"], "max_indexes": 77, "robots": "User-agent: *\nDisallow: /private/\n"}
    assert server.api("POST", "/v1/sites", body).status == 201
    assert server.bulk([f"{SHOP}/{i}.xml" for i in range(count)]).status == 200
    fields = {"url": f"{SHOP}/products.xml", "with": ["images"], "expires": "90d", "max_page_urls": 1000}
    assert server.api("POST", "/v1/urlsets", fields).status == 201
    urls = [{"loc": f"{SHOP}/p/{i}", "images": [f"https://cdn.example.org/{i}.jpg"]} for i in range(1500)]
    assert server.api("POST", f"/v1/urls?urlset={q(SHOP + '/products.xml')}", urls).status == 200
    for i in range(0, count, 7):
        assert server.api("DELETE", f"/v1/sitemaps?loc={q(f'{SHOP}/{i}.xml')}").status == 204
    assert server.register(f"{SHOP}/late.xml", lastmod="2026-02-03", source="nightly").status == 201


def shop(server):
    """The site as the API shows it, without its id; None: it is not there."""
    found = [site for site in server.api("GET", "/v1/sites").json()["sites"] if site["origin"] == SHOP]
    return {name: value for name, value in found[0].items() if name != "id"} if found else None


def export(server):
    one = server.api("GET", "/v1/sitemaps", headers=[("Accept", "application/x-ndjson")]).body
    two = server.api("GET", f"/v1/urls?urlset={q(SHOP + '/products.xml')}", headers=[("Accept", "application/x-ndjson")]).body
    lines = [json.loads(line) for line in (one + two).splitlines()]
    return [{name: value for name, value in line.items() if name != "id"} for line in lines if line["loc"].startswith(SHOP)]


def served(server, path, headers=()):
    reply = ask(server.public, "GET", path, [("Accept-Encoding", "gzip"), *headers], host=HOST)
    return reply.status, reply.body, reply["ETag"], reply["Last-Modified"], reply["Content-Encoding"]


def move_words(origin, there, to, *more):
    return ["site", "move", origin, "--server", f"http://{there.admin}", "--to", f"http://{to.admin}", *more]


def move(there, to, *more, origin=SHOP):
    return sitemapd(*move_words(origin, there, to, *more), env={"SITEMAPD_TOKEN": TOKEN})


class Router:
    """What stands before the shards: each request goes where the map says. A new map counts once no request uses the old
    one; who deploys it waits for that, over HTTP."""

    def __init__(self, shards, file):
        self.shards, self.file, self.lock = shards, file, threading.Condition()
        self.busy, self.deploys, self.map = 0, False, {}
        router = self

        class Deploy(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                with router.lock:
                    router.deploys = True
                    router.lock.wait_for(lambda: router.busy == 0)
                    router.map = dict(line.split() for line in open(router.file, encoding="ascii"))
                    router.deploys = False
                    router.lock.notify_all()
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Deploy)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def command(self):
        servers = " ".join(f"--server {name}=http://{server.admin}" for name, server in self.shards.items())
        post = f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{self.http.server_port}/', data=b'')"
        return f"{shlex.quote(BIN)} shard map {servers} >{self.file} && {shlex.quote(sys.executable)} -c {shlex.quote(post)}"

    def deploy(self):
        subprocess.run(self.command(), shell=True, check=True, env=environment({"SITEMAPD_TOKEN": TOKEN}))

    def get(self, path, headers=()):
        with self.lock:
            self.lock.wait_for(lambda: not self.deploys)
            self.busy += 1
            server = self.shards[self.map[HOST]]
        try:
            return served(server, path, headers)
        finally:
            with self.lock:
                self.busy -= 1
                self.lock.notify_all()

    def end(self):
        self.http.shutdown()
        self.http.server_close()


def test_back_and_forth_under_a_crawler(pair, tmp_path):
    a, b = pair
    with_shop(a)
    whole, state = export(a), shop(a)
    router = Router({"a": a, "b": b}, tmp_path / "shards.map")
    router.deploy()
    assert router.map[HOST] == router.map["www.example.org"] == "a"
    first = {path: router.get(path) for path in PATHS}
    assert all(found[0] == 200 for found in first.values())
    wrong, over, turns = [], threading.Event(), itertools.count()

    def crawl():
        while not over.is_set():
            next(turns)
            for path in PATHS:
                status, body, tag, date, coding = first[path]
                if (found := router.get(path)) != first[path]:
                    wrong.append((path, found[0], found[2:], first[path][2:]))
                same = router.get(path, [("If-None-Match", tag)])
                if (same[0], same[2]) != (304, tag):
                    wrong.append((path, same))
                since = router.get(path, [("If-Modified-Since", date)]) if date else first[path]
                if since[0] != 304 and since != first[path]:
                    wrong.append((path, since[0], since[2:]))

    def write(server, name):
        for i in itertools.count():
            if over.is_set():
                break
            if server.register(f"https://{name}.example.net/{i % 50}.xml", lastmod=f"2026-01-{i % 28 + 1:02}").status not in (200, 201):
                wrong.append((name, i))

    threads = [threading.Thread(target=crawl) for _ in range(2)] + [threading.Thread(target=write, args=(server, name)) for server, name in ((a, "a"), (b, "b"))]
    for thread in threads:
        thread.start()
    try:
        for i in range(4):
            there, to = (a, b) if i % 2 == 0 else (b, a)
            begun = next(turns)
            result = move(there, to, "--switch", router.command())
            assert result.code == 0 and result.out.splitlines()[-1].startswith(f"{SHOP}: moved to "), result
            assert not shop(there) and shop(to) == state and export(to) == whole
            eventually(lambda: next(turns) > begun + 6 or wrong, "crawlers went round", within=120)  # two, and our own looks
            assert not wrong, wrong[:3]
    finally:
        over.set()
        for thread in threads:
            thread.join()
        router.end()
    assert not wrong, wrong[:3]
    for server, name in ((a, "a"), (b, "b")):
        server.stop()
        assert sitemapd("check", database=server.database).code == 0
        server.start()


class Middleman:
    """Between the command and a server; kills the command at its nth request of all, before the server sees it or once it was
    answered."""

    count = itertools.count(1)
    at, after, process = 0, False, None

    def __init__(self, server):
        man = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                kills = next(Middleman.count) == Middleman.at
                if kills and not Middleman.after:
                    Middleman.process.kill()
                    self.close_connection = True
                    return
                connection = http.client.HTTPConnection(server.admin, timeout=120)
                headers = {name: value for name, value in self.headers.items() if name not in ("Host", "Connection")}
                connection.request(self.command, self.path, body, {**headers, "Host": server.admin})
                reply = connection.getresponse()
                data = reply.read()
                connection.close()
                if kills:
                    Middleman.process.kill()
                    self.close_connection = True
                    return
                with contextlib.suppress(OSError):
                    self.send_response(reply.status)
                    for name in ("Content-Type", "Location"):
                        if reply.headers[name]:
                            self.send_header(name, reply.headers[name])
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_DELETE = pass_on

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.admin = f"127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def end(self):
        self.http.shutdown()
        self.http.server_close()


def killed(there, to, at, after, *more):
    """Whether it came so far."""
    gate = threading.Event()
    Middleman.count, Middleman.at, Middleman.after = itertools.count(1), at, after

    class Process:
        def kill(self):
            gate.wait(60)
            process.kill()
            process.wait()

    Middleman.process = Process()
    process = subprocess.Popen([BIN, *move_words(SHOP, there, to, *more)], env=environment({"SITEMAPD_TOKEN": TOKEN}), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    gate.set()
    process.communicate(timeout=240)
    assert process.returncode in (0, -9), process.returncode
    return process.returncode != 0


@pytest.mark.masses
def test_killed_at_each_request_it_is_repeated_or_undone(pair):
    """Whatever the moment, the site is served as ever by one that the map names; then the command goes on, or back."""
    a, b = pair
    with_shop(a, 40)
    whole, state = export(a), shop(a)
    first = {path: served(a, path) for path in PATHS}
    men = {server: Middleman(server) for server in pair}
    there, to, kills = a, b, 0
    for after in (False, True):
        for at in itertools.count(1):
            if not killed(men[there], men[to], at, after, "--finish"):
                there, to = to, there
                break
            kills += 1
            mapped = sitemapd("shard", "map", "--server", f"there=http://{there.admin}", "--server", f"to=http://{to.admin}", env={"SITEMAPD_TOKEN": TOKEN})
            assert mapped.code == 0, (at, after, mapped)
            named = dict(line.split() for line in mapped.out.splitlines())[HOST]
            assert {path: served(there if named == "there" else to, path) for path in PATHS} == first, (at, after)
            if shop(there) is not None and at % 2 == 0:
                back = move(there, to, "--undo", "--finish")
                assert back.code == 0 and not shop(to) and shop(there) == state and export(there) == whole, (at, after, back)
            on = move(there, to, "--finish")
            assert on.code == 0 and not shop(there) and shop(to) == state and export(to) == whole, (at, after, on)
            there, to = to, there
    assert kills >= 20
    for man in men.values():
        man.end()


def test_in_two_steps_with_the_map_between(pair):
    a, b = pair
    with_shop(a, 40)
    state = shop(a)
    result = move(a, b)
    assert result.code == 0 and "both servers have it. Deploy the map" in result.out and "--finish" in result.out, result
    assert (shop(a)["frozen_by"], shop(b)["frozen_by"]) == ("leaving", "arriving")
    for server in pair:
        problem(server.register(f"{SHOP}/new.xml"), 409, "frozen")
    again = move(a, b)
    assert again.code == 0 and "copied" not in again.out and "both servers have it" in again.out, again
    back = move(a, b, "--undo")
    assert back.code == 0 and "--undo --finish" in back.out and shop(a) == state and shop(b)["frozen_by"] == "arriving", back
    half = move(a, b, "--finish")
    assert half.code == 1 and "an --undo did not finish" in half.err, half
    assert move(a, b, "--undo", "--finish").code == 0 and not shop(b)
    assert "stays on" in move(a, b, "--undo").out
    failed = move(a, b, "--switch", "exit 3")
    assert failed.code == 1 and "--switch: the command failed (3)" in failed.err and shop(a)["frozen_by"] == "leaving", failed
    assert move(a, b, "--finish").code == 0
    over = move(a, b, "--undo")
    assert over.code == 1 and "the move is finished" in over.err, over
    assert "is on" in move(a, b).out


def test_the_map_waits_for_all_nodes_of_the_other_shard(cluster, tmp_path):
    """The proxy sends crawlers to each of them."""
    (tmp_path / "there").mkdir()
    there, relay = Server(tmp_path / "there", sites=()).start(), Relay(cluster.postgres.port)
    try:
        with_shop(there)
        a = cluster.node("a")
        b = cluster.node("b", env={"SITEMAPD_SHARED": cluster.postgres.url().replace(f":{cluster.postgres.port}/", f":{relay.port}/")})
        joined(b)
        eventually(lambda: len(a.api("GET", "/readyz").json()["shared"]["nodes"]) == 2, "both have reported", within=60)
        before = served(there, "/sitemap_index.xml")
        look = f"import urllib.request as u; u.urlopen(u.Request('http://{b.public}/sitemap_index.xml', headers={{'Host': '{HOST}'}}))"
        moved = []
        relay.cut()
        mover = threading.Thread(target=lambda: moved.append(move(there, a, "--switch", f"{shlex.quote(sys.executable)} -c {shlex.quote(look)}")))
        mover.start()
        eventually(lambda: moved or served(a, "/sitemap_index.xml") == before, "one node has it", within=60)
        mover.join(5)  # time to do it too soon
        relay.mend()
        mover.join()
        assert moved[0].code == 0, moved[0]
        equal([a, b])
        assert served(b, "/sitemap_index.xml") == before
        b.stop(), there.stop()
    finally:
        there.kill()
        relay.end()


def test_a_copy_that_differs_is_not_switched_to(pair):
    a, b = pair
    with_shop(a, 40)
    assert move(a, b).code == 0
    at = next(site["id"] for site in a.api("GET", "/v1/sites").json()["sites"] if site["origin"] == SHOP)
    assert a.api("PATCH", f"/v1/sites/{at}", {"frozen": False}).status == 200
    assert a.register(f"{SHOP}/new.xml").status == 201
    assert a.api("PATCH", f"/v1/sites/{at}", {"leaving": True}).status == 200
    result = move(a, b, "--finish")
    assert result.code == 1 and "differs from the site" in result.err, result
    assert move(a, b, "--undo", "--finish").code == 0 and move(a, b, "--finish").code == 0
    assert f"{SHOP}/new.xml" in [line["loc"] for line in export(b)]


def test_what_cannot_be_moved_is_refused_before_anything_changes(pair, tmp_path):
    a, b = pair
    assert "neither server has this site" in move(a, b).err
    with_shop(a, 10)
    state = shop(a)

    def refused(words, *more, code=1, there=a, to=b):
        result = move(there, to, *more)
        assert result.code == code and words in result.err, result
        assert shop(a) == state

    refused("is the same server as --server", code=2, to=a)
    assert sitemapd("site", "move", SHOP, "--server", "http://127.0.0.1:1", env={"SITEMAPD_TOKEN": TOKEN}).code == 2
    assert sitemapd("site", "move", "shop", "--server", "http://127.0.0.1:1", "--to", "http://127.0.0.1:2", env={"SITEMAPD_TOKEN": TOKEN}).code == 2
    assert b.api("POST", "/v1/sites", {"origin": SHOP}).status == 201
    refused("also has a site with this origin")
    refused("that is not a copy made by `site move`", "--undo")
    at = next(site["id"] for site in b.api("GET", "/v1/sites").json()["sites"] if site["origin"] == SHOP)
    assert b.api("DELETE", f"/v1/sites/{at}").status == 200
    at = next(site["id"] for site in a.api("GET", "/v1/sites").json()["sites"] if site["origin"] == SHOP)
    assert a.api("PATCH", f"/v1/sites/{at}", {"frozen": True}).status == 200
    result = move(a, b)
    assert result.code == 1 and f"is frozen on {a.admin} (all-sites): thaw it first" in result.err, result
    own = a.cli("token", "add", "own", "--site", SHOP, "--role", "admin").out.strip()
    eventually(lambda: a.api("GET", "/v1/token", token=own).status == 200, "known")
    problem(a.api("PATCH", f"/v1/sites/{at}", {"leaving": True}, token=own), 403, "needs-token-of-all-sites", "leaving")
    problem(a.api("PATCH", f"/v1/sites/{at}", {"leaving": True, "frozen": True}), 422, "conflicting-fields", "leaving")
    managed = Server(tmp_path, config=f'[site "m"]\norigin = {SHOP}\nindex = /m.xml\n', sites=()).start()
    result = move(managed, b)
    managed.stop()
    assert result.code == 1 and "declares it: remove its section there first" in result.err, result


def copy_of(server):
    at = next(site["id"] for site in server.api("GET", "/v1/sites").json()["sites"] if site["origin"] == SHOP)
    reply = server.api("GET", f"/v1/sites/{at}/copy")
    assert (reply.status, reply["Content-Type"]) == (200, COPY)
    return reply.body


def test_messages_name_each_server_by_its_port(pair, tmp_path):
    """Both are on one host; one that was named NAME=URL is named so."""
    a, b = pair
    assert a.api("POST", "/v1/sites", {"origin": SHOP}).status == 201
    assert b.api("POST", "/v1/sites", {"origin": SHOP}).status == 201
    assert f"conflict: {b.admin} also has a site" in move(a, b).err
    words = ["site", "move", SHOP, "--server", f"http://{a.admin}", "--to", f"two=http://{b.admin}"]
    assert "conflict: two also has a site" in sitemapd(*words, env={"SITEMAPD_TOKEN": TOKEN}).err
    at = next(site["id"] for site in b.api("GET", "/v1/sites").json()["sites"] if site["origin"] == SHOP)
    assert b.api("DELETE", f"/v1/sites/{at}").status == 200
    assert f"copied to {b.admin}" in move(a, b).out


def test_the_disk_of_the_copy(pair, tmp_path):
    """Too little space is reported before the site is frozen, or when the copy reaches the reserve. No file is left."""
    if os.geteuid() != 0:
        pytest.skip("a small tmpfs needs root")
    a, b = pair
    with_shop(a)
    assert a.bulk([f"{SHOP}/more/{i}.xml" for i in range(15000)]).status == 200  # 3 MB of a copy
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(small)], capture_output=True).returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    env = {"SITEMAPD_TOKEN": TOKEN, "TMPDIR": str(small)}
    # ThreadSanitizer keeps a copy of the program's constants there, 0.7 MB: beside it there is room for the reserve (0.5 MB).
    files = lambda: [name for name in os.listdir(small) if not name.startswith("tsan.")]
    try:
        def fails():
            ended = sitemapd(*move_words(SHOP, a, b), env=env)
            assert ended.code != 0 and f"cannot be stored in {small}: " in ended.err and "set TMPDIR to another folder" in ended.err
            return ended.err

        with open(small / "other", "wb") as file:
            file.write(bytes(8000 << 10))
        assert "too little free disk space" in fails() and shop(a)["frozen_by"] is None, "nothing was changed"
        os.truncate(small / "other", 6000 << 10)  # more than the reserve, less than the copy
        fails()
        assert shop(a)["frozen_by"] == "leaving" and shop(b) is None and files() == ["other"]
        os.unlink(small / "other")
        with subprocess.Popen([BIN, *move_words(SHOP, a, b)], env=environment(env)) as running:
            for _ in range(50):
                assert files() == [], "it has no name at any time"
            running.terminate()
        assert move(a, b, "--undo", "--finish").code == 0 and shop(a)["frozen_by"] is None and shop(b) is None
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_what_goes_with_it_is_used_there(pair, tmp_path):
    """Tokens of the site; its sources with what they know of their files, which move no date; page URLs expire in their time."""
    a, b = pair
    folder = tmp_path / "files"
    folder.mkdir()
    for name in "xy":
        (folder / f"{name}.xml").write_bytes(urlset(f"{SHOP}/f/{name}", lastmod="2026-01-02"))
    with_shop(a, 10)
    made = a.api("POST", "/v1/sources", {"name": "files", "directory": str(folder), "url": f"{SHOP}/f/", "settle": 0})
    assert made.status == 201, made
    token = a.cli("token", "add", "own", "--site", SHOP, "--role", "write").out.strip()
    status = lambda server: [(source["name"], source["files"], source["listed"]) for source in server.api("GET", "/v1/sources").json()["sources"]]
    eventually(lambda: status(a) == [("files", 2, 2)], "it was scanned")
    before = export_all(a)
    ages = lambda server: rows(server, "SELECT address & 4294967295, at FROM urlset_age ORDER BY 1")
    aged = ages(a)
    assert move(a, b, "--finish").code == 0
    assert export_all(b) == before and len([line for line in before if line["source"] == "files"]) == 2
    assert ages(b) == aged and len(aged) == 1500
    eventually(lambda: status(b) == [("files", 2, 2)], "it is scanned there")
    assert status(a) == [] and a.api("GET", "/v1/token", token=token).status == 401
    assert b.api("POST", "/v1/sitemaps", {"loc": f"{SHOP}/mine.xml"}, token=token).status == 201
    assert b.api("POST", "/v1/sources/files/scan").status in (200, 202)
    assert [line for line in export_all(b) if not line["loc"].endswith("mine.xml")] == before
    (folder / "z.xml").write_bytes(urlset(f"{SHOP}/f/z"))
    eventually(lambda: status(b) == [("files", 3, 3)], "it is watched there")
    assert move(b, a, "--finish").code == 0 and a.api("GET", "/v1/token", token=token).status == 200
    eventually(lambda: status(a) == [("files", 3, 3)] and status(b) == [], "nothing of it was left where it comes back to")


def rows(server, sql):
    with contextlib.closing(sqlite3.connect(f"file:{server.database}?mode=ro", uri=True)) as db:
        return db.execute(sql).fetchall()


def export_all(server):
    reply = server.api("GET", f"/v1/sitemaps?index={q(SHOP + '/sitemap_index.xml')}", headers=[("Accept", "application/x-ndjson")])
    return [{name: value for name, value in json.loads(line).items() if name != "id"} for line in reply.body.splitlines()]


@pytest.mark.parametrize("make, words", [
    (lambda s: s.api("POST", "/v1/sites", {"origin": "https://x.example.org", "host_aliases": ["www.example.org"]}), "conflict: www.example.org is the host alias of another site here"),
    (lambda s: s.api("POST", "/v1/sites", {"origin": "https://www.example.org"}), "conflict: www.example.org is the host of another site here"),
    (lambda s: s.cli("token", "add", "shared-name"), "both catalogues have a token with the name shared-name"),
    (lambda s: s.api("POST", "/v1/sources", {"name": "cms", "upstream": "https://b.example.net/i.xml"}), "both catalogues have a source with the name cms"),
], ids=["alias", "host", "token", "source"])
def test_names_that_both_have_are_refused(pair, make, words):
    a, b = pair
    with_shop(a, 10)
    a.cli("token", "add", "shared-name", "--site", SHOP)
    assert a.api("POST", "/v1/sources", {"name": "cms", "upstream": f"{SHOP}/i.xml", "index": f"{SHOP}/sitemap_index.xml"}).status == 201
    make(b)
    before = b.api("GET", "/v1/history").json()["changes"][0]["revision"]
    problem(b.api("POST", "/v1/sites/import", body=copy_of(a), content_type=COPY), 409, "site-conflicts")
    result = move(a, b)
    assert result.code == 1 and words in result.err, result
    assert b.api("GET", "/v1/history").json()["changes"][0]["revision"] == before and not shop(b)
    assert move(a, b, "--undo").code == 0 and not shop(a)["frozen_by"]


def test_a_site_that_was_removed_here_is_imported_again(pair):
    """Its source's name is its own; what has the name of a source that another removed site had is a conflict, not damage."""
    a, b = pair
    with_shop(a, 10)
    assert a.api("POST", "/v1/sources", {"name": "cms", "upstream": f"{SHOP}/i.xml", "check": False}).status == 201
    body = copy_of(a)

    def remove(server, origin):
        at = next(site["id"] for site in server.api("GET", "/v1/sites").json()["sites"] if site["origin"] == origin)
        assert server.api("DELETE", f"/v1/sites/{at}?max_removed=9999").status == 200

    remove(a, SHOP)
    assert a.api("POST", "/v1/sites/import", body=body, content_type=COPY).status == 201
    assert [source["name"] for source in a.api("GET", "/v1/sources").json()["sources"]] == ["cms"]
    other = "https://c.example.net"
    assert b.api("POST", "/v1/sites", {"origin": other}).status == 201
    assert b.api("POST", "/v1/sources", {"name": "cms", "upstream": f"{other}/i.xml", "check": False}).status == 201
    remove(b, other)
    assert b.api("POST", "/v1/sites", {"origin": "https://d.example.net"}).status == 201
    ends = threading.Event()

    def write():
        for number in itertools.count():
            if ends.is_set():
                break
            b.register(f"https://d.example.net/{number}.xml")

    writers = [threading.Thread(target=write) for _ in range(4)]
    try:
        for beside in (False, True):  # others' writes divide the import into steps
            for writer in writers if beside else ():
                writer.start()
            for _ in range(20 if beside else 1):
                problem(b.api("POST", "/v1/sites/import", body=body, content_type=COPY), 409, "site-conflicts")
    finally:
        ends.set()
        for writer in writers:
            if writer.ident:
                writer.join()
    assert "corrupt" not in b.log() and not shop(b)


@pytest.mark.masses
@pytest.mark.parametrize("sql", [
    "UPDATE site SET robots = printf('%.*c', 700000, 'x')", "UPDATE site SET robots = char(27) || '[2J'", "UPDATE site SET max_pages = 999999999999",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO site_host SELECT (SELECT id FROM site), 'h' || i || '.example', 'alias' FROM n",
    "UPDATE source_made SET poll_ms = 0", "UPDATE source_made SET poll_ms = -1", "UPDATE source_made SET upstream = 'file:///etc/passwd'", "UPDATE source_made SET host_map = 'x'",
    "UPDATE source_made SET name = char(27)", "UPDATE token SET name = '<b>'",
])
def test_settings_in_a_copy_are_within_their_bounds(pair, tmp_path, sql):
    a, b = pair
    with_shop(a, 10)
    assert a.api("POST", "/v1/sources", {"name": "cms", "upstream": f"{SHOP}/i.xml", "check": False}).status == 201
    assert a.cli("token", "add", "own", "--site", SHOP).code == 0
    problem(b.api("POST", "/v1/sites/import", body=changed(tmp_path, copy_of(a), sql), content_type=COPY), 422, "invalid-copy")


def changed(tmp_path, body, sql):
    path = tmp_path / "changed.db"
    path.write_bytes(body)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(sql)
    return path.read_bytes()


@pytest.mark.masses
@pytest.mark.parametrize("sql", [
    "CREATE TRIGGER evil AFTER INSERT ON site BEGIN DELETE FROM sitemap; END",
    "CREATE VIEW evil AS SELECT 1",
    "INSERT INTO site(origin, managed, max_pages) VALUES('https://two.example.org', 0, 5)",
    "DELETE FROM segment", "UPDATE page SET entries = entries + 1", "UPDATE sitemap SET loc = 'https://a.example.net/x.xml' WHERE rowid = (SELECT min(rowid) FROM sitemap)",
    "UPDATE sitemap SET source = 999", "UPDATE site SET origin = 'https://SHOP.example.org/'", "PRAGMA user_version = 7", "PRAGMA application_id = 1",
    "DELETE FROM site", "DELETE FROM catalogue", "UPDATE sitemap_index SET path = 'x' WHERE kind = 0",
])
def test_a_copy_that_is_not_sound_is_refused(pair, tmp_path, sql):
    a, b = pair
    with_shop(a, 20)
    before = b.api("GET", "/v1/history").json()["changes"][0]["revision"]
    reply = b.api("POST", "/v1/sites/import", body=changed(tmp_path, copy_of(a), sql), content_type=COPY)
    problem(reply, 422, "invalid-copy")
    assert b.api("GET", "/v1/history").json()["changes"][0]["revision"] == before and not shop(b)
    assert not [name for name in os.listdir(os.path.dirname(b.database)) if "copy" in name]


FAR = 1 << 50


@pytest.mark.masses
@pytest.mark.parametrize("sql, words", [
    ("UPDATE sitemap SET digest = printf('%.*c', 257, 'a') WHERE loc LIKE '%/late.xml'", "entry at position 0 of https://shop.example.org/sitemap_index.xml: its digest of 257 bytes is malformed"),
    ("UPDATE sitemap SET digest = char(10) WHERE loc LIKE '%/late.xml'", "its digest of 1 bytes is malformed"),
    (f"UPDATE sitemap SET registered_at = {FAR} WHERE loc LIKE '%/late.xml'", "was registered at"), ("UPDATE sitemap SET changed_at = -1 WHERE loc LIKE '%/late.xml'", "changed at -1, out of range"),
    ("UPDATE sitemap SET extensions = printf('%.*c', 9000000, 'x') WHERE loc LIKE '%/p/7'", "bytes of extensions"),
    (f"UPDATE page SET changed_at = {FAR}", "changed_at"), (f"UPDATE site SET robots_changed_at = {FAR}", "site https://shop.example.org: robots_changed_at"),
    ("UPDATE urlset_age SET at = -5", "at -5 is out of range"), (f"UPDATE urlset_age SET at = {FAR}", "urlset_age"), ("UPDATE urlset_age SET list = list + 1", "list"),
    ("INSERT INTO index_peak VALUES((SELECT min(id) FROM sitemap_index), -1, 5)", ":-1: day -1 is out of range"),
    (f"INSERT OR REPLACE INTO index_peak VALUES((SELECT min(id) FROM sitemap_index), 20000, {FAR})", ":20000: entries"),
    (f"UPDATE token SET expires_at = {FAR}", "token own: expires_at"),
    ("UPDATE sitemap_index SET max_pages = 50001 WHERE kind = 1", "sitemap_index /products.xml: max_pages 50001 is out of range"),
    ("UPDATE sitemap_index SET max_page_urls = -1 WHERE kind = 1", "max_page_urls"), (f"UPDATE sitemap_index SET max_page_bytes = {FAR} WHERE kind = 1", "max_page_bytes"),
    ("UPDATE sitemap_index SET expires_s = 9223372036854775807 WHERE kind = 1", "expires_s"),
    # Of the same length, so that no count of bytes shows it.
    *[(f"UPDATE sitemap SET extensions = replace(extensions, '{old}', '{new}') WHERE loc LIKE '%/p/7'", "its extensions are malformed") for old, new in (
        ("</image:image>", "</urlset><a><b"), ("https:", "http&:"), ("https:", "https\x01"), ("image:loc", "image:lo<"))],
    ("INSERT INTO fetch SELECT 1, id, 0, 0, '/late.xml', 1, 200, 0, 5, 5, 0, 5, 0, 5, 0, 0, 'x' || char(13) || char(10) || 'Authorization: Bearer y', NULL, NULL, NULL, 1, 1, NULL, 0, NULL, NULL, NULL, 0, 0, NULL, NULL FROM site", "its ETag or Last-Modified has a line break"),
])
def test_values_of_a_copy_are_within_their_bounds(pair, tmp_path, sql, words):
    """The row is named; `check` and `restore` find it, too."""
    a, b = pair
    with_shop(a, 20)
    assert a.cli("token", "add", "own", "--site", SHOP).code == 0
    body = changed(tmp_path, copy_of(a), sql)
    reply = problem(b.api("POST", "/v1/sites/import", body=body, content_type=COPY), 422, "invalid-copy")
    assert words in reply["detail"] and not shop(b), reply
    found = sitemapd("check", database=tmp_path / "changed.db")
    assert found.code != 0 and words in found.out + found.err, found


@pytest.mark.masses
@pytest.mark.parametrize("body", [b"", b"x", b"SQLite format 3\0" + b"\xff" * 5000, b"{}" * 100_000], ids=["empty", "short", "header", "long"])
def test_what_is_not_a_file_of_ours_is_refused(pair, body):
    b = pair[1]
    problem(b.api("POST", "/v1/sites/import", body=body, content_type=COPY), 422, "invalid-copy")
    problem(b.api("POST", "/v1/sites/import", body=body or b"{}", content_type="application/json"), 415)
    assert not [name for name in os.listdir(os.path.dirname(b.database)) if "copy" in name]


def test_a_copy_is_for_tokens_of_all_sites(pair):
    a, b = pair
    with_shop(a, 10)
    body = copy_of(a)
    own = a.cli("token", "add", "own", "--site", SHOP, "--role", "admin").out.strip()
    eventually(lambda: a.api("GET", "/v1/token", token=own).status == 200, "known")
    at = next(site["id"] for site in a.api("GET", "/v1/sites").json()["sites"] if site["origin"] == SHOP)
    problem(a.api("GET", f"/v1/sites/{at}/copy", token=own), 403)
    problem(a.api("POST", "/v1/sites/import", body=body, content_type=COPY, token=own), 403)
    problem(a.api("GET", "/v1/sites/999/copy"), 404, "not-found")
    problem(a.api("GET", "/v1/sites/x/copy"), 404, "not-found")
    problem(a.api("POST", "/v1/sites/import", body=body, content_type=COPY), 409, "site-exists")
    assert b.api("POST", "/v1/sites/import", body=body, content_type=COPY).status == 201
    assert shop(b)["frozen_by"] == "arriving" and sqlite_is_whole(body)


def sqlite_is_whole(body):
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(body)
        return db.execute("PRAGMA integrity_check").fetchone() == ("ok",) and db.execute("SELECT count(*) FROM site").fetchone() == (1,)
