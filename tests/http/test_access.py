# SPDX-License-Identifier: LicenseRef-Undeclared
"""Access to the API, by whom and from where, and what it reveals: the rows of the table in docs/security.md that no
other file tests."""

import hashlib
import json
import os
import re
import threading

import pytest

from harness import ORIGIN, TOKEN, Connection, ask, eventually, problem, q, request_bytes, seconds

CALLS = [
    ("POST", "/v1/sitemaps", {"loc": ORIGIN + "/b.xml"}), ("PUT", "/v1/sitemaps?index=/sitemap_index.xml&max_removed=9", []), ("DELETE", "/v1/sitemaps?loc=https%3A%2F%2Fwww.example.com%2Fa.xml", None),
    ("POST", "/v1/sites", {"origin": "https://new.example"}), ("POST", "/v1/indexes", {"url": ORIGIN + "/x/index.xml"}), ("DELETE", "/v1/sites/1?max_removed=9", None),
    ("GET", "/v1/sitemaps", None), ("GET", "/v1/sites", None), ("GET", "/v1/changes?since=0", None), ("GET", "/v1/sources", None),
    ("GET", "/healthz", None), ("GET", "/readyz", None), ("GET", "/metrics", None), ("GET", "/openapi.json", None),
]


def bearer(token=TOKEN, *more):
    return [("Authorization", f"Bearer {token}"), *more]


@pytest.mark.parametrize("host", ["www.example.com", "127.0.0.1", "localhost"])
def test_the_api_is_not_on_the_public_listener(server, host):
    assert server.register(ORIGIN + "/a.xml").status == 201
    before = server.get("/sitemap_index.xml").body
    for method, target, body in CALLS:
        data = b"" if body is None else json.dumps(body).encode()
        for path in (target, "http://" + host + target):
            reply = ask(server.public, method, path, bearer(TOKEN, ("Content-Type", "application/json")), data, host=host)
            assert reply.status in (404, 405, 413), (method, path, reply)
            assert TOKEN.encode() not in reply.body
    assert server.get("/sitemap_index.xml").body == before


