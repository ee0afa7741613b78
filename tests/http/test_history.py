# SPDX-License-Identifier: LicenseRef-Undeclared
"""/v1/history, /v1/diff, undo and restore: what each change did, by whom, and back again; and a model
that keeps every state of the catalogue."""

import contextlib
import json
import os
import random
import re
import socket
import sqlite3
import time

import pytest
from harness import INDEX, ORIGIN, PLAIN, TOKEN, Connection, eventually, problem, q, request_bytes, seconds, sitemapd
from test_sources import OLD, Folder, urlset

XML = "/sitemap_index.xml"
GZIP = {"Accept-Encoding": "gzip"}
LINES = {"Accept": "application/x-ndjson"}


def name(number, folder="s"):
    return f"{ORIGIN}/{folder}/{number:05d}.xml"


def rows(numbers, date="2026-01-01", folder="s"):
    return [{"loc": name(number, folder), "lastmod": date} for number in numbers]


def shown(server, target=XML):
    """A page as crawlers see it: its bytes and both of its tags."""
    plain, packed = server.get(target), server.get(target, GZIP)
    return plain.status, plain.get("etag"), plain.body if plain.status == 200 else b"", packed.get("etag")


def entries(server):
    found, after = {}, None
    while True:
        answer = server.api("GET", "/v1/sitemaps?limit=1000" + (f"&after={q(after)}" if after else "")).json()
        found.update((each["loc"], each) for each in answer["sitemaps"])
        after = answer["next"]
        if after is None:
            return found


def history(server, token="", **query):
    reply = server.api("GET", "/v1/history?" + "&".join(f"{key}={q(str(value))}" for key, value in query.items()),
                       token=token)
    assert reply.status == 200, reply
    return reply.json()


def change_rows(server, revision, token=""):
    """All rows of a change, page by page."""
    found, after = [], 0
    while after is not None:
        answer = server.api("GET", f"/v1/history/{revision}?after={after}", token=token).json()
        found += answer["rows"]
        after = answer["next"]
    return found


def undo(server, revision, token="", **query):
    query = "&".join(f"{key}={q(str(value))}" for key, value in query.items())
    return server.api("POST", f"/v1/history/{revision}/undo" + (f"?{query}" if query else ""), token=token)


def counts(answer):
    return tuple(answer[key] for key in ("created", "updated", "removed"))


def site_token(server, origin, token_name):
    return server.make_token(token_name, "--site", origin, "--role", "write")


def test_a_change_is_reported_with_who_made_it_and_its_rows(server):
    first = server.register(name(1), lastmod="2026-01-01").json()["sitemap"]
    server.register(name(1), lastmod="2026-02-02")
    server.api("DELETE", "/v1/sitemaps?loc=" + q(name(1)))
    result = history(server, loc=name(1))["changes"]
    assert [(each["kind"], *counts(each)) for each in result] == [
        ("removal", 0, 0, 1), ("registration", 0, 1, 0), ("registration", 1, 0, 0)]
    assert {each["via"] for each in result} == {"api"}
    assert all(each["by"] and each["request_id"] and each["at"] for each in result)
    removal, update, creation = (change_rows(server, each["revision"]) for each in result)
    assert creation[0]["before"] is None and creation[0]["after"]["id"] == first["id"]
    assert update[0]["before"]["lastmod"] == "2026-01-01" and update[0]["after"]["lastmod"] == "2026-02-02"
    assert removal[0]["before"] == update[0]["after"] and removal[0]["after"] is None
    # What changes nothing makes no line.
    before = history(server)["changes"][0]["revision"]
    assert server.api("DELETE", "/v1/sitemaps?loc=" + q(name(1))).status == 404
    assert history(server)["changes"][0]["revision"] == before


def test_changes_name_their_site_and_url(server):
    """Of few entries one URL, of many the site alone; a page URL rather than the page that moved with it."""
    server.bulk(rows(range(20)))
    server.bulk(rows(range(3), "2026-03-03"))
    server.api("DELETE", "/v1/sitemaps?loc=" + q(name(7)))
    assert server.api("POST", "/v1/sites", {"origin": "https://other.example.net"}).status == 201
    assert server.api("POST", "/v1/urlsets", {"url": ORIGIN + "/pages.xml"}).status == 201
    assert server.api("POST", "/v1/urls", {"loc": ORIGIN + "/one", "urlset": ORIGIN + "/pages.xml"}).status in (200, 201)
    result = [(each["kind"], each["site"], each["loc"]) for each in history(server)["changes"][:6]]
    assert result == [
        ("registration", ORIGIN, ORIGIN + "/one"), ("urlset-add", ORIGIN, None), ("site-add", "https://other.example.net", None),
        ("removal", ORIGIN, name(7)), ("list", ORIGIN, name(0)), ("list", ORIGIN, None)]
    result = sitemapd("history", "--kind", "removal", database=server.database).out
    assert f"+0 ~0 -1  {name(7)}\n" in result
    result = sitemapd("history", "--kind", "list", database=server.database).out
    assert f"+0 ~3 -0  {name(0)} and 2 more\n" in result and f"+20 ~0 -0  {ORIGIN}\n" in result
    one = server.api("GET", f"/v1/history/{history(server, kind='removal')['changes'][0]['revision']}").json()
    assert (one["site"], one["loc"]) == (ORIGIN, name(7))


def test_a_change_of_an_index_or_urlset_names_it(server):
    """Two of one site can be distinguished, also when they are removed. Other changes name none."""
    assert server.api("POST", "/v1/indexes", {"url": ORIGIN + "/more.xml"}).status == 201
    assert server.api("POST", "/v1/sitemaps", {"loc": name(1), "index": ORIGIN + "/more.xml"}).status == 201
    assert server.api("POST", "/v1/urlsets", {"url": ORIGIN + "/pages.xml"}).status == 201
    assert server.api("POST", "/v1/urls", {"loc": ORIGIN + "/one", "urlset": ORIGIN + "/pages.xml"}).status == 201
    wanted = []
    for kind, plural, path in (("index", "indexes", "/more.xml"), ("urlset", "urlsets", "/pages.xml")):
        number = next(each["id"] for each in server.api("GET", "/v1/" + plural).json()[plural] if each["url"].endswith(path))
        at = f"/v1/{plural}/{number}"
        if kind == "urlset":
            assert server.api("PATCH", at, {"max_pages": 7}).status == 200
        for frozen in (True, False):
            assert server.api("PATCH", at, {"frozen": frozen}).status == 200
        assert server.api("DELETE", at + "?max_removed=9").status in (200, 204)
        wanted += [(f"{kind}-{what}", path) for what in ("add", "freeze", "thaw", "remove")]
    wanted.append(("urlset-update", "/pages.xml"))
    changes = history(server)["changes"]
    assert sorted((each["kind"], each["list"]) for each in changes if each["list"]) == sorted(wanted)
    assert {each["list"] for each in changes if not each["kind"].startswith(("index-", "urlset-"))} == {None}
    printed = sitemapd("history", database=server.database).out
    for kind, path in wanted:
        assert re.search(rf" {kind} .* -[01]  {re.escape(ORIGIN + path)}$", printed, re.M), (kind, printed)
    one = server.api("GET", f"/v1/history/{next(each['revision'] for each in changes if each['kind'] == 'index-remove')}").json()
    assert one["list"] == "/more.xml"


