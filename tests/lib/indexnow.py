# SPDX-License-Identifier: LicenseRef-Undeclared
"""An engine that accepts IndexNow's page URLs, and servers that send them."""

import json
import sqlite3
import threading

import pytest

from harness import ORIGIN, Server, eventually, faster, sitemapd
from origin import Origin, answer

KEY = "5f1c6a0e7d2b49c8"


@pytest.fixture(scope="module")
def endpoint():
    with Origin() as made:
        made.received, made.answer, made.more = [], 200, {}
        made.hold, made.released = None, threading.Event()  # from so many on nothing is answered until then

        def take(connection, head):
            length = next(int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:"))
            body = made.body
            while len(body) < length:
                body += connection.recv(65536)
            if made.hold is not None and len(made.received) >= made.hold:
                made.received.append((None, json.loads(body)))
                made.released.wait(300)
                return
            made.received.append((made.answer, json.loads(body)))
            connection.sendall(answer(made.answer, Connection="close", **made.more))

        made.answers["/indexnow"] = take
        yield made


def config(endpoint, key=KEY):
    return (
        f'[fetch]\nallow_address = 127.0.0.2\n[site "main"]\norigin = {ORIGIN}\nindex = /sitemap_index.xml\n'
        f"indexnow_key = {key}\nindexnow_endpoint = http://127.0.0.2:{endpoint.port}/indexnow\n"
    )


def reported_to(server):
    with sqlite3.connect(f"file:{server.database}?mode=ro", uri=True) as db:
        return db.execute("SELECT revision FROM indexnow").fetchone()


def positions(server, table="indexnow"):
    with sqlite3.connect(f"file:{server.database}?mode=ro", uri=True) as db:
        return db.execute(f"SELECT * FROM {table}").fetchall()


def with_urlset(endpoint, folder, more=""):
    """A server with /all.xml, of which nothing was sent yet, and that sends what comes next."""
    server = Server(folder, config=more + config(endpoint), sites=(), env=faster(10))
    endpoint.answer = 200
    del endpoint.received[:]
    for made in (("site", "add", ORIGIN), ("urlset", "add", ORIGIN + "/all.xml")):
        assert sitemapd(*made, database=server.database).code == 0
    server.start()
    eventually(lambda: reported_to(server), "it begins with what comes next")
    return server
