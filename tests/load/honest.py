# SPDX-License-Identifier: LicenseRef-Undeclared
"""The honest client: asks for a page at an even pace, in turn on a connection that it keeps and on a
new one, and shows how long each took. It comes before everybody else on the processors, where it may,
so that what it measures is the server and not its own turn; how late it was woken is measured too."""

import os
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
    """One exchange; ConnectionError where it is not a whole 200."""
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


def come_first():
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        pass  # not root: `late` shows what that costs


def note(times, took):
    """A slow answer holds up those that would have been asked for meanwhile: they count as well."""
    while took > 0:
        times.append(took)
        took -= 2 * PACE


def measure(address, request, stop, results):
    """Until `stop` is set; puts {"kept": [seconds], "new": [seconds], "late": [seconds], "errors": [text], "renewed": n} into
    `results`."""
    come_first()
    host, _, port = address.rpartition(":")
    to = (host, int(port))
    out = {"kept": [], "new": [], "late": [], "errors": [], "renewed": 0}
    kept = connect(to)
    turn = 0
    while not stop.is_set():
        turn += 1
        begun = time.perf_counter()
        try:
            if turn % 2:
                ask(kept, request)
                note(out["kept"], time.perf_counter() - begun)
            else:
                with connect(to) as sock:
                    ask(sock, request)
                note(out["new"], time.perf_counter() - begun)
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
        wake = max(begun + PACE, time.perf_counter())
        time.sleep(max(0.0, wake - time.perf_counter()))
        out["late"].append(time.perf_counter() - wake)
    results.put(out)