def test_no_page_in_a_browser_may_read_or_write(server):
    """No reply allows another origin; what a form can send without asking first is not JSON, and is refused."""
    assert server.register(ORIGIN + "/a.xml").status == 201
    origin = ("Origin", "https://evil.example")
    asks = [("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "authorization, content-type")]
    for address, host in ((server.admin, server.admin), (server.public, "www.example.com")):
        for method, target in (("OPTIONS", "/v1/sitemaps"), ("OPTIONS", "/sitemap_index.xml"), ("OPTIONS", "*"), ("GET", "/v1/sitemaps"), ("GET", "/sitemap_index.xml"), ("GET", "/metrics"), ("GET", "/openapi.json"), ("POST", "/v1/sitemaps")):
            reply = ask(address, method, target, bearer(TOKEN, origin, *asks), host=host)
            assert not [name for name, _ in reply.headers if name.lower().startswith("access-control")], reply
    body = json.dumps({"loc": ORIGIN + "/b.xml"}).encode()
    for kind in ("text/plain", "text/plain; application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", ""):
        for method, target in (("POST", "/v1/sitemaps"), ("PUT", "/v1/sitemaps?index=/sitemap_index.xml"), ("POST", "/v1/sites"), ("POST", "/v1/indexes"), ("PATCH", "/v1/sites/1")):
            reply = ask(server.admin, method, target, bearer(TOKEN, origin, *([("Content-Type", kind)] if kind else [])), body, host=server.admin)
            assert reply.status == 415, (kind, method, target, reply)
    assert [e["loc"] for e in server.api("GET", "/v1/sitemaps").json()["sitemaps"]] == [ORIGIN + "/a.xml"]


def test_a_name_that_points_here_is_refused_before_the_token_is_looked_at(server):
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "[::1].evil.example", "127.1", "0x7f000001", "2130706433", "localhost."):
        reply = ask(server.admin, "GET", "/v1/sitemaps", bearer(), host=host)
        assert reply.status in (400, 421), (host, reply)
    # A proxy's word for the host is not a way around it.
    reply = ask(server.admin, "GET", "/v1/sitemaps", bearer(TOKEN, ("X-Forwarded-Host", "localhost")), host="evil.example")
    assert reply.status == 421


def test_guesses_are_bounded_and_reported_once(server):
    """After thirty an address waits; the right token is let in all the same."""
    wrong = "smd_" + "w" * 43
    statuses = [server.api("GET", "/v1/sites", token=wrong).status for _ in range(40)]
    assert statuses == [401] * 30 + [429] * 10
    reply = server.api("GET", "/v1/sites", token=wrong)
    assert reply.status == 429 and 1 <= int(reply["Retry-After"]) <= 60
    assert server.api("GET", "/v1/sites").status == 200
    assert server.register(ORIGIN + "/a.xml").status == 201
    assert server.wait_for_log("sitemap-put") and len(server.wait_for_log("auth-failed", 2)) == 2
    assert wrong not in server.log()


def test_a_new_token_is_good_when_the_command_that_made_it_ends(server):
    """One of some: whatever else the machine does, it does not do each time."""
    asked = (server.api("GET", "/v1/sites", token=server.cli("token", "add", f"t{i}").out.strip()).status for i in range(10))
    assert 200 in asked


def test_each_write_is_reported_with_the_name_of_its_token(server):
    token = server.cli("token", "add", "deploy-job", "--role", "admin").out.strip()
    eventually(lambda: server.api("GET", "/v1/sites", token=token).status == 200, "the token is known")
    call = lambda *args, **more: server.api(*args, token=token, **more)
    made = call("POST", "/v1/sitemaps", {"loc": ORIGIN + "/a.xml"}).json()["sitemap"]
    site = call("POST", "/v1/sites", {"origin": "https://new.example"})
    site_id = site["Location"].rpartition("/")[2]
    index = call("POST", "/v1/indexes", {"url": ORIGIN + "/x/index.xml"})
    index_id = index["Location"].rpartition("/")[2]
    writes = [
        call("POST", "/v1/sitemaps", [{"loc": ORIGIN + "/b.xml"}]), call("PUT", f"/v1/sitemaps?index={q(ORIGIN)}/sitemap_index.xml&max_removed=9", [{"loc": ORIGIN + "/a.xml"}]),
        call("DELETE", f"/v1/sitemaps/{made['id']}"), call("PATCH", f"/v1/sites/{site_id}", {"cross_hosts": ["a.example"]}),
        call("DELETE", f"/v1/indexes/{index_id}?max_removed=9"), call("DELETE", f"/v1/sites/{site_id}?max_removed=9"),
    ]
    assert [reply.status for reply in (site, index)] == [201, 201]
    assert [reply.status for reply in writes] == [200, 200, 204, 200, 200, 200], writes
    result = lambda: [line for line in server.log().splitlines() if "deploy-job" in line]
    events = ["sitemap-put", "site-add", "index-add", "sitemaps-put", "index-replace", "sitemap-remove", "site-update", "index-remove", "site-remove"]
    eventually(lambda: len(result()) == len(events), "each is reported")
    by = {line.split(" ", 3)[2]: line for line in result()}  # threads do not wait for each other with their lines
    assert sorted(by) == sorted(event + ":" for event in events) and all(" info " in line for line in result()), result()
    # By their URLs, since the ids mean nothing to who reads it later.
    for event, subject in (("site-update", "https://new.example"), ("index-remove", ORIGIN + "/x/index.xml"), ("site-remove", "https://new.example")):
        assert f" {event}: {subject} by token deploy-job: " in by[event + ":"]
    # What was refused, or read, is not a write.
    assert call("POST", "/v1/sitemaps", {"loc": "nonsense"}).status == 422 and call("GET", "/v1/sitemaps").status == 200
    assert call("POST", "/v1/sitemaps", {"loc": ORIGIN + "/last.xml"}).status == 201
    eventually(lambda: "last.xml" in server.log(), "the next write is reported")
    assert len(result()) == len(events) + 1


def test_a_token_of_one_site_writes_as_no_other_token(start):
    server = start(sites=(ORIGIN, "https://other.example"))
    tokens = {}
    for name, site in (("everywhere", None), ("mine", ORIGIN), ("beside", ORIGIN), ("elsewhere", "https://other.example")):
        tokens[name] = server.cli("token", "add", name, *(("--site", site) if site else ())).out.strip()
        eventually(lambda: server.api("GET", "/v1/sites", token=tokens[name]).status == 200, "the token is known")
    whole = "/v1/sitemaps?index=" + q(ORIGIN + "/sitemap_index.xml")
    for body, method, target in (({"loc": ORIGIN + "/a.xml"}, "POST", "/v1/sitemaps?"), ([{"loc": ORIGIN + "/a.xml"}], "POST", "/v1/sitemaps?"), ([{"loc": ORIGIN + "/a.xml"}], "PUT", whole + "&max_removed=9")):
        for source in ("everywhere", "beside", "environment"):
            refused = server.api(method, f"{target}&source={source}".replace("?&", "?"), body, token=tokens["mine"])
            assert refused.status == 403 and refused.json()["code"] == "needs-token-of-all-sites" and refused.json()["field"] == "source", refused
    assert server.api("GET", "/v1/sitemaps").json()["sitemaps"] == [], "nothing was written"
    # Its own name, or one that no token there has: that of another site's token says nothing here.
    for source in ("mine", "job", "elsewhere"):
        assert server.api("POST", f"/v1/sitemaps?source={source}", {"loc": f"{ORIGIN}/{source}.xml"}, token=tokens["mine"]).status == 201
    for token in (tokens["everywhere"], TOKEN):
        assert server.api("PUT", whole + "&source=mine&max_removed=9", [{"loc": ORIGIN + "/mine.xml"}], token=token).status == 200
    assert server.api("PUT", whole + "&source=*&max_removed=9", [{"loc": ORIGIN + "/mine.xml"}], token=tokens["mine"]).status == 200
    assert [(e["loc"], e["source"]) for e in server.api("GET", "/v1/sitemaps").json()["sitemaps"]] == [(ORIGIN + "/mine.xml", "mine")]
    # A token that is revoked leaves its name to others.
    assert server.cli("token", "revoke", "beside").code == 0
    eventually(lambda: server.api("POST", "/v1/sitemaps?source=beside", {"loc": ORIGIN + "/b.xml"}, token=tokens["mine"]).status == 201, "the name is free")


def test_a_token_shows_nowhere(start, tmp_path):
    """Neither as text in the catalogue, nor in a log, an error, a metric or the process's title."""
    access = tmp_path / "access.log"
    server = start(env={"SITEMAPD_LOG_ACCESS_LOG": str(access), "SITEMAPD_LOG_LEVEL": "debug"})
    token = server.cli("token", "add", "mine").out.strip()
    eventually(lambda: server.api("GET", "/v1/sites", token=token).status == 200, "the token is known")
    wrong = "smd_" + "W" * 43
    replies = [
        server.api("POST", "/v1/sitemaps", {"loc": ORIGIN + "/a.xml"}, token=token), server.api("GET", "/v1/sites", token=wrong), server.api("GET", "/v1/sites", token=token[:-1]),
        server.api("GET", "/v1/nothing", token=token), server.api("POST", "/v1/sitemaps", {"x": 1}, token=token), server.api("GET", "/v1/sitemaps?x=1", token=token),
        server.api("GET", "/v1/sites", token=None, headers=[("Authorization", f"Basic {token}")]), ask(server.admin, "GET", "/metrics", host=server.admin), ask(server.admin, "GET", "/readyz", host=server.admin),
        server.get("/sitemap_index.xml", headers=bearer(token)),
    ]
    with open(f"/proc/{server.process.pid}/cmdline", "rb") as file:
        title = file.read()
    listed = server.cli("token", "list").out
    server.stop()
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file() and path.name.startswith("catalogue.db") and not path.name.endswith(".token"))
    assert hashlib.sha256(token.encode()).digest() in files
    shown = [r.head + r.body for r in replies] + [title, listed.encode(), server.log().encode(), access.read_bytes(), files]
    for secret in (token, token[4:], TOKEN, wrong):
        for text in shown:
            assert secret.encode() not in text
    assert os.stat(server.database).st_mode & 0o077 == 0