def test_a_range_of_dates_includes_both_days(server):
    server.register(name(1))
    at = history(server)["changes"][0]["at"]
    day, month = at[:10], at[:7]
    for since, until, found in ((day, day, 1), (month, month, 1), (at[:4], at[:4], 1), (at, at, 1), ("2000-01-01", "2000-12-31", 0), ("2100-01-01", "", 0)):
        query = {name: value for name, value in (("since", since), ("until", until)) if value}
        assert len(history(server, loc=name(1), **query)["changes"]) == found, (since, until)
        result = sitemapd("history", "--loc", name(1), "--json", *(part for key, value in query.items() for part in ("--" + key, value)), database=server.database)
        assert result.code == 0 and result.out.count("\n") == found, (since, until, result)
    for bad in ("since=yesterday", "until=2026-13-01", "kind=removed"):
        reply = server.api("GET", "/v1/history?" + bad)
        assert (reply.status, reply.json()["code"], reply.json()["field"]) == (400, "malformed-parameter", bad.partition("=")[0]), bad


def test_an_undone_change_names_its_undo(server):
    """As long as that is not undone itself."""
    server.bulk(rows(range(3)))
    change = server.bulk(rows(range(3), "2026-03-03")).json()["revision"]
    result = lambda revision: server.api("GET", f"/v1/history/{revision}").json()["undone_by"]
    assert result(change) is None
    first = undo(server, change).json()["revision"]
    assert result(change) == first and result(first) is None
    assert {each["revision"]: each["undone_by"] for each in history(server)["changes"]}[change] == first
    assert f"(undone by {first})" in sitemapd("history", database=server.database).out
    second = undo(server, first).json()["revision"]
    assert result(change) is None and result(first) == second
    third = undo(server, second).json()["revision"]
    assert (result(change), result(first), result(second)) == (first, None, third)
    restored = server.api("POST", f"/v1/restore?index={q(INDEX)}&to={change}").json()["revision"]
    assert result(change) == first and result(restored) is None, "a restore undoes no change"
    kept = {one["revision"]: (one["kind"], one["undoes"], one["restores"]) for one in server.api("GET", "/v1/history").json()["changes"]}
    assert kept[restored][0] == "restore" and kept[restored][1] is None and kept[restored][2] in kept, kept


def test_lists_are_reported_in_pages_and_found_by_loc(server):
    assert server.bulk(rows(range(2500))).status == 200
    assert server.bulk(rows(range(1000, 2500), "2026-03-03")).status == 200
    newest, oldest = history(server, kind="list")["changes"]
    assert counts(newest) == (0, 1500, 0) and counts(oldest) == (2500, 0, 0)
    result = change_rows(server, oldest["revision"])
    assert [row["loc"] for row in result] == [name(number) for number in range(2500)]
    assert {row["before"] for row in result} == {None}
    assert {row["before"]["lastmod"] for row in change_rows(server, newest["revision"])} == {"2026-01-01"}
    for number, expected in ((5, [oldest]), (2499, [newest, oldest]), (9999, [])):
        assert history(server, loc=name(number))["changes"] == expected
    # One by one, by its cursor.
    page = history(server, limit=1)
    assert page["changes"] == [newest]
    assert history(server, limit=1, after=page["next"])["changes"] == [oldest]


def test_a_bad_replace_is_undone_with_the_bytes_and_tags_of_before(server):
    server.bulk(rows(range(3000)))
    before, was = shown(server), entries(server)
    bad = server.replace(rows(range(700, 3000), "2026-06-06"), source="*").json()
    assert (bad["removed"], bad["updated"]) == (700, 2300)
    assert shown(server) != before
    dry = undo(server, bad["revision"], dry_run=1).json()
    assert counts(dry) == (700, 2300, 0) and dry["dry_run"] and entries(server) != was
    done = undo(server, bad["revision"]).json()
    assert counts(done) == (700, 2300, 0) and done["conflicts_total"] == 0
    assert shown(server) == before and entries(server) == was
    # And undone itself.
    again = undo(server, done["revision"], max_removed=3000).json()
    assert counts(again) == (0, 2300, 700)
    assert undo(server, again["revision"]).status == 200
    assert shown(server) == before and entries(server) == was


def test_what_was_changed_since_is_listed_and_left_or_overwritten(server):
    server.bulk(rows(range(10)))
    was = entries(server)
    bad = server.bulk(rows(range(10), "2026-06-06")).json()
    server.register(name(3), lastmod="2026-07-07")
    server.api("DELETE", "/v1/sitemaps?loc=" + q(name(4)))
    answer = undo(server, bad["revision"]).json()
    assert counts(answer) == (0, 8, 0) and answer["conflicts_total"] == 2
    assert {(each["loc"], each["code"]) for each in answer["conflicts"]} == {
        (name(3), "changed-since"), (name(4), "changed-since")}
    now = entries(server)
    assert now[name(3)]["lastmod"] == "2026-07-07" and name(4) not in now
    answer = undo(server, bad["revision"], on_conflict="overwrite").json()
    assert counts(answer) == (1, 1, 0) and entries(server) == was


def test_entries_that_would_be_rejected_now_are_not_restored(server):
    """By the words of a registration, although the caller overwrites."""
    site = server.api("GET", "/v1/sites").json()["sites"][0]["id"]
    cdn = "https://cdn.example.net/a.xml"
    assert server.api("PATCH", f"/v1/sites/{site}", {"cross_hosts": ["cdn.example.net"]}).status == 200
    page = f"{ORIGIN}/more.xml"
    server.bulk([{"loc": cdn, "index": INDEX}, {"loc": page}, *rows(range(3))])
    gone = server.replace([], source="*", max_removed=5).json()["revision"]
    assert server.api("PATCH", f"/v1/sites/{site}", {"cross_hosts": []}).status == 200
    assert server.api("POST", "/v1/indexes", {"url": page}).status == 201
    for query in ({"dry_run": 1}, {"on_conflict": "overwrite"}, {}):
        answer = undo(server, gone, **query).json()
        assert {each["loc"]: each["code"] for each in answer["conflicts"]} == {
            cdn: "outside-site", page: "loc-is-index-page"}, answer
    assert set(entries(server)) == {name(n) for n in range(3)}
    assert server.api("POST", f"/v1/restore?index={q(INDEX)}&to={gone - 1}").json()["conflicts_total"] == 2


