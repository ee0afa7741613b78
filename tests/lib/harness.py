# SPDX-License-Identifier: LicenseRef-Undeclared
"""The library of the tests over HTTP: a raw HTTP client that shows every byte, the program as server and as command,
and a naive renderer to compare with. Standard library only."""

import gzip
import json
import mmap
import os
import re
import select
import signal
import socket
import struct
import subprocess
import time
import urllib.parse
import zlib

BIN = os.environ.get("SITEMAPD_BIN", "")
PLAIN_BIN = os.environ.get("SITEMAPD_PLAIN_BIN") or BIN  # the same program without the sanitizer
SLOWNESS = float(os.environ.get("SITEMAPD_SLOWNESS", "1"))
PLAIN = SLOWNESS <= 2  # no build with sanitizers: full sizes
DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "http", "data")
ORIGIN = "https://www.example.com"
HOST = "www.example.com"
INDEX = ORIGIN + "/sitemap_index.xml"
TOKEN = "smd_" + "T" * 43
PUBLIC_CACHE = "public, max-age=300, s-maxage=3600, stale-while-revalidate=86400, stale-if-error=604800"
SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|ThreadSanitizer|UndefinedBehaviorSanitizer|runtime error:")
ETAG = re.compile(r'^"[\x21\x23-\x7e]+"$')
RFC3339 = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")


def seconds(plain):
    """Scales a time limit of a plain build to the build under test."""
    return plain * SLOWNESS


def eventually(check, what, within=60.0, longest_pause=0.1):
    """Polls until `check` is true, and returns its value. The limit only bounds a hang: a loaded machine is slow,
    so a smaller one needs a reason. Pauses grow to `longest_pause`, since each check costs the server, too; a
    state that soon passes needs a shorter one."""
    end = time.monotonic() + seconds(within)
    pause = 0.01
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < end, f"not within {within} s: {what}"
        time.sleep(min(pause, longest_pause))
        pause *= 1.1


# ---- HTTP ---------------------------------------------------------------------------------------


class Reply:
    """One reply as it came: status, header pairs in order, body as sent (chunks joined)."""

    def __init__(self, head, body):
        self.head = head
        lines = head.split(b"\r\n")
        self.version, status, self.reason = (lines[0].decode("latin-1") + " ").split(" ", 2)
        self.status = int(status)
        self.headers = []
        for line in lines[1:]:
            name, colon, value = line.decode("latin-1").partition(":")
            assert colon and name == name.strip(), line
            self.headers.append((name, value.strip()))
        self.body = body

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def get(self, name, default=None):
        values = self.all(name)
        assert len(values) <= 1, f"{name} more than once: {values}"
        return values[0] if values else default

    __getitem__ = get

    def json(self):
        return json.loads(self.body.decode("utf-8"))

    def xml(self):
        """The page's bytes, decoded where they are encoded."""
        if self.get("Content-Encoding") == "gzip" or self.get("Content-Type") == "application/gzip":
            return gunzip(self.body)
        return self.body

    def same_headers(self):
        """The headers that two replies of one state share."""
        return sorted((n.lower(), v) for n, v in self.headers if n.lower() not in ("date", "connection"))

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:300]!r}>"


def gunzip(body):
    """Exactly one gzip member and nothing behind it."""
    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
    data = stream.decompress(body) + stream.flush()
    assert stream.eof and stream.unused_data == b""
    return data


class Connection:
    """A socket and what was read from it but not used yet."""

    def __init__(self, address, timeout=None, source=None):
        host, _, port = address.rpartition(":")
        here = (source, 0) if source else None
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout or seconds(60), here)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        try:
            return self.socket.recv(262144)
        except ConnectionResetError:
            return b""

    def fill(self):
        more = self.receive()
        self.buffer += more
        return bool(more)

    def take(self, count):
        pieces, have = [self.buffer], len(self.buffer)  # joined once: a page may have 52 MB
        while have < count:
            pieces.append(self.receive())
            have += len(pieces[-1])
            assert pieces[-1], f"closed after {have} of {count} bytes"
        whole = b"".join(pieces)
        data, self.buffer = whole[:count], whole[count:]
        return data

    def take_to(self, mark):
        while mark not in self.buffer:
            assert self.fill(), f"closed within a head: {self.buffer[:200]!r}"
        data, _, self.buffer = self.buffer.partition(mark)
        return data

    def rest(self):
        """Everything until the other side closes."""
        while self.fill():
            pass
        data, self.buffer = self.buffer, b""
        return data

    def reply(self, method="GET"):
        head = self.take_to(b"\r\n\r\n")
        reply = Reply(head, b"")
        if reply.status == 100:
            return self.reply(method)
        if method == "HEAD" or reply.status in (204, 304):
            return reply
        if (reply.get("Transfer-Encoding") or "").lower() == "chunked":
            while True:
                size = int(self.take_to(b"\r\n").split(b";")[0], 16)
                reply.body += self.take(size)
                assert self.take(2) == b"\r\n"
                if size == 0:
                    return reply
        length = reply.get("Content-Length")
        reply.body = self.take(int(length)) if length is not None else self.rest()
        return reply