def test_a_call_does_not_outlast_its_token(server):
    """A long poll that waits, and a list that arrives, when the token is revoked: neither returns nor writes anything more."""
    token = server.cli("token", "add", "mine").out.strip()
    eventually(lambda: server.api("GET", "/v1/sites", token=token).status == 200, "the token is known")
    assert server.register(ORIGIN + "/a.xml").status == 201
    since = server.api("GET", "/v1/changes?since=0").json()["next"]
    answers = []
    poll = threading.Thread(target=lambda: answers.append(server.api("GET", f"/v1/changes?since={since}&wait=30", token=token)))
    poll.start()
    line = b'{"loc": "https://www.example.com/late.xml"}\n'
    with Connection(server.admin) as upload:
        head = request_bytes("POST", "/v1/sitemaps", bearer(token, ("Content-Type", "application/x-ndjson"), ("Content-Length", str(2 * len(line)))), host=server.admin)
        upload.send(head + line)
        eventually(lambda: server.metrics().get("sitemapd_long_polls") == 1, "the poll waits")
        assert server.cli("token", "revoke", "mine").code == 0
        eventually(lambda: server.api("GET", "/v1/sites", token=token).status == 401, "the token is gone")
        upload.send(line)
        assert re.match(rb"HTTP/1.1 401 ", upload.take_to(b"\r\n\r\n"))
    assert server.register(ORIGIN + "/b.xml").status == 201
    poll.join(seconds(20))
    assert not poll.is_alive() and answers[0].status == 401 and b"sitemap_index" not in answers[0].body
    assert sorted(e["loc"] for e in server.api("GET", "/v1/sitemaps").json()["sitemaps"]) == [ORIGIN + "/a.xml", ORIGIN + "/b.xml"]