def test_an_index_is_restored_to_a_revision(server):
    server.bulk(rows(range(50)))
    before, was = shown(server), entries(server)
    good = history(server)["changes"][0]["revision"]
    server.replace(rows(range(20, 70), "2026-06-06"), max_removed=20)
    server.bulk(rows(range(10, 30), "2026-08-08"))
    for number in range(40, 45):
        server.api("DELETE", "/v1/sitemaps?loc=" + q(name(number)))
    lines = server.api("GET", f"/v1/diff?from={good}&to=1000000&index={q(INDEX)}")
    assert lines.status == 200 and lines.get("content-type") == "application/x-ndjson"
    assert len(lines.body.splitlines()) == len(
        [loc for loc in {*was, *entries(server)} if was.get(loc) != entries(server).get(loc)])
    query = f"/v1/restore?index={q(INDEX)}&to={good}&max_removed=100"
    assert server.api("POST", query + "&dry_run=1").status == 200
    assert shown(server) != before
    answer = server.api("POST", query)
    assert answer.status == 200 and answer.json()["conflicts_total"] == 0
    assert shown(server) == before and entries(server) == was


def restore(server, to, target=INDEX, **query):
    query = {"index": target, "to": to, "max_removed": 1000, **query}
    return server.api("POST", "/v1/restore?" + "&".join(f"{key}={q(str(value))}" for key, value in query.items()))


def test_an_entry_at_another_position_after_an_undo_counts_as_unchanged(server):
    """Its own was taken since. Another undo of the same does not move it, and it was not changed since."""
    server.bulk([name(1), name(2)])
    added = server.bulk([name(3), name(4)]).json()["revision"]
    assert server.api("DELETE", "/v1/sitemaps?loc=" + q(name(3))).status == 204
    gone = history(server)["changes"][0]["revision"]
    server.register(name(5))
    assert counts(undo(server, gone).json()) == (1, 0, 0)
    last = history(server)["changes"][0]["revision"]
    again = undo(server, gone).json()
    assert (counts(again), again["unchanged"], again["revision"], again["conflicts_total"]) == ((0, 0, 0), 1, last, 0)
    done = undo(server, added, max_removed=2).json()
    assert counts(done) == (0, 0, 2) and done["conflicts_total"] == 0
    assert set(entries(server)) == {name(1), name(2), name(5)}


def put(server, locs, urlset=None):
    where = f"urls?urlset={q(urlset)}" if urlset else f"sitemaps?index={q(INDEX)}&source=*"
    reply = server.api("PUT", f"/v1/{where}&max_removed=1000", body="".join(json.dumps({"loc": loc}) + "\n" for loc in locs).encode(),
                       content_type="application/x-ndjson")
    assert reply.status == 200, reply
    return reply.json()["revision"]


def test_a_restore_of_entries_that_changed_places_is_undone_with_the_bytes_and_tags_of_before(server):
    a, b, c = name(1), name(2), name(3)
    first = put(server, [b])
    was = shown(server)
    put(server, [c])
    last = server.bulk([c, a, b]).json()["revision"]
    before = shown(server), entries(server)
    restored = restore(server, first)
    assert restored.status == 200 and shown(server) == was
    undone = undo(server, restored.json()["revision"], max_removed=3).json()
    assert (shown(server), entries(server)) == before and undone["conflicts_total"] == 0
    assert restore(server, first).status == 200 and shown(server) == was
    assert restore(server, last).status == 200 and (shown(server), entries(server)) == before


@pytest.mark.parametrize("kind", ("index", "urlset"))
def test_random_restores_and_their_undos_agree_with_what_was(server, kind):
    """Every loc has another position at times; each state is compared by its bytes and by the difference."""
    dice, urlset, locs = random.Random(7), None, [f"{ORIGIN}/p/{number}.xml" for number in range(6)]
    if kind == "urlset":
        urlset = f"{ORIGIN}/pages.xml"
        assert server.api("POST", "/v1/urlsets", {"url": urlset}).status == 201
    target, path = urlset or INDEX, "/pages.xml" if urlset else XML
    write = lambda some: server.api(
        "POST", f"/v1/urls?urlset={q(urlset)}" if urlset else "/v1/sitemaps", content_type="application/x-ndjson",
        body="".join(json.dumps({"loc": loc, "lastmod": f"2026-01-{dice.randint(1, 28):02d}"}) + "\n" for loc in some).encode())
    seen = {}

    def note(revision):
        seen[revision] = shown(server, path)
        return revision

    def is_as(revision, now):
        assert shown(server, path) == seen[revision], (revision, now)
        lines = server.api("GET", f"/v1/diff?from={revision}&to={now}&index={q(target)}")
        assert lines.status == 200 and lines.body == b"", (revision, now, lines.body)

    for turn in range(60):
        revisions = [note(put(server, dice.sample(locs, dice.randint(0, 3)), urlset))]
        for _ in range(dice.randint(1, 4)):
            some = dice.sample(locs, dice.randint(1, 6))
            if dice.random() < 0.5:
                revisions.append(note(put(server, some, urlset)))
            else:
                assert (answer := write(some)).status == 200, answer
                revisions.append(note(answer.json()["revision"]))
        last, to = revisions[-1], dice.choice(revisions)
        for back in (to, dice.choice(revisions), last):
            done = restore(server, back, target)
            assert done.status == 200 and done.json()["conflicts_total"] == 0, done
            note(done.json()["revision"])
            is_as(back, done.json()["revision"])
        restored = restore(server, to, target).json()["revision"]
        if restored != done.json()["revision"]:
            undone = undo(server, restored, max_removed=1000).json()
            assert undone["conflicts_total"] == 0
            is_as(last, undone["revision"])


def test_a_restore_to_what_is_there_already_changes_nothing(server):
    """Neither dates nor the state of the list: a retry is like the same content again."""
    urlset, page = f"{ORIGIN}/pages.xml", f"{ORIGIN}/page"
    assert server.api("POST", "/v1/urlsets", {"url": urlset}).status == 201
    server.bulk(rows(range(3)))
    targets = {INDEX: name(1), urlset: page}

    def change(target, date):
        where = f"urls?urlset={q(target)}" if target == urlset else "sitemaps"
        answer = server.api("POST", f"/v1/{where}", body=json.dumps({"loc": targets[target], "lastmod": date}).encode() + b"\n",
                            content_type="application/x-ndjson")
        assert answer.status == 200, answer
        return answer.json()["revision"]

    for target in targets:
        to = change(target, "2026-01-01")
        change(target, "2026-02-02")
        first = restore(server, to, target).json()
        assert counts(first) == (0, 1, 0)
        state = lambda: [(reply.get("etag"), reply.get("last-modified"), reply.body) for reply in map(server.get, (XML, "/pages.xml"))] + [
            server.api("GET", path).body for path in ("/v1/indexes", "/v1/urlsets")]
        before, since = state(), server.api("GET", "/v1/changes?since=0").json()["next"]
        dry = restore(server, to, target, dry_run=1).json()
        assert (counts(dry), dry["unchanged"], dry["rows"], dry["rows_total"]) == ((0, 0, 0), 1, [], 0)
        again = restore(server, to, target).json()
        assert (counts(again), again["unchanged"], again["revision"]) == ((0, 0, 0), 1, first["revision"])
        assert state() == before and server.api("GET", f"/v1/changes?since={since}").json()["next"] == since
        assert history(server)["changes"][0]["revision"] == first["revision"]


