# SPDX-License-Identifier: LicenseRef-Undeclared
"""Fakes of Google Search Console and Bing Webmaster Tools: `sitemaps` are those that they list, `calls` the requests
that they got, `fault` (status, body, headers) an answer that they give instead."""

import base64
import json
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

ACCOUNT = "sitemapd@example.iam.gserviceaccount.com"
TOKEN = "ya29.secret-of-the-token"
BING_KEY = "f3c2bing0secret0key0"
SCOPE = "https://www.googleapis.com/auth/webmasters"


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Engine:
    """A context; `url` is its endpoint."""

    def __init__(self, address="127.0.0.2"):
        self.sitemaps, self.children, self.calls, self.refused = {}, {}, [], []
        self.fault = self.token_fault = None
        self.faults = {}  # by kind of call
        self.now = time.time
        self.folder = tempfile.TemporaryDirectory()
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, status, body=b"", **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, answer, *more = engine.answer(self.command, urlsplit(self.path), self.headers, body)
                self.reply(status, answer if isinstance(answer, bytes) else json.dumps(answer).encode(), **(more[0] if more else {}))

            do_GET = do_PUT = do_POST = handle_any

        self.server = ThreadingHTTPServer((address, 0), Handler)
        self.url = f"http://{address}:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.folder.cleanup()

    def secret(self, name, text):
        path = Path(self.folder.name, name)
        path.write_text(text)
        path.chmod(0o600)
        return path

    def count(self, kind):
        return sum(call[0] == kind for call in self.calls)


class Google(Engine):
    """`sitemaps[loc]`: its members besides `path`; `children[loc]`: rows."""

    def __init__(self, **options):
        super().__init__(**options)
        self.key = Path(self.folder.name, "key.pem")
        self.public = Path(self.folder.name, "public.pem")
        subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.key], check=True, capture_output=True)
        subprocess.run(["openssl", "pkey", "-in", self.key, "-pubout", "-out", self.public], check=True)
        self.token_uri = self.url + "token"

    def config(self, more=""):
        account = {"type": "service_account", "client_email": ACCOUNT, "private_key": self.key.read_text(), "private_key_id": "k1", "token_uri": self.token_uri}
        return f'[engine "google"]\ncredentials_file = {self.secret("google.json", json.dumps(account))}\nendpoint = {self.url}\n{more}'

    def take_jwt(self, jwt):
        """Returns the fault of the request; None: it is valid."""
        header, claims, signature = jwt.split(".")
        signed = Path(self.folder.name, "signed")
        signed.write_bytes(f"{header}.{claims}".encode())
        Path(self.folder.name, "signature").write_bytes(decoded(signature))
        verified = subprocess.run(["openssl", "dgst", "-sha256", "-verify", self.public, "-signature", Path(self.folder.name, "signature"), signed], capture_output=True)
        header, claims = json.loads(decoded(header)), json.loads(decoded(claims))
        now = self.now()
        faults = {
            "signature": verified.returncode == 0,
            "alg": header == {"alg": "RS256", "typ": "JWT", "kid": "k1"},
            "iss": claims["iss"] == ACCOUNT,
            "scope": claims["scope"] == SCOPE,
            "aud": claims["aud"] == self.token_uri,
            "time": claims["iat"] <= now + 60 and now < claims["exp"] <= claims["iat"] + 3600,
        }
        return next((name for name, good in faults.items() if not good), None)

    def answer(self, method, url, headers, body):
        if url.path == "/token":
            self.calls.append(("token",))
            form = parse_qs(body.decode())
            wrong = self.take_jwt(form["assertion"][0])
            if wrong or form["grant_type"] != ["urn:ietf:params:oauth:grant-type:jwt-bearer"]:
                self.refused.append(wrong or "grant_type")
                return 400, {"error": "invalid_grant", "error_description": str(wrong)}
            return self.token_fault or (200, {"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"})
        if headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, {"error": {"code": 401, "errors": [{"reason": "authError"}]}}
        _, _, _, _, site, _, *feed = url.path.split("/")
        assert url.path.startswith("/webmasters/v3/sites/"), url.path
        parent = parse_qs(url.query).get("sitemapIndex", [None])[0]
        kind = "submit" if method == "PUT" else "children" if parent else "list"
        self.calls.append((kind, unquote(site), unquote(feed[0]) if feed else parent))
        if self.fault or kind in self.faults:
            return self.faults.get(kind, self.fault)
        if method == "PUT":
            self.sitemaps[unquote(feed[0])] = {"isPending": True, "lastSubmitted": "2026-11-27T10:00:00.000Z"}
            return 204, b""
        rows = self.children.get(parent, []) if parent else [{"path": loc, **members} for loc, members in self.sitemaps.items()]
        return 200, {"sitemap": rows} if rows else {}


class Bing(Engine):
    """`sitemaps[loc]`: its members besides `Url`."""

    def config(self, more=""):
        return f'[engine "bing"]\napi_key_file = {self.secret("bing.key", BING_KEY)}\nendpoint = {self.url}\n{more}'

    def answer(self, method, url, headers, body):
        query = parse_qs(url.query)
        call = url.path.removeprefix("/webmaster/api.svc/json/")
        site = json.loads(body)["siteUrl"] if method == "POST" else query["siteUrl"][0]
        feed = json.loads(body)["feedUrl"] if method == "POST" else query.get("feedUrl", [None])[0]
        self.calls.append(({"GetFeeds": "list", "SubmitFeed": "submit", "GetFeedDetails": "children"}[call], site, feed))
        if query.get("apikey") != [BING_KEY]:
            return 400, {"ErrorCode": 3, "Message": f"ERROR!!! InvalidApiKey {query.get('apikey')}"}
        if self.fault:
            return self.fault
        if call == "SubmitFeed":
            self.sitemaps[feed] = {"Status": "Pending", "Submitted": "/Date(1764237600000-0800)/", "UrlCount": 0}
            return 200, {"d": None}
        rows = self.children.get(feed, []) if feed else [{"Url": loc, "__type": "Feed:#Microsoft.Bing.Webmaster.Api", **members} for loc, members in self.sitemaps.items()]
        return 200, {"d": rows}
