# SPDX-License-Identifier: LicenseRef-Undeclared
"""What the rows of tests/bench/run share: processes pinned to a core, their CPU time, raw HTTP over
one connection, wrk, and our server."""
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RELEASE = os.path.join(ROOT, "build/release/sitemapd")
ORIGIN = "https://www.example.com"
HOST = "www.example.com"
TOKEN = "bench-token-of-32-characters-or-more"
INDEX_PATH = "/sitemap_index.xml"
LEVEL = 7  # the default
ONE_SHOT_LEVEL = 6  # what sizes are compared with
PAGE = 50_000
CONNECTIONS = 64

CORES = sorted(os.sched_getaffinity(0))
SERVER_CORE, LOAD_CORE = CORES[0], CORES[-1]

# A large crawler's header, so that parsing costs what it costs in earnest.
CRAWLER_HEADERS = {
    "Host": HOST,
    "Connection": "keep-alive",
    "Accept": "text/plain,text/html,*/*",
    "From": "googlebot(at)googlebot.com",
    "User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Accept-Encoding": "gzip, deflate, br",
}


class BenchError(Exception):
    """Why something cannot be measured."""


def quietly(*command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"bench: {' '.join(command)}:\n{(done.stdout + done.stderr)[-3000:]}")


def build_release(program):
    """So that the tree's own program is of today; another one is measured as it is."""
    if os.path.abspath(program) == RELEASE:
        quietly("cmake", "--preset", "release")
        quietly("cmake", "--build", "--preset", "release", "--target", "sitemapd")


def build_peers(target):
    """What build/bench has beside the program: peers and load generators."""
    quietly("cmake", "-S", ".", "-B", "build/bench", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            "-DSITEMAPD_TESTS=OFF", "-DSITEMAPD_BENCH=ON")
    quietly("cmake", "--build", "build/bench", "--target", target)


def median(values):
    return statistics.median(values)


def on_core(core, command, **options):
    return subprocess.Popen(["taskset", "-c", str(core), *command], **options)


def run_pinned(core, command, **options):
    done = subprocess.run(["taskset", "-c", str(core), *command], capture_output=True, text=True,
                          **options)
    if done.returncode != 0:
        raise BenchError(f"{os.path.basename(command[0])}: {done.stderr.strip()[-300:]}")
    return done.stdout


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def program(name):
    return os.path.join(ROOT, "build/bench/tests/bench", name)


def processes_of(pid):
    found = [pid]
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        for child in children.read().split():
            found += processes_of(int(child))
    return found


def cpu_seconds(pid):
    """What the process and its children used, user and system, all threads: the clocks of
    clock_getcpuclockid(3), since /proc has it in steps of 10 ms."""
    return sum(time.clock_gettime(~each << 3 | 2) for each in processes_of(pid))


def request_bytes(path, headers, method="GET", body=b""):
    if body:
        headers = {**headers, "Content-Length": len(body)}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


class Client:
    """One kept connection; replies have a Content-Length, or no body (304)."""

    def __init__(self, address, timeout=120):
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request):
        """The reply's head and body, and when its first byte was here."""
        self.socket.sendall(request)
        data = self.socket.recv(262144)
        first = time.perf_counter()
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"\r\nContent-Length: (\d+)", head, re.I)
        rest = 0 if b" 304 " in head[:16] or not length else int(length.group(1)) - len(body)
        parts = [body]
        while rest > 0:
            parts.append(self._more())
            rest -= len(parts[-1])
        return head, b"".join(parts), first

    def _more(self):
        data = self.socket.recv(262144)
        if not data:
            raise BenchError("the connection was closed")
        return data

    def close(self):
        self.socket.close()


def get(address, path=INDEX_PATH, headers=None):
    client = Client(address)
    try:
        return client.ask(request_bytes(path, headers or CRAWLER_HEADERS))[:2]
    finally:
        client.close()


def status_of(head):
    return int(head.split(b" ", 2)[1])


