# SPDX-License-Identifier: LicenseRef-Undeclared
"""Reads of the API: lists and their cursors, filters, and the conditions of reads and writes."""

import random
import threading

import pytest

from harness import ETAG, INDEX, ORIGIN, PLAIN, Server, eventually, problem, q

SHOP = "https://shop.example.org"
LIST = "/v1/sitemaps"


def names(count, folder="s", origin=ORIGIN):
    return [f"{origin}/{folder}/{i:05d}.xml" for i in range(count)]


def get(server, target, headers=(), **query):
    text = "&".join(f"{k}={q(v)}" for k, v in query.items() if v is not None)
    return server.api("GET", f"{target}{'?' if text else ''}{text}", headers=headers)


def walk(server, limit, target=LIST, what="sitemaps", between=None, **query):
    """All of a list, by its cursors; `between` is called after each part."""
    found, after = [], None
    while True:
        answer = get(server, target, limit=limit, after=after, **query)
        assert answer.status == 200, answer
        answer = answer.json()
        sparse = target == LIST and ("source" in query or "prefix" in query)
        assert set(answer) == {what, "next"} | ({"looked_at"} if sparse else set()) and len(answer[what]) <= limit
        assert len(answer[what]) == limit or answer["next"] is None or sparse, "a part is full, or the last"
        found += answer[what]
        after = answer["next"]
        if after is None:
            return found
        if between:
            between(answer[what])


def locs_of(entries):
    return [e["loc"] for e in entries]


def remove(server, loc):
    assert server.api("DELETE", f"{LIST}?loc={q(loc)}").status == 204


# ---- lists --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Two sites, three indexes, two sources, some free positions; nobody writes to it."""
    server = Server(tmp_path_factory.mktemp("library"), sites=(ORIGIN, SHOP)).start()
    assert server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/deep/index.xml"}).status == 201
    rows = names(900) + names(700, "deep") + names(400, origin=SHOP)
    random.Random(3).shuffle(rows)
    assert server.bulk(rows).json()["created"] == 2000
    assert server.bulk(names(300, "feed"), "/v1/sitemaps?source=feeds").json()["created"] == 300
    for loc in rows[::13]:
        remove(server, loc)
    server.rows = [r for i, r in enumerate(rows) if i % 13] + names(300, "feed")
    yield server
    try:
        server.stop()
    finally:
        server.kill()


def index_of(loc):
    return f"{SHOP}/sitemap_index.xml" if loc.startswith(SHOP) else f"{ORIGIN}/deep/index.xml" if "/deep/" in loc else INDEX


def test_lists_go_by_place(library):
    server = library
    whole = walk(server, 1000)
    assert sorted(locs_of(whole)) == sorted(server.rows)
    exported = [l["loc"] for l in server.cli("export").lines()]
    assert sorted(exported) == sorted(server.rows)
    for index in (INDEX, f"{ORIGIN}/deep/index.xml", f"{SHOP}/sitemap_index.xml"):
        mine = walk(server, 1000, index=index)
        assert locs_of(mine) == [e["loc"] for e in whole if e["index"] == index]
        assert locs_of(mine) == [l["loc"] for l in server.cli("export", "--index", index).lines()]
        assert {index_of(loc) for loc in locs_of(mine)} == {index}
    for limit in (1, 7, 100, 999):
        small = walk(server, limit, index=f"{SHOP}/sitemap_index.xml") if limit < 7 else walk(server, limit)
        assert small == ([e for e in whole if e["index"].startswith(SHOP)] if limit < 7 else whole), limit
    assert len(get(server, LIST).json()["sitemaps"]) == 100, "without a limit"


