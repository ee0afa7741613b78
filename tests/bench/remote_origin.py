# SPDX-License-Identifier: LicenseRef-Undeclared
"""remote_origin.py COUNT MEMBERS URLS: a host of sitemaps on a port of 127.0.0.2, which it prints. It
answers /list-1.xml to /list-COUNT.xml with sitemap indexes of MEMBERS each, /counts with how often it
was asked for what, and whatever else with 304 where the request is conditional, else with a sitemap of
URLS, gzipped."""
import asyncio
import collections
import gzip
import json
import sys

LASTMOD = "2026-10-01T08:09:10Z"
ETAG = b'ETag: "5d8c72a5edda8d6a-1b3f"\r\n'


def reply(body, *fields):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n" % len(body)
    return head + b"".join(fields) + b"\r\n" + body


def document(kind, rows):
    return (f'<?xml version="1.0" encoding="UTF-8"?>\n<{kind} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
            f"{''.join(rows)}</{kind}>\n").encode()


def index_of(base, number, members):
    return document("sitemapindex", (f"<sitemap><loc>{base}/sitemap-{number}-{n:06}.xml</loc><lastmod>{LASTMOD}</lastmod></sitemap>\n"
                                     for n in range(members)))


def sitemap_of(base, urls):
    return document("urlset", (f"<url><loc>{base}/pages/a-page-of-the-site-{n:05}.html</loc></url>\n" for n in range(urls)))


class Origin(asyncio.Protocol):
    replies, child = {}, b""
    counts = collections.Counter()

    def connection_made(self, transport):
        self.transport, self.data = transport, b""

    def data_received(self, data):
        self.data += data
        while b"\r\n\r\n" in self.data:
            head, _, self.data = self.data.partition(b"\r\n\r\n")
            self.transport.write(self.answer(head))

    def answer(self, head):
        path = head.split(b" ", 2)[1].decode()
        if path == "/counts":
            return reply(json.dumps(self.counts).encode())
        if path in self.replies:
            self.counts["list"] += 1
            return self.replies[path]
        if b"\r\nif-none-match:" in head.lower():
            self.counts["304"] += 1
            return b"HTTP/1.1 304 Not Modified\r\n" + ETAG + b"\r\n"
        self.counts["200"] += 1
        return self.child


async def serve(count, members, urls):
    server = await asyncio.get_running_loop().create_server(Origin, "127.0.0.2", 0)
    base = "http://%s:%d" % server.sockets[0].getsockname()
    Origin.replies = {f"/list-{number}.xml": reply(index_of(base, number, members)) for number in range(1, count + 1)}
    Origin.child = reply(gzip.compress(sitemap_of(base, urls)), ETAG, b"Content-Encoding: gzip\r\n")
    print(base, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(*map(int, sys.argv[1:])))