def header_of(head, name):
    found = re.search(rb"\r\n" + name.encode() + rb": ([^\r]*)", head, re.I)
    return found.group(1).decode() if found else None


class Server:
    """One run of `sitemapd serve`, pinned, with one thread for requests, as nginx has."""

    def __init__(self, binary, database, level=LEVEL, settings=None, core=SERVER_CORE, admin="127.0.0.1:0"):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("SITEMAPD_")}
        environment.update(SITEMAPD_TOKEN=TOKEN, SITEMAPD_SERVER_THREADS="1",
                           SITEMAPD_CACHE_COMPRESSION_LEVEL=str(level), **(settings or {}))
        self.began = time.perf_counter()
        self.process = on_core(
            core, [binary, "serve", "--database", database, "--site", ORIGIN,
                          "--listen", "127.0.0.1:0", "--admin-listen", admin],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True)
        line = self.process.stdout.readline()
        found = re.match(r"sitemapd: ready public=http://(\S+) admin=http://(\S+)", line)
        if not found:
            self.process.kill()
            self.process.wait()
            raise BenchError(f"the server did not start: {line!r}")
        self.public, self.admin = found.groups()
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(180)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()

    def post(self, body, content_type="application/x-ndjson", client=None):
        """Registers; gives the seconds until the whole answer was here."""
        request = register_request(body, content_type)
        own = client or Client(self.admin, timeout=900)
        began = time.perf_counter()
        head, answer, _ = own.ask(request)
        seconds = time.perf_counter() - began
        if client is None:
            own.close()
        if status_of(head) not in (200, 201):
            raise BenchError(f"POST: {head[:60]!r} {answer[:400]!r}")
        return seconds

    def resident_bytes(self):
        with open(f"/proc/{self.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) * 1024


def register_request(body, content_type="application/json"):
    return request_bytes("/v1/sitemaps", {
        "Host": "127.0.0.1", "Authorization": f"Bearer {TOKEN}", "Content-Type": content_type},
        method="POST", body=body)


def loc(number):
    """As in sqlite_insert.c."""
    return f"{ORIGIN}/sitemaps/catalogue/part-{number:08d}.xml.gz"


# Any second of some sixty days, as files that are written on their own have it; the same for each
# number in every run, and in sqlite_insert.c.
LASTMOD_FROM, LASTMOD_SECONDS = 1_789_000_000, 5_184_000


def lastmod(number):
    at = LASTMOD_FROM + number * 2_654_435_761 % (1 << 32) % LASTMOD_SECONDS
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def lines(first, count, loc, date=None):
    """NDJSON of `count` entries, each with a date of its own, or all with `date`."""
    return "".join(f'{{"loc":"{loc(n)}","lastmod":"{date or lastmod(n)}"}}\n'
                   for n in range(first, first + count)).encode()


def load_loop(address, request, reply_len, status, seconds, folder, connections=CONNECTIONS):
    """The same by our own client, for replies that wrk does not understand."""
    path = os.path.join(folder, "request")
    with open(path, "wb") as out:
        out.write(request)
    done = json.loads(run_pinned(LOAD_CORE, [
        program("load_loop"), address.rpartition(":")[2], str(connections), str(seconds), path,
        str(reply_len), str(status)]))
    return done["requests"], done["requests"] / done["ms"] * 1000


def wrk(address, path, headers, seconds, connections=CONNECTIONS, script=None):
    """Requests done, and requests/s."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s"]
    for name, value in headers.items():
        command += ["-H", f"{name}: {value}"]
    if script:
        command += ["-s", script]
    output = run_pinned(LOAD_CORE, [*command, f"http://{address}{path}"])
    done = re.search(r"(\d+) requests in ([\d.]+)(us|ms|s|m)", output)
    if "Non-2xx" in output or "Socket errors" in output or not done:
        raise BenchError(f"wrk: {output[-300:]}")
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output).group(1))
    return int(done.group(1)), rate