def test_prefixes(library):
    server = library
    for prefix in (
        f"{ORIGIN}/s/", f"{ORIGIN}/s/001", f"{ORIGIN}/", f"{ORIGIN}/deep/00001.xml", f"{SHOP}/s/0000", f"{ORIGIN}/zzz",
        "https://WWW.example.com:443/x/../s/%30001", "https://shop.example.org",
    ):
        plain = prefix.replace("WWW", "www").replace(":443", "").replace("/x/..", "").replace("%30", "0")
        wanted = sorted(r for r in server.rows if r.startswith(plain if plain.count("/") > 2 else plain + "/"))
        for limit in (1000, 33):
            assert locs_of(walk(server, limit, prefix=prefix)) == wanted, prefix
        here = [r for r in wanted if index_of(r) == INDEX]
        assert locs_of(walk(server, 50, prefix=prefix, index=INDEX)) == here
    for bad in ("s/", "/s/", "ftp://www.example.com/", "https://www.example.com/#x", "https://a b/"):
        assert problem(get(server, LIST, prefix=bad), 422)["field"] == "prefix"


def test_sources(library):
    server = library
    feeds = names(300, "feed")
    assert sorted(locs_of(walk(server, 77, source="feeds"))) == feeds
    assert locs_of(walk(server, 50, source="feeds", prefix=f"{ORIGIN}/feed/002")) == feeds[200:]
    assert walk(server, 50, source="feeds", prefix=f"{ORIGIN}/s/") == []
    own = walk(server, 1000, source="environment")
    assert len(own) == len(server.rows) - 300 and {e["source"] for e in own} == {"environment"}
    assert walk(server, 10, source="nobody") == [] and walk(server, 10, source="feeds", index=f"{ORIGIN}/deep/index.xml") == []
    # In the middle of a page of others: a sparse filter costs no more parts.
    assert get(server, LIST, source="feeds", limit=1000).json()["next"] is None


def test_one_loc(library):
    server = library
    loc = server.rows[5]
    found = get(server, LIST, loc=loc).json()
    assert locs_of(found["sitemaps"]) == [loc] and found["next"] is None
    assert get(server, LIST, loc=loc.replace("https://", "HTTPS://")).json() == found
    assert get(server, LIST, loc=loc, source="nobody").json()["sitemaps"] == []
    assert get(server, LIST, loc=f"{ORIGIN}/none.xml").json() == {"sitemaps": [], "next": None}
    one = get(server, f"{LIST}/{found['sitemaps'][0]['id']}")
    assert one.json() == found["sitemaps"][0]


def test_invalid_limits_and_cursors(library):
    server = library
    for limit in ("0", "-1", "1001", "x", "1.5", "99999999999999999999999"):
        problem(get(server, LIST, limit=limit), 400, "malformed-parameter", "limit")
    cursor = get(server, LIST, limit=5).json()["next"]
    by_loc = get(server, LIST, limit=5, prefix=f"{ORIGIN}/s/").json()["next"]
    for bad in ("x", cursor + "x", cursor[:-1] + "!", "%00", "a" * 5000, by_loc):
        reply = get(server, LIST, after=bad)
        assert reply.status in (400, 414, 431), (bad[:50], reply)
    problem(get(server, LIST, prefix=f"{ORIGIN}/s/", after=cursor), 400, "malformed-cursor", "after")
    problem(get(server, LIST, index="/none.xml"), 404, "index-unknown")
    problem(get(server, LIST, page=1), 400, "unknown-parameter", "page")
    problem(server.api("GET", f"{LIST}?limit=5&limit=6"), 400, "repeated-parameter", "limit")


def test_a_token_of_one_site_sees_its_own(library):
    server = library
    token = server.cli("token", "add", "shop-reader", "--site", SHOP).out.strip()
    ask_as = lambda target: server.api("GET", target, token=token)
    eventually(lambda: ask_as("/v1/sites").status == 200, "the new token")
    shop = [r for r in server.rows if r.startswith(SHOP)]
    other = get(server, LIST, loc=next(r for r in server.rows if r.startswith(ORIGIN))).json()["sitemaps"][0]
    assert sorted(locs_of(ask_as(f"{LIST}?limit=1000").json()["sitemaps"])) == sorted(shop)
    assert ask_as(f"{LIST}?prefix={q(ORIGIN + '/')}").json()["sitemaps"] == []
    assert ask_as(f"{LIST}?loc={q(other['loc'])}").json()["sitemaps"] == []
    problem(ask_as(f"{LIST}?index={q(INDEX)}"), 404, "index-unknown")
    problem(ask_as(f"{LIST}/{other['id']}"), 404)
    assert [s["origin"] for s in ask_as("/v1/sites").json()["sites"]] == [SHOP]
    assert [i["url"] for i in ask_as("/v1/indexes").json()["indexes"]] == [f"{SHOP}/sitemap_index.xml"]


