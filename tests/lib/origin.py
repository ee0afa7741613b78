# SPDX-License-Identifier: LicenseRef-Undeclared
"""A web server with many faults: answers each path with given bytes, whatever they are."""

import gzip
import socket
import ssl
import struct
import threading


def urlset(*locs, lastmod=None):
    dated = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
    urls = "".join(f"<url><loc>{loc}</loc>{dated}</url>" for loc in locs)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>\n'.encode()


def index(*members):
    """Members: a loc, or a loc and its lastmod."""
    rows = ""
    for member in members:
        loc, lastmod = member if isinstance(member, tuple) else (member, None)
        rows += f"<sitemap><loc>{loc}</loc>" + (f"<lastmod>{lastmod}</lastmod>" if lastmod else "") + "</sitemap>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}</sitemapindex>\n'.encode()


def answer(status=200, body=b"", length=None, **headers):
    """The bytes of an answer; `length` is a wrong Content-Length. Names of headers have _ for -."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body) if length is None else length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def bomb(size):
    """A urlset that is small until it is unpacked."""
    return gzip.compress(urlset("http://www.example.com/a")[:-10] + b" " * size, 9)


class Origin:
    """Listens on `address`, on a port of its own. `answers[path]`: bytes, or what is called with the
    connection and the request's head and sends them (`body` is what came behind the head). `asked` are the requests' heads. A context."""

    def __init__(self, address="127.0.0.2", port=0, tls=None):
        self.answers, self.asked = {}, []
        self.came = threading.local()  # each connection has a thread
        self.listening = socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
        self.address, self.port = self.listening.getsockname()[:2]
        if tls:  # certificate and key
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.listening = context.wrap_socket(self.listening, server_side=True)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    @property
    def body(self):
        return self.came.body

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.listening.shutdown(socket.SHUT_RDWR)  # ends each accept
        self.thread.join()
        self.listening.close()  # not before: another socket may get the descriptor that accept has

    def serve(self):
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        data = b""
        with connection:
            try:
                while True:
                    while b"\r\n\r\n" not in data:
                        more = connection.recv(65536)
                        if not more:
                            return
                        data += more
                    head, _, data = data.partition(b"\r\n\r\n")
                    head = head.decode("latin-1")
                    self.asked.append(head)
                    found = self.answers.get(head.split(" ")[1], answer(404))
                    if callable(found):
                        self.came.body = data
                        found(connection, head)
                        return
                    connection.sendall(found)
            except OSError:
                pass  # who asked had enough

    def paths(self):
        return [head.split(" ")[1] for head in self.asked]

    # ---- faults

    def endless(self, before, again):
        """Sends `before`, then `again` for ever."""

        def send(connection, _):
            connection.sendall(before)
            while not self.ended.is_set():
                connection.sendall(again)

        return send

    def silent(self, before=b""):
        """Sends `before`, then nothing for ever."""

        def send(connection, _):
            connection.sendall(before)
            self.ended.wait()

        return send

    @staticmethod
    def reset(connection, _):
        """Sends nothing and resets the connection."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    @staticmethod
    def cut(before):
        """Sends `before` and closes."""

        def send(connection, _):
            connection.sendall(before)

        return send