OPEN_CALLS = [
    ("POST", "/v1/sitemaps", b'{"loc": "https://www.example.com/late.xml"}', "application/json"),
    ("POST", "/v1/sitemaps", b'{"loc": "https://www.example.com/late.xml"}\n', "application/x-ndjson"),
    ("POST", "/v1/sitemaps?on_error=skip", b'{"loc": "https://www.example.com/late.xml"}\n{}\n', "application/x-ndjson"),
    ("PUT", "/v1/sitemaps?index=/sitemap_index.xml&max_removed=9&source=*", b"[]\n", "application/json"),
    ("DELETE", "/v1/sitemaps?loc=" + q(ORIGIN + "/a.xml"), b"ignored", None),
    ("POST", "/v1/sites", b'{"origin": "https://late.example"}', "application/json"),
    ("POST", "/v1/indexes", b'{"url": "https://www.example.com/late/index.xml"}', "application/json"),
    ("PATCH", "/v1/sites/1", b'{"max_indexes": 7}', "application/json"),
    ("DELETE", "/v1/sites/1?max_removed=9", b"ignored", None),
    ("DELETE", "/v1/indexes/1?max_removed=9", b"ignored", None),
    ("POST", "/v1/sources/files/scan", b"ignored", None),
] + [("GET", target, b"ignored", None) for target in ("/v1/sitemaps", "/v1/sites", "/v1/sites/1", "/v1/indexes", "/v1/indexes/1", "/v1/changes?since=0", "/v1/sources")]


BY_MEMORY = ("/v1/sources", "/v1/changes")  # these show nothing of the catalogue's rows, or were read before


@pytest.mark.parametrize("remade", [False, True])
def test_a_call_that_is_open_does_not_outlast_its_token(start, tmp_path, remade):
    """The header comes, the token is revoked, the rest of the body comes at once. Another token of the same name and scope is another token."""
    (tmp_path / "files").mkdir()
    server = start(config=f'[source "files"]\ndirectory = {tmp_path / "files"}\nurl = {ORIGIN}/files/\n')
    assert server.register(ORIGIN + "/a.xml").status == 201
    state = lambda: [server.api("GET", target).body for target in ("/v1/sitemaps", "/v1/sites", "/v1/indexes")]
    before = None
    for method, target, body, kind in OPEN_CALLS:
        token = server.cli("token", "add", "mine", "--role", "admin").out.strip()
        eventually(lambda: server.api("GET", "/v1/sites", token=token).status == 200, "the token is known")
        before = before or state()
        extra = [("Content-Type", kind)] if kind else []
        with Connection(server.admin) as call:
            call.send(request_bytes(method, target, bearer(token, ("Content-Length", str(len(body))), ("Expect", "100-continue"), *extra), host=server.admin))
            assert call.take_to(b"\r\n\r\n").startswith(b"HTTP/1.1 100 "), (method, target)  # its header was checked
            call.send(body[:-1])
            assert server.cli("token", "revoke", "mine").code == 0
            if remade:
                assert server.cli("token", "add", "mine", "--role", "admin").code == 0
            if target.startswith(BY_MEMORY):  # which is not behind by more than a moment
                eventually(lambda: server.api("GET", "/v1/sites", token=token).status in (401, 429), "the token is gone")
            call.send(body[-1:])
            reply = call.reply(method)
        assert reply.status == 401 and reply["WWW-Authenticate"], (method, target, reply)
        assert reply.json()["code"] == "unauthorized" and ORIGIN.encode() not in reply.body
        if remade:
            assert server.cli("token", "revoke", "mine").code == 0
        assert state() == before, (method, target)