@pytest.mark.parametrize("target, what, key", [("/v1/sites", "sites", "origin"), ("/v1/indexes", "indexes", "url")])
def test_lists_of_sites_and_indexes(start, target, what, key):
    server = start(sites=[f"https://s{i:02d}.example.com" for i in range(23)])
    whole = [e[key] for e in walk(server, 1000, target, what)]
    assert len(whole) == 23 and whole == sorted(whole)
    for limit in (1, 10, 22, 23):
        assert [e[key] for e in walk(server, limit, target, what)] == whole
    # One more in the middle, one less: neither hides nor repeats another.
    first = get(server, target, limit=10).json()
    assert server.api("POST", "/v1/sites", {"origin": "https://s05b.example.com"}).status == 201
    gone = {s["origin"]: s["id"] for s in walk(server, 100, "/v1/sites", "sites")}["https://s09.example.com"]
    assert server.api("DELETE", f"/v1/sites/{gone}").status == 200
    rest = get(server, target, after=first["next"]).json()
    assert [e[key] for e in rest[what]] == whole[10:]
    for limit in ("0", "1001"):
        problem(get(server, target, limit=limit), 400, "malformed-parameter", "limit")


# ---- under change -------------------------------------------------------------------------------


@pytest.mark.parametrize("query", [{}, {"index": INDEX}, {"prefix": f"{ORIGIN}/s/"}, {"source": "environment"}], ids=["all", "index", "prefix", "source"])
def test_what_stays_is_seen_exactly_once(server, query):
    """However others come and go between two parts of a list."""
    chance = random.Random(11)
    rows = names(1200)
    assert server.bulk(rows).json()["created"] == 1200
    alive, fresh = set(rows), iter(names(9999, "s/new"))

    def churn(part):
        for loc in [part[-1]["loc"]] + chance.sample(sorted(alive), 6):
            if loc in alive:
                alive.discard(loc)
                remove(server, loc)
        assert server.bulk([next(fresh) for _ in range(5)]).json()["created"] == 5

    seen = locs_of(walk(server, 50, between=churn, **query))
    assert len(seen) == len(set(seen)), "nothing twice"
    assert alive <= set(seen), "nothing that was there all the time is missing"


def test_each_part_is_of_one_moment(server):
    """A replace swaps all: a part of a list never shows some of the old and some of the new."""
    old, new = names(400, "old"), names(400, "new")
    assert server.replace(old).status == 200
    stop, mixed = threading.Event(), []

    def read():
        while not stop.is_set():
            found = {loc.split("/")[3] for loc in locs_of(get(server, LIST, limit=1000).json()["sitemaps"])}
            if len(found) != 1:
                mixed.append(found)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(20):
        assert server.replace(new if n % 2 == 0 else old).json()["created"] == 400
    stop.set()
    for thread in threads:
        thread.join()
    assert not mixed


# ---- conditions ---------------------------------------------------------------------------------


