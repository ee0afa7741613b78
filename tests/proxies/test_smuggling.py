# SPDX-License-Identifier: LicenseRef-Undeclared
"""Requests that two servers in a row might read in two ways, thrown at each proxy. Behind each stands a
backend that writes down every byte: whatever a proxy makes of them, what it passes on must be whole
requests that can be read in one way only, and none that it did not mean. Prints the table that
docs/security.md has (pytest -s)."""

import re
import socket
import threading

import pytest

from proxies import HOST, NAMES, Proxy, Server  # first: it makes the harness known

from harness import ORIGIN, TOKEN, locs

NUMBER = b"@@@@"  # another one for each throw: no cache has the answer
HIDDEN = b"GET /robots.txt?" + NUMBER + b" HTTP/1.1\r\nHost: www.example.com\r\n\r\n"
TARGET = b"/sitemap_index.xml?" + NUMBER
LENGTH = str(len(HIDDEN)).encode()


def request(*lines, line=b"GET " + TARGET + b" HTTP/1.1", host=b"Host: www.example.com", body=HIDDEN):
    return b"\r\n".join([line] + ([host] if host else []) + list(lines)) + b"\r\n\r\n" + body


CHUNKED = b"Transfer-Encoding: chunked"
POST = b"POST " + TARGET + b" HTTP/1.1"
SHAPES = {
    "two Content-Length": request(b"Content-Length: 0", b"Content-Length: " + LENGTH),
    "two equal Content-Length": request(b"Content-Length: " + LENGTH, b"Content-Length: " + LENGTH),
    "Content-Length: 0, N": request(b"Content-Length: 0, " + LENGTH),
    "Content-Length: +N": request(b"Content-Length: +" + LENGTH),
    "Content-Length: 0xN": request(b"Content-Length: 0x10"),
    "Content-Length, space before the colon": request(b"Content-Length : " + LENGTH),
    "Content-Length with a folded line": request(b"Content-Length:\r\n " + LENGTH),
    "body with a GET": request(b"Content-Length: " + LENGTH),
    "body with a POST": request(b"Content-Length: " + LENGTH, line=POST),
    "Content-Length and chunked": request(b"Content-Length: " + LENGTH, CHUNKED, body=b"0\r\n\r\n" + HIDDEN),
    "chunked and Content-Length": request(CHUNKED, b"Content-Length: 5", body=b"0\r\n\r\n" + HIDDEN),
    "identity and chunked": request(b"Transfer-Encoding: identity", CHUNKED, body=b"0\r\n\r\n" + HIDDEN),
    "chunked twice": request(CHUNKED, CHUNKED, body=b"0\r\n\r\n" + HIDDEN),
    "gzip, chunked": request(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n" + HIDDEN),
    "xchunked": request(b"Transfer-Encoding: xchunked", b"Content-Length: 5", body=b"0\r\n\r\n" + HIDDEN),
    "chunked with a vertical tab": request(b"Transfer-Encoding: \x0bchunked", b"Content-Length: 5", body=b"0\r\n\r\n" + HIDDEN),
    "chunked, space before the colon": request(b"Transfer-Encoding : chunked", b"Content-Length: 5", body=b"0\r\n\r\n" + HIDDEN),
    "chunked with HTTP/1.0": request(CHUNKED, line=b"GET " + TARGET + b" HTTP/1.0", body=b"0\r\n\r\n" + HIDDEN),
    "chunk with an extension": request(CHUNKED, body=b"5;x=y\r\nhello\r\n0\r\n\r\n"),
    "chunk lines that end in LF": request(CHUNKED, body=b"5\nhello\n0\n\n" + HIDDEN),
    "chunk size with a space": request(CHUNKED, body=b"5 \r\nhello\r\n0\r\n\r\n" + HIDDEN),
    "NUL in the target": request(line=b"GET " + TARGET + b"\0x HTTP/1.1"),
    "NUL in a value": request(b"X: a\0b"),
    "NUL in a name": request(b"X\0Y: a"),
    "bare LF for all line ends": request(b"X: y").replace(b"\r\n", b"\n"),
    "bare LF before a Content-Length": request(b"X: y\nContent-Length: " + LENGTH),
    "bare CR before a Content-Length": request(b"X: y\rContent-Length: " + LENGTH),
    "folded line": request(b"X: y\r\n z"),
    "field with an empty name": request(b": x"),
    "field without a colon": request(b"nothing"),
    "two Host": request(b"Host: www.example.org"),
    "no Host": request(host=None),
    "absolute form, another Host": request(line=b"GET http://www.example.org" + TARGET + b" HTTP/1.1"),
    "space in the target": request(line=b"GET " + TARGET + b" HTTP/1.1 x HTTP/1.1"),
    "tab in the target": request(line=b"GET " + TARGET + b"\tx HTTP/1.1"),
    "control character in a value": request(b"X: a\x01b"),
}
# The proxy took the first message for one without a body, and what stands behind for a message of its
# own, as RFC 9112 lets it: it knows of both, and so does the backend.
READ_AS_TWO = re.compile(rb"GET /robots\.txt\?")
TOKEN_CHARS = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
HEAD = re.compile(
    rb"\A(?:GET|HEAD) [!-~]+ HTTP/1\.[01]\r\n(?:" + TOKEN_CHARS + rb":[ \t]*[^\x00\r\n]*\r\n)+\r\n", re.S
)


CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")


def body_end(head, data, at):
    """Where the body that `head` announces ends; None: it is not all there. Framed in one way, or an error."""
    values = {}
    for line in head.split(b"\r\n")[1:-2]:
        name, _, value = line.partition(b":")
        values.setdefault(name.lower(), []).append(value.strip(b" \t"))
    assert len(values.get(b"host", [])) == 1, f"not one Host: {head!r}"
    lengths, codings = values.get(b"content-length", []), values.get(b"transfer-encoding", [])
    assert len(lengths) + len(codings) <= 1, f"framed in two ways: {head!r}"
    if lengths:
        assert re.fullmatch(rb"[0-9]{1,8}", lengths[0]), head
        end = at + int(lengths[0])
        return end if len(data) >= end else None
    if not codings:
        return at
    assert codings == [b"chunked"] and head.split(b"\r\n")[0].endswith(b"HTTP/1.1"), head
    while chunk := CHUNK.match(data, at):
        at = chunk.end() + int(chunk[1], 16)
        if len(data) < at + 2:
            return None
        assert data[at : at + 2] == b"\r\n", f"a chunk that ends elsewhere: {data!r}"
        at += 2
        if int(chunk[1], 16) == 0:
            return at
    assert len(data) == at or b"\n" not in data[at:], f"no chunk: {data[at:]!r}"
    return None


def take_request(data):
    """The first whole request in `data` as (head, body, rest), read strictly; None: it is not all there."""
    if b"\n\r\n" not in data and b"\n\n" not in data:
        return None
    head = HEAD.match(data)
    assert head, f"no clean request: {data[:300]!r}"
    end = body_end(head[0], data, head.end())
    return None if end is None else (head[0], data[head.end() : end], data[end:])


class Recorder:
    """Answers each request with an empty 200, and notes it; at bytes that are no clean request it notes them and closes."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.requests, self.wrong = [], []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                one, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.read, args=(one,), daemon=True).start()

    def read(self, one):
        rest = b""
        with one:
            try:
                while piece := one.recv(65536):
                    rest += piece
                    while found := take_request(rest):
                        head, body, rest = found
                        self.requests.append((head, body))
                        one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Type: text/plain\r\n\r\n")
            except AssertionError as problem:
                self.wrong.append(str(problem))
            except OSError:
                pass

    def taken(self):
        """The requests and the wrongs since the last call."""
        found = self.requests, self.wrong
        self.requests, self.wrong = [], []
        return found

    def close(self):
        self.socket.close()


@pytest.fixture(scope="module")
def recorder():
    one = Recorder()
    yield one
    one.close()


@pytest.fixture(scope="module")
def recorded(recorder, tmp_path_factory):
    made = {name: Proxy(name, tmp_path_factory.mktemp(name), recorder.address).start() for name in NAMES}
    yield made
    for one in made.values():
        one.stop()


def status_of(answer):
    statuses = re.findall(rb"HTTP/1\.[01] (\d\d\d)", answer)
    return b" ".join(statuses).decode() or "closed"


def test_the_recorder_is_strict():
    """Each of these it must find wrong, or what follows proves nothing."""
    host = b"GET / HTTP/1.1\r\nHost: a\r\n"
    for bad in (
        b"GET / HTTP/1.1\r\n\r\n", host + b"Host: b\r\n\r\n", host + b"X: a\0b\r\n\r\n", host + b"X: a\nY: b\r\n\r\n", host + b" folded\r\n\r\n",
        host + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na", host + b"Content-Length: +1\r\n\r\na", host + b"Transfer-Encoding: xchunked\r\n\r\n",
        host + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", host + b"Transfer-Encoding: chunked\r\n\r\n1;x\r\na\r\n0\r\n\r\n",
        host + b"Content-Length : 5\r\n\r\nhello", host.replace(b"\r\n", b"\n") + b"\n", host + b"X: a\rb\r\n\r\n", host + b": x\r\n\r\n",
    ):
        with pytest.raises(AssertionError):
            take_request(bad)
    assert take_request(host + b"Content-Length: 1\r\n\r\nab") == (host + b"Content-Length: 1\r\n\r\n", b"a", b"b")
    assert take_request(host + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nb")[2] == b"b"


def test_what_reaches_the_backend(recorded, recorder):
    rows, wrong, number = [], [], 1000
    for shape, pattern in SHAPES.items():
        cells = []
        for name, proxy in recorded.items():
            number += 1
            recorder.taken()
            answer = proxy.throw(pattern.replace(NUMBER, b"%04d" % number))
            requests, problems = recorder.taken()
            wrong += [(name, shape, problem) for problem in problems]
            hidden = sum(bool(READ_AS_TWO.match(head)) for head, _ in requests)
            # Each request that the backend saw, the proxy knows of: it has answered them all itself.
            if len(re.findall(rb"HTTP/1\.[01] \d\d\d", answer)) < len(requests):
                wrong.append((name, shape, f"{len(requests)} requests, answer {answer[:200]!r}"))
            bodies = [body for _, body in requests if body]
            if bodies and name != "caddy":
                wrong.append((name, shape, f"a body is passed on: {bodies}"))
            passed = len(requests) - hidden
            what = {0: "refused", 1: "one clean request"}.get(passed, f"{passed} requests") + (", with its body" if bodies else "")
            cells.append(f"{what}{' and the one behind' if hidden else ''} ({status_of(answer)})")
        rows.append(f"| {shape} | " + " | ".join(cells) + " |")
    print("\n| shape | " + " | ".join(recorded) + " |\n" + "\n".join(rows))
    assert not wrong, "\n".join(str(one) for one in wrong)


@pytest.mark.parametrize("name", NAMES)
def test_only_reading_and_only_sitemaps_reach_the_backend(recorded, recorder, name):
    """The proxy itself refuses the rest: sitemapd, which would too, does not hear of it."""

    def heard(method, target):
        recorder.taken()
        answer = recorded[name].throw(request(b"Connection: close", line=f"{method} {target} HTTP/1.1".encode(), body=b""))
        return recorder.taken()[0], answer

    for method, target in (("GET", "/sitemap_index.xml?only"), ("HEAD", "/sitemap_index-2.xml.gz"), ("GET", "/sitemaps/a.xml?only")):
        requests, answer = heard(method, target)
        assert len(requests) == 1, (method, target, answer)
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "PURGE"):
        requests, answer = heard(method, "/sitemap_index.xml?only")
        assert requests == [] and re.match(rb"HTTP/1\.[01] 4\d\d", answer), (method, answer)
    for target in ("/", "/v1/sites", "/metrics", "/sitemap_index.xmlx", "/sitemap_index-a.xml", "/a/sitemap_index.xml"):
        requests, answer = heard("GET", target)
        assert requests == [] and re.match(rb"HTTP/1\.[01] 4\d\d", answer), (target, answer)


def test_nothing_hidden_is_answered_as_another_request(tmp_path_factory):
    """With the real server behind, one connection each: the reply to the request after a shape is that request's own."""
    server = Server(tmp_path_factory.mktemp("server")).start()
    proxies = []
    try:
        assert server.register(ORIGIN + "/a.xml").status == 201
        for name in NAMES:
            proxies.append(Proxy(name, tmp_path_factory.mktemp(name), server.public).start())
        for proxy in proxies:
            for shape, data in SHAPES.items():
                proxy.throw(data.replace(NUMBER, b"0000"), 0.3)
                # The proxy's kept connection to the backend is used again: nothing may be left in it.
                for _ in range(2):
                    reply = proxy.ask("/sitemap_index.xml", {"Accept-Encoding": "gzip", "Cache-Control": "no-cache"})
                    assert reply.status == 200 and locs(reply.xml()) == [ORIGIN + "/a.xml"], (proxy.name, shape, reply)
        assert server.api("GET", "/v1/sitemaps").status == 200 and TOKEN not in server.log() and HOST in ORIGIN
        server.stop()
    finally:
        for proxy in proxies:
            proxy.stop()
        server.kill()