def test_a_poll_ends_with_its_site(server):
    """The site of a token's scope is removed and made again while its long poll waits: the token went with it."""
    site = server.api("POST", "/v1/sites", {"origin": "https://shop.example"}).json()
    token = server.cli("token", "add", "shop", "--site", "https://shop.example", "--role", "admin").out.strip()
    eventually(lambda: server.api("GET", "/v1/sites", token=token).status == 200, "the token is known")
    since = server.api("GET", "/v1/changes?since=0", token=token).json()["next"]
    answers = []
    poll = threading.Thread(target=lambda: answers.append(server.api("GET", f"/v1/changes?since={since}&wait=30", token=token)))
    poll.start()
    eventually(lambda: server.metrics().get("sitemapd_long_polls") == 1, "the poll waits")
    assert server.api("DELETE", f"/v1/sites/{site['id']}").status == 200
    assert server.api("POST", "/v1/sites", {"origin": "https://shop.example"}).status == 201
    assert server.register("https://shop.example/new.xml").status == 201
    poll.join(seconds(20))
    assert not poll.is_alive() and answers[0].status == 401 and b"shop.example" not in answers[0].body, answers


def test_nothing_of_a_request_becomes_a_header(start):
    """Line ends, encoded or not, in what a reply repeats: the target, the host, ids, names."""
    server = start(config='[site "a"]\norigin = https://www.example.com\nindex = /sitemap_index.xml\nalias = /sitemap.xml -> /sitemap_index.xml\n', sites=())
    evil = "%0d%0aSet-Cookie:%20a=b%0d%0a%0d%0a<script>"
    for address, host, targets in (
        (server.public, "www.example.com", [f"/sitemap.xml?{evil}", f"/sitemap.xml/{evil}", f"/{evil}", f"/robots.txt?{evil}"]),
        (server.admin, server.admin, [f"/v1/sitemaps/{evil}", f"/v1/sites?{evil}=1", f"/v1/sitemaps?after={evil}", f"/v1/sources/{evil}/scan", f"/v1/changes?since={evil}"]),
    ):
        for target in targets:
            for method in ("GET", "POST", "OPTIONS"):
                reply = ask(address, method, target, bearer(TOKEN, ("X-Forwarded-Host", evil)), host=host)
                assert b"set-cookie:" not in reply.head.lower() and b"<script>" not in reply.head, reply
    log = server.log()
    assert "Set-Cookie: " not in log and all(re.match(r"\d{4}-", line) for line in log.splitlines())


def test_an_unknown_field_is_named_by_whole_characters(server):
    """However long its name is: the reply is cut, not broken."""
    for before in range(4):
        name = "x" * before + "\u00e9\u20ac" * 40
        field = server.api("POST", "/v1/sites", {"origin": "https://new.example", name: 1}).json()["field"]
        assert 40 < len(field.encode()) < 64 and name.startswith(field), field


def test_metrics_and_reasons_are_for_tokens_for_all_sites(start):
    """Both name the indexes and sources of every site: where a token is asked for, no tenant learns them."""
    server = start(config="[admin]\nmetrics_token = yes\n")
    shop = server.make_token("shop", "--site", ORIGIN, "--role", "admin")
    found = server.api("GET", "/v1/indexes").json()["indexes"][0]
    assert server.api("PATCH", f"/v1/indexes/{found['id']}", {"frozen": True}).status == 200

    def reasons(token):
        reply = server.api("GET", "/readyz", token=token)
        assert reply.status == 200
        return [(r["code"], ORIGIN in r["detail"]) for r in reply.json()["reasons"]]

    eventually(lambda: reasons(server.token) == [("frozen", True)], "who may see all sees which")
    assert reasons(None) == reasons(shop) == [("frozen", False)]
    assert ORIGIN in server.api("GET", "/metrics").body.decode()
    assert problem(server.api("GET", "/metrics", token=None), 401, "unauthorized")
    assert problem(server.api("GET", "/metrics", token=shop), 403, "needs-token-of-all-sites")


def test_lists_of_one_site_do_not_use_up_their_places(start):
    """Each is made as a file, of which the server has 24 for all tokens of one site: one that ends gives its own back."""
    server = start()
    shop = server.make_token("shop", "--site", ORIGIN)
    whole = lambda: server.api("GET", "/v1/sitemaps", headers=[("Accept", "application/x-ndjson")], token=shop).status
    for _ in range(25):
        eventually(lambda: whole() == 200, "a place")