def test_etags_of_every_read(server):
    one = server.register(f"{ORIGIN}/a.xml", lastmod="2026-01-31").json()["sitemap"]
    site = server.api("GET", "/v1/sites").json()["sites"][0]["id"]
    index = server.api("GET", "/v1/indexes").json()["indexes"][0]["id"]
    assert server.get("/sitemap_index.xml").status == 200  # in memory, or its tag would come with the first GET
    targets = [
        LIST, f"{LIST}?limit=5", f"{LIST}?prefix={q(ORIGIN + '/')}", f"{LIST}?loc={q(one['loc'])}", f"{LIST}/{one['id']}",
        "/v1/sites", f"/v1/sites/{site}", "/v1/indexes", f"/v1/indexes/{index}",
    ]
    tags = {}
    for target in targets:
        reply = server.api("GET", target)
        tags[target] = reply["ETag"]
        assert reply.status == 200 and ETAG.match(reply["ETag"]) and reply["Cache-Control"] == "no-store", reply
        assert server.api("GET", target)["ETag"] == reply["ETag"]
        for condition in (reply["ETag"], f"W/{reply['ETag']}", f'"x", {reply["ETag"]}', "*"):
            for method in ("GET", "HEAD"):
                same = server.api(method, target, headers=[("If-None-Match", condition)])
                assert same.status == 304 and same.body == b"" and same["ETag"] == reply["ETag"], (target, condition, same)
        for condition in ('"x"', reply["ETag"][:-2] + '"', ""):
            assert server.api("GET", target, headers=[("If-None-Match", condition)]).status == 200, (target, condition)
        head = server.api("HEAD", target)
        assert head.status == 200 and head["Content-Length"] == str(len(reply.body)) and head["ETag"] == reply["ETag"]
    assert len(set(tags.values())) >= 5
    # Each change shows in what it concerns, and in nothing else.
    assert server.register(one["loc"], lastmod="2026-02-01").status == 200
    moved = {t for t in targets if server.api("GET", t)["ETag"] != tags[t]}
    assert moved == set(targets) - {"/v1/sites", f"/v1/sites/{site}"}
    # An error has no tag, and no condition makes it one.
    gone = server.api("GET", f"{LIST}/none", headers=[("If-None-Match", "*")])
    problem(gone, 404)
    assert gone["ETag"] is None


def test_if_match_guards_a_removal(server):
    loc = f"{ORIGIN}/a.xml"
    entry = server.register(loc, lastmod="2026-01-31")
    target, tag = entry["Location"], entry["ETag"]
    assert server.api("GET", target)["ETag"] == tag
    newer = server.register(loc, lastmod="2026-02-01")["ETag"]
    assert newer != tag
    for condition in (tag, '"x"', f"W/{newer}", '"x", "y"', ""):
        problem(server.api("DELETE", target, headers=[("If-Match", condition)]), 412, "precondition-failed")
        problem(server.api("DELETE", f"{LIST}?loc={q(loc)}", headers=[("If-Match", condition)]), 412, "precondition-failed")
    assert server.api("GET", target).status == 200
    assert server.api("DELETE", target, headers=[("If-Match", f'"x", {newer}')]).status == 204
    again = server.register(loc)
    # RFC 9110 5.3: several lines are one list.
    lines = [("If-Match", '"x"'), ("If-Match", again["ETag"])]
    assert server.api("DELETE", f"{LIST}?loc={q(loc)}", headers=lines).status == 204
    # What is not there matches nothing, not even "any".
    for condition in ("*", newer):
        reply = server.api("DELETE", target, headers=[("If-Match", condition)])
        assert reply.status in (404, 412), reply
    server.register(loc)
    assert server.api("DELETE", f"{LIST}?loc={q(loc)}", headers=[("If-Match", "*")]).status == 204


