# SPDX-License-Identifier: LicenseRef-Undeclared
"""The attackers: each runs in a process of its own until it is ended, from loopback addresses other
than the honest client's. `crowd` keeps a number of connections open and opens another for each that
the server ends; `flood` opens as many as it can."""

import random
import selectors
import socket
import struct
import time

BURST = 500  # connections begun in a row


def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def opened(to, source, receive_buffer=None):
    """A connection that is on its way; None: the system has no more for us."""
    try:
        sock = socket.socket()
    except OSError:
        return None
    try:
        sock.setblocking(False)
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT: the port is chosen with the peer
        sock.bind((source, 0))
        sock.connect_ex(to)
        return sock
    except OSError:
        sock.close()
        return None


class Crowd:
    """`count` connections. `first`: what each sends at once; `drip`: what it sends every `pause` seconds, or None;
    `reads`: whether it reads what comes; `half_close`: whether it ends its side behind `first`."""

    def __init__(self, to, sources, count, first=b"", drip=None, pause=1.0, reads=True, half_close=False, receive_buffer=None):
        self.to, self.sources, self.count = address(to), sources, count
        self.first, self.drip, self.pause = first, drip, pause
        self.reads, self.half_close, self.receive_buffer = reads, half_close, receive_buffer
        self.selector = selectors.EpollSelector()
        self.open, self.turn = {}, 0

    def fill(self):
        for _ in range(min(BURST, self.count - len(self.open))):
            self.turn += 1
            sock = opened(self.to, self.sources[self.turn % len(self.sources)], self.receive_buffer)
            if sock is None:
                return
            self.open[sock] = 0
            self.selector.register(sock, selectors.EVENT_WRITE)

    def drop(self, sock):
        self.selector.unregister(sock)
        self.open.pop(sock, None)
        sock.close()

    def send_first(self, sock):
        rest = self.first[self.open[sock] :]
        if rest:
            self.open[sock] += sock.send(rest)
        if self.open[sock] >= len(self.first):
            if self.half_close:
                sock.shutdown(socket.SHUT_WR)
            self.selector.modify(sock, selectors.EVENT_READ if self.reads else 0)

    def step(self, key, events):
        sock = key.fileobj
        try:
            if events & selectors.EVENT_WRITE:
                self.send_first(sock)
            elif self.reads and not sock.recv(65536):
                self.drop(sock)
        except BlockingIOError:
            pass
        except (OSError, ValueError):
            self.drop(sock)

    def send_drip(self):
        for sock in list(self.open):
            if self.open[sock] >= len(self.first):
                try:
                    sock.send(self.drip)
                except BlockingIOError:
                    pass
                except OSError:
                    self.drop(sock)

    def run(self):
        next_drip = time.monotonic() + self.pause
        while True:
            self.fill()
            for key, events in self.selector.select(0.02):
                self.step(key, events)
            if not self.reads:
                self.forget_ended()
            if self.drip is not None and time.monotonic() >= next_drip:
                self.send_drip()
                next_drip = time.monotonic() + self.pause

    def forget_ended(self):
        """A client that does not read notices the end only by an error, and not always."""
        for sock in random.sample(list(self.open), min(200, len(self.open))):
            if sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] not in (1, 2):  # ESTABLISHED, SYN_SENT
                self.drop(sock)


def crowd(*args, **options):
    Crowd(*args, **options).run()


def flood(to, sources, data=b"", reset=True, reads=False):
    """Connects, sends, goes: as often as it can."""
    to, turn = address(to), 0
    while True:
        turn += 1
        sock = socket.socket()
        try:
            sock.settimeout(1)
            sock.setsockopt(socket.IPPROTO_IP, 24, 1)
            sock.bind((sources[turn % len(sources)], 0))
            if reset:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.connect(to)
            if data:
                sock.sendall(data)
            if reads:
                while sock.recv(65536):
                    pass
        except OSError:
            pass
        finally:
            sock.close()


def pour(to, sources, first, piece):
    """One connection after another that sends `first` and then `piece` for as long as it is let."""
    to, turn = address(to), 0
    while True:
        turn += 1
        try:
            with socket.create_connection(to, 2, (sources[turn % len(sources)], 0)) as sock:
                sock.sendall(first)
                while True:
                    sock.sendall(piece)
        except OSError:
            pass
