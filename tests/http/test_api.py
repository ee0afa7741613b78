# SPDX-License-Identifier: LicenseRef-Undeclared
"""The admin listener: tokens, the calls under /v1, errors, metrics and health."""

import json
import os
import re
import stat
import time

import pytest

import exposition
from harness import (
    ETAG, INDEX, ORIGIN, PAGE_ENTRIES, RFC3339, TOKEN, Connection, ask, eventually, gunzip, locs, problem, q, request_bytes,
)

XML = "/sitemap_index.xml"
ENTRY_FIELDS = {"id", "loc", "lastmod", "digest", "source", "index", "page", "registered_at", "changed_at", "warnings"}
COUNTS = {"created", "updated", "unchanged", "removed", "revision", "rejected"}


# ---- who may ------------------------------------------------------------------------------------


def test_tokens(server):
    calls = [("GET", "/v1/sitemaps"), ("POST", "/v1/sitemaps"), ("GET", "/v1/sites"), ("GET", "/v1/changes?since=0")]
    for method, target in calls:
        for headers in ([], [("Authorization", "Bearer smd_" + "x" * 43)], [("Authorization", "Basic " + TOKEN)],
                        [("Authorization", TOKEN)], [("Authorization", "Bearer")], [("Authorization", "Bearer " + TOKEN + "x")]):
            reply = server.api(method, target, token=None, headers=headers)
            problem(reply, 401)
            assert reply["WWW-Authenticate"].startswith("Bearer")
    assert server.api("GET", "/v1/sitemaps").status == 200
    assert server.api("GET", "/v1/sitemaps", token=None, headers=[("Authorization", "bearer " + TOKEN)]).status == 200


@pytest.mark.parametrize("options", ((), ("--prefix", "https://shop.example.org/"), ("--own",)), ids=("whole", "prefix", "own"))
def test_a_token_of_one_site_learns_nothing_of_what_there_is(start, tmp_path, options):
    """What is another site's is answered, to the byte, as what is not there."""
    folder = tmp_path / "files"
    folder.mkdir()
    server = start("--source", f"{folder}={ORIGIN}/files/", sites=(ORIGIN, "https://shop.example.org"))
    token = server.make_token("shop", "--site", "https://shop.example.org", "--role", "write" if options else "admin", *options)
    theirs = server.register(f"{ORIGIN}/a.xml").json()["sitemap"]["id"]
    gone = server.register(f"{ORIGIN}/b.xml").json()["sitemap"]["id"]
    assert server.api("DELETE", f"/v1/sitemaps/{gone}").status == 204
    site = next(s["id"] for s in server.api("GET", "/v1/sites").json()["sites"] if s["origin"] == ORIGIN)
    index = next(i["id"] for i in server.api("GET", "/v1/indexes").json()["indexes"] if i["url"].startswith(ORIGIN))
    source = server.api("GET", "/v1/sources").json()["sources"][0]["name"]

    def answer(method, target, body):
        reply = server.api(method, target, body, token=token)
        assert reply.status in (403, 404, 422), reply
        result = reply.json()
        for line in result.get("rejected", []):
            assert line.pop("loc") in str(body), "a list's line is reported with its content, and nothing else"
        named = (target.split("?", 1)[-1], str(body), ORIGIN, "https://none.example.org")
        assert not any(name in str(result) for name in named if name), "it is not said again"
        return reply.status, result

    def call(target, **query):
        return target + "?" + "&".join(f"{key}={q(str(value))}" for key, value in query.items())

    for path, there, not_there in (("sitemaps", theirs, gone), ("sites", site, "999"), ("indexes", index, "999")):
        for method, body in (("GET", None), ("DELETE", None), ("PATCH", {"frozen": True})):
            if path != "sitemaps" or method != "PATCH":
                assert answer(method, f"/v1/{path}/{there}", body) == answer(method, f"/v1/{path}/{not_there}", body), (method, path)
    assert answer("POST", f"/v1/sources/{source}/scan", None) == answer("POST", "/v1/sources/none/scan", None)
    assert answer("DELETE", f"/v1/sitemaps?loc={q(ORIGIN)}/a.xml", None) == answer("DELETE", f"/v1/sitemaps?loc={q(ORIGIN)}/b.xml", None)
    # By URL, in the query and in a body: of another site, and of none.
    revision = server.api("GET", "/v1/history?limit=1").json()["changes"][0]["revision"]
    indexes = (f"{ORIGIN}/sitemap_index.xml", f"{ORIGIN}/none.xml", "https://none.example.org/sitemap_index.xml", index, "999")
    sites = (ORIGIN, "https://none.example.org", site, "999")
    own = "https://shop.example.org/a.xml"
    tables = (
        (indexes, (
            ("GET", lambda name: call("/v1/sitemaps", index=name), None),
            ("GET", lambda name: call("/v1/history", index=name), None),
            ("GET", lambda name: call("/v1/diff", index=name, **{"from": 1}), None),
            ("GET", lambda name: call("/v1/render", index=name), None),
            ("GET", lambda name: call("/v1/crawlers/Googlebot/pages", index=name), None),
            ("POST", lambda name: call("/v1/restore", index=name, to=1), None),
            ("PUT", lambda name: call("/v1/sitemaps", index=name), lambda name: []),
            ("POST", lambda name: call("/v1/sitemaps", index=name), lambda name: [{"loc": own}]),
            ("POST", lambda name: "/v1/sitemaps", lambda name: {"loc": own, "index": name}),
            ("POST", lambda name: "/v1/sitemaps", lambda name: [{"loc": own, "index": name}]),
        )),
        (sites, (
            ("GET", lambda name: call("/v1/indexes", site=name), None),
            ("GET", lambda name: call("/v1/history", site=name), None),
            ("GET", lambda name: call("/v1/crawlers", site=name), None),
        )),
        ((f"{ORIGIN}/x.xml", "https://none.example.org/x.xml"), (
            ("POST", lambda name: "/v1/sitemaps", lambda name: {"loc": name}),
            ("POST", lambda name: "/v1/sitemaps", lambda name: [{"loc": name}]),
            ("POST", lambda name: "/v1/indexes", lambda name: {"url": name}),
            ("DELETE", lambda name: call("/v1/sitemaps", loc=name), None),
        )),
        ((revision, 999999), (
            ("GET", lambda name: f"/v1/history/{name}", None),
            ("POST", lambda name: f"/v1/history/{name}/undo", None),
        )),
        (("token-of-all", "none"), (("DELETE", lambda name: f"/v1/tokens/{name}", None),)),
        # Sources: by the upstream's host, by the site, by the folder's URL, by name; and what is watched.
        ((f"{ORIGIN}/list.xml", "https://none.example.org/list.xml"), (
            ("POST", lambda name: "/v1/sources", lambda name: {"name": "new", "upstream": name}),
            ("POST", lambda name: "/v1/sources", lambda name: {"name": "new", "upstream": name, "site": "https://shop.example.org"}),
            ("POST", lambda name: call("/v1/checks", loc=name), None),
        )),
        ((ORIGIN, "https://none.example.org"), (
            ("POST", lambda name: "/v1/sources", lambda name: {"name": "new", "upstream": "https://shop.example.org/list.xml", "site": name}),
            ("POST", lambda name: "/v1/sources", lambda name: {"name": "new", "directory": str(folder), "url": name + "/"}),
            ("GET", lambda name: call("/v1/checks", site=name), None),
        )),
        ((source, "none"), (
            ("GET", lambda name: f"/v1/sources/{name}", None),
            ("PATCH", lambda name: f"/v1/sources/{name}", lambda name: {"check": False}),
            ("DELETE", lambda name: f"/v1/sources/{name}", None),
        )),
    )
    server.make_token("token-of-all")
    for names, calls in tables:
        for method, target, body in calls:
            answers = {str(name): answer(method, target(name), body(name) if body else None) for name in names}
            assert len({str(result) for result in answers.values()}) == 1, (method, target(names[0]), answers)
    assert server.get(XML).body.count(b"<loc>") == 1


