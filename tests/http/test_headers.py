"""Headers, cookies and targets of every size: each request has one reply, well-formed, and of our making as far as the
connection's memory goes (max_header_bytes and 8 KiB)."""

import pytest
from harness import HOST, Connection, request_bytes

ROBOTS = "/robots.txt"
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
            if abs(taken + 40 - MEMORY) < 300:
                continue  # libmicrohttpd 0.9.75 has no room for its own refusal: docs/security.md
            for first in (b"", before):
                reply = replies(address, data, first)
                what = (shape, listener, total, each, bool(first), reply)
                if size > MAX_HEADER or len(lines) + 2 > 100:
                    assert reply.status == (414 if len(target) > MAX_HEADER else 431), what
                    assert taken > MEMORY or reply.get("Content-Type"), what
                else:
                    assert reply.status == (200 if listener == "public" and target.startswith(ROBOTS) else 404), what
    assert shared.get(ROBOTS).status == 200


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