def test_a_change_says_nothing_of_the_one_before(server):
    """The line on an undo names what it undid, a small change's line has its rows: the next line has neither."""
    made = server.bulk(rows(range(3))).json()
    assert undo(server, made["revision"], max_removed=3).status == 200
    server.bulk(rows(range(100, 200)))
    result = history(server)["changes"]
    assert [each["undoes"] for each in result[:3]] == [None, made["revision"], None]
    assert sorted(each["loc"] for each in change_rows(server, result[0]["revision"])) == [name(n) for n in range(100, 200)]


def test_the_guard_holds_an_undo(server):
    made = server.bulk(rows(range(100))).json()
    problem(undo(server, made["revision"]), 409, "shrink-guard")
    assert len(entries(server)) == 100
    assert undo(server, made["revision"], max_removed=100).status == 200
    assert entries(server) == {}


def test_what_cannot_be_undone_says_why(server):
    problem(undo(server, 999999), 404, "not-found")
    problem(server.api("POST", "/v1/history/x/undo"), 400, "malformed-parameter")
    added = server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/more.xml"})
    assert added.status == 201
    newest = history(server)["changes"][0]
    assert newest["kind"] == "index-add"
    problem(undo(server, newest["revision"]), 409, "not-undoable")
    problem(server.api("POST", f"/v1/restore?to=1&index={q(ORIGIN + '/no.xml')}"), 404, "index-unknown")
    problem(server.api("POST", f"/v1/restore?index={q(INDEX)}"), 400, "missing-parameter")


def put_into(server, index, entries_there):
    reply = server.bulk([{**entry, "index": index} for entry in entries_there])
    assert reply.status == 200 and reply.json()["rejected_total"] == 0, reply


def newest(server, kind):
    change = history(server)["changes"][0]
    assert change["kind"] == kind
    return change["revision"]


def remove(server, what, url_or_origin, **query):
    key = "url" if what == "indexes" else "origin"
    listed = server.api("GET", f"/v1/{what}?limit=1000").json()[what]
    one = next(each for each in listed if each[key] == url_or_origin)
    reply = server.api("DELETE", f"/v1/{what}/{one['id']}?" + "&".join(f"{k}={v}" for k, v in query.items()))
    assert reply.status == 200, reply
    return newest(server, "index-remove" if what == "indexes" else "site-remove")


def test_the_removal_of_an_index_is_undone(server):
    more = f"{ORIGIN}/more.xml"
    assert server.api("POST", "/v1/indexes", {"url": more}).status == 201
    put_into(server, INDEX, rows(range(20)))
    put_into(server, more, rows(range(100, 700)))
    before, beside, was = shown(server, "/more.xml"), shown(server), entries(server)
    for _ in range(2):
        revision = remove(server, "indexes", more, max_removed=600)
        assert shown(server, "/more.xml")[0] in (404, 410) and len(entries(server)) == 20
        assert undo(server, revision, dry_run=1).json()["created"] == 600
        assert len(entries(server)) == 20
        answer = undo(server, revision)
        assert answer.status == 200 and counts(answer.json()) == (600, 0, 0), answer
        assert (shown(server, "/more.xml"), shown(server), entries(server)) == (before, beside, was)
        problem(undo(server, revision), 409, "not-undoable")
        problem(undo(server, newest(server, "undo")), 409, "not-undoable")
    # What is in it is as before also to who writes: the next position, an update, a removal.
    put_into(server, more, rows([100], "2026-09-09") + rows([900]))
    assert server.api("DELETE", "/v1/sitemaps?loc=" + q(name(101))).status == 204
    assert len(entries(server)) == 620
    assert server.cli("check").code == 0


def test_what_was_registered_elsewhere_since_stays_there(server):
    more = f"{ORIGIN}/more.xml"
    assert server.api("POST", "/v1/indexes", {"url": more}).status == 201
    put_into(server, more, rows(range(700)))
    was = entries(server)
    revision = remove(server, "indexes", more, max_removed=700)
    put_into(server, INDEX, rows(range(3), "2026-08-08"))
    assert server.api("DELETE", "/v1/sitemaps?loc=" + q(name(2))).status == 204
    answer = undo(server, revision).json()
    assert answer["created"] == 697 and answer["conflicts_total"] == 3
    assert {each["loc"] for each in answer["conflicts"]} == {name(0), name(1), name(2)}
    now = entries(server)
    assert name(2) not in now and now[name(0)]["lastmod"] == "2026-08-08"
    assert {loc: now[loc] for loc in was if loc not in (name(0), name(1), name(2))} == {
        loc: was[loc] for loc in was if loc not in (name(0), name(1), name(2))}
    assert shown(server, "/more.xml")[2].count(b"<sitemap>") == 697
    assert server.cli("check").code == 0


def test_a_removal_is_not_undone_over_what_took_its_place(server):
    more = f"{ORIGIN}/more.xml"
    assert server.api("POST", "/v1/indexes", {"url": more}).status == 201
    put_into(server, more, rows(range(5)))
    revision = remove(server, "indexes", more, max_removed=5)
    assert server.api("POST", "/v1/indexes", {"url": more}).status == 201
    problem(undo(server, revision), 409, "taken-since")
    remove(server, "indexes", more)
    # One of its locs is a page of an index that came since.
    assert server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/s/00003.xml"}).status == 201
    assert undo(server, revision).status in (409, 422)
    assert entries(server) == {}
    remove(server, "indexes", f"{ORIGIN}/s/00003.xml")
    token = site_token(server, ORIGIN, "writer")
    problem(undo(server, revision, token), 403, "outside-token-scope")
    assert undo(server, revision).json()["created"] == 5


def test_the_removal_of_a_site_is_undone(server):
    other = "https://blog.example.org"
    site = {"origin": other, "index": "/a.xml", "host_aliases": ["b.example.org"], "robots": "User-agent: *\n"}
    assert server.api("POST", "/v1/sites", site).status == 201
    assert server.api("POST", "/v1/indexes", {"url": f"{other}/b.xml"}).status == 201
    put_into(server, f"{other}/a.xml", [{"loc": f"{other}/a/{n}.xml"} for n in range(30)])
    put_into(server, f"{other}/b.xml", [{"loc": f"{other}/b/{n}.xml"} for n in range(40)])

    def pages():
        return [(reply.status, reply.get("etag"), reply.body)
                for reply in (server.get(target, host="blog.example.org") for target in ("/a.xml", "/b.xml", "/robots.txt"))]

    before, was = pages(), entries(server)
    assert [page[0] for page in before] == [200, 200, 200]
    revision = remove(server, "sites", other, max_removed=70)
    assert entries(server) == {}
    assert server.api("POST", "/v1/sites", {"origin": "http://blog.example.org"}).status == 201
    problem(undo(server, revision), 409, "taken-since")
    remove(server, "sites", "http://blog.example.org")
    claims = {"origin": "https://c.example.org", "host_aliases": ["b.example.org"]}
    assert server.api("POST", "/v1/sites", claims).status == 201
    problem(undo(server, revision), 409, "taken-since")
    remove(server, "sites", "https://c.example.org")
    answer = undo(server, revision)
    assert answer.status == 200 and answer.json()["created"] == 70, answer
    assert pages() == before and entries(server) == was
    assert server.cli("check").code == 0