def test_a_token_of_one_site_stays_there(start):
    server = start(sites=(ORIGIN, "https://shop.example.org"))
    token = server.make_token("shop", "--site", "https://shop.example.org", "--role", "admin")
    own, other = "https://shop.example.org/a.xml", f"{ORIGIN}/a.xml"
    call = lambda loc: server.api("POST", "/v1/sitemaps", {"loc": loc}, token=token)
    assert call(own).status == 201
    problem(call(other), 403)
    created = server.register(other).json()["sitemap"]
    assert created["source"] != "shop"
    problem(server.api("DELETE", f"/v1/sitemaps/{created['id']}", token=token), 403)
    mixed = server.api("POST", "/v1/sitemaps", [{"loc": "https://shop.example.org/b.xml"}, {"loc": other}], token=token)
    assert mixed.status in (403, 422), mixed
    assert server.get(XML, host="shop.example.org").body.count(b"<loc>") == 1, "all or nothing"
    assert server.api("GET", f"/v1/sitemaps?index={q('https://shop.example.org/sitemap_index.xml')}").json()["sitemaps"][0]["source"] == "shop"
    # Revoked while serving: refused soon.
    assert server.cli("token", "revoke", "shop").code == 0
    eventually(lambda: call(own).status == 401, "a revoked token is refused")


def test_a_first_token_is_created(start, tmp_path):
    server = start(token=None)
    path = server.database + ".token"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, encoding="ascii") as file:
        token = file.read().strip()
    assert re.fullmatch(r"smd_[A-Za-z0-9_-]{43}", token)
    assert server.wait_for_log(path) and token not in server.log()
    assert server.api("GET", "/v1/sitemaps", token=token).status == 200
    server.restart()
    assert server.api("GET", "/v1/sitemaps", token=token).status == 200
    with open(path, encoding="ascii") as file:
        assert file.read().strip() == token


def test_the_admin_listener_answers_its_own_names_only(server):
    """A page in a browser must not reach it by a name that it points here (DNS rebinding)."""
    for host, status in (("127.0.0.1", 200), ("localhost", 200), ("LOCALHOST:81", 200), ("[::1]:9", 200), ("evil.example", 421)):
        reply = ask(server.admin, "GET", "/healthz", host=host)
        assert reply.status == status, (host, reply)


# ---- one entry ----------------------------------------------------------------------------------


def test_register_get_delete(server):
    loc = f"{ORIGIN}/a.xml"
    before = time.time()
    reply = server.register(loc, lastmod="2026-01-31T10:20:30Z", digest="abc")
    assert reply.status == 201 and reply["Content-Type"] == "application/json" and reply["Cache-Control"] == "no-store"
    answer = reply.json()
    assert COUNTS <= set(answer) and (answer["created"], answer["updated"], answer["unchanged"], answer["removed"]) == (1, 0, 0, 0)
    assert answer["rejected"] == []
    entry = answer["sitemap"]
    assert set(entry) >= ENTRY_FIELDS
    assert entry["loc"] == loc and entry["lastmod"] == "2026-01-31T10:20:30Z" and entry["digest"] == "abc"
    assert entry["index"] == INDEX and entry["page"] in (1, INDEX) and entry["warnings"] == []
    assert RFC3339.match(entry["registered_at"]) and RFC3339.match(entry["changed_at"])
    assert isinstance(entry["id"], str) and entry["source"]
    assert reply["Location"] == f"/v1/sitemaps/{entry['id']}"

    one = server.api("GET", reply["Location"])
    assert one.status == 200 and one.json() == entry
    assert server.api("GET", "/v1/sitemaps").json() == {"sitemaps": [entry], "next": None}

    assert server.api("DELETE", reply["Location"]).status == 204
    problem(server.api("GET", reply["Location"]), 404)
    problem(server.api("DELETE", reply["Location"]), 404)
    problem(server.api("DELETE", f"/v1/sitemaps?loc={q(loc)}"), 404)
    again = server.register(loc)
    assert again.status == 201 and again.json()["sitemap"]["id"] != entry["id"], "ids are never reused"
    problem(server.api("GET", reply["Location"]), 404)
    assert server.api("DELETE", f"/v1/sitemaps?loc={q(loc)}").status == 204
    for bad in ("x", "0", "1", "..", "a" * 300, "-1", "9" * 30):
        problem(server.api("GET", f"/v1/sitemaps/{bad}"), 404)
    assert before < time.time()


def test_upsert(server):
    loc = f"{ORIGIN}/a.xml"
    assert server.register(loc, lastmod="2026-01-31", digest="one").status == 201

    def put(**fields):
        reply = server.register(loc, **fields)
        assert reply.status == 200, reply
        entry = reply.json()["sitemap"]
        return entry["lastmod"], entry["digest"], reply.json()["updated"], reply.json()["unchanged"]

    assert put() == ("2026-01-31", "one", 0, 1), "absent keeps"
    assert put(lastmod="2026-01-31", digest="one") == ("2026-01-31", "one", 0, 1)
    assert put(lastmod=None) == (None, "one", 1, 0), "null clears"
    assert put(digest=None) == (None, None, 1, 0)
    assert put(lastmod="2026-02-01") == ("2026-02-01", None, 1, 0)


def test_a_digest_makes_dates_honest(server):
    loc = f"{ORIGIN}/a.xml"
    assert server.register(loc, lastmod="2026-01-01T00:00:00Z", digest="one").status == 201
    same = server.register(loc, lastmod="2026-02-02T00:00:00Z", digest="one").json()
    assert same["sitemap"]["lastmod"] == "2026-01-01T00:00:00Z" and same["unchanged"] == 1
    moved = server.register(loc, lastmod="2026-02-02T00:00:00Z", digest="two").json()
    assert moved["sitemap"]["lastmod"] == "2026-02-02T00:00:00Z" and moved["updated"] == 1
    # Without a date there is nothing to keep.
    bare = f"{ORIGIN}/b.xml"
    assert server.register(bare, digest="one").status == 201
    dated = server.register(bare, lastmod="2026-02-02", digest="one").json()
    assert dated["sitemap"]["lastmod"] == "2026-02-02" and dated["updated"] == 1


