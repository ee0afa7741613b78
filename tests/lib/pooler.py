# SPDX-License-Identifier: LicenseRef-Undeclared
"""A proxy between a client and a PostgreSQL: a connection pooler like PgBouncer, which gives each session, or each
transaction, a server process; or a server that reports another release. For `trust` alone. Standard library."""

import contextlib
import socket
import struct
import threading

SSL_REQUEST, GSSENC_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
OWN_KEY = struct.pack("!II", 7, 7)  # of no process: a pooler invents what it sends to clients


class Closed(Exception):
    """The other side is gone."""


def read(sock, size):
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise Closed
        data += piece
    return data


def message(sock):
    """(type, body)."""
    kind = read(sock, 1)
    return kind, read(sock, struct.unpack("!I", read(sock, 4))[0] - 4)


def packed(kind, body):
    return kind + struct.pack("!I", len(body) + 4) + body


class Pooler:
    """`release`: what the server is said to be, instead of what it is."""

    def __init__(self, server, mode="session", release=None):
        self.server, self.mode, self.release = server, mode, release
        self.idle, self.lock, self.sockets, self.said = [], threading.Lock(), [], None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self, database, user="postgres"):
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sock in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.sockets.append(client)
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def connect(self, startup):
        """A session with the server, and what it said until it was ready."""
        backend = socket.create_connection((self.server.address, self.server.port))
        self.sockets.append(backend)
        backend.sendall(startup)
        said = []
        while not said or said[-1][0] not in b"ZE":
            said.append(message(backend))
        return backend, said

    def greet(self, said):
        """Sends a client the parameters of a session."""
        for kind, body in said:
            if kind == b"K":
                body = OWN_KEY
            elif kind == b"S" and body.startswith(b"server_version\0") and self.release:
                body = b"server_version\0" + self.release.encode() + b"\0"
            yield packed(kind, body)

    def serve(self, client):
        with contextlib.suppress(Closed, OSError), client:
            size = read(client, 4)
            code = read(client, 4)
            while struct.unpack("!I", code)[0] in (SSL_REQUEST, GSSENC_REQUEST):
                client.sendall(b"N")
                size, code = read(client, 4), read(client, 4)
            if struct.unpack("!I", code)[0] == CANCEL_REQUEST:
                return
            startup = size + code + read(client, struct.unpack("!I", size)[0] - 8)
            if self.mode == "transaction":
                if self.said is None:  # all get what the first got
                    backend, self.said = self.connect(startup)
                    self.give_back(backend)
                client.sendall(b"".join(self.greet(self.said)))
                self.transactions(client, startup)
                return
            backend, said = self.connect(startup)
            client.sendall(b"".join(self.greet(said)))
            threading.Thread(target=self.pump, args=(backend, client), daemon=True).start()
            self.pump(client, backend)

    def pump(self, source, target):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                target.sendall(piece)
        for sock in (source, target):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def give_back(self, backend):
        with self.lock:
            self.idle.append(backend)

    def take(self, startup):
        """The one that was idle last, as PgBouncer does."""
        with self.lock:
            if self.idle:
                return self.idle.pop()
        return self.connect(startup)[0]

    def transactions(self, client, startup):
        backend = None
        while True:
            kind, body = message(client)
            if kind == b"X":
                return
            backend = backend or self.take(startup)
            backend.sendall(packed(kind, body))
            if kind in b"SQ":  # the answers up to here
                said = message(backend)
                while said[0] != b"Z":
                    client.sendall(packed(*said))
                    said = message(backend)
                if said[1] == b"I":
                    self.give_back(backend)
                    backend = None
                client.sendall(packed(*said))