@pytest.mark.parametrize("keep", ["3s", "0"])
def test_removed_rows_are_purged_in_the_end(start, keep):
    """No later than the history does, and at once if none exists."""
    server = start(config=f"[history]\nkeep = {keep}\n")
    more = f"{ORIGIN}/more.xml"
    assert server.api("POST", "/v1/indexes", {"url": more}).status == 201
    put_into(server, more, rows(range(50)))
    listed = server.api("GET", "/v1/indexes").json()["indexes"]
    one = next(each["id"] for each in listed if each["url"] == more)
    assert server.api("DELETE", f"/v1/indexes/{one}?max_removed=50").status == 200

    def left():
        with contextlib.closing(sqlite3.connect(f"file:{server.database}?mode=ro", uri=True)) as file:
            return file.execute("SELECT (SELECT count(*) FROM sitemap), count(*) FROM sitemap_index"
                                " WHERE removed = 1 AND purged = 0").fetchone()

    eventually(lambda: left() == (0, 0), "the purge")


def test_a_token_of_one_site_sees_and_undoes_its_own(server):
    other = "https://blog.example.org"
    assert server.api("POST", "/v1/sites", {"origin": other, "index": "/sitemap_index.xml"}).status == 201
    token = site_token(server, other, "blog")
    mixed = server.bulk(rows(range(5)) + [{"loc": f"{other}/a.xml"}, {"loc": f"{other}/b.xml"}]).json()
    mine = server.bulk(rows(range(5), "2026-05-05")).json()
    result = history(server, token=token)["changes"]
    assert mine["revision"] not in [each["revision"] for each in result]
    line = next(each for each in result if each["revision"] == mixed["revision"])
    assert counts(line) == (2, 0, 0) and line["unchanged"] is None and line["note"] is None
    assert {row["loc"] for row in change_rows(server, mixed["revision"], token)} == {f"{other}/a.xml", f"{other}/b.xml"}
    problem(server.api("GET", f"/v1/history/{mine['revision']}", token=token), 404, "not-found")
    problem(undo(server, mine["revision"], token), 404, "not-found")
    problem(server.api("GET", f"/v1/history?index={q(INDEX)}", token=token), 404, "index-unknown")
    problem(server.api("GET", f"/v1/diff?from=1&to=9&index={q(INDEX)}", token=token), 404, "index-unknown")
    problem(server.api("POST", f"/v1/restore?to=1&index={q(INDEX)}", token=token), 403, "token-of-another-site")
    assert counts(undo(server, mixed["revision"], token, max_removed=2).json()) == (0, 0, 2)
    assert len(entries(server)) == 5


def test_a_token_of_one_site_sees_the_url_and_the_undo_of_its_own_rows(server):
    other = "https://blog.example.org"
    assert server.api("POST", "/v1/sites", {"origin": other, "index": "/sitemap_index.xml"}).status == 201
    blog, shop = site_token(server, other, "blog"), site_token(server, ORIGIN, "shop")
    mixed = server.bulk(rows(range(5)) + [{"loc": f"{other}/a.xml"}]).json()["revision"]
    undone = undo(server, mixed, shop, max_removed=5).json()["revision"]
    seen = {}
    for token in (shop, blog, ""):
        line = next(each for each in history(server, token=token)["changes"] if each["revision"] == mixed)
        assert line.items() <= server.api("GET", f"/v1/history/{mixed}", token=token).json().items()
        seen[token] = (line["site"], line["loc"], line["undone_by"])
    assert seen == {shop: (None, name(0), undone), blog: (None, f"{other}/a.xml", None), "": (None, name(0), undone)}


def test_the_pages_of_ones_own_rows_do_not_report_how_many_others_there_are(server):
    other = "https://blog.example.org"
    assert server.api("POST", "/v1/sites", {"origin": other, "index": "/sitemap_index.xml"}).status == 201
    token = site_token(server, other, "blog")
    mine = [{"loc": f"{other}/{n}.xml"} for n in range(1500)]
    result = []
    for others in (1, 3500):
        made = server.bulk(rows(range(others), folder=f"of{others}") + mine).json()["revision"]
        pages, after = [], 0
        while after is not None:
            page = server.api("GET", f"/v1/history/{made}?after={after}", token=token).json()
            pages.append((len(page["rows"]), page["next"]))
            after = page["next"]
        result.append(pages)
        assert undo(server, made, token, max_removed=1500).status == 200
    assert result == [[(1000, "1000"), (500, None)]] * 2


def test_a_token_of_one_site_reads_a_bounded_part_of_a_change_of_many(server):
    """A call for two rows between very many of others looks at some of these, and the next one goes on."""
    other = "https://blog.example.org"
    assert server.api("POST", "/v1/sites", {"origin": other, "index": "/sitemap_index.xml"}).status == 201
    token = site_token(server, other, "blog")
    made = server.bulk([{"loc": f"{other}/a.xml"}, *rows(range(45000)), {"loc": f"{other}/z.xml"}]).json()["revision"]
    pages, after = [], "0"
    while after is not None:
        page = server.api("GET", f"/v1/history/{made}?after={after}", token=token).json()
        pages.append([row["loc"].removeprefix(other) for row in page["rows"]])
        after = page["next"]
    assert pages == [["/a.xml"], [], ["/z.xml"]]
    assert [row["loc"] for row in lines_of(server.api("GET", f"/v1/history/{made}", headers=LINES, token=token))] == [other + "/a.xml", other + "/z.xml"]


def test_a_history_that_is_not_kept_is_named(start):
    server = start(config="[history]\nkeep = 0\n")
    made = server.bulk(rows(range(5))).json()
    result = history(server)
    assert result["changes"] == [] and result["from_revision"] == made["revision"] + 1
    reply = undo(server, made["revision"], max_removed=5)
    problem(reply, 404, "not-found")
    assert str(made["revision"] + 1) in reply.json()["detail"]