@pytest.mark.parametrize("before", [None, "2026-01-01"])
@pytest.mark.parametrize("dropped", ["9998-01-01", "1970-01-01", "29.11.2026", "2026-02-02T10:20:30"])
def test_a_dropped_date_does_not_keep_out_the_right_one(server, before, dropped):
    """Its digest is dropped with it."""
    loc = f"{ORIGIN}/a.xml"
    if before:
        assert server.register(loc, lastmod=before, digest="one").status == 201
    bad = server.api("POST", "/v1/sitemaps?on_error=skip", [{"loc": loc, "lastmod": dropped, "digest": "two"}]).json()
    assert bad["warnings"][0]["codes"][0].startswith("lastmod-") and bad["rejected_total"] == 0
    stored = lambda: [(e["lastmod"], e["digest"]) for e in server.api("GET", "/v1/sitemaps").json()["sitemaps"]]
    assert stored() == [(before, "one" if before else None)]
    assert server.register(loc, lastmod="2026-02-02", digest="two").json()["updated"] == 1
    assert stored() == [("2026-02-02", "two")]


def test_the_same_value_again_changes_nothing(server):
    loc = f"{ORIGIN}/a.xml"
    first = server.register(loc, lastmod="2026-01-31").json()
    page, metrics = server.get(XML), server.metrics()
    time.sleep(1.1)
    for _ in range(2):
        again = server.register(loc, lastmod="2026-01-31").json()
        assert again["revision"] == first["revision"] and again["sitemap"] == first["sitemap"]
        server.bulk([{"loc": loc, "lastmod": "2026-01-31"}])
        server.replace([{"loc": loc, "lastmod": "2026-01-31"}])
    assert server.get(XML).same_headers() == page.same_headers()
    after = server.metrics()
    for name in ("sitemapd_catalogue_revision", "sitemapd_segments_rendered_total", "sitemapd_pages_published_total"):
        assert after[name] == metrics[name], name


def test_a_write_is_seen_by_the_very_next_get(server):
    for i in range(60):
        loc = f"{ORIGIN}/{i}.xml"
        assert server.register(loc).status == 201
        assert locs(server.get(XML).body)[-1] == loc
        assert locs(gunzip(server.get(XML, {"Accept-Encoding": "gzip"}).body))[-1] == loc
    for i in range(0, 60, 2):
        assert server.api("DELETE", f"/v1/sitemaps?loc={q(f'{ORIGIN}/{i}.xml')}").status == 204
        assert f"{ORIGIN}/{i}.xml" not in locs(server.get(XML).body)


def test_a_lastmod_that_is_set_back(server):
    loc, other = f"{ORIGIN}/a.xml", f"{ORIGIN}/b.xml"
    words = lambda reply: reply.json()["sitemap"]["warnings"]
    assert words(server.register(loc, lastmod="2026-06-30T00:00:00Z")) == []
    assert words(server.register(loc, lastmod="2025-12-30T00:00:00Z")) == []
    assert words(server.register(loc, lastmod="2015-12-30T00:00:00Z")) == ["lastmod-set-back"]
    assert words(server.register(loc, lastmod="2026-06-30T00:00:00Z")) == []
    assert server.register(other, lastmod="2026-06-30T00:00:00Z").status == 201
    lines = [{"loc": loc, "lastmod": "2001-01-01T00:00:00Z"}, {"loc": other, "lastmod": "2026-07-01T00:00:00Z"},
             {"loc": f"{ORIGIN}/page.html"}, {"loc": f"{ORIGIN}/s.xml?a=1&amp;b=2", "lastmod": "2001-01-01T00:00:00Z"}]
    result = server.api("POST", "/v1/sitemaps", lines).json()
    assert [(w["line"], w["codes"]) for w in result["warnings"]] == [(1, ["lastmod-set-back"]), (3, ["loc-no-sitemap"]), (4, ["loc-amp-escaped"])], result
    assert (result["created"], result["updated"], result["warnings_total"]) == (2, 2, 3)
    lines[1]["lastmod"] = "1999-01-01T00:00:00Z"
    result = server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}", lines[:2] + lines[3:] + [{"loc": f"{ORIGIN}/{n}.xml"} for n in range(2)] + lines[2:3]).json()
    assert [(w["line"], w["loc"], w["codes"]) for w in result["warnings"]][0] == (2, other, ["lastmod-set-back"]), result
    listed = {e["loc"]: e["warnings"] for e in server.api("GET", "/v1/sitemaps").json()["sitemaps"]}
    assert listed[f"{ORIGIN}/page.html"] == ["loc-no-sitemap"] and listed[other] == []


@pytest.mark.parametrize(
    "fields, warning",
    [
        ({"loc": ORIGIN + "/" + "l" * 1100}, "loc-long"),
        ({"loc": "https://cdn.example.net/a.xml", "index": INDEX}, "cross-host"),
        ({"loc": "https://WWW.Example.com:443/n.xml"}, "loc-normalised"),
        ({"loc": ORIGIN + "/d.xml", "lastmod": "2026-01-31"}, "lastmod-date-only"),
        ({"loc": ORIGIN + "/y.xml", "lastmod": "2026"}, "lastmod-too-coarse"),
        ({"loc": ORIGIN + "/robots.txt"}, "loc-no-sitemap"),
        ({"loc": ORIGIN + "/page.html"}, "loc-no-sitemap"),
        ({"loc": ORIGIN + "/folder/"}, "loc-no-sitemap"),
        ({"loc": ORIGIN + "/s.xml?a=1&amp;b=2"}, "loc-amp-escaped"),
        ({"loc": ORIGIN + "/f.xml", "lastmod": "2199-01-31T00:00:00Z"}, "lastmod-in-future"),
        ({"loc": ORIGIN + "/f.xml", "lastmod": "0001-01-01T00:00:00+01:00"}, "lastmod-too-old"),
        ({"loc": ORIGIN + "/f.xml", "lastmod": "1970-01-01"}, "lastmod-too-old"),
    ],
)
def test_warnings(start, fields, warning):
    server = start(sites=())
    assert server.api("POST", "/v1/sites", {"origin": ORIGIN, "cross_hosts": ["cdn.example.net"]}).status == 201
    assert server.api("POST", "/v1/indexes", {"url": INDEX}).status in (200, 201, 409)
    reply = server.api("POST", "/v1/sitemaps", fields)
    assert reply.status == 201, reply
    entry = reply.json()["sitemap"]
    words = [w if isinstance(w, str) else w["code"] for w in entry["warnings"]]
    assert warning in words
    if warning in ("lastmod-in-future", "lastmod-too-old"):
        assert entry["lastmod"] is None
    if warning == "lastmod-too-coarse":
        assert entry["lastmod"] == "2026" and b"<lastmod>" not in server.get(XML).body
    if warning == "loc-normalised":
        assert entry["loc"] == ORIGIN + "/n.xml"


# ---- searches -----------------------------------------------------------------------------------


def search(server, query, **how):
    """All calls of a search: what it found, and how many entries each looked at."""
    found, looked, after = [], [], ""
    for _ in range(100):
        reply = server.api("GET", f"/v1/sitemaps?{query}{after}", **how)
        assert reply.status == 200, reply
        result = reply.json()
        assert set(result) == {"sitemaps", "next", "looked_at"}
        found += [entry["loc"] for entry in result["sitemaps"]]
        looked.append(result["looked_at"])
        if result["next"] is None:
            return found, looked
        after = "&after=" + result["next"]
    raise AssertionError("it does not end")


