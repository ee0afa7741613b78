"""The honest client: asks for a page at an even pace, in turn on a connection that it keeps and on a
new one, and tells how long each took."""

import socket
import time

SOURCE = "127.0.0.9"
PACE = 0.004
PATIENCE = 5.0


def connect(to):
    sock = socket.create_connection(to, PATIENCE, (SOURCE, 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def ask(sock, request):
    """One exchange; ConnectionError where it is no whole 200."""
    sock.sendall(request)
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            raise ConnectionError("ended")
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise ConnectionError(head[:40])
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        more = sock.recv(65536)
        if not more:
            raise ConnectionError("cut")
        body += more


def measure(address, request, stop, results):
    """Until `stop` is set; puts {"kept": [seconds], "new": [seconds], "errors": [text], "renewed": n} into `results`."""
    host, _, port = address.rpartition(":")
    to = (host, int(port))
    out = {"kept": [], "new": [], "errors": [], "renewed": 0}
    kept = connect(to)
    turn = 0
    while not stop.is_set():
        turn += 1
        begun = time.perf_counter()
        try:
            if turn % 2:
                ask(kept, request)
                out["kept"].append(time.perf_counter() - begun)
            else:
                with connect(to) as sock:
                    ask(sock, request)
                out["new"].append(time.perf_counter() - begun)
        except OSError as error:
            # A kept connection may be ended while nothing is under way; then one asks again.
            if turn % 2 and not isinstance(error, TimeoutError):
                out["renewed"] += 1
            else:
                out["errors"].append(f"{'kept' if turn % 2 else 'new'}: {error!r}")
            if turn % 2:
                kept.close()
                try:
                    kept = connect(to)
                except OSError as again:
                    out["errors"].append(f"kept: {again!r}")
        time.sleep(max(0.0, PACE - (time.perf_counter() - begun)))
    results.put(out)