def test_the_oldest_changes_are_dropped_for_space(start):
    server = start(config="[history]\nmax_bytes = 1M\n")
    first = server.bulk(rows(range(10))).json()["revision"]
    dice = random.Random(1)
    for _ in range(20):
        drawn = [{"loc": name(number), "digest": dice.randbytes(128).hex()} for number in range(400)]
        assert server.bulk(drawn).status == 200
    eventually(lambda: history(server, site=ORIGIN)["from_revision"] > first, "the oldest change to be dropped",
               seconds(60))
    # To who sees all sites it is said of which one something is gone; more of it may go between two calls.
    said = lambda: history(server)["shortened"] == [{"site": ORIGIN, "from_revision": history(server, site=ORIGIN)["from_revision"]}]
    eventually(said, "the same said of one site and of all")
    kept = history(server, site=ORIGIN, limit=1000)
    assert kept["changes"][-1]["revision"] >= kept["from_revision"]
    problem(server.api("GET", f"/v1/history/{first}"), 404, "not-found")
    assert undo(server, kept["changes"][0]["revision"]).status == 200


def test_the_site_with_the_largest_history_loses_changes_first(start):
    """One site's many lists end neither what another can see nor what it can undo."""
    server = start(config="[history]\nmax_bytes = 1M\n")
    other = "https://blog.example.org"
    assert server.api("POST", "/v1/sites", {"origin": other, "index": "/sitemap_index.xml"}).status == 201
    blog = site_token(server, other, "blog")
    both = server.bulk(rows(range(3)) + [{"loc": f"{other}/{n}.xml"} for n in range(3)]).json()["revision"]
    mine = server.bulk([{"loc": f"{other}/{n}.xml", "lastmod": "2026-02-02"} for n in range(3)]).json()["revision"]
    lost = server.bulk(rows(range(10))).json()["revision"]
    dice = random.Random(1)
    for _ in range(20):
        drawn = [{"loc": name(number), "digest": dice.randbytes(128).hex()} for number in range(400)]
        assert server.bulk(drawn).status == 200
    eventually(lambda: history(server, site=ORIGIN)["from_revision"] > lost, "the largest site's oldest to be dropped",
               seconds(60))
    kept = history(server, token=blog)
    assert kept["from_revision"] <= both and {both, mine} <= {each["revision"] for each in kept["changes"]}
    shortened = history(server)["shortened"]
    assert [each["site"] for each in shortened] == [ORIGIN] and shortened[0]["from_revision"] > lost
    assert "shortened" not in kept
    problem(undo(server, lost), 404, "not-found")
    for revision in (both, lost):
        problem(server.api("POST", f"/v1/restore?index={q(INDEX)}&to={revision}"), 404, "not-found")
    assert server.api("GET", f"/v1/diff?index={q(INDEX)}&from={both}").status == 404
    # Of both sites it is there as long as its own room: what touched the others is still undone.
    assert counts(undo(server, mine, blog).json()) == (0, 3, 0)
    assert counts(undo(server, both, blog, max_removed=3).json()) == (0, 0, 3)
    # Its bytes are what its rows take, and it is started again as it was left.
    server.kill()
    server.start()
    with contextlib.closing(sqlite3.connect(f"file:{server.database}?mode=ro", uri=True, isolation_level=None)) as file:
        size = lambda: file.execute("SELECT history_bytes FROM catalogue").fetchone()[0]
        eventually(lambda: size() <= 1 << 20, "what is past the bound is dropped")
        file.execute("BEGIN")  # it may go on
        assert file.execute("SELECT sum(bytes) FROM history_site").fetchone() == (size(),)
        assert file.execute("SELECT site, bytes FROM history_site WHERE bytes > 0 ORDER BY site").fetchall() == \
            file.execute("SELECT site, sum(bytes) FROM history GROUP BY site ORDER BY site").fetchall()


def test_changes_of_several_sites_count_as_one_site(start):
    """Where these are the most, the oldest of them goes, and no site sees anything before it."""
    server = start(config="[history]\nmax_bytes = 1M\n")
    other = "https://blog.example.org"
    assert server.api("POST", "/v1/sites", {"origin": other, "index": "/sitemap_index.xml"}).status == 201
    alone = server.bulk([{"loc": f"{other}/0.xml"}]).json()["revision"]
    dice, mixed = random.Random(1), []
    for _ in range(20):
        drawn = [{"loc": name(number), "digest": dice.randbytes(128).hex()} for number in range(400)]
        mixed.append(server.bulk(drawn + [{"loc": f"{other}/1.xml", "digest": drawn[0]["digest"]}]).json()["revision"])
    blog = site_token(server, other, "blog")
    eventually(lambda: history(server, token=blog)["from_revision"] > mixed[2], "the oldest of several sites", seconds(60))
    result = history(server, token=blog)
    assert result["changes"][-1]["revision"] >= result["from_revision"]
    problem(undo(server, alone, blog, max_removed=1), 404, "not-found")
    problem(server.api("GET", f"/v1/history/{mixed[0]}", token=blog), 404, "not-found")
    assert counts(undo(server, mixed[-1], blog).json()) == (0, 1, 0)


FILES = f"{ORIGIN}/f/"