def test_if_match_guards_an_update(server):
    loc = f"{ORIGIN}/a.xml"
    put = lambda condition, **fields: server.api("POST", LIST, {"loc": loc, **fields}, headers=[("If-Match", condition)])
    problem(put("*"), 412, "precondition-failed")  # only an entry that is there
    problem(put('"x"'), 412, "precondition-failed")
    assert server.get("/sitemap_index.xml").status == 404
    first = server.register(loc, lastmod="2026-01-01")
    second = put(first["ETag"], lastmod="2026-01-02")
    assert second.status == 200 and second["ETag"] != first["ETag"]
    problem(put(first["ETag"], lastmod="2026-01-03"), 412, "precondition-failed")
    problem(put(f"W/{second['ETag']}", lastmod="2026-01-03"), 412, "precondition-failed")
    assert server.api("GET", first["Location"]).json()["lastmod"] == "2026-01-02"
    third = put("*", lastmod="2026-01-03")
    assert third.status == 200
    # Nothing to change, and still the one that was meant.
    same = put(third["ETag"], lastmod="2026-01-03")
    assert same.status == 200 and same.json()["unchanged"] == 1 and same["ETag"] == third["ETag"]
    # A move is guarded as well.
    assert server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/deep/index.xml"}).status == 201
    problem(put(first["ETag"], index=INDEX), 412)
    # A call that does not heed a condition says so, and does nothing.
    site = server.api("GET", "/v1/sites").json()["sites"][0]["id"]
    index = server.api("GET", "/v1/indexes").json()["indexes"][0]["id"]
    before = server.api("GET", "/v1/changes?since=0").json()
    for condition in ("If-Match", "If-None-Match", "If-Unmodified-Since"):
        headers = [(condition, "*")]
        for method, target, body in (
            ("PATCH", f"/v1/sites/{site}", {"host_aliases": ["x.example"]}),
            ("DELETE", f"/v1/sites/{site}?max_removed=99", None), ("DELETE", f"/v1/indexes/{index}?max_removed=99", None),
            ("POST", "/v1/sites", {"origin": "https://new.example"}), ("POST", "/v1/indexes", {"url": f"{ORIGIN}/new/index.xml"}),
        ):
            problem(server.api(method, target, body, headers=headers), 400, "precondition-not-supported", condition)
        if condition != "If-Match":
            problem(server.api("PUT", f"{LIST}?index={q(INDEX)}", [], headers=headers), 400, "precondition-not-supported", condition)
            for body in ({"loc": loc, "digest": "x"}, [{"loc": loc, "digest": "x"}]):
                problem(server.api("POST", LIST, body, headers=headers), 400, "precondition-not-supported", condition)
            problem(server.api("DELETE", f"{LIST}?loc={q(loc)}", headers=headers), 400, "precondition-not-supported", condition)
            problem(server.api("DELETE", third["Location"] or f"{LIST}/{third.json()['sitemap']['id']}", headers=headers), 400, "precondition-not-supported")
    for target in (LIST, f"{LIST}/{third.json()['sitemap']['id']}", "/v1/sites", f"/v1/sites/{site}", "/v1/indexes", "/v1/sources", "/v1/changes?since=0"):
        problem(server.api("GET", target, headers=[("If-Match", "*")]), 400, "precondition-not-supported", "If-Match")
        assert server.api("GET", target, headers=[("If-Unmodified-Since", "Mon, 01 Jan 2001 00:00:00 GMT")]).status == 200
    assert server.api("GET", "/v1/changes?since=0").json() == before
    # A list that names no index has nothing to match.
    reply = server.api("POST", LIST, [{"loc": loc}], headers=[("If-Match", third["ETag"])])
    problem(reply, 400, "precondition-on-list")


def test_two_writers_one_wins(server):
    """Both read, both write back: the second is informed."""
    loc = f"{ORIGIN}/counter.xml"
    tag = server.register(loc, digest="0")["ETag"]
    results = []

    def write(n):
        results.append(server.api("POST", LIST, {"loc": loc, "digest": str(n)}, headers=[("If-Match", tag)]).status)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(1, 17)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [200] + [412] * 15


def test_a_search_of_one_source_leaves_other_reads_their_threads(start):
    """Who owns few of many is found by looking at all: that is a search, one at a time, beside other reads."""
    server = start(sites=(ORIGIN, SHOP))
    many = [f"{ORIGIN}/many/{i}.xml" for i in range(250_000 if PLAIN else 20_000)]
    for at in range(0, len(many), 50000):
        assert server.bulk(many[at:at + 50000], f"{LIST}?source=many").status == 200
    assert server.bulk([f"{ORIGIN}/few.xml"], f"{LIST}?source=few").status == 200
    tenant, other = server.make_token("tenant", "--site", ORIGIN), server.make_token("other", "--site", SHOP)
    searched, over = [], threading.Event()

    def search():
        while not over.is_set():
            searched.append(server.api("GET", f"{LIST}?source=few", token=tenant).json())

    threads = [threading.Thread(target=search) for _ in range(6)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: len(searched) >= 2, "they are under way")
        before = len(searched)
        for _ in range(60):
            assert server.api("GET", f"{LIST}?limit=1", token=other).status == 200
        assert len(searched) - before < 30 or not PLAIN, "each read waited for the end of one"
    finally:
        over.set()
        for thread in threads:
            thread.join()
    if PLAIN:
        assert searched[0]["sitemaps"] == [] and searched[0]["looked_at"] == 200_000, "it ends, so that others have a turn"
    assert locs_of(walk(server, 10, source="few")) == [f"{ORIGIN}/few.xml"]
