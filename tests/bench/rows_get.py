"""GETs beside nginx, which serves the same bytes from a file, beside a bare epoll loop, and beside
libmicrohttpd alone: what no server on it goes below."""
import gzip
import os
import socket
import subprocess
import time

from harness import (CRAWLER_HEADERS, INDEX_PATH, SERVER_CORE, BenchError, Server, cpu_seconds, get,
                     header_of, lines, load_loop, median, on_core, program, request_bytes, status_of,
                     wrk)
from table import NO_GOAL, at_most

CONNECTION_MEMORY = 16384  # bytes, as ours by default: max_header_bytes and 8 KiB (worker.c)

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
    sendfile on;
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
    server {{
        listen 127.0.0.1:{port};
        server_name www.example.com;
        root {folder}/root;
        add_header Cache-Control "{cache_control}";
        add_header X-Content-Type-Options nosniff;
        add_header X-Robots-Tag noindex;
    }}
}}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Nginx:
    """Serves each path in `files` (gzip bytes) as /name, with the headers that we send."""

    def __init__(self, folder, files, cache_control):
        os.makedirs(os.path.join(folder, "root"))
        for name, packed in files.items():
            with open(os.path.join(folder, "root", name + ".gz"), "wb") as out:
                out.write(packed)
            with open(os.path.join(folder, "root", name), "wb") as out:
                out.write(gzip.decompress(packed))
        port = free_port()
        configuration = os.path.join(folder, "nginx.conf")
        with open(configuration, "w") as out:
            out.write(NGINX.format(folder=folder, port=port, cache_control=cache_control,
                                   user="user root;\n" if os.getuid() == 0 else ""))
        self.address = f"127.0.0.1:{port}"
        self.process = on_core(SERVER_CORE, [nginx_binary(), "-p", folder, "-c", configuration],
                               stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
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


def mhd_only(folder, head, body):
    """libmicrohttpd with the same reply, its own headers left to it."""
    own = (b"date:", b"connection:", b"content-length:")
    kept = [line for line in head.split(b"\r\n")[1:] if not line.lower().startswith(own)]
    return Loop("mhd_only", folder, [b"\r\n".join(kept), body], [str(CONNECTION_MEMORY)])


def race(targets, rounds, seconds):
    """Medians of CPU microseconds a request and requests/s, by name. A target is a name, a server
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
    return {name: (median(micros[name]), median(rates[name])) for name in micros}, micros


def full_gets(address, path, connections=64):
    return lambda seconds: wrk(address, path, CRAWLER_HEADERS, seconds, connections)


def conditional_gets(address, path, folder):
    headers = {**CRAWLER_HEADERS, "If-None-Match": header_of(fetch(address, path)[0], "ETag")}
    head = get(address, path, headers)[0]
    if status_of(head) != 304:
        raise BenchError(f"{address}{path} does not answer 304 to {headers['If-None-Match']}")
    request = request_bytes(path, headers)
    return lambda seconds: load_loop(address, request, len(head) + 4, 304, seconds, folder)


def shown(result):
    micros, rate = result
    return f"{micros:.2f} µs CPU ({rate:,.0f}/s)"


def add_row(report, key, what, results, raw, theirs, limit=None):
    report.row(key, what, shown(results["ours"]), shown(results[theirs]),
               results["ours"][0] / results[theirs][0], at_most(limit) if limit else NO_GOAL,
               {"ours_us": raw["ours"], "theirs_us": raw[theirs],
                "ours_per_second": results["ours"][1], "theirs_per_second": results[theirs][1]})


def fetch(address, path=INDEX_PATH, headers=None):
    head, body = get(address, path, headers)
    if status_of(head) != 200:
        raise BenchError(f"{path}: {head[:60]!r}")
    return head, body


def measure(report, options, folder, page_server):
    """The rows about GETs. `page_server` has a full page."""
    small = Server(options.bin, os.path.join(folder, "ten.db"))
    others = []
    try:
        small.post(lines(0, 10, options.loc))
        head, packed = fetch(small.public)
        _, page = fetch(page_server.public)
        nginx = Nginx(os.path.join(folder, "nginx"), {"ten.xml": packed, "page.xml": page},
                      header_of(head, "Cache-Control"))
        others.append(nginx)
        if fetch(nginx.address, "/ten.xml")[1] != packed or \
                fetch(nginx.address, "/page.xml")[1] != page:
            raise BenchError("nginx does not serve our bytes")
        bare = bare_loop(folder, head, packed)
        others.append(bare)
        library = mhd_only(folder, head, packed)
        others.append(library)
        rounds, seconds = options.rounds, options.seconds

        results, raw = race([("ours", small, full_gets(small.public, INDEX_PATH)),
                             ("nginx", nginx, full_gets(nginx.address, "/ten.xml")),
                             ("library", library, full_gets(library.address, "/")),
                             ("bare", bare, full_gets(bare.address, "/"))], rounds, seconds)
        add_row(report, "get_small_nginx", "cached GET, 10 entries, gzip; nginx", results, raw,
                "nginx", 0.75)
        add_row(report, "get_small_bare", "the same; bare epoll loop", results, raw, "bare", 1.2)
        add_row(report, "get_small_library", "the same; libmicrohttpd alone", results, raw, "library")

        results, raw = race([("ours", small, conditional_gets(small.public, INDEX_PATH, folder)),
                             ("library", library, conditional_gets(library.address, "/", folder)),
                             ("nginx", nginx, conditional_gets(nginx.address, "/ten.xml", folder))],
                            rounds, seconds)
        add_row(report, "get_304", "conditional GET, 304; nginx", results, raw, "nginx", 0.90)
        add_row(report, "get_304_library", "the same; libmicrohttpd alone", results, raw, "library")

        results, raw = race([("ours", page_server, full_gets(page_server.public, INDEX_PATH, 16)),
                             ("nginx", nginx, full_gets(nginx.address, "/page.xml", 16))],
                            rounds, seconds)
        add_row(report, "get_page", f"GET of a full page ({len(page) / 1024:,.0f} KiB); nginx sendfile",
                results, raw, "nginx", 0.80)
    finally:
        for other in others:
            other.stop()
        small.stop()