def test_searches(server):
    other, index = f"{ORIGIN}/shop/i.xml", f"index={q(INDEX)}"
    assert server.api("POST", "/v1/indexes", {"url": other}).status == 201
    rows = [{"loc": f"{ORIGIN}/{name}"} for name in ("b-hat.xml", "a-hat.xml", "coat.xml", "d-hat/", "shop/hat.xml")]
    assert server.bulk(rows + [{"loc": f"{ORIGIN}/e.xml", "lastmod": "2026-01-31"}, {"loc": f"{ORIGIN}/f-hat.xml", "source": "job"}]).status == 200
    hats = [f"{ORIGIN}/{name}" for name in ("b-hat.xml", "a-hat.xml", "d-hat/", "f-hat.xml")]
    odd = [f"{ORIGIN}/d-hat/", f"{ORIGIN}/e.xml"]
    assert search(server, f"{index}&contains=hat") == (hats, [6])
    assert search(server, f"index={q(other)}&contains=hat") == ([f"{ORIGIN}/shop/hat.xml"], [1])
    assert search(server, f"{index}&warned=1") == (odd, [6])
    assert search(server, f"{index}&warned=1&contains=hat") == (odd[:1], [6])
    assert search(server, f"{index}&contains=HAT") == search(server, f"{index}&contains={q(ORIGIN + '/x')}") == ([], [6])
    assert search(server, f"{index}&contains=hat&limit=2") == (hats, [2, 4]), "behind the last one it found nothing is left"
    assert search(server, f"{index}&contains=hat&limit=3") == (hats, [4, 2])
    assert search(server, f"{index}&contains=hat&source=job") == (hats[3:], [6])
    assert search(server, f"{index}&contains=hat&source=nobody") == ([], [0])
    under = f"prefix={q(ORIGIN + '/')}"
    assert search(server, f"{index}&contains=hat&{under}") == (sorted(hats), [7]), "by loc; what lies in another index is looked at too"
    assert search(server, f"{index}&contains=hat&{under}&limit=1") == (sorted(hats), [1, 1, 2, 2, 1])
    assert search(server, f"{index}&warned=1&{under}&source=environment") == (odd, [7])
    assert search(server, f"{index}&contains=hat&prefix={q(ORIGIN + '/f')}") == (hats[3:], [1])
    assert server.api("GET", f"/v1/sitemaps?{index}&warned=0").json().keys() == {"sitemaps", "next"}
    lines = server.api("GET", "/v1/sitemaps?contains=hat", headers={"Accept": "application/x-ndjson"}).body.splitlines()
    assert [json.loads(line)["loc"] for line in lines] == hats + [f"{ORIGIN}/shop/hat.xml"], "the whole list needs no index"
    type_of = lambda accept: server.api("GET", "/v1/sitemaps", headers={"Accept": accept})["Content-Type"]
    for accept, lines in (
        ("application/x-ndjson;q=0.5", True), ("Application/X-NDJSON ; q=1.000, application/json", True), ("application/x-ndjson;q=0, application/json", False),
        ("application/x-ndjson; q=0.000", False), ("application/x-ndjson2", False), ("application/json", False), ("*/*", False),
    ):
        assert ("ndjson" in type_of(accept)) == lines, accept


def test_a_part_of_an_index_is_read_in_bounded_steps(server):
    """All entries under the prefix are looked at: a call ends early, with a cursor, and the next one goes on."""
    other = f"{ORIGIN}/zz/i.xml"
    assert server.api("POST", "/v1/indexes", {"url": other}).status == 201
    assert server.bulk([{"loc": f"{ORIGIN}/{n}.xml"} for n in range(21_000)] + [{"loc": f"{ORIGIN}/zz/a.xml", "source": "job"}]).status == 200
    target, after, pages = f"/v1/sitemaps?index={q(other)}&prefix={q(ORIGIN + '/')}&source=job", "", []
    while after is not None:
        reply = server.api("GET", target + after)
        assert reply.status == 200 and reply["ETag"], reply
        assert 0 < reply.json()["looked_at"] <= 20_000, "each lookup of a source costs ten"
        pages.append([entry["loc"] for entry in reply.json()["sitemaps"]])
        after = reply.json()["next"] and "&after=" + reply.json()["next"]
    assert pages == [[], [f"{ORIGIN}/zz/a.xml"]]


@pytest.mark.parametrize("number", ["9223372036854775808", "-99999999999999999999", "1e999"])
def test_a_number_that_is_too_large_is_named(server, number):
    """It is JSON, but no program's integer: the member is named, of a list with its line."""
    for method, path, body, field in (
        ("POST", "/v1/sites", '{"origin": "https://big.example.net", "max_indexes": %s}', "max_indexes"),
        ("POST", "/v1/urlsets", '{"url": "/big.xml", "with": ["news"], "max_page_bytes" : %s}', "max_page_bytes"),
        ("POST", "/v1/sitemaps", '{"loc": "https://www.example.com/\\"a\\": b.xml", "position": %s}', "position"),
    ):
        reply = server.api(method, path, body=(body % number).encode(), content_type="application/json")
        assert reply.status in (400, 422) and reply.json()["code"] == "malformed-json", reply
        assert reply.json()["field"] == field, reply
    rows = '[{"loc": "https://www.example.com/a.xml"}, {"loc": "https://www.example.com/b.xml", "position": %s}]' % number
    reply = server.api("POST", "/v1/sitemaps", body=rows.encode(), content_type="application/json")
    assert reply.status == 422, reply
    assert [(r["line"], r["code"], r["field"]) for r in reply.json()["rejected"]] == [(2, "malformed-json", "position")]


def test_a_member_that_is_too_long_is_named(server):
    rows = json.dumps([{"loc": f"{ORIGIN}/a.xml", "digest": "x" * 400000}]).encode()
    problem = server.api("POST", "/v1/sitemaps", body=rows, content_type="application/json")
    assert (problem.status, problem.json()["code"], problem.json()["field"]) == (413, "item-too-large", "digest")


@pytest.mark.parametrize(
    "query, code, field",
    [
        ("contains=hat", "missing-parameter", "index"),
        ("warned=1", "missing-parameter", "index"),
        ("index=/sitemap_index.xml&contains=", "malformed-parameter", "contains"),
        ("index=/sitemap_index.xml&contains=ab", "malformed-parameter", "contains"),
        ("index=/sitemap_index.xml&contains=" + "a" * 201, "malformed-parameter", "contains"),
        ("index=/sitemap_index.xml&warned=2", "malformed-parameter", "warned"),
        ("index=/sitemap_index.xml&warned=yes", "malformed-parameter", "warned"),
        ("index=/sitemap_index.xml&warned=1&loc=https://www.example.com/a.xml", "malformed-parameter", "loc"),
        ("index=/sitemap_index.xml&warned=1&after=zz", "malformed-cursor", "after"),
        # That of another index, and of a list by loc.
        ("index=/sitemap_index.xml&warned=1&after=AXAAAAAAAAAACQAAAAA", "malformed-cursor", "after"),
        ("index=/sitemap_index.xml&warned=1&after=AWwAAAAAAAAAAWg", "malformed-cursor", "after"),
    ],
)
def test_invalid_searches(server, query, code, field):
    problem = server.api("GET", "/v1/sitemaps?" + query)
    assert (problem.status, problem.json()["code"], problem.json()["field"]) == (400, code, field), problem