class Model:
    """Every state of the catalogue, by the revision that made it, with the page that crawlers saw. What
    undo and restore do is shown by nothing but these states."""

    def __init__(self, server, dice, folder):
        self.server, self.dice, self.folder = server, dice, folder
        self.tokens = {"": "", "part": server.make_token("part", "--prefix", f"{ORIGIN}/p/"), "mine": server.make_token("mine", "--own")}
        self.index = server.api("GET", "/v1/indexes").json()["indexes"][0]["id"]
        self.states, self.pages, self.scans = {}, {}, set()
        self.undoing = False  # all, without a scan between
        self.note(self.revision())
        self.first = self.last
        self.order = []  # of what changed entries

    def revision(self):
        return int(self.server.metrics()["sitemapd_catalogue_revision"])

    def note(self, revision):
        self.last = revision
        self.states[revision], self.pages[revision] = entries(self.server), shown(self.server)

    def seen(self, scan=False, thawed=False):
        """What one call did is one revision, or none; the thaw before it changed no entry."""
        if thawed:
            self.states[self.last + 1], self.pages[self.last + 1] = self.states[self.last], self.pages[self.last]
            self.last += 1
        revision, before = self.revision(), self.last
        assert revision in (before, before + 1)
        if revision == before:
            assert entries(self.server) == self.states[before]
            return
        self.note(revision)
        if self.states[revision] != self.states[before]:
            self.order.append(revision)
            if scan:
                self.scans.add(revision)

    def now(self):
        return self.states[self.last]

    @staticmethod
    def same(one, other):
        """The same entry, wherever in its index: an id is its index, position and serial."""
        apart = lambda each: each and {**each, "id": each["id"].split("-")[2], "page": None}
        return apart(one) == apart(other)

    def is_at(self, to):
        """All entries are as after that revision, and the page has its bytes."""
        assert self.now() == self.states[to] and shown(self.server) == self.pages[to]

    # What happens.

    def change(self):
        who = self.dice.choice(("", "", "part", "mine"))
        numbers = self.dice.sample(range(60), self.dice.randint(1, 40))
        date = f"2026-{self.dice.randint(1, 9):02d}-{self.dice.randint(1, 28):02d}"
        folder = "p" if who == "part" else self.dice.choice("sp")
        one, several = name(numbers[0], folder), rows(numbers, date, folder)
        kind = self.dice.choice(("register", "remove", "bulk", "replace"))
        before, token = self.now(), self.tokens[who]
        if kind == "register":
            reply = self.server.api("POST", "/v1/sitemaps", {"loc": one, "lastmod": date}, token=token)
        elif kind == "remove":
            reply = self.server.api("DELETE", "/v1/sitemaps?loc=" + q(one), token=token)
        else:
            source = "*" if kind == "replace" and who != "mine" and self.dice.random() < 0.5 else None
            target = "/v1/sitemaps" if kind == "bulk" else (
                f"/v1/sitemaps?index={q(INDEX)}&max_removed=1000" + ("&source=*" if source else "&on_error=skip"))  # what another owns is refused, line by line
            body = "".join(json.dumps(row) + "\n" for row in several).encode()
            reply = self.server.api("POST" if kind == "bulk" else "PUT", target, body=body, token=token,
                                    content_type="application/x-ndjson")
        self.seen()
        self.stayed(who, before)
        if reply.status not in (200, 201, 204):
            # Another's entry; or none exists, or there is nothing that it may replace.
            of_another = reply.status == 422 and {line["code"] for line in reply.json().get("rejected", [])} == {"owned-by-another"}
            assert reply.status in ((404,) if who != "mine" else (403, 404, 409, 422)) or kind == "replace" and of_another, (kind, who, reply)
            assert self.now() == before

    def stayed(self, who, before):
        """A token changes nothing that is not its own."""
        for loc in {*before, *self.now()}:
            if before.get(loc) != self.now().get(loc):
                assert who != "part" or loc.startswith(f"{ORIGIN}/p/"), loc
                assert who != "mine" or {each[loc]["source"] for each in (before, self.now()) if loc in each} == {"mine"}

    def scan(self):
        for number in self.dice.sample(range(12), 4):
            kind = self.dice.random()
            if kind < 0.3:
                self.folder.remove(*[n for n in os.listdir(self.folder.path) if n == f"{number}.xml"])
            else:
                self.folder.put(f"{number}.xml", urlset(f"/{self.dice.randint(1, 3)}"), mtime=OLD + self.dice.randint(0, 9999))
        self.scan_now()

    def scan_now(self, thawed=False):
        reply = self.server.api("POST", "/v1/sources/files/scan?max_removed=1000")
        assert reply.status == 200, reply
        self.seen(scan=True, thawed=thawed)

    def freeze(self, on):
        reply = self.server.api("PATCH", f"/v1/indexes/{self.index}", {"frozen": on})
        assert reply.status == 200, reply

    @contextlib.contextmanager
    def frozen(self):
        """The folder decides again at the end."""
        self.freeze(True)
        self.seen()
        yield
        self.freeze(False)
        self.scan_now(thawed=True)  # the source may have repeated a held scan meanwhile: the same revision

    def kill(self):
        """All that was answered is there, and the page is the same bytes."""
        with self.frozen():
            self.server.kill()
            self.server.start()
            assert entries(self.server) == self.now() and shown(self.server) == self.pages[self.last]
            self.server.api("POST", "/v1/sources/files/scan")  # the one of the start is over, and what it found is held
            self.seen()

    # And back.

    def without_file(self, conflicts):
        """Those of an undo's conflicts that stay removed because the folder lost the file (or, without a scan since, because
        the undo of a scan took it for gone)."""
        exists = lambda loc: not self.undoing and os.path.exists(self.folder.at(loc.removeprefix(FILES)))
        gone = lambda loc: loc.startswith(FILES) and loc not in self.now() and not exists(loc)
        return {each["loc"] for each in conflicts if gone(each["loc"])}

    def expect_undo(self, revision, overwrite=False):
        """Locs with their dates, and the conflicts."""
        before, after, now = self.states[revision - 1], self.states[revision], self.now()
        expected, conflicts = {loc: each["lastmod"] for loc, each in now.items()}, set()
        for loc in {*before, *after}:
            if before.get(loc) == after.get(loc) or self.same(now.get(loc), before.get(loc)):
                continue
            if not self.same(now.get(loc), after.get(loc)):
                conflicts.add(loc)
                if not overwrite:
                    continue
            expected.pop(loc, None)
            if loc in before:
                expected[loc] = before[loc]["lastmod"]
        return expected, conflicts

    def undo_some(self):
        if not self.order:
            return
        revision, overwrite = self.dice.choice(self.order), self.dice.random() < 0.4
        query = {"max_removed": 1000, **({"on_conflict": "overwrite"} if overwrite else {})}
        if revision in self.scans:
            expected, _ = self.expect_undo(revision, overwrite)
            if expected != {loc: each["lastmod"] for loc, each in self.now().items()}:
                problem(undo(self.server, revision, **query), 409, "source-decides")
        with self.frozen() if revision in self.scans else contextlib.nullcontext():
            expected, conflicts = self.expect_undo(revision, overwrite)
            answer = undo(self.server, revision, **query)
            assert answer.status == 200, answer
            self.seen()
            gone = self.without_file(answer.json()["conflicts"])
            assert {each["loc"] for each in answer.json()["conflicts"]} == conflicts | gone
            assert answer.json()["conflicts_total"] == len(conflicts | gone)
            expected = {loc: lastmod for loc, lastmod in expected.items() if loc not in gone}
            assert {loc: each["lastmod"] for loc, each in self.now().items()} == expected
            for token in ("part", "mine"):
                problem(undo(self.server, revision, self.tokens[token]), 403)
        self.scan_now()

    def restore_some(self):
        to = self.dice.randint(self.first, self.last)
        with self.frozen():
            answer = self.server.api("POST", f"/v1/restore?index={q(INDEX)}&to={to}&max_removed=1000")
            assert answer.status == 200 and answer.json()["conflicts_total"] == 0, answer
            was = self.now()
            self.seen()
            self.is_at(to)
            created, removed = self.now().keys() - was.keys(), was.keys() - self.now().keys()
            assert (answer.json()["created"], answer.json()["removed"]) == (len(created), len(removed)), answer

    def undo_all(self):
        """The newest first: then each finds all as it left it, and nothing is in its way but a file that is gone."""
        gone, self.undoing = set(), True
        with self.frozen():
            for revision in reversed(self.order):
                answer = undo(self.server, revision, max_removed=1000)
                assert answer.status == 200, (revision, answer)
                self.note(self.revision())
                gone |= self.without_file(answer.json()["conflicts"])
                found = {each["loc"] for each in answer.json()["conflicts"]}
                assert found <= gone and answer.json()["conflicts_total"] == len(found), (revision, answer)
                if not gone:
                    self.is_at(revision - 1)
                others = lambda state: {loc: {**each, "page": None} for loc, each in state.items() if loc not in gone}
                assert others(self.now()) == others(self.states[revision - 1])


