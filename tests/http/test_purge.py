# SPDX-License-Identifier: LicenseRef-Undeclared
"""deploy/proxies/purge and the purge calls of CDNs: each page that changed, once it succeeds; signed as they want it."""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from harness import INDEX, ORIGIN, eventually

PURGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/proxies/purge")
SECRET = "the-secret-of-the-cdn"


class Cdn:
    """`answers` are given first, then a success, but for calls that name what it `rejects`; `calls` are (target, headers, body).
    `at_first` is called before the first answer."""

    def __init__(self):
        self.calls, self.answers, self.rejects, self.at_first = [], [], None, lambda: None
        cdn = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                at_first, cdn.at_first = cdn.at_first, lambda: None
                at_first()
                status, text = cdn.answers.pop(0) if cdn.answers else (200, '{"success": true, "status": "ok"}')
                if cdn.rejects and cdn.rejects in self.path + body.decode():
                    status, text = 400, '{"success": false}'
                if status == 200:
                    cdn.calls.append((self.path, self.headers, body))
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                if status in (400, 429):
                    self.send_header("Retry-After", "1")
                self.end_headers()
                self.wfile.write(text.encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def cdn():
    made = Cdn()
    yield made
    made.server.shutdown()
    made.server.server_close()


@contextlib.contextmanager
def purging(server, cdn, cache, **env):
    process = subprocess.Popen(["/usr/bin/python3", PURGE, f"http://{server.admin}", cache], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env={**os.environ, "SITEMAPD_TOKEN": server.token, "PURGE_API": cdn.url, **env})
    said = []
    try:
        yield said
    finally:
        process.terminate()
        said.append(process.communicate()[0].decode())


def test_fastly(server, cdn):
    assert server.register(ORIGIN + "/a.xml").status == 201
    cdn.answers = [(429, "slow down")]
    with purging(server, cdn, "fastly", FASTLY_TOKEN=SECRET) as said:
        purged = lambda: {"https://" + target.removeprefix("/purge/") for target, _, _ in cdn.calls}
        eventually(lambda: {INDEX, INDEX + ".gz"} <= purged(), "each is purged")
        before = len(cdn.calls)
        assert server.register(ORIGIN + "/b.xml").status == 201
        eventually(lambda: len(cdn.calls) >= before + 2, "and again, as it goes on")
    headers = cdn.calls[0][1]
    assert headers["Fastly-Key"] == SECRET and headers["Fastly-Soft-Purge"] == "1"
    assert f"purged {INDEX}\n" in said[0] and "answers 429" in said[0] and SECRET not in said[0]


def test_cloudflare(server, cdn):
    assert server.register(ORIGIN + "/a.xml").status == 201
    cdn.answers = [(403, '{"success": false}')]
    with purging(server, cdn, "cloudflare:zone1", CLOUDFLARE_TOKEN=SECRET) as said:
        purged = lambda: {url for _, _, body in cdn.calls for url in json.loads(body)["files"]}
        eventually(lambda: {INDEX, INDEX + ".gz"} <= purged(), "each is purged")
    target, headers, _ = cdn.calls[0]
    assert target == "/client/v4/zones/zone1/purge_cache" and headers["Authorization"] == f"Bearer {SECRET}"
    assert "answers 403" in said[0] and SECRET not in said[0]


@pytest.mark.parametrize("cache", ["fastly", "cloudflare:zone1"])
def test_a_url_that_is_rejected_keeps_no_other_waiting(server, cdn, cache):
    """A site whose host the CDN does not serve, first in any order: a tenant could end all purges with it."""
    first = "https://a.example.net"
    assert server.api("POST", "/v1/sites", {"origin": first}).status == 201
    assert server.register(first + "/a.xml").status == 201
    assert server.register(ORIGIN + "/a.xml").status == 201
    cdn.rejects = "a.example.net"
    with purging(server, cdn, cache, FASTLY_TOKEN=SECRET, CLOUDFLARE_TOKEN=SECRET) as said:
        everything = lambda: "".join(target + body.decode() for target, _, body in cdn.calls)
        eventually(lambda: INDEX.removeprefix("https://") + ".gz" in everything(), "another site's is purged")
        before = len(cdn.calls)
        assert server.register(ORIGIN + "/b.xml").status == 201
        eventually(lambda: len(cdn.calls) > before, "and again, as it goes on")
        cdn.rejects = None
        eventually(lambda: "a.example.net" in everything(), "it is tried until it succeeds")
    assert "answers 400" in said[0]


@pytest.mark.parametrize("cache, calls", [("fastly", 6), ("cloudflare:zone1", 2)])
def test_sites_take_turns(server, cdn, cache, calls):
    """A site whose page changes while many pages of another are pending does not wait for all of them."""
    many, one = "https://a.example.net", "https://b.example.net"
    assert server.api("POST", "/v1/sites", {"origin": many}).status == 201
    for i in range(40):
        assert server.api("POST", "/v1/indexes", {"url": f"{many}/i{i}.xml"}).status == 201
        assert server.register(f"{many}/{i}.xml", index=f"{many}/i{i}.xml").status == 201

    def change():
        assert server.api("POST", "/v1/sites", {"origin": one}).status == 201
        assert server.register(one + "/a.xml").status == 201

    cdn.at_first = change
    with purging(server, cdn, cache, FASTLY_TOKEN=SECRET, CLOUDFLARE_TOKEN=SECRET):
        texts = lambda: [target + body.decode() for target, _, body in cdn.calls]
        eventually(lambda: all(f"a.example.net/i{i}.xml.gz" in "".join(texts()) for i in range(40)), "all are purged")
    assert "b.example.net/sitemap_index.xml" in "".join(texts()[:calls]), texts()


def test_akamai(server, cdn, tmp_path):
    edgerc = tmp_path / "edgerc"
    edgerc.write_text(f"[default]\nclient_secret = {SECRET}\nhost = akab.example\naccess_token = at-1\nclient_token = ct-1\n")
    assert server.register(ORIGIN + "/a.xml").status == 201
    with purging(server, cdn, "akamai", AKAMAI_EDGERC=str(edgerc)) as said:
        eventually(lambda: {INDEX, INDEX + ".gz"} <= {url for _, _, body in cdn.calls for url in json.loads(body)["objects"]}, "each is purged")
    target, headers, body = cdn.calls[0]
    assert target == "/ccu/v3/invalidate/url/production" and SECRET not in said[0]
    unsigned, signature = re.fullmatch(r"(EG1-HMAC-SHA256 client_token=ct-1;access_token=at-1;timestamp=\d{8}T[\d:]{8}\+0000;nonce=[0-9a-f-]{36};)signature=(.+)", headers["Authorization"]).groups()
    stamp = re.search(r"timestamp=([^;]+)", unsigned)[1]
    key = base64.b64encode(hmac.digest(SECRET.encode(), stamp.encode(), "sha256"))
    signed = f"POST\thttp\t{headers['Host']}\t{target}\t\t{base64.b64encode(hashlib.sha256(body).digest()).decode()}\t{unsigned}"
    assert base64.b64decode(signature) == hmac.digest(key, signed.encode(), "sha256")


@pytest.mark.parametrize("cache, said", [("varnish-9000", "not a known cache"), ("cloudflare:", "not a known cache"), ("fastly", "FASTLY_TOKEN is not set")])
def test_what_it_cannot_do_is_said_at_once(cache, said):
    env = {name: value for name, value in os.environ.items() if not name.endswith("_TOKEN")}
    done = subprocess.run(["/usr/bin/python3", PURGE, "http://127.0.0.1:9", cache], capture_output=True, text=True, env=env, timeout=60)
    assert done.returncode == 1 and said in done.stderr