def slow_reader(address, request, source=None):
    """A socket that has sent the request and has a small receive buffer: the rest of the reply waits in the server."""
    host, _, port = address.rpartition(":")
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.settimeout(seconds(60))
    if source:
        reader.bind((source, 0))
    reader.connect((host, int(port)))
    reader.sendall(request)
    return reader


def request_bytes(method, target, headers=(), body=b"", host=HOST, version="HTTP/1.1", length=True):
    lines = [f"{method} {target} {version}"]
    if host is not None:
        lines.append(f"Host: {host}")
    headers = list(headers.items()) if isinstance(headers, dict) else list(headers)
    lines += [f"{name}: {value}" for name, value in headers]
    named = {name.lower() for name, _ in headers}
    if length and (body or method in ("POST", "PUT", "PATCH")) and not named & {"content-length", "transfer-encoding"}:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape") + body


def ask(address, method, target, headers=(), body=b"", host=HOST, version="HTTP/1.1", length=True, timeout=None, source=None):
    """One request on a connection of its own; asserts that nothing comes behind the reply."""
    headers = list(headers.items()) if isinstance(headers, dict) else list(headers)
    if version == "HTTP/1.1":
        headers.append(("Connection", "close"))
    with Connection(address, timeout, source) as connection:
        try:
            connection.send(request_bytes(method, target, headers, body, host, version, length))
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before the body was read: the reply is there all the same
        reply = connection.reply(method)
        assert connection.rest() == b"", "bytes behind the reply"
    return reply


def ask_raw(address, data, method="GET"):
    with Connection(address) as connection:
        connection.send(data)
        return connection.reply(method)


def problem(reply, status, code=None, field=None):
    """Asserts an RFC 9457 problem."""
    assert reply.status == status, reply
    assert reply["Content-Type"] == "application/problem+json"
    assert reply["Cache-Control"] == "no-store"
    found = reply.json()
    assert found["status"] == status and found["title"] and found["detail"]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", found["code"]), found["code"]
    if code:
        assert found["code"] == code, found
    if field:
        assert found.get("field") == field, found
    return found


def q(text):
    """A value in a query."""
    return urllib.parse.quote(str(text), safe="")


# ---- the program --------------------------------------------------------------------------------


def environment(extra=None):
    """The environment variables without settings of the tester. Expected bytes of pages are without the stylesheet for
    browsers; a test that asks for the default sets SITEMAPD_SERVER_PAGE_STYLE to "", which is as if it were not set."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SITEMAPD_")}
    env.update({"LC_ALL": "C.UTF-8", "TZ": "UTC", "SITEMAPD_SERVER_PAGE_STYLE": "no"})
    env.update(extra or {})
    if "FAULT_DELAYS" in env and "FAULT_DELAYS_SHIM" in env:
        env["LD_PRELOAD"] = ":".join(filter(None, (env.get("LD_PRELOAD"), env["FAULT_DELAYS_SHIM"])))
    return env


def faster(speed):
    """Environment variables that make a server's clock run faster by a factor (tests/fault/clock.c), its timeouts included;
    by less with a sanitizer, which is slow. Empty if these tests run without that clock."""
    shim = os.environ.get("FAULT_CLOCK_SHIM")
    return {"LD_PRELOAD": shim, "FAULT_CLOCK_SPEED": str(max(1, round(speed * min(1, 2 / SLOWNESS))))} if shim else {}


class Clock:
    """The wall clock of servers that have its environment (tests/fault/clock.c)."""

    def __init__(self, folder):
        self.path = os.path.join(str(folder), "clock")
        with open(self.path, "wb") as file:
            file.write(bytes(8))
        with open(self.path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 8)

    def set(self, ahead):
        """Seconds ahead of the system's."""
        struct.pack_into("=q", self.page, 0, ahead)

    @property
    def environment(self):
        return {"LD_PRELOAD": os.environ["FAULT_CLOCK_SHIM"], "FAULT_CLOCK": self.path}


