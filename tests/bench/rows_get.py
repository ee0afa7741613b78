# SPDX-License-Identifier: LicenseRef-Undeclared
"""GETs beside nginx in its best setup, which serves the same bytes from a file, beside a bare epoll loop,
and beside libmicrohttpd alone: what no server on it goes below."""
import gzip
import os
import socket
import subprocess
import time

from harness import (CRAWLER_HEADERS, INDEX_PATH, PAGE, SERVER_CORE, BenchError, Server, cpu_seconds, get,
                     header_of, lines, load_loop, median, on_core, program, request_bytes, status_of,
                     wrk)
from table import NO_GOAL, at_most, best_of

CONNECTION_MEMORY = 16384  # bytes, as ours by default: max_header_bytes and 8 KiB (listening.c)

# Which is the cheapest depends on the size of the reply and on the machine: each row takes the one
# that is the cheapest there.
NGINX_WAYS = (
    "sendfile on",
    "sendfile on; tcp_nopush on",
    "sendfile off",
    "sendfile off; output_buffers 2 1m",
)

NGINX = """
daemon off;
worker_processes 1;
{user}pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    types {{ application/xml xml; }}
    charset utf-8;
    charset_types application/xml;
    access_log off;
    etag on;
    gzip_static on;
    gzip_vary on;
    open_file_cache max=1000 inactive=1h;
    open_file_cache_valid 1h;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    client_body_temp_path {folder}/temp1;
    proxy_temp_path {folder}/temp2;
    fastcgi_temp_path {folder}/temp3;
    uwsgi_temp_path {folder}/temp4;
    scgi_temp_path {folder}/temp5;
    root {folder}/root;
    add_header Cache-Control "{cache_control}";
    add_header X-Content-Type-Options nosniff;
    add_header X-Robots-Tag noindex;
{servers}}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Nginx:
    """Serves each path in `files` (gzip bytes) as /name, with the headers that we send; one port for
    each of NGINX_WAYS."""

    def __init__(self, folder, files, cache_control):
        os.makedirs(os.path.join(folder, "root"))
        for name, packed in files.items():
            with open(os.path.join(folder, "root", name + ".gz"), "wb") as out:
                out.write(packed)
            with open(os.path.join(folder, "root", name), "wb") as out:
                out.write(gzip.decompress(packed))
        ports = [free_port() for _ in NGINX_WAYS]
        servers = "".join(f"    server {{ listen 127.0.0.1:{port}; {way}; }}\n"
                          for port, way in zip(ports, NGINX_WAYS))
        configuration = os.path.join(folder, "nginx.conf")
        with open(configuration, "w") as out:
            out.write(NGINX.format(folder=folder, servers=servers, cache_control=cache_control,
                                   user="user root;\n" if os.getuid() == 0 else ""))
        self.addresses = {way: f"127.0.0.1:{port}" for port, way in zip(ports, NGINX_WAYS)}
        self.process = on_core(SERVER_CORE, [nginx_binary(), "-p", folder, "-c", configuration],
                               stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", ports[-1])).close()
                return
            except OSError:
                time.sleep(0.05)
        self.stop()
        raise BenchError("nginx does not start: " + self.process.stderr.read()[-300:])

    def stop(self):
        self.process.terminate()
        self.process.wait()


def nginx_binary():
    for path in ("/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"):
        if os.access(path, os.X_OK):
            return path
    raise BenchError("nginx is not installed")


class Loop:
    """One of our small servers, which prints its port: the files it serves, then `arguments`."""

    def __init__(self, name, folder, files, arguments=()):
        paths = []
        for number, content in enumerate(files):
            paths.append(os.path.join(folder, f"{name}.{number}"))
            with open(paths[-1], "wb") as out:
                out.write(content)
        self.process = on_core(SERVER_CORE, [program(name), *paths, *arguments],
                               stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.address = f"127.0.0.1:{int(self.process.stdout.readline())}"

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def bare_loop(folder, head, body):
    """Answers everything with the bytes of one reply."""
    return Loop("bare_loop", folder, [head + b"\r\n\r\n" + body])


def mhd_only(folder, head, body, way="memory"):
    """libmicrohttpd with the same reply, its own headers left to it."""
    own = (b"date:", b"connection:", b"content-length:")
    kept = [line for line in head.split(b"\r\n")[1:] if not line.lower().startswith(own)]
    place = os.path.join(folder, f"mhd-{way}-{len(body)}")
    os.makedirs(place)
    return Loop("mhd_only", place, [b"\r\n".join(kept), body], [str(CONNECTION_MEMORY), way])


def race(targets, rounds, seconds):
    """CPU microseconds a request and requests/s of each round, by name. A target is a name, a server
    and what loads it: called with seconds, gives requests done and requests/s."""
    micros = {name: [] for name, *_ in targets}
    rates = {name: [] for name, *_ in targets}
    for number in range(rounds):
        turn = number % len(targets)
        for name, server, load in targets[turn:] + targets[:turn]:
            before = cpu_seconds(server.pid)
            requests, rate = load(seconds)
            micros[name].append((cpu_seconds(server.pid) - before) / requests * 1e6)
            rates[name].append(rate)
    return micros, rates


def full_gets(address, path, connections=64, headers=None):
    return lambda seconds: wrk(address, path, {**CRAWLER_HEADERS, **(headers or {})}, seconds, connections)


def conditional_gets(address, path, folder, headers=None):
    own = {**CRAWLER_HEADERS, **(headers or {})}
    headers = {**own, "If-None-Match": header_of(fetch(address, path, own)[0], "ETag")}
    head = get(address, path, headers)[0]
    if status_of(head) != 304:
        raise BenchError(f"{address}{path} does not answer 304 to {headers['If-None-Match']}")
    request = request_bytes(path, headers)
    return lambda seconds: load_loop(address, request, len(head) + 4, 304, seconds, folder)


def add_row(report, key, what, raced, theirs, goal):
    micros, rates = raced
    report.rounds(key, what, micros["ours"], micros[theirs], goal, unit="µs CPU",
                  notes=[f", {median(rates[name]):,.0f}/s" for name in ("ours", theirs)],
                  raw={"ours_per_second": rates["ours"], "theirs_per_second": rates[theirs]})


def nginx_rows(report, key, what, raced, goal):
    """The row beside the cheapest of its ways, and what the others took."""
    ways = {way: raced[0][way] for way in NGINX_WAYS}
    best = best_of(ways)
    add_row(report, key, f"{what}; nginx in its best setup, `{best}`", raced, best, goal)
    for way in NGINX_WAYS:
        if way != best:
            add_row(report, f"{key} {way}", f"nginx, `{way}`", raced, way, NO_GOAL)


def nginx_targets(nginx, load):
    return [(way, nginx, load(address)) for way, address in nginx.addresses.items()]


def fetch(address, path=INDEX_PATH, headers=None):
    head, body = get(address, path, headers)
    if status_of(head) != 200:
        raise BenchError(f"{path}: {head[:60]!r}")
    return head, body


class Peers:
    """What is measured beside us, stopped together."""

    def __init__(self):
        self.running = []

    def add(self, peer):
        self.running.append(peer)
        return peer

    def stop(self):
        for peer in self.running:
            peer.stop()


def measure_small(report, options, folder, peers, small, nginx):
    head, packed = fetch(small.public)
    bare = peers.add(bare_loop(folder, head, packed))
    library = peers.add(mhd_only(folder, head, packed))

    raced = race([("ours", small, full_gets(small.public, INDEX_PATH)),
                  *nginx_targets(nginx, lambda address: full_gets(address, "/ten.xml")),
                  ("library", library, full_gets(library.address, "/")),
                  ("bare", bare, full_gets(bare.address, "/"))], options.rounds, options.seconds)
    nginx_rows(report, "get_small_nginx", "cached GET, 10 entries, gzip", raced, at_most(0.90))
    add_row(report, "get_small_library", "the same; libmicrohttpd alone", raced, "library", at_most(1.05))
    add_row(report, "get_small_bare", "the same; bare epoll loop", raced, "bare", NO_GOAL)

    raced = race([("ours", small, conditional_gets(small.public, INDEX_PATH, folder)),
                  *nginx_targets(nginx, lambda address: conditional_gets(address, "/ten.xml", folder)),
                  ("library", library, conditional_gets(library.address, "/", folder))],
                 options.rounds, options.seconds)
    nginx_rows(report, "get_304", "conditional GET, 304", raced, at_most(0.90))
    add_row(report, "get_304_library", "the same; libmicrohttpd alone", raced, "library", at_most(1.05))


def measure_once(report, options, folder, peers, small, nginx):
    """A connection for each request: what a proxy without keepalive and most crawlers do."""
    head, packed = fetch(small.public)
    library = peers.add(mhd_only(folder, head, packed, "once"))
    closing = {"Connection": "close"}

    raced = race([("ours", small, full_gets(small.public, INDEX_PATH, headers=closing)),
                  *nginx_targets(nginx, lambda address: full_gets(address, "/ten.xml", headers=closing)),
                  ("library", library, full_gets(library.address, "/", headers=closing))],
                 options.rounds, options.seconds)
    nginx_rows(report, "get_once_nginx", "cached GET, 10 entries, a connection each", raced, at_most(1.1))
    add_row(report, "get_once_library", "the same; libmicrohttpd alone", raced, "library", at_most(1.05))


def measure_page(report, options, folder, peers, server, nginx, key, name, what):
    """A full page, also beside the library's own sendfile from a descriptor."""
    head, packed = fetch(server.public)
    ways = {way: peers.add(mhd_only(folder, head, packed, way)) for way in ("memory", "descriptor")}

    raced = race([("ours", server, full_gets(server.public, INDEX_PATH, 16)),
                  *nginx_targets(nginx, lambda address: full_gets(address, f"/{name}", 16)),
                  *((way, library, full_gets(library.address, "/", 16)) for way, library in ways.items())],
                 options.rounds, options.seconds)
    nginx_rows(report, key, f"GET of a full page, {what} ({len(packed) / 1024:,.0f} KiB)", raced, at_most(1.0))
    add_row(report, f"{key}_library", "the same; libmicrohttpd alone, from memory", raced, "memory", NO_GOAL)
    add_row(report, f"{key}_descriptor", "the same; libmicrohttpd alone, from a descriptor (sendfile)", raced,
            "descriptor", NO_GOAL)


