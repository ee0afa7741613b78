# SPDX-License-Identifier: LicenseRef-Undeclared
"""Hostile requests: a generator, with the same requests for the same seed.

Each is (kind, bytes). REFUSED: whatever is in it, no part of it may be answered with success; a
valid request for /robots.txt is hidden behind many of them, which only a server that reads the
message wrongly would answer. ODD: the library's parser may accept it or not (a bare LF, a NUL, random damage); the server must only keep running."""

import json

REFUSED, ODD = "refused", "odd"


def message(line, fields, body=b""):
    return line + b"\r\n" + b"".join(name + b": " + value + b"\r\n" for name, value in fields) + b"\r\n" + body


class Generator:
    def __init__(self, rng, host, target, token=None):
        self.rng = rng
        self.host = host.encode()
        self.target = target.encode()
        self.token = token
        self.hidden = message(b"GET /robots.txt HTTP/1.1", [(b"Host", self.host)])
        self.shapes = [
            self.lengths, self.length_beside_encoding, self.encodings, self.length_values, self.hosts, self.names, self.lines,
            self.targets, self.chunks, self.line_ends, self.early_ends, self.nuls, self.other_protocols, self.damaged, self.floods, self.lists, self.cut_short,
        ]
        if token:
            self.shapes += [self.credentials, self.json, self.queries, self.calls, self.calls, self.mutations]

    def one(self):
        return self.rng.choice(self.shapes)()

    def pick(self, *choices):
        return self.rng.choice(choices)

    def request(self, fields=(), method=b"GET", target=None, body=b"", host=True):
        fields = ([(b"Host", self.host)] if host else []) + list(fields)
        self.rng.shuffle(fields)
        return message(method + b" " + (target or self.target) + b" HTTP/1.1", fields, body)

    def method(self):
        return self.pick(b"GET", b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS")

    # ---- framing: what two servers in a row may read in two ways (RFC 9112 11.2) ----

    def lengths(self):
        length = str(len(self.hidden)).encode()
        values = self.pick([b"0", length], [length, b"0"], [length, length], [b"5", b"6"], [b"0", b"0", length])
        return REFUSED, self.request([(b"Content-Length", v) for v in values], self.method(), body=self.hidden)

    def length_beside_encoding(self):
        fields = [(b"Content-Length", self.pick(b"0", b"5", b"999")), (b"Transfer-Encoding", self.pick(b"chunked", b"Chunked", b"identity"))]
        return REFUSED, self.request(fields, self.method(), body=b"0\r\n\r\n" + self.hidden)

    def encodings(self):
        bad = [b"xchunked", b"identity", b"chunked, identity", b"gzip, chunked", b"chunked, chunked", b"chunked;q=1", b"\x0bchunked", b"chunked\x0c", b"", b"'chunked'", b"c hunked"]
        values = self.pick([self.rng.choice(bad)], [b"chunked", b"chunked"], [b"chunked", self.rng.choice(bad)], [b"identity", b"chunked"])
        return REFUSED, self.request([(b"Transfer-Encoding", v) for v in values], self.method(), body=b"0\r\n\r\n" + self.hidden)

    def length_values(self):
        value = self.pick(b"+5", b"-1", b"0x5", b"5,5", b"5, 5", b"5 5", b"1e3", b"5;", b"\xd9\xa3", b"18446744073709551616", b"18446744073709551615", b"9" * 40, b"five", b"", b"5\x0b")
        return REFUSED, self.request([(b"Content-Length", value)], self.method(), body=self.hidden)

    def chunks(self):
        bad = self.pick(
            b"zz\r\nhello\r\n0\r\n\r\n", b"-1\r\nhello\r\n0\r\n\r\n", b"0x5\r\nhello\r\n0\r\n\r\n", b"+5\r\nhello\r\n0\r\n\r\n",
            b"5\r\nhelloXX0\r\n\r\n", b"5\r\nhello0\r\n\r\n", b"\r\n5\r\nhello\r\n", b"FFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
            b"7FFFFFFFFFFFFFFF\r\nhello", b"5 5\r\nhello\r\n0\r\n\r\n", b"\x00\r\n", b"5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n", b"g\r\n", b";\r\n\r\n",
        )
        return REFUSED, self.request([(b"Transfer-Encoding", b"chunked")] + self.as_list(), b"POST", body=bad + self.hidden)

    def as_list(self):
        """For the admin listener, which reads the body."""
        if not self.token:
            return []
        self.target = b"/v1/sitemaps"
        return [(b"Authorization", b"Bearer " + self.token.encode()), (b"Content-Type", b"application/x-ndjson")]

    # ---- the head ----

    def hosts(self):
        bad = self.pick(b"a b", b"a/b", b"a@b", b"a?b", b"a#b", b"a\\b", b"<a>", b'"a"', b"a:b", b"a:80:80", b"a:999999", b"[::1", b"::1", b"\xc3\xa9.example", b"a\x01b", b"http://a", b"a:-1", b"a b:80", b"%zz", b"a%", b"a:65536", b":80", b"[a]")
        fields = self.pick([], [self.host, self.host], [self.host, b"other.example"], [bad], [bad, self.host])
        return REFUSED, self.request([(b"Host", v) for v in fields], self.method(), host=False)

    def names(self):
        name = self.pick(b"Content-Length ", b"Transfer-Encoding\t", b"Host ", b"X Y", b"(x)", b"x/y", b'"x"', b"x\x01", b"\xc3\xa9", b"[x]", b"x=y", b"x\x7f", b"@", b"x?")
        return REFUSED, self.request([(name, self.pick(b"5", b"chunked", b"x"))], self.method(), body=self.hidden)

    def lines(self):
        line = self.pick(
            b"GET %s", b"GET %s HTTP/0.9", b"GET %s HTTP/2.0", b"GET %s HTTP/3", b"GET %s http/1.1", b"GET %s HTTP/", b"GET %s HTTP/1", b"GET %s FTP/1.1",
            b"get %s HTTP/1.1", b"GETX %s HTTP/1.1", b"%s HTTP/1.1", b"TRACE %s HTTP/1.1", b"PROPFIND %s HTTP/1.1", b"G@T %s HTTP/1.1", b"\xff\xfe %s HTTP/1.1", b"M" * 5000 + b" %s HTTP/1.1",
        )
        return REFUSED, message(line.replace(b"%s", self.target), [(b"Host", self.host)])

    def targets(self):
        target = self.pick(
            b"*", b"ftp://a/", b"http://", b"http:///", b"https://other.example" + self.target, b"http://" + self.host + b"@evil/", b"javascript:alert(1)", b"a", b"?", b"\\",
            b"/%", b"/%00", b"/%zz", b"/..%2f..%2fetc%2fpasswd", b"/../../etc/passwd", b"/\xff\xfe", b"/" + b"a" * 9000, b"/" + b"%41" * 5000, b"/\x01", b"/\x7f", b"//evil.example/",
            b"/" + b"a/" * 3000, self.target + b"\x1b[2J", self.target + b"%0d%0aX: y", self.target + b"/..;/", self.target + b"#x",
        )
        if self.rng.random() < 0.2:
            return REFUSED, message(b"CONNECT " + self.pick(b"evil.example:443", self.host, b"/") + b" HTTP/1.1", [(b"Host", self.host)])
        return REFUSED, self.request((), self.pick(b"GET", b"POST", b"DELETE", b"HEAD"), target)

    def line_ends(self):
        whole = self.request([(b"X", b"y"), (b"Content-Length", b"0")])
        if self.rng.random() < 0.2:
            return REFUSED, whole.replace(b"X: y\r\n", b"X: y\r\n folded\r\n")
        return ODD, self.pick(whole.replace(b"\r\n", b"\n"), whole.replace(b"\r\n", b"\r"), whole.replace(b"\r\n", b"\n\r"), b"\r\n" * self.rng.randrange(1, 400) + whole)

    def early_ends(self):
        """What a parser may take for the empty line: a request stands behind it."""
        whole = self.request()
        return REFUSED, whole[:-2] + self.pick(b": y\r\n", b":\r\n", b"\0\r\n", b"\0Z: y\r\n") + whole

    def nuls(self):
        if self.rng.random() < 0.3:
            return REFUSED, self.request([(self.pick(b"X", b"If-None-Match"), self.pick(b"y\0z", b"\0", b"y\0")), (b"A", b"b")])
        whole = bytearray(self.request([(b"X", b"y"), (b"Content-Length", b"0")]))
        for _ in range(self.rng.randrange(1, 4)):
            whole.insert(self.rng.randrange(len(whole)), 0)
        return ODD, bytes(whole)

    def floods(self):
        field = self.pick((b"X", b"y"), (b"Cookie", b"a=b"), (b"If-None-Match", b'"a"'), (b"Accept-Encoding", b"br"), (b"X-Forwarded-Host", b"a,"), (b"Host", self.host), (b"Range", b"bytes=0-"))
        kind, fields = self.pick((REFUSED, [field] * 20000), (REFUSED, [(b"X", b"y" * 40000)]), (REFUSED, [(b"y" * 40000, b"x")]), (ODD, [field] * 300))
        return kind, self.request(fields)

    def lists(self):
        """Long lists in one field: taken or not, in time that grows with their length alone."""
        field, item = self.pick((b"If-None-Match", b'"a", '), (b"If-None-Match", b","), (b"If-None-Match", b'W/"'), (b"Accept-Encoding", b"gzip;q=0.001,"), (b"Accept-Encoding", b"*;q="), (b"X-Forwarded-Host", b"a, "), (b"If-Modified-Since", b"Sun, "), (b"Accept-Encoding", b",, ,"))
        return ODD, self.request([(field, item * (14000 // len(item)))])

    # ---- no HTTP at all ----

    def other_protocols(self):
        return REFUSED, self.pick(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + self.rng.randbytes(500),
            b"SSH-2.0-OpenSSH_9.2\r\n", b"EHLO example.com\r\nQUIT\r\n", b"stats\r\n", b"*1\r\n$4\r\nPING\r\n", b"USER a\r\n\r\n", b"\x00" * 100, b"\r\n\r\n",
            b"", b" ", b"\xff" * 20000, self.rng.randbytes(self.rng.randrange(1, 3000)), self.rng.randbytes(300) + b"\r\n\r\n" + self.hidden,
        )

    def damaged(self):
        """An honest request, then some bytes changed, doubled, left out."""
        whole = bytearray(self.request([(b"Accept-Encoding", b"gzip"), (b"If-None-Match", b'"a"'), (b"Content-Length", b"5")], body=b"hello"))
        for _ in range(self.rng.randrange(1, 8)):
            at = self.rng.randrange(len(whole))
            what = self.rng.randrange(4)
            if what == 0:
                whole[at] = self.rng.randrange(256)
            elif what == 1:
                whole[at:at] = self.rng.randbytes(self.rng.randrange(1, 9))
            elif what == 2:
                del whole[at : at + self.rng.randrange(1, 9)]
            else:
                whole[at:at] = whole[at : at + self.rng.randrange(1, 60)]
            whole = whole or bytearray(b"x")
        return ODD, bytes(whole)

    def cut_short(self):
        whole = self.request([(b"Accept-Encoding", b"gzip"), (b"Content-Length", b"5")])
        return REFUSED, whole[: self.rng.randrange(len(whole) - 2)]

    # ---- what the API reads ----

    def credentials(self):
        value = self.pick(b"Bearer", b"Bearer ", b"Bearer  ", b"Basic YTpi", b"bearer\t" + b"x", b"Bearer " + b"x" * 8000, b"Bearer \xff\xfe", b"Bearer a b", b"Bearer smd_" + b"A" * 43, b"Digest x", b"", b"Bearer " + self.token.encode()[:-1], b"Bearer " + self.token.lower().encode() + b"!")
        return REFUSED, self.request([(b"Authorization", value)], target=b"/v1/sitemaps")

    def post(self, body, kind=b"application/json", target=b"/v1/sitemaps"):
        fields = [(b"Authorization", b"Bearer " + self.token.encode()), (b"Content-Type", kind), (b"Content-Length", str(len(body)).encode())]
        return REFUSED, self.request(fields, b"POST", target, body)

    def json(self):
        loc = b'{"loc": "https://www.example.com/smuggled.xml"'
        deep = self.rng.randrange(100, 30000)
        body = self.pick(
            b"", b"[", b"{", b"nul", b"[" * deep, b"[" * deep + b"]" * deep, b'{"a":' * deep, loc, loc + b"}}", b"[" + loc + b"},]", loc + b', "loc": "x"}', loc + b', "\xff": 1}', loc + b', "\\u0000": 1}',
            b'{"loc": "\\ud800"}', b'{"loc": "\xc0\x80"}', b'{"loc": 1e999}', b'{"loc": ' + b"9" * deep + b"}", b'{"loc": "' + b"x" * deep + b'"}', loc + b', "' + b"\xc3\xa9" * deep + b'": 1}',
            b'{"loc": "https://www.example.com/\\u001b[2J\\n2026 info forged"}', b"\x1f\x8b" + self.rng.randbytes(200), self.rng.randbytes(deep // 10 + 1),
        )
        return self.post(body, self.pick(b"application/json", b"application/json", b"application/x-ndjson") if body else b"application/json")  # no lines are a list, too

    def queries(self):
        query = self.pick(b"limit=-1", b"limit=99999999999999999999", b"limit=%00", b"limit=\xff", b"%ff=1", b"after=" + b"A" * 4000, b"after=%22%5c", b"a=1&a=2", b"&".join(b"p%d=1" % i for i in range(100)), b"since=1-2-3-4", b"x\"y\\z=1", b"%e2%80%ae=1", b"limit=1&" + b"%22" * 2000, b"prefix=%0d%0aX", b"max_removed=1", b"index=" + b"%41" * 900 + b"%ff")
        fields = [(b"Authorization", b"Bearer " + self.token.encode())]
        return REFUSED, self.request(fields, b"GET", b"/v1/sitemaps?" + query)

    def api(self, method, target, body=b"", kind=b"application/json"):
        fields = [(b"Authorization", b"Bearer " + self.token.encode())]
        if body or method in (b"POST", b"PUT", b"PATCH"):
            fields += [(b"Content-Length", str(len(body)).encode())] + ([(b"Content-Type", kind)] if kind else [])
        return self.request(fields, method, target, body)

    def value(self, depth=0):
        """Some JSON of any type, but not an expected value."""
        if depth < 3 and self.rng.random() < 0.3:
            return self.pick([self.value(depth + 1) for _ in range(self.rng.randrange(4))], {self.pick("loc", "", "\u202e", "a" * 70): self.value(depth + 1)})
        return self.pick(None, True, -1, 1e308, 2**63, 2**64, "", "\x00", "\x1b[2J", "x" * self.rng.randrange(3000), "\u2028", "//evil.example/", "https://", "https://a b/", "javascript:x", "https://[::1", "https://u:p@www.example.com/a.xml", "https://www.example.com/a.xml#f", "ftp://www.example.com/a.xml", "https://www.example.com:99999/")

    def calls(self):
        """Every call of the API with something that none of them takes."""
        value = self.value()
        bad_id = self.pick(b"0", b"-1", b"x", b"99999999999999999999", b"%00", b"..", b"%2e%2e%2f", b"1-2", b"1-2-3-4", b"7fffffff-0-1", b"a" * 3000, b"%f0%9f%92%a9", b"1%0d%0aX:y")
        name = self.pick("origin", "url", "loc", "cross_hosts", "host_aliases", "lastmod", "digest", "x", "__proto__", "LOC")
        body = json.dumps({name: value, "no-such-field": 1}).encode()
        target, method = self.pick(
            (b"/v1/sitemaps/" + bad_id, self.pick(b"GET", b"DELETE")), (b"/v1/sites/" + bad_id, self.pick(b"GET", b"DELETE", b"PATCH")), (b"/v1/indexes/" + bad_id, self.pick(b"GET", b"DELETE")),
            (b"/v1/sources/" + bad_id + b"/scan", b"POST"), (b"/v1/sites", b"POST"), (b"/v1/indexes", b"POST"), (b"/v1/sitemaps", b"POST"), (b"/v1/sitemaps?on_error=" + bad_id, b"POST"),
            (b"/v1/sitemaps?index=" + bad_id, b"PUT"), (b"/v1/sitemaps?index=/sitemap_index.xml&max_removed=" + bad_id + b"x", b"PUT"), (b"/v1/sitemaps?loc=" + bad_id, b"DELETE"),
            (b"/v1/changes?since=" + bad_id + b"x", b"GET"), (b"/v1/changes?since=0&wait=" + bad_id + b"x", b"GET"), (b"/v1/indexes?after=" + bad_id, b"GET"), (b"/v1/sites?limit=" + bad_id + b"x", b"GET"),
            (b"/v1/" + bad_id + b"/x", self.method()), (b"/v2/sitemaps", self.method()), (b"//v1/sitemaps", self.method()), (b"/v1/sitemaps/", b"POST"), (b"/V1/SITEMAPS", self.method()),
        )
        if method in (b"GET", b"DELETE", b"HEAD", b"OPTIONS"):
            return (ODD if method == b"OPTIONS" else REFUSED), self.api(method, target)
        return REFUSED, self.api(method, target, self.pick(body, body, json.dumps(value).encode() if not isinstance(value, list) else body, b"", body[:-1], body + b"x"), self.pick(b"application/json", b"application/json", b"text/plain", b""))

    def mutations(self):
        """A good list with some bytes changed: whatever is taken of it, the server lives on."""
        line = b'{"loc": "https://www.example.com/%d.xml", "lastmod": "2026-01-01", "index": "/nothing.xml"}\n' % self.rng.randrange(9)
        body = bytearray(line * self.rng.randrange(1, 5))
        for _ in range(self.rng.randrange(1, 12)):
            at = self.rng.randrange(len(body))
            body[at : at + self.rng.randrange(3)] = self.pick(b"", b"\\", b'"', b"{", b"}", b"\n", b"\0", b",", b"\\ud800", b"\xff", bytes(self.rng.randrange(40)))
        return ODD, self.api(self.pick(b"POST", b"PUT"), self.pick(b"/v1/sitemaps?on_error=skip", b"/v1/sitemaps", b"/v1/sitemaps?index=/nothing.xml"), bytes(body), b"application/x-ndjson")
