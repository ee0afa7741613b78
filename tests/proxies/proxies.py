# SPDX-License-Identifier: LicenseRef-Undeclared
"""The proxies of deploy/proxies, started on loopback with the examples as they are; only addresses and
paths are this run's."""

import os
import shutil
import socket
import ssl
import subprocess
import time

from harness import HOST, Connection, Server, request_bytes, seconds

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "deploy", "proxies")

PATIENCE = 60
NAMES = ["nginx", "haproxy", "caddy"]


class TlsConnection(Connection):
    def __init__(self, address, timeout=None, source=None):
        super().__init__(address, timeout, source)
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self.socket = context.wrap_socket(self.socket, server_hostname=HOST)

    def receive(self):
        try:
            return super().receive()
        except ssl.SSLEOFError:
            return b""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def certificate(folder):
    """A self-signed one; the files' names."""
    crt, key, both = (os.path.join(folder, name) for name in ("tls.crt", "tls.key", "tls.pem"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}", "-keyout", key, "-out", crt],
        check=True, stderr=subprocess.DEVNULL,
    )
    with open(both, "wb") as out:
        for name in (crt, key):
            with open(name, "rb") as file:
                out.write(file.read())
    return crt, key, both


def example(name, changes):
    """The example with each of `changes` made; each must occur in it exactly once."""
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        text = file.read()
    for old, new in changes.items():
        assert text.count(old) == 1, f"{name}: {text.count(old)} times {old!r}"
        text = text.replace(old, new)
    return text


class Proxy:
    """One of NAMES in front of `backend`. `changes` go into its example."""

    def __init__(self, name, folder, backend, changes=None):
        self.name = name
        self.folder = str(folder)
        self.address = f"127.0.0.1:{free_port()}"
        self.process = None
        crt, key, both = certificate(self.folder)
        write = getattr(self, "write_" + name)
        self.command = write(backend, crt, key, both, changes or {})

    def save(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def write_nginx(self, backend, crt, key, _both, changes):
        site = self.save("sitemapd.conf", example("nginx.conf", {
            "server 127.0.0.1:8080;": f"server {backend};",
            "listen 443 ssl http2;": f"listen {self.address} ssl http2;",
            "/var/lib/nginx/sitemapd": os.path.join(self.folder, "cache"),
            "/etc/nginx/tls/tls.crt": crt, "/etc/nginx/tls/tls.key": key, **changes,
        }))
        places = "".join(f"{kind}_temp_path {self.folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;\n" if os.getuid() == 0 else ""
        main = self.save("nginx.conf", f"{user}daemon off;\npid {self.folder}/pid;\nerror_log {self.folder}/error.log;\n"
                         f"events {{ }}\nhttp {{\naccess_log off;\n{places}include {site};\n}}\n")
        return ["nginx", "-p", self.folder, "-e", os.path.join(self.folder, "error.log"), "-c", main]

    def write_haproxy(self, backend, _crt, _key, both, changes):
        config = self.save("haproxy.cfg", example("haproxy.cfg", {
            "bind :443 ssl crt /etc/haproxy/tls.pem": f"bind {self.address} ssl crt {both}",
            "server sitemapd 127.0.0.1:8080 check": f"server sitemapd {backend} check", **changes,
        }))
        return ["haproxy", "-db", "-f", config]

    def write_caddy(self, backend, crt, key, _both, changes):
        port = self.address.rpartition(":")[2]
        config = self.save("Caddyfile", "{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n}\n" + example("Caddyfile", {
            "www.example.com {": f"https://:{port} {{\n\ttls {crt} {key}",
            "reverse_proxy 127.0.0.1:8080": f"reverse_proxy {backend}", **changes,
        }))
        return ["caddy", "run", "--adapter", "caddyfile", "--config", config]

    def start(self):
        assert shutil.which(self.command[0]), f"{self.command[0]} is not installed"
        env = {**os.environ, "HOME": self.folder, "XDG_DATA_HOME": self.folder, "XDG_CONFIG_HOME": self.folder}
        self.log = os.path.join(self.folder, "proxy.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                TlsConnection(self.address).close()
                return self
            except OSError:
                with open(self.log, encoding="utf-8", errors="replace") as file:
                    said = file.read()
                assert self.process.poll() is None and time.monotonic() < end, said
                time.sleep(0.05)

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def ask(self, target, headers=(), method="GET", host=HOST, body=b""):
        headers = list(headers.items()) if isinstance(headers, dict) else list(headers)
        with TlsConnection(self.address, seconds(PATIENCE)) as connection:
            connection.send(request_bytes(method, target, headers + [("Connection", "close")], body, host))
            return connection.reply(method)

    def throw(self, data, patience=2.0):
        """Raw bytes; all that comes back until the proxy closes or says nothing for so long."""
        with TlsConnection(self.address, seconds(PATIENCE)) as connection:
            connection.send(data)
            connection.socket.settimeout(patience)
            got = b""
            try:
                while piece := connection.receive():
                    got += piece
            except (TimeoutError, ssl.SSLError, OSError):
                pass
            return got


__all__ = ["HOST", "NAMES", "Proxy", "Server"]