def test_random_changes_and_undos_agree_with_a_model(start, tmp_path):
    """Of three tokens and a folder, with a kill now and then. A longer walk: SITEMAPD_HISTORY_TURNS=2000."""
    seed = int(os.environ.get("SITEMAPD_SEED", random.randrange(1 << 32)))
    print(f"SITEMAPD_SEED={seed}")
    dice, folder = random.Random(seed), Folder(tmp_path / "files")
    # A source scans on its own `settle` after another changed its entries: here later than any walk takes.
    server = start(config=f'[source "files"]\ndirectory = {folder.path}\nurl = {FILES}\nwatch = no\nsettle = 1h\n')
    server.bulk(rows(range(0, 60, 2)) + rows(range(0, 60, 3), folder="p"))
    folder.fill(6, stem="")
    assert server.api("POST", "/v1/sources/files/scan").status == 200
    model = Model(server, dice, folder)
    steps = [model.change] * 10 + [model.undo_some] * 6 + [model.scan] * 3 + [model.restore_some]
    for turn in range(int(os.environ.get("SITEMAPD_HISTORY_TURNS", 40))):
        dice.choice(steps)()
        if turn % 20 == 19:
            model.kill()
    model.restore_some()
    model.undo_all()
    # What is in the folder is found again, whatever was restored.
    assert {FILES + n for n in os.listdir(folder.path)} <= {loc for loc, each in model.now().items() if each["source"] == "files"}
    assert server.cli("check").code == 0


def lines_of(reply):
    assert reply.status == 200 and reply["Content-Type"] == "application/x-ndjson", reply
    return [json.loads(line) for line in reply.body.decode().splitlines()]


def differ(server, since, to):
    return server.api("GET", f"/v1/diff?index={q(INDEX)}&from={since}&to={to}")


def dates(lines):
    """What each line shows, by loc: the date before and the one after; None: it was not there."""
    result = {each["loc"]: tuple(each[side] and each[side]["lastmod"] for side in ("before", "after")) for each in lines}
    assert len(result) == len(lines)
    return result


@pytest.mark.masses
@pytest.mark.stress
@pytest.mark.skipif(not PLAIN, reason="as much data as one thread reads in minutes there")
def test_the_difference_of_more_than_memory_holds_is_whole(server):
    """New, changed and removed ones, each once, with its first and its last state, however often it changed; and the
    rows of a change of many. Memory holds 50,000."""
    first = server.bulk(rows(range(14_000), "2026-01-01")).json()["revision"]
    second = int(time.time())  # an entry that has its date back within the second has no difference
    eventually(lambda: int(time.time()) > second, "the next second")
    many = server.bulk(rows(range(10_000, 90_000), "2026-01-02")).json()["revision"]
    server.bulk(rows(range(10_000, 11_000), "2026-01-01"))
    for day in (3, 4, 5):
        server.bulk(rows(range(88_000, 90_000), f"2026-01-0{day}"))
    last = server.replace([], source="*", max_removed=1000, prefix=name(0)[: -len("000.xml")]).json()
    assert last["removed"] == 1000, last
    expected = {name(n): ("2026-01-01", None) for n in range(1000)}
    expected.update({name(n): ("2026-01-01", "2026-01-01") for n in range(10_000, 11_000)})
    expected.update({name(n): ("2026-01-01", "2026-01-02") for n in range(11_000, 14_000)})
    expected.update({name(n): (None, "2026-01-02") for n in range(14_000, 88_000)})
    expected.update({name(n): (None, "2026-01-05") for n in range(88_000, 90_000)})
    assert dates(lines_of(differ(server, first, last["revision"]))) == expected
    result = dates(lines_of(server.api("GET", f"/v1/history/{many}", headers=LINES)))
    assert result == {name(n): ("2026-01-01" if n < 14_000 else None, "2026-01-02") for n in range(10_000, 90_000)}
    # On the command line, of the file and of the server.
    away = lambda *words: sitemapd(*words, "--server", f"http://{server.admin}", env={"SITEMAPD_TOKEN": TOKEN})
    for words, end in (
        (("diff", "--from", str(first), "--index", INDEX), f"+76000 ~4000 -1000 since revision {first}\n"),
        (("history", str(many), "--limit", "2500"), "lastmod 2026-01-01 -> 2026-01-02\n"),
    ):
        here, there = server.cli(*words), away(*words)
        assert (here.code, here.out, here.err) == (there.code, there.out, there.err)
        assert here.code == 0 and here.out.endswith(end), here.out[-200:]


def test_a_difference_has_its_room_on_the_disk(start):
    """What it spools counts with the lists of all: where there is no room it is refused, and others are not in its way."""
    server = start(config="[limits]\nmax_spool = 4M\n")
    numbers = range(60_000)
    first = server.bulk(rows(range(10))).json()["revision"]
    for at in range(0, 60_000, 10_000):
        last = server.bulk(rows(numbers[at : at + 10_000])).json()["revision"]
    problem(differ(server, first, last), 503, "spool-full")
    assert len(lines_of(differ(server, last - 1, last))) == 10_000
    assert server.bulk(rows([70_000])).status == 200


def test_the_rows_of_a_change_as_lines(server):
    revision = server.bulk(rows(range(3))).json()["revision"]
    get = lambda tail, token="": server.api("GET", f"/v1/history/{tail}", headers=LINES, token=token)
    page = server.api("GET", f"/v1/history/{revision}").json()["rows"]
    assert lines_of(get(revision)) == page and len(page) == 3
    problem(get(f"{revision}?after=1"), 400, "malformed-parameter", "after")
    problem(get(revision + 9), 404, "not-found")
    problem(get("x"), 400, "malformed-parameter", "revision")
    assert server.api("POST", "/v1/sites", {"origin": "https://other.example"}).status == 201
    assert lines_of(get(server.api("GET", "/v1/history?limit=1").json()["changes"][0]["revision"])) == []
    # What is another site's is not there for a token of one.
    other = site_token(server, "https://other.example", "other")
    problem(get(revision, token=other), 404, "not-found")


def test_a_difference_is_made_and_sent_as_an_export_is(server):
    """On the disk: a slow reader holds no memory, no reader, and no place of the next client."""
    done = server.bulk(rows(range(10))).json()["revision"]
    target = f"/v1/diff?index={q(INDEX)}&from="
    empty = server.api("GET", f"{target}{done}")
    assert (empty.status, empty.body, empty["content-type"]) == (200, b"", "application/x-ndjson")
    long = [{"loc": f"{ORIGIN}/{'long' * 100}/{number}.xml"} for number in range(20_000)]
    assert server.bulk(long).status == 200
    ask = request_bytes("GET", f"{target}{done}", [("Authorization", f"Bearer {TOKEN}")], host=server.admin)
    with contextlib.ExitStack() as stack:
        for _ in range(2):  # each is opened once the one before is answered: who opens and says nothing is closed
            reader = stack.enter_context(Connection(server.admin))
            reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            reader.send(ask)
            assert reader.take(15) == b"HTTP/1.1 200 OK"
        assert server.api("GET", f"{target}{done}").body.count(b"\n") == 20_000