# ---- what is refused ----------------------------------------------------------------------------

OBJECT = "application/json"
REFUSED = [
    # body (bytes or an object), content type, status, code, field
    (b"", OBJECT, 400, None, None),
    (b"{", OBJECT, 400, "malformed-json", None),
    (b'{"loc": "https://www.example.com/a.xml"', OBJECT, 400, "malformed-json", None),
    (b'{"loc": "https://www.example.com/a.xml"} x', OBJECT, 400, "malformed-json", None),
    (b'{"loc": "https://www.example.com/a.xml",}', OBJECT, 400, "malformed-json", None),
    (b"{'loc': 'https://www.example.com/a.xml'}", OBJECT, 400, "malformed-json", None),
    (b'{"loc": NaN}', OBJECT, 400, "malformed-json", None),
    (b'"https://www.example.com/a.xml"', OBJECT, 400, None, None),
    (b"null", OBJECT, 400, None, None),
    (b'{"loc": "https://www.example.com/a.xml", "loc": "https://www.example.com/b.xml"}', OBJECT, 400, "malformed-json", None),
    (b'{"loc": "https://www.example.com/\xff.xml"}', OBJECT, (400, 422), None, None),
    (b'{"loc": "https://www.example.com/\xed\xa0\x80.xml"}', OBJECT, (400, 422), None, None),
    (b'{"loc": "https://www.example.com/\\ud800.xml"}', OBJECT, (400, 422), None, None),
    (b'{"loc": "https://www.example.com/\\u0000.xml"}', OBJECT, (400, 422), None, None),
    (b'{"loc": "https://www.example.com/\x00.xml"}', OBJECT, (400, 422), None, None),
    (b"[" * 100000, OBJECT, (400, 413), None, None),
    (b'{"a":' * 30000, OBJECT, (400, 413), None, None),
    ({}, OBJECT, 422, "loc-missing", "loc"),
    ({"loc": None}, OBJECT, 422, None, "loc"),
    ({"loc": 7}, OBJECT, 422, "wrong-type", "loc"),
    ({"loc": ["https://www.example.com/a.xml"]}, OBJECT, 422, "wrong-type", "loc"),
    ({"loc": ORIGIN + "/a.xml", "lastmod": 20260131}, OBJECT, 422, "wrong-type", "lastmod"),
    ({"loc": ORIGIN + "/a.xml", "digest": True}, OBJECT, 422, "wrong-type", "digest"),
    ({"loc": ORIGIN + "/a.xml", "index": {}}, OBJECT, 422, "wrong-type", "index"),
    ({"loc": ORIGIN + "/a.xml", "lastMod": "2026-01-31"}, OBJECT, 422, "unknown-field", None),
    ({"loc": ORIGIN + "/a.xml", "priority": 1}, OBJECT, 422, "unknown-field", None),
    ({"loc": ""}, OBJECT, 422, None, "loc"),
    ({"loc": "abc"}, OBJECT, 422, "loc-relative", "loc"),
    ({"loc": "/a.xml"}, OBJECT, 422, "loc-relative", "loc"),
    ({"loc": "//www.example.com/a.xml"}, OBJECT, 422, "loc-relative", "loc"),
    ({"loc": "ftp://www.example.com/a.xml"}, OBJECT, 422, "loc-scheme", "loc"),
    ({"loc": "javascript:alert(1)//a.xml"}, OBJECT, 422, "loc-scheme", "loc"),
    ({"loc": "http://a.b/"}, OBJECT, 422, "loc-too-short", "loc"),
    ({"loc": ORIGIN + "/" + "a" * 2047}, OBJECT, 422, "loc-too-long", "loc"),
    ({"loc": ORIGIN + "/a.xml#top"}, OBJECT, 422, "loc-fragment", "loc"),
    ({"loc": "https://user:secret@www.example.com/a.xml"}, OBJECT, 422, "loc-credentials", "loc"),
    ({"loc": "https://user@www.example.com/a.xml"}, OBJECT, 422, "loc-credentials", "loc"),
    ({"loc": ORIGIN + "/a\n.xml"}, OBJECT, 422, "loc-control-character", "loc"),
    ({"loc": ORIGIN + "/a\x7f.xml"}, OBJECT, 422, "loc-control-character", "loc"),
    ({"loc": ORIGIN + "/a b.xml"}, OBJECT, 422, "loc-space", "loc"),
    ({"loc": "https://www.exämple.com/a.xml"}, OBJECT, 422, "loc-host-not-ascii", "loc"),
    ({"loc": "https:///a/b/c.xml"}, OBJECT, 422, "loc-host", "loc"),
    ({"loc": "https://www.example.com:99999/a.xml"}, OBJECT, 422, "loc-port", "loc"),
    ({"loc": ORIGIN + "/%zz.xml"}, OBJECT, 422, "loc-percent-encoding", "loc"),
    ({"loc": ORIGIN + "/a%2"}, OBJECT, 422, "loc-percent-encoding", "loc"),
    ({"loc": "https://other.example.org/a.xml"}, OBJECT, 422, "site-unknown", "loc"),
    ({"loc": "http://www.example.com/a.xml"}, OBJECT, 422, None, "loc"),
    ({"loc": "https://other.example.org/a.xml", "index": INDEX}, OBJECT, 422, "outside-site", "loc"),
    ({"loc": ORIGIN + "/a.xml", "index": ORIGIN + "/none.xml"}, OBJECT, (404, 422), "index-unknown", "index"),
    ({"loc": INDEX}, OBJECT, 422, "loc-is-index-page", "loc"),
    ({"loc": INDEX + ".gz"}, OBJECT, 422, "loc-is-index-page", "loc"),
    ({"loc": ORIGIN + "/sitemap_index-500.xml"}, OBJECT, 422, "loc-is-index-page", "loc"),
    ({"loc": ORIGIN + "/x/../sitemap_index-7.xml.gz"}, OBJECT, 422, "loc-is-index-page", "loc"),
    ({"loc": ORIGIN + "/a.xml", "lastmod": "31.1.2026"}, OBJECT, 422, "lastmod-invalid", "lastmod"),
    ({"loc": ORIGIN + "/a.xml", "lastmod": ""}, OBJECT, 422, "lastmod-invalid", "lastmod"),
    ({"loc": ORIGIN + "/a.xml", "lastmod": "2026-02-30"}, OBJECT, 422, "lastmod-invalid", "lastmod"),
    ({"loc": ORIGIN + "/a.xml", "lastmod": "2025-02-29"}, OBJECT, 422, "lastmod-invalid", "lastmod"),
    ({"loc": ORIGIN + "/a.xml", "lastmod": "2026-01-31T24:00:00Z"}, OBJECT, 422, "lastmod-invalid", "lastmod"),
    ({"loc": ORIGIN + "/a.xml", "lastmod": "2026-01-31T23:59:60Z"}, OBJECT, 422, "lastmod-invalid", "lastmod"),
    ({"loc": ORIGIN + "/a.xml", "lastmod": "0000-01-31"}, OBJECT, 422, "lastmod-invalid", "lastmod"),
    ({"loc": ORIGIN + "/a.xml", "lastmod": "2026-01-31T10:00:00+14:01"}, OBJECT, 422, "lastmod-invalid", "lastmod"),
    ({"loc": ORIGIN + "/a.xml", "lastmod": "2026-01-31T10:00:00"}, OBJECT, 422, "lastmod-no-zone", "lastmod"),
    ({"loc": ORIGIN + "/a.xml", "digest": ""}, OBJECT, 422, "digest-malformed", "digest"),
    ({"loc": ORIGIN + "/a.xml", "digest": "d" * 257}, OBJECT, 422, "digest-malformed", "digest"),
    ({"loc": ORIGIN + "/a.xml"}, "text/plain", 415, None, None),
    ({"loc": ORIGIN + "/a.xml"}, "application/xml", 415, None, None),
    ({"loc": ORIGIN + "/a.xml"}, "application/x-www-form-urlencoded", 415, None, None),
]


