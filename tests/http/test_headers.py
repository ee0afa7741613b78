# SPDX-License-Identifier: LicenseRef-Undeclared
"""Headers, cookies and targets of every size: each request has one reply, well-formed, and of our making as far as the
connection's memory goes (max_header_bytes and 8 KiB), to the byte."""

import contextlib
import ctypes

import pytest
from harness import HOST, Connection, request_bytes

ROBOTS = "/robots.txt"
library = ctypes.CDLL("libmicrohttpd.so.12")
library.MHD_get_version.restype = ctypes.c_char_p
# Later ones refuse once, by themselves; what they say has no type.
PARSER_IS_STRICT = tuple(map(int, library.MHD_get_version().split(b"."))) > (0, 9, 77)
MAX_HEADER = 8192
MEMORY = MAX_HEADER + 8192


def fields(name, total, each):
    return [(name.replace("#", str(n)), "v" * max(each - len(name) - 4, 1)) for n in range(max(total // each, 1))]


def cookies(total, each):
    return [("Cookie", "; ".join(f"c{n}=".ljust(max(each - 2, 4), "v") for n in range(max(total // each, 1))))]


SHAPES = {
    "one Cookie field": lambda total, each: (ROBOTS, cookies(total, each)),
    "many Cookie fields": lambda total, each: (ROBOTS, fields("Cookie", total, each)),
    "many fields": lambda total, each: (ROBOTS, fields("X-#", total, each)),
    "a long path": lambda total, each: ("/" + "a" * total, []),
    "a long query": lambda total, each: (f"{ROBOTS}?" + "a" * total, []),
    "a query of many parts": lambda total, each: (f"{ROBOTS}?" + "a&" * (total // 2), []),
}
TOTALS = (1000, 2500, 4000, 6000, 7900, 8190, 8300, 9000, 12000, 15000, 15700, 15900, 17000, 24000, 40000, 64000)
LENGTHS = (8, 30, 100, 1000, 4000, 70000)


def replies(address, data, before=b""):
    """Every reply on a connection that carries `before` and then `data`."""
    with Connection(address) as connection:
        if before:
            connection.send(before)
            connection.reply()
        try:
            connection.send(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        reply = connection.reply()
        assert connection.rest() == b"", "bytes behind the reply"
    return reply


@pytest.mark.parametrize("listener", ("public", "admin"))
@pytest.mark.parametrize("shape", SHAPES)
def test_one_reply_whatever_its_size(shared, listener, shape):
    address, host = getattr(shared, listener), HOST if listener == "public" else "localhost"
    before = request_bytes("GET", ROBOTS, host=host)
    for total in TOTALS:
        for each in LENGTHS if "many" in shape or "Cookie" in shape else LENGTHS[-1:]:
            if each > total and each != LENGTHS[-1]:
                continue
            target, lines = SHAPES[shape](total, each if each < LENGTHS[-1] else total)
            data = request_bytes("GET", target, lines + [("Connection", "close")], host=host)
            # The request line's own end, and each field's record in the connection's memory.
            size, taken = len(data), len(data) + 64 * (len(lines) + 2)
            for first in (b"", before):
                reply = replies(address, data, first)
                what = (shape, listener, total, each, bool(first), reply)
                if size > MAX_HEADER or len(lines) + 2 > 100:
                    assert reply.status == (414 if len(target) > MAX_HEADER else 431), what
                    assert taken > MEMORY or reply.get("Content-Type"), what
                else:
                    assert reply.status == (200 if listener == "public" and target.startswith(ROBOTS) else 404), what
    assert shared.get(ROBOTS).status == 200


def line(target, method="GET"):
    return f"{method} {target} HTTP/1.1\r\n".encode()


HOSTED = f"Host: {HOST}\r\n".encode()
# Made of n bytes and the fields that n brings; what is refused; up to which length of what it is ours.
EDGES = {
    "a target": (lambda n: line("/" + "a" * n) + HOSTED + b"\r\n", 414, lambda n: len(line("/" + "a" * n))),
    "a method": (lambda n: line("/", "A" * n) + HOSTED + b"\r\n", 431, None),
    "a field": (lambda n: line(ROBOTS) + HOSTED + b"X: " + b"a" * n + b"\r\n\r\n", 431, None),
    "a field of who waits for 100": (lambda n: line(ROBOTS, "POST") + HOSTED + b"Content-Length: 5\r\nExpect: 100-continue\r\nX: " + b"a" * n + b"\r\n\r\n", 431, None),
    "a Cookie field": (lambda n: line(ROBOTS) + HOSTED + b"Cookie: " + b"a" * n + b"\r\n\r\n", 431, None),
    "fields": (lambda n: line(ROBOTS) + HOSTED + b"X: y\r\n" * 150 + b"Y: " + b"a" * (n - 10400) + b"\r\n\r\n", 431, None),
}


def everything(address, data):
    with Connection(address) as connection:
        try:
            connection.send(data)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return connection.rest()


@pytest.mark.parametrize("shape", EDGES)
def test_one_reply_where_the_memory_ends(shared, shape):
    """libmicrohttpd 0.9.75 needs 80 bytes of it for cookies that there may be none of, and sends its refusal twice."""
    make, status, measure = EDGES[shape]
    for n in (*range(15700, 16440, 5), *range(16365, 16371)):
        data = make(n)
        taken = measure(n) if measure else len(data) + 64 * data.count(b": ") + 64
        result = everything(shared.public, data)
        what = (shape, n, taken, result)
        if PARSER_IS_STRICT and not result and taken > MEMORY:
            continue  # it closes without a word where a method fills its memory
        assert result.count(b"HTTP/1.1 ") == result.count(b"\r\nDate: ") == 1, what
        ours = b"\r\nContent-Type: text/plain" in result
        assert ours == (taken <= MEMORY) or PARSER_IS_STRICT, what
        if ours:
            assert result.startswith(b"HTTP/1.1 %d " % status), what


@pytest.mark.parametrize("length", ("x", "5x", "", "-1", "+5", "5 5", "9" * 30, str(2**63), str(2**64 - 1)))
def test_an_invalid_length(shared, length):
    for listener, kind in ((shared.public, b"text/plain"), (shared.admin, b"application/problem+json")):
        for method in ("GET", "POST"):
            for expect in (b"", b"Expect: 100-continue\r\n"):
                result = everything(listener, line(ROBOTS, method) + b"Host: localhost\r\nContent-Length: " + length.encode() + b"\r\n" + expect + b"\r\nxxxxx")
                assert result.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ")[: 1 + PARSER_IS_STRICT]) and result.count(b"HTTP/1.1 ") == 1, result
                assert b"\r\nContent-Type: " + kind in result or PARSER_IS_STRICT, result


def test_a_rejected_header_affects_no_other_client(start):
    """Others whose header is on its way are not taken for the one."""
    server = start(env={"SITEMAPD_SERVER_HEADER_TIMEOUT": "1h"})
    before, after = line(ROBOTS) + HOSTED, b"Connection: close\r\n\r\n"
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(Connection(server.public)) for _ in range(40)]
        for connection in waiting:
            connection.send(before)
        for length in ("x", "9" * 30):
            in_pieces = stack.enter_context(Connection(server.public))
            in_pieces.send(before)
            assert b"HTTP/1.1 4" in everything(server.public, before + f"Content-Length: {length}\r\n".encode() + after)
            in_pieces.send(f"Content-Length: {length}\r\n".encode())
            in_pieces.send(after)
            result = in_pieces.rest()
            assert result.startswith(b"HTTP/1.1 4") and result.count(b"HTTP/1.1 ") == 1, result
            assert everything(server.public, line(ROBOTS) + HOSTED + b"no colon\r\n\r\n").count(b"HTTP/1.1 400 ") == 1
        for connection in waiting:
            connection.send(after)
            assert connection.reply().status == 200


def test_cookies_of_a_shared_domain(shared):
    """What browsers bring along where others of the domain set cookies: 115 of 30 bytes, and all that a header takes."""
    for count, length in ((115, 30), (60, 60), (1, 7900), (900, 8)):
        lines = [("Cookie", "; ".join(f"c{n}=".ljust(length, "v") for n in range(count)))]
        assert len(lines[0][1]) < MAX_HEADER or count == 900
        assert shared.get(ROBOTS, lines).status == (200 if len(lines[0][1]) < 8000 else 431), (count, length)
    # Fields are counted, since each takes memory of the connection's.
    assert shared.get(ROBOTS, [("X", "y")] * 98).status == 200
    assert shared.get(ROBOTS, [("X", "y")] * 99).status == 431


def test_a_query_of_many_parts_holds_up_no_stop(server):
    """None of them is answered by nothing, and kept for ever."""
    for parts in (300, 500, 4000):
        assert server.get(f"{ROBOTS}?" + "a&" * parts).status == 200
    server.stop()