def environment_of_another(extra=None):
    """For a run as a user who may have no access to this tree."""
    env = environment(extra)
    if "TSAN_OPTIONS" in env:
        env["TSAN_OPTIONS"] = re.sub(r":?suppressions=[^:]*", "", env["TSAN_OPTIONS"])
    return env


def assert_no_report(text):
    assert not SANITIZER.search(text), text[-6000:]


class Command:
    """The result of a run of the program."""

    def __init__(self, completed):
        self.code = completed.returncode
        self.out = completed.stdout.decode("utf-8", "surrogateescape")
        self.err = completed.stderr.decode("utf-8", "surrogateescape")
        self.raw_out = completed.stdout

    def lines(self):
        return [json.loads(line) for line in self.out.splitlines()]

    def __repr__(self):
        return f"<exit {self.code} out={self.out[:2000]!r} err={self.err[:2000]!r}>"


FREE = ("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")


have_run = set()  # commands that this process has run, without the values


def program_for(args, database, env, input):
    """Under the test's sanitizer, whose start takes five times as long: each command with other options than before, and all that
    read what a test gives them. The plain program for the others."""
    words = [word.partition("=")[0] for word in map(str, args) if re.fullmatch(r"-.*|[a-z-]+", word)]
    command = (*words, bool(database), *sorted(env))
    if command in have_run and not input and words[:1] != ["import"] and "LD_PRELOAD" not in env:
        return PLAIN_BIN
    have_run.add(command)
    return BIN


def sitemapd(*args, database=None, env=None, input=None, cwd=None, binary=BIN):
    """Runs the program to its end. Its end by a signal or a sanitizer is never expected."""
    assert binary, "SITEMAPD_BIN is not set"
    args = list(args)
    if binary == BIN:
        binary = program_for(args, database, environment(env), input)
    if args[:1] == ["serve"] and "--listen" not in args:  # whatever else listens on this machine
        args += FREE
    if database:
        args += ["--database", str(database)]
    if isinstance(input, str):
        input = input.encode("utf-8", "surrogateescape")
    done = Command(
        subprocess.run(
            [binary] + [str(a) for a in args],
            input=input if input is not None else b"",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(env),
            cwd=cwd,
            timeout=seconds(120),
        )
    )
    assert_no_report(done.err)
    assert done.code in (0, 1, 2), done
    return done


READY = re.compile(r"^sitemapd: ready public=https?://(\S+) admin=https?://(\S+)\n$")