def measure(report, options, folder, page_server):
    """The rows about GETs. `page_server` has a full page, each date of it another."""
    peers = Peers()
    try:
        small = peers.add(Server(options.bin, os.path.join(folder, "ten.db")))
        small.post(lines(0, 10, options.loc))
        even_server = peers.add(Server(options.bin, os.path.join(folder, "even.db")))
        even_server.post(lines(0, PAGE, options.loc, "2026-11-02T08:30:00Z"))
        pages = {"ten.xml": small, "page.xml": page_server, "even.xml": even_server}
        files = {name: fetch(server.public)[1] for name, server in pages.items()}
        nginx = peers.add(Nginx(os.path.join(folder, "nginx"), files,
                                header_of(fetch(small.public)[0], "Cache-Control")))
        for address in nginx.addresses.values():
            for name, packed in files.items():
                if fetch(address, "/" + name)[1] != packed:
                    raise BenchError("nginx does not serve our bytes")
        measure_small(report, options, folder, peers, small, nginx)
        measure_once(report, options, folder, peers, small, nginx)
        measure_page(report, options, folder, peers, page_server, nginx, "get_page", "page.xml",
                     "each date another")
        measure_page(report, options, folder, peers, even_server, nginx, "get_page_even", "even.xml",
                     "one date")
    finally:
        peers.stop()