@pytest.mark.parametrize("body, kind, status, code, field", REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_refused_registrations(shared, body, kind, status, code, field):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = shared.api("POST", "/v1/sitemaps", body=body, content_type=kind)
    assert reply.status in (status if isinstance(status, tuple) else (status,)), reply
    problem(reply, reply.status, code, field)
    assert shared.get(XML).status == 404, "nothing was taken"


def test_errors_have_no_text_of_a_library(shared):
    body = b'{"origin": "https://shop.example.com", "robots": "a\\u0000b"}'
    found = problem(shared.api("POST", "/v1/sites", body=body, content_type=OBJECT), 400, "malformed-json")
    assert "\\u0000 is not allowed in a string" in found["detail"] and "JSON_" not in found["detail"], found


def test_the_punycode_hint(shared):
    assert "xn--exmple-cua" in problem(shared.register("https://www.exämple.com/a.xml"), 422)["detail"]


def test_a_loc_of_3_megabytes(shared):
    body = json.dumps({"loc": ORIGIN + "/" + "a" * 3_000_000}).encode()
    reply = shared.api("POST", "/v1/sitemaps", body=body, content_type=OBJECT)
    assert reply.status in (413, 422), reply
    problem(reply, reply.status)
    line = shared.api("POST", "/v1/sitemaps", body=body + b"\n", content_type="application/x-ndjson")
    assert line.status in (413, 422), line


def test_methods_and_paths(shared):
    for method, target, allowed in (
        ("PUT", "/healthz", {"GET", "HEAD", "OPTIONS"}),
        ("POST", "/metrics", {"GET", "HEAD", "OPTIONS"}),
        ("PATCH", "/v1/sitemaps", {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"}),
        ("POST", "/v1/sitemaps/x", {"GET", "HEAD", "DELETE", "OPTIONS"}),
        ("DELETE", "/v1/sites", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("PUT", "/v1/changes", {"GET", "HEAD", "OPTIONS"}),
    ):
        reply = shared.api(method, target)
        problem(reply, 405)
        assert {m.strip() for m in reply["Allow"].split(",")} == allowed, (method, target, reply)
    root = shared.api("GET", "/")
    assert root.status == 308 and root["Location"] == "/console/"
    for target in ("/v1", "/v1/", "/v1/none", "/v2/sitemaps", "/sitemap_index.xml", "/robots.txt", "/v1/sitemaps/a/b"):
        problem(shared.api("GET", target), 404)
    problem(shared.api("BREW", "/v1/sitemaps"), 501)
    assert shared.api("OPTIONS", "/v1/sitemaps").status == 204


def test_lengths_and_headers(shared):
    authorised = [("Authorization", f"Bearer {TOKEN}"), ("Content-Type", OBJECT)]
    reply = ask(shared.admin, "POST", "/v1/sitemaps", authorised, host=shared.admin, length=False)
    assert reply.status in (411, 400), reply
    # Refused by its length, before a byte of it is sent.
    reply = ask(shared.admin, "POST", "/v1/sitemaps", authorised + [("Content-Length", "99999999999")], host=shared.admin, length=False)
    assert reply.status == 413, reply
    assert ask(shared.admin, "GET", "/healthz", [("X-Long", "a" * 200000)], host=shared.admin).status == 431
    assert ask(shared.admin, "GET", "/" + "a" * 100000, host=shared.admin).status == 414
    # A chunked body is taken as well.
    body = json.dumps({"loc": "abc"}).encode()
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    reply = ask(shared.admin, "POST", "/v1/sitemaps", authorised + [("Transfer-Encoding", "chunked")], chunks, host=shared.admin)
    problem(reply, 422, "loc-relative")
    with Connection(shared.admin) as connection:
        connection.send(request_bytes("POST", "/v1/sitemaps", authorised + [("Expect", "100-continue")], host=shared.admin, body=body)[: -len(body)])
        assert connection.take_to(b"\r\n\r\n").startswith(b"HTTP/1.1 100")
        connection.send(body)
        problem(connection.reply(), 422, "loc-relative")


def test_queries(shared):
    for target in (
        "/v1/sitemaps?nonsense=1", "/v1/sitemaps?limit=x", "/v1/sitemaps?limit=-1", "/v1/sitemaps?limit=0x10",
        "/v1/sitemaps?after=nonsense", "/v1/sitemaps?limit=1&limit=2", "/v1/sitemaps?prefix=%zz", "/v1/sitemaps?prefix=%ff",
        "/v1/changes?since=x", "/v1/changes?since=0&wait=x", "/v1/changes?since=0&wait=61",
    ):
        problem(shared.api("GET", target), 400)
    assert shared.api("GET", f"/v1/sitemaps?index={q(ORIGIN + '/none.xml')}").status == 404
    assert shared.api("DELETE", "/v1/sitemaps").status == 400
    assert shared.api("PUT", "/v1/sitemaps", []).status == 400, "which index?"


# ---- many ---------------------------------------------------------------------------------------


def test_bulk_is_all_or_nothing(server):
    lines = [{"loc": f"{ORIGIN}/{i}.xml"} for i in range(10)]
    lines[3] = {"loc": "relative"}
    lines[7] = {"loc": f"{ORIGIN}/7.xml", "lastmod": "never"}
    reply = server.bulk(lines)
    assert reply.status == 422, reply
    rejected = reply.json()["rejected"]
    assert [(r["line"], r["code"]) for r in rejected] == [(4, "loc-relative"), (8, "lastmod-invalid")]
    assert rejected[0]["loc"] == "relative" and rejected[1]["loc"] == f"{ORIGIN}/7.xml" and all(r["detail"] for r in rejected)
    assert server.get(XML).status == 404

    reply = server.bulk(lines, "/v1/sitemaps?on_error=skip")
    assert reply.status == 200, reply
    answer = reply.json()
    # The bad date costs only itself here, the bad loc its line.
    assert answer["created"] == 9 and [(r["line"], r["code"]) for r in answer["rejected"]] == [(4, "loc-relative")]
    assert server.get(XML).body.count(b"<loc>") == 9 and b"<lastmod>" not in server.get(XML).body


def test_an_array_is_a_bulk(server):
    reply = server.api("POST", "/v1/sitemaps", [{"loc": f"{ORIGIN}/{i}.xml"} for i in range(5)])
    assert reply.status == 200 and reply.json()["created"] == 5 and "sitemap" not in reply.json()
    reply = server.api("POST", "/v1/sitemaps", [{"loc": f"{ORIGIN}/1.xml"}, {"loc": "x"}])
    assert reply.status == 422 and [(r["line"], r["code"]) for r in reply.json()["rejected"]] == [(2, "loc-relative")]
    assert server.api("POST", "/v1/sitemaps", []).status == 200


def test_broken_ndjson_names_its_line(server):
    body = b'{"loc": "https://www.example.com/a.xml"}\n\n{"loc": \n{"loc": "https://www.example.com/b.xml"}\n'
    reply = server.api("POST", "/v1/sitemaps", body=body, content_type="application/x-ndjson")
    assert reply.status in (400, 422), reply
    answer = reply.json()
    assert '"line": 3' in json.dumps(answer) or "line 3" in answer["detail"], answer
    assert server.get(XML).status == 404


def test_replace(server):
    names = [f"{ORIGIN}/{i:03d}.xml" for i in range(100)]
    assert server.bulk(names).status == 200
    tag = server.get(XML)["ETag"]
    reply = server.replace(names)
    answer = reply.json()
    assert reply.status == 200 and (answer["created"], answer["removed"], answer["unchanged"]) == (0, 0, 100)
    assert server.get(XML)["ETag"] == tag
    answer = server.replace(names[10:] + [f"{ORIGIN}/new.xml"]).json()
    assert (answer["created"], answer["removed"], answer["updated"], answer["unchanged"]) == (1, 10, 0, 90)
    assert locs(server.get(XML).body) == [f"{ORIGIN}/new.xml"] + names[10:]
    # Too much would go: held, unless as many are allowed.
    reply = server.replace(names[60:])
    problem(reply, 409, "shrink-guard")
    assert server.get(XML).body.count(b"<loc>") == 91
    problem(server.replace(names[60:], max_removed=50), 409, "shrink-guard")
    assert server.replace(names[60:], max_removed=51).json()["removed"] == 51
    # All or nothing here too.
    assert server.replace(names[60:] + ["relative"]).status == 422
    problem(server.replace([], max_removed=39), 409, "shrink-guard")
    assert server.replace([], max_removed=40).json()["removed"] == 40
    assert server.get(XML).status == 404


def test_replace_of_a_part(server):
    a = [f"{ORIGIN}/a/{i}.xml" for i in range(5)]
    b = [f"{ORIGIN}/b/{i}.xml" for i in range(5)]
    assert server.bulk(a + b).status == 200
    reply = server.replace([a[0], a[1], a[2], a[3], f"{ORIGIN}/a/9.xml"], prefix=f"{ORIGIN}/a/")
    assert reply.status == 200 and (reply.json()["removed"], reply.json()["created"]) == (1, 1)
    assert sorted(locs(server.get(XML).body)) == sorted([a[0], a[1], a[2], a[3], f"{ORIGIN}/a/9.xml"] + b)
    assert server.replace([b[0]], prefix=f"{ORIGIN}/a/", max_removed=99).status == 422, "outside of the prefix"
    # What another source owns is never touched.
    other = server.make_token("other")
    loc = f"{ORIGIN}/other.xml"
    assert server.api("POST", "/v1/sitemaps", {"loc": loc}, token=other).status == 201
    reply = server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}&source=other", [{"loc": f"{ORIGIN}/other2.xml"}, {"loc": loc}], token=other)
    assert reply.status == 200 and reply.json()["removed"] == 0, reply
    reply = server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}&source=other&max_removed=1", [{"loc": loc}], token=other)
    assert reply.json()["removed"] == 1 and len(locs(server.get(XML).body)) == 11


def test_lists_and_cursors(server):
    names = [f"{ORIGIN}/{'b' if i % 2 else 'a'}/{i:04d}.xml" for i in range(700)]
    assert server.bulk(names).status == 200

    def walk(query, step):
        seen, after = [], None
        while True:
            target = f"/v1/sitemaps?limit={step}{query}" + (f"&after={q(after)}" if after else "")
            answer = server.api("GET", target).json()
            assert len(answer["sitemaps"]) <= step
            seen += [e["loc"] for e in answer["sitemaps"]]
            after = answer["next"]
            if after is None:
                return seen

    assert walk("", 100) == names, "in the order of the pages"
    assert walk(f"&index={q(INDEX)}", 99) == names
    assert walk("&index=/sitemap_index.xml", 350) == names, "with one site its path serves"
    assert walk(f"&prefix={q(ORIGIN + '/b/')}", 50) == sorted(n for n in names if "/b/" in n)
    # What is removed meanwhile neither repeats nor hides others.
    first = server.api("GET", "/v1/sitemaps?limit=10").json()
    assert server.api("DELETE", f"/v1/sitemaps?loc={q(names[9])}").status == 204
    second = server.api("GET", f"/v1/sitemaps?limit=10&after={q(first['next'])}").json()
    assert [e["loc"] for e in second["sitemaps"]] == names[10:20]


# ---- sites and indexes --------------------------------------------------------------------------


def test_sites_and_indexes(server):
    site = server.api("GET", "/v1/sites").json()
    assert [s["origin"] for s in site["sites"]] == [ORIGIN] and site["next"] is None
    reply = server.api("POST", "/v1/sites", {"origin": "https://Shop.Example.org:443/", "cross_hosts": ["cdn.example.net"]})
    assert reply.status == 201, reply
    made = reply.json()
    made = made.get("site", made)
    assert made["origin"] == "https://shop.example.org" and made["cross_hosts"] == ["cdn.example.net"]
    problem(server.api("POST", "/v1/sites", {"origin": "https://shop.example.org"}), 409)
    for bad in ("shop.example.org", "https://shop.example.org/path", "ftp://x.example", "https://", ""):
        problem(server.api("POST", "/v1/sites", {"origin": bad}), 422)
    reply = server.api("POST", "/v1/indexes", {"url": "https://shop.example.org/a/index.xml"})
    assert reply.status == 201, reply
    index = reply.json()
    index = index.get("index", index)
    assert index["url"] == "https://shop.example.org/a/index.xml"
    problem(server.api("POST", "/v1/indexes", {"url": "https://shop.example.org/a/index.xml"}), 409)
    assert server.api("POST", "/v1/indexes", {"url": "https://shop.example.org/a/index-2.xml"}).status in (409, 422)
    problem(server.api("POST", "/v1/indexes", {"url": "https://unknown.example/index.xml"}), 422)
    for bad in ("https://shop.example.org/robots.txt", "https://shop.example.org/a/index.html", "https://shop.example.org/x.xml?a=1"):
        problem(server.api("POST", "/v1/indexes", {"url": bad}), 422)

    problem(server.register("https://shop.example.org/b/x.xml", index="https://shop.example.org/a/index.xml"), 422, "outside-directory")
    problem(server.register("https://shop.example.org/a/../b/x.xml", index="https://shop.example.org/a/index.xml"), 422, "outside-directory")
    assert server.register("https://shop.example.org/a/x.xml").status == 201
    problem(server.register("https://cdn.example.net/x.xml"), 422)
    reply = server.register("https://cdn.example.net/x.xml", index="https://shop.example.org/a/index.xml")
    assert reply.status == 201 and reply.json()["sitemap"]["index"] == "https://shop.example.org/a/index.xml"
    # A page name of the index must not cover what is registered.
    assert server.register("https://shop.example.org/a/shop-2.xml").status == 201
    problem(server.api("POST", "/v1/indexes", {"url": "https://shop.example.org/a/shop.xml"}), 422, "index-covers-loc")

    one = server.api("GET", f"/v1/indexes/{index['id']}").json()
    page = (one.get("index", one))["pages"][0]
    assert page["entries"] == 3 and page["bytes"] > 100 and RFC3339.match(page["changed_at"])
    served = server.get("/a/index.xml", host="shop.example.org")
    page = server.api("GET", f"/v1/indexes/{index['id']}").json()
    page = (page.get("index", page))["pages"][0]
    assert served["ETag"] == page["etag"] or page["etag"] == server.get("/a/index.xml", {"Accept-Encoding": "gzip"}, host="shop.example.org")["ETag"]

    reply = server.api("PATCH", f"/v1/sites/{made['id']}", {"cross_hosts": []})
    assert reply.status == 200, reply
    problem(server.register("https://cdn.example.net/y.xml", index="https://shop.example.org/a/index.xml"), 422, "outside-site")

    problem(server.api("DELETE", f"/v1/indexes/{index['id']}"), 409, "shrink-guard")
    reply = server.api("DELETE", f"/v1/indexes/{index['id']}?max_removed=3")
    assert reply.status == 200 and reply.json()["removed"] == 3
    assert server.get("/a/index.xml", host="shop.example.org").status == 404
    problem(server.api("GET", f"/v1/indexes/{index['id']}"), 404)
    reply = server.api("DELETE", f"/v1/sites/{made['id']}")
    assert reply.status == 200, reply
    assert [s["origin"] for s in server.api("GET", "/v1/sites").json()["sites"]] == [ORIGIN]


def test_a_loc_is_in_one_index(server):
    assert server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/deep/index.xml"}).status == 201
    first = server.register(f"{ORIGIN}/deep/a.xml").json()["sitemap"]
    assert first["index"] == f"{ORIGIN}/deep/index.xml", "the deepest whose directory holds it"
    moved = server.register(f"{ORIGIN}/deep/a.xml", index=INDEX)
    assert moved.status in (200, 201)
    entry = moved.json()["sitemap"]
    assert entry["index"] == INDEX and entry["id"] != first["id"]
    assert server.get("/deep/index.xml").status == 404
    assert locs(server.get(XML).body) == [f"{ORIGIN}/deep/a.xml"]
    kept = server.register(f"{ORIGIN}/deep/a.xml", lastmod="2026-01-31").json()["sitemap"]
    assert kept["index"] == INDEX and kept["id"] == entry["id"], "without an index it stays where it is"


# ---- changes ------------------------------------------------------------------------------------


def test_changes(server):
    start = server.api("GET", "/v1/changes?since=0").json()
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    answer = server.api("GET", f"/v1/changes?since={q(str(start['next']))}").json()
    urls = {p["url"]: p for p in answer["pages"]}
    assert {INDEX, INDEX + ".gz", f"{ORIGIN}/robots.txt"} <= set(urls)
    page = urls[INDEX]
    assert RFC3339.match(page["changed_at"]) and page["removed"] is False and page["revision"] <= answer["revision"]
    assert page["etag"] is None or ETAG.match(page["etag"])
    again = server.api("GET", f"/v1/changes?since={q(str(answer['next']))}").json()
    assert again["pages"] == []
    # Held until there is one.
    with Connection(server.admin) as connection:
        begun = time.monotonic()
        connection.send(request_bytes("GET", f"/v1/changes?since={q(str(answer['next']))}&wait=60", [("Authorization", f"Bearer {TOKEN}")], host=server.admin))
        time.sleep(0.3)
        assert server.register(f"{ORIGIN}/b.xml").status == 201
        held = connection.reply().json()
        assert INDEX in {p["url"] for p in held["pages"]} and time.monotonic() - begun < 50
    begun = time.monotonic()
    assert server.api("GET", f"/v1/changes?since={q(str(held['next']))}&wait=1").json()["pages"] == []
    assert time.monotonic() - begun > 0.9
    assert server.api("DELETE", f"/v1/sitemaps?loc={q(ORIGIN + '/a.xml')}").status == 204
    assert server.api("DELETE", f"/v1/sitemaps?loc={q(ORIGIN + '/b.xml')}").status == 204
    gone = server.api("GET", f"/v1/changes?since={q(str(held['next']))}").json()
    assert {p["url"]: p["removed"] for p in gone["pages"]}[INDEX] is True


def test_a_revision_of_another_catalogue_is_gone(start, tmp_path):
    server = start()
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    token = server.api("GET", "/v1/changes?since=0").json()["next"]
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    other = start(folder=other_folder)
    problem(other.api("GET", f"/v1/changes?since={q(str(token))}"), 410, "revision-unknown")


# ---- health and metrics -------------------------------------------------------------------------


def test_health(server):
    for target in ("/healthz", "/readyz"):
        reply = ask(server.admin, "GET", target, host=server.admin)
        assert reply.status == 200 and reply["Cache-Control"] == "no-store", target
    assert ask(server.admin, "GET", "/readyz", host=server.admin).json()["status"] == "ok"
    reply = ask(server.admin, "GET", "/openapi.json", host=server.admin)
    document = reply.json()
    assert document["openapi"].startswith("3.") and "/v1/sitemaps" in document["paths"]


def test_metrics(server):
    assert server.register(f"{ORIGIN}/a.xml").status == 201
    assert server.get(XML).status == 200 and server.get("/none").status == 404
    reply = ask(server.admin, "GET", "/metrics", host=server.admin)
    assert reply["Content-Type"].startswith("text/plain; version=0.0.4")
    # Each family announced once and its samples behind it: the reader is strict (test_metrics.py).
    assert set(exposition.parse(reply.body.decode())) >= {
        "sitemapd_http_requests_total", "sitemapd_segments_rendered_total", "sitemapd_pages_published_total",
        "sitemapd_catalogue_revision", "sitemapd_entries", "sitemapd_snapshot_bytes",
    }
    values = server.metrics()
    assert values["sitemapd_entries"] == 1 and values["sitemapd_snapshot_bytes"] > 0

    def counted():  # which a request is when its last byte has left
        public = {k: v for k, v in server.metrics().items() if k.startswith('sitemapd_http_requests_total{listener="public"')}
        return any('status="200"' in k for k in public) and any('status="404"' in k for k in public)

    eventually(counted, "both are counted")


def test_one_registration_renders_one_segment(server):
    names = [f"{ORIGIN}/s/{i:05d}.xml" for i in range(PAGE_ENTRIES - 1)]
    assert server.bulk(names).status == 200
    assert server.get(XML, {"Accept-Encoding": "gzip"}).status == 200  # in memory now
    name = "sitemapd_segments_rendered_total"
    before = server.metrics()[name]
    assert server.register(f"{ORIGIN}/new.xml").status == 201
    assert server.get(XML, {"Accept-Encoding": "gzip"}).status == 200
    assert server.metrics()[name] == before + 1
    assert server.register(names[25000], lastmod="2026-01-31").status == 200
    assert server.get(XML).status == 200
    assert server.metrics()[name] == before + 2
    assert server.api("DELETE", f"/v1/sitemaps?loc={q(names[1])}").status == 204
    assert server.get(XML).status == 200
    assert server.metrics()[name] == before + 3