class Server:
    """`sitemapd serve` on free ports with a catalogue of its own."""

    def __init__(self, folder, *args, env=None, database=None, sites=(ORIGIN,), token=TOKEN, config=None, binary=None):
        self.folder = folder
        self.database = str(database or os.path.join(str(folder), "catalogue.db"))
        self.args = list(args)
        if "--listen" not in self.args:
            self.args += ["--listen", "127.0.0.1:0"]
        if "--admin-listen" not in self.args:
            self.args += ["--admin-listen", "127.0.0.1:0"]
        for site in sites:
            self.args += ["--site", site]
        if config is not None:
            path = os.path.join(str(folder), "sitemapd.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(config)
            self.args += ["--config", path]
        self.env = dict(env or {})
        if "write_timeout" not in (config or ""):  # where the machine is slow, writes wait; none is refused
            self.env.setdefault("SITEMAPD_CATALOGUE_WRITE_TIMEOUT", "60s")
        if "page_style" in (config or ""):
            self.env.setdefault("SITEMAPD_SERVER_PAGE_STYLE", "")
        self.token = token
        if token:
            self.env["SITEMAPD_TOKEN"] = token
        self.log_path = os.path.join(str(folder), "serve.log")
        self.binary = binary or BIN
        self.process = None
        self.ready_line = None

    def start(self, expect_ready=True):
        assert self.binary, "SITEMAPD_BIN is not set"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--database", self.database] + self.args,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(self.env),
            )
        if not expect_ready:
            return self
        ready, _, _ = select.select([self.process.stdout], [], [], seconds(60))
        self.ready_line = self.process.stdout.readline().decode() if ready else ""
        found = READY.match(self.ready_line)
        if not found:
            self.kill()
            raise AssertionError(f"not ready: {self.ready_line!r}\n{self.log()}")
        self.public, self.admin = found.groups()
        return self

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()

    def wait_for_log(self, event, count=1):
        """Waits for at least `count` lines of the log with `event`, and returns all of them: another thread writes the log,
        a moment after the event."""
        found = lambda: [line for line in self.log().splitlines() if event in line]
        eventually(lambda: len(found()) >= count, f"{count} of {event} in the log")
        return found()

    def running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, sig=signal.SIGTERM):
        """Stops it as an operator does: within the time after which Docker kills; exit 0, nothing more on stdout, no sanitizer's report."""
        self.process.send_signal(sig)
        try:
            code = self.process.wait(seconds(10))
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"did not end on signal {sig}\n{self.log()[-4000:]}")
        rest = self.process.stdout.read()
        self.process.stdout.close()
        self.process = None
        assert_no_report(self.log())
        assert code == 0, f"exit {code}\n{self.log()[-4000:]}"
        assert rest == b"", rest

    def kill(self):
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process = None

    def restart(self, write_timeout=None):
        """`write_timeout`: from now on. The first start writes much, and a short one would reject that."""
        self.stop()
        if write_timeout:
            self.env["SITEMAPD_CATALOGUE_WRITE_TIMEOUT"] = write_timeout
        return self.start()

    # Requests and commands.

    def reload(self, config):
        """Replaces its configuration file and reloads it."""
        with open(os.path.join(str(self.folder), "sitemapd.conf"), "w", encoding="utf-8") as file:
            file.write(config)
        ends = lambda: self.log().count("sources and crawlers were reloaded") + self.log().count("the new configuration was rejected")
        before = ends()
        self.process.send_signal(signal.SIGHUP)
        eventually(lambda: ends() > before, "the configuration is read again")

    def get(self, target, headers=(), method="GET", **more):
        return ask(self.public, method, target, headers, **more)

    def api(self, method, target, json_body=None, body=None, headers=(), token="", content_type=None):
        """A call of the admin listener. `token` "": the server's own; None: none."""
        headers = list(headers.items()) if isinstance(headers, dict) else list(headers)
        token = self.token if token == "" else token
        if token is not None:
            headers.append(("Authorization", f"Bearer {token}"))
        if json_body is not None:
            body = json.dumps(json_body).encode()
            content_type = content_type or "application/json"
        if content_type:
            headers.append(("Content-Type", content_type))
        return ask(self.admin, method, target, headers, body or b"", host=self.admin)

    def register(self, loc, **fields):
        return self.api("POST", "/v1/sitemaps", {"loc": loc, **fields})

    def bulk(self, entries, target="/v1/sitemaps", method="POST"):
        body = "".join(json.dumps(e if isinstance(e, dict) else {"loc": e}) + "\n" for e in entries)
        return self.api(method, target, body=body.encode(), content_type="application/x-ndjson")

    def replace(self, entries, index="/sitemap_index.xml", **query):
        query = urllib.parse.urlencode({"index": index, **query})
        return self.bulk(entries, f"/v1/sitemaps?{query}", "PUT")

    def cli(self, *args, **more):
        return sitemapd(*args, database=self.database, **{"binary": self.binary, **more})

    def make_token(self, name, *options):
        """Waits until the server knows the token, a moment after the command wrote it."""
        made = self.cli("token", "add", name, *options)
        assert made.code == 0, made
        token = made.out.strip()
        eventually(lambda: self.api("GET", "/v1/token", token=token).status == 200, f"the token {name} is known")
        return token

    def metrics(self):
        reply = ask(self.admin, "GET", "/metrics", host=self.admin)
        assert reply.status == 200, reply
        values = {}
        for line in reply.body.decode().splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values


# ---- pages --------------------------------------------------------------------------------------

HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
TAIL = b"</sitemapindex>\n"
PAGE_ENTRIES = 50000


def escape(text):
    for raw, entity in (("&", "&amp;"), ("'", "&apos;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(raw, entity)
    return text


def render(entries):
    """The expected page of (loc, lastmod) pairs in their order: rendered naively, not like the program."""
    parts = [HEAD]
    for loc, lastmod in entries:
        # YYYY and YYYY-MM are kept but not served: the schema refuses them.
        dated = f"<lastmod>{lastmod}</lastmod>" if lastmod and len(lastmod) >= 10 else ""
        parts.append(f"<sitemap><loc>{escape(loc)}</loc>{dated}</sitemap>\n".encode())
    return b"".join(parts + [TAIL])


def render_export(lines, number=1):
    """Page `number` from the lines of `export`."""
    rows = sorted((l["position"], l["loc"], l.get("lastmod")) for l in lines)
    first = (number - 1) * PAGE_ENTRIES
    return render([(loc, lastmod) for position, loc, lastmod in rows if first <= position < first + PAGE_ENTRIES])


def locs(xml):
    found = re.findall(rb"<loc>([^<]*)</loc>", xml)
    plain = lambda t: t.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&apos;", "'").replace("&amp;", "&")
    return [plain(loc.decode()) for loc in found]


def write_gzip(path, data):
    with open(path, "wb") as file:
        file.write(gzip.compress(data, mtime=0))
