# SPDX-License-Identifier: LicenseRef-Undeclared
"""PUT /v1/sitemaps: an index, or a part of it, becomes the list; what does not differ stays as it is;
what would drop too much is held."""

import json
import random
import sqlite3
import time

from harness import INDEX, ORIGIN, PLAIN, eventually, locs, problem, q, seconds, sitemapd

XML = "/sitemap_index.xml"
GZIP = {"Accept-Encoding": "gzip"}
DAY = 86400


def names(count, first=0, folder="s"):
    return [f"{ORIGIN}/{folder}/{i:05d}.xml" for i in range(first, first + count)]


def page(server, target=XML):
    reply = server.get(target, GZIP)
    return locs(reply.xml()) if reply.status == 200 else []


def everything(server, **query):
    """Every entry as the API shows it, by loc."""
    found, after = {}, None
    while True:
        more = {**query, "limit": 1000, **({"after": after} if after else {})}
        answer = server.api("GET", "/v1/sitemaps?" + "&".join(f"{k}={q(v)}" for k, v in more.items())).json()
        found.update((e["loc"], e) for e in answer["sitemaps"])
        after = answer["next"]
        if after is None:
            return found


def counts(reply):
    assert reply.status == 200, reply
    answer = reply.json()
    return answer["created"], answer["updated"], answer["unchanged"], answer["removed"]


def revision(server):
    return server.metrics()["sitemapd_catalogue_revision"]


def positions(server):
    return {l["loc"]: l["position"] for l in server.cli("export").lines()}


def put(server, token, rows, **query):
    query = "&".join(f"{k}={q(v)}" for k, v in {"index": INDEX, **query}.items())
    return server.api("PUT", f"/v1/sitemaps?{query}", rows, token=token)


# ---- what is touched ----------------------------------------------------------------------------


def test_what_does_not_differ_keeps_id_place_and_dates(server):
    old = names(2000)
    assert counts(server.replace([{"loc": n, "lastmod": "2026-01-01", "digest": "d"} for n in old])) == (2000, 0, 0, 0)
    before, places = everything(server), positions(server)
    time.sleep(1.1)
    gone, kept = set(old[3:1997:8]), [n for n in old if n not in set(old[3:1997:8])]
    fresh = names(100, 5000)
    rows = [{"loc": n} for n in kept] + [{"loc": n} for n in fresh]
    rows[7]["lastmod"] = "2026-02-02"
    rows[9]["digest"] = "other"
    random.Random(7).shuffle(rows)  # the order of a list says nothing about places
    assert counts(server.replace(rows)) == (100, 2, len(kept) - 2, len(gone))
    after = everything(server)
    assert set(after) == set(kept) | set(fresh)
    assert {n for n in kept if after[n] != before[n]} == {kept[7], kept[9]}
    for changed in (kept[7], kept[9]):
        assert {k for k in after[changed] if after[changed][k] != before[changed][k]} <= {"lastmod", "digest", "changed_at"}
        assert after[changed]["id"] == before[changed]["id"]
    now = positions(server)
    assert {n: now[n] for n in kept} == {n: places[n] for n in kept}
    assert sorted(now[n] for n in fresh) == sorted(places[n] for n in gone)[:100], "free places, lowest first"
    assert server.cli("check").code == 0


def test_the_same_list_again_is_no_change(server):
    rows = [{"loc": n, "lastmod": "2026-01-01T00:00:00Z"} for n in names(3000)]
    assert counts(server.replace(rows)) == (3000, 0, 0, 0)
    state = revision(server), server.get(XML, GZIP).same_headers(), server.api("GET", "/v1/changes").json()["next"]
    time.sleep(1.1)
    for again in (rows, rows[::-1], [{"loc": r["loc"]} for r in rows]):
        assert counts(server.replace(again)) == (0, 0, 3000, 0)
    assert (revision(server), server.get(XML, GZIP).same_headers(), server.api("GET", "/v1/changes").json()["next"]) == state


def test_a_nightly_replace_with_fresh_dates_and_the_same_digests_is_no_change(server):
    """What a redeploy does to 9,000 files: the dates are new, the files are not."""
    night = lambda n, moved=(): [
        {"loc": loc, "lastmod": f"2026-01-{n:02d}T03:00:00Z", "digest": f"d{i}{'-new' if i in moved else ''}"}
        for i, loc in enumerate(names(9000))
    ]
    assert counts(server.replace(night(1))) == (9000, 0, 0, 0)
    state = revision(server), server.get(XML, GZIP).same_headers(), server.get(XML).same_headers()
    time.sleep(1.1)
    for n in (2, 3):
        assert counts(server.replace(night(n))) == (0, 0, 9000, 0)
        assert counts(server.bulk(night(n))) == (0, 0, 9000, 0), "nor as a bulk"
    assert (revision(server), server.get(XML, GZIP).same_headers(), server.get(XML).same_headers()) == state
    # Two files did change: their dates move, and no other.
    assert counts(server.replace(night(4, moved=(5, 8000)))) == (0, 2, 8998, 0)
    found = everything(server)
    assert sorted({e["lastmod"] for e in found.values()}) == ["2026-01-01T03:00:00Z", "2026-01-04T03:00:00Z"]
    assert sum(e["lastmod"].startswith("2026-01-04") for e in found.values()) == 2


def test_only_what_the_source_owns(server):
    one, two = server.make_token("one"), server.make_token("two")
    mine, other = names(10, folder="one"), names(10, folder="two")
    rows = lambda locs: [{"loc": n} for n in locs]
    assert counts(put(server, one, rows(mine))) == (10, 0, 0, 0)
    assert counts(put(server, two, rows(other))) == (10, 0, 0, 0)
    assert sorted(page(server)) == sorted(mine + other)
    # A list that would change another's entries is refused, line by line; what it has as it is does no harm.
    grabbed = [{"loc": n, "lastmod": "2026-01-01"} for n in other[:3]] + rows(other[3:5]) + rows(mine[:8])
    owned = lambda line, index=INDEX: {"line": line + 1, "loc": other[line], "code": "owned-by-another", "field": "loc", "detail": f'is owned by "two", in {index}; it was not changed'}
    assert problem(put(server, one, grabbed), 422)["rejected"] == [owned(line) for line in range(3)]
    assert len(page(server)) == 20
    skipped = put(server, one, grabbed, on_error="skip")
    assert counts(skipped) == (0, 0, 10, 2) and skipped.json()["rejected"] == [owned(line) for line in range(3)]
    assert skipped.json()["spared"] == 10
    # In another index they are not what the list says either.
    elsewhere = f"{ORIGIN}/elsewhere.xml"
    assert server.api("POST", "/v1/indexes", {"url": elsewhere}).status == 201
    for strict in (True, False):
        more = {} if strict else {"on_error": "skip"}
        reply = put(server, one, rows(other[:3]), index=elsewhere, **more)
        assert (reply.status, reply.json()["rejected"]) == (422 if strict else 200, [owned(line) for line in range(3)])
        dry = put(server, one, rows(other[:3]), index=elsewhere, dry_run="1", **more)
        assert (dry.status, dry.json()["rejected"]) == (reply.status, reply.json()["rejected"])
    assert reply.json()["unchanged"] == 0 and page(server, "/elsewhere.xml") == []
    found = everything(server)
    assert all(found[n]["source"] == "two" and found[n]["lastmod"] is None for n in other)
    assert counts(put(server, one, rows(mine[:7]), source="one")) == (0, 0, 7, 1)
    # Any token may act for a source, or for all of them.
    assert counts(put(server, one, rows(other[:9]), source="two")) == (0, 0, 9, 1)
    assert counts(put(server, one, rows(mine[:7] + other[:8]), source="*")) == (0, 0, 15, 1)
    assert counts(put(server, one, rows(names(1, folder="x")), source="three")) == (1, 0, 0, 0)
    assert everything(server)[names(1, folder="x")[0]]["source"] == "three"
    assert set(everything(server, source="two")) == set(other[:8])
    assert problem(put(server, one, [], source="a b"), 422)["field"] == "source"


def test_the_command_says_what_another_source_owns(server, tmp_path):
    """On the file and by a server alike: refused lines name owner and index, and a strict run fails."""
    elsewhere, other = f"{ORIGIN}/elsewhere.xml", names(3, folder="two")
    assert server.api("POST", "/v1/indexes", {"url": elsewhere}).status == 201
    assert counts(put(server, server.make_token("two"), [{"loc": n} for n in other])) == (3, 0, 0, 0)
    listed, dated = tmp_path / "listed", tmp_path / "dated"
    listed.write_text("".join(n + "\n" for n in other))
    dated.write_text("".join(json.dumps({"loc": n, "lastmod": "2026-01-01T00:00:00Z"}) + "\n" for n in other))
    for where in ("--database", server.database), ("--server", f"http://{server.admin}"):
        run = lambda file, index, *more: sitemapd("import", str(file), "--replace", "--index", index, "--source", "one", *more, *where, env={"SITEMAPD_TOKEN": server.token})
        for file, index in ((listed, elsewhere), (dated, INDEX)):
            refused = run(file, index)
            assert refused.code == 1 and "3 of 3 entries rejected, nothing was applied" in refused.err, refused
            for line, loc in enumerate(other, 1):
                assert f'{file}:{line}: {loc}: is owned by "two", in {INDEX}; it was not changed (owned-by-another)\n' in refused.err, refused
            assert "--source '*' replaces the entries of all sources" in refused.err
            skipped = run(file, index, "--skip-invalid")
            assert ": 0 created, 0 updated, 0 unchanged, 0 removed, 3 rejected" in skipped.out, skipped
        same = run(listed, INDEX)
        assert same.code == 0 and "3 unchanged" in same.out and "3 entries of other sources were left as they are" in same.err, same
    assert page(server, "/elsewhere.xml") == [] and sorted(page(server)) == other


def test_only_what_lies_under_the_prefix(server):
    a, b = names(10, folder="a"), names(10, folder="b")
    near = [f"{ORIGIN}/a.xml", f"{ORIGIN}/aa/1.xml"]
    assert server.bulk(a + b + near).json()["created"] == 22
    prefix = f"{ORIGIN}/a/"
    assert counts(server.replace(a[:8] + names(1, 77, "a"), prefix=prefix)) == (1, 0, 8, 2)
    assert sorted(page(server)) == sorted(a[:8] + names(1, 77, "a") + b + near)
    before = page(server)
    found = problem(server.replace([a[0], b[0]], prefix=prefix, max_removed=99), 422)
    assert [(r["line"], r["code"]) for r in found["rejected"]] == [(2, "outside-directory")] and page(server) == before
    # Given in another spelling it is the same prefix.
    assert counts(server.replace(a[:8], prefix="https://WWW.example.com:443/x/../%61/")) == (0, 0, 8, 1)
    assert counts(server.replace(b[:9], prefix=f"{ORIGIN}/b/")) == (0, 0, 9, 1)
    # The guard looks at the part as well: it does not go empty where enough of the index is left.
    assert server.bulk(names(20, folder="c")).json()["created"] == 20
    for rows, gone in (([], 9), (b[:6], 3)):
        held = problem(server.replace(rows, prefix=f"{ORIGIN}/b/"), 409, "shrink-guard")
        assert held["would_remove"] == gone and f"of the 9 that the list replaces; max_removed={gone} allows" in held["detail"], held
    assert counts(server.replace([], prefix=f"{ORIGIN}/b/", max_removed=9)) == (0, 0, 0, 9)
    assert problem(server.replace([], prefix="b/"), 422)["field"] == "prefix"


def test_what_was_in_another_index_moves_here(server):
    assert server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/s/index.xml"}).status == 201
    rows = names(6)
    assert server.bulk(rows).json()["created"] == 6
    assert page(server, "/s/index.xml") == rows and page(server) == []
    # Gone from there is gone: the guard counts it, and one number approves all that goes.
    found = problem(server.replace(rows[:2]), 409, "shrink-guard")
    assert found["would_remove"] == 2 and "/s/index.xml" in found["detail"], found
    assert page(server, "/s/index.xml") == rows and page(server) == []
    reply = server.replace(rows[:2], max_removed=2)
    assert counts(reply) == (0, 2, 0, 0) and reply.json()["moved"] == 2
    assert page(server) == rows[:2] and page(server, "/s/index.xml") == rows[2:]
    assert counts(server.replace(rows, index="/s/index.xml", max_removed=2)) == (0, 2, 4, 0)
    assert page(server) == [] and sorted(page(server, "/s/index.xml")) == rows


def test_what_another_index_would_lose_is_guarded(server):
    """Whatever its owner, and by a POST as well. One entry at a time is a removal of one."""
    assert server.api("POST", "/v1/indexes", {"url": f"{ORIGIN}/s/index.xml"}).status == 201
    rows = names(6)
    assert server.bulk(rows, "/v1/sitemaps?source=somebody").json()["created"] == 6
    taken = [{"loc": row, "index": INDEX} for row in rows]
    for reply in (server.bulk(taken), server.replace(rows, source="*"), server.bulk(taken, "/v1/sitemaps?max_removed=5")):
        assert problem(reply, 409, "shrink-guard")["would_remove"] == 6
    assert page(server, "/s/index.xml") == rows and page(server) == []
    one = server.register(rows[0], index=INDEX).json()
    assert (one["updated"], one["moved"], one["removed"]) == (1, 1, 0)
    assert server.bulk(taken[1:2]).json()["moved"] == 1
    done = server.bulk(taken, "/v1/sitemaps?max_removed=4")
    assert (done.json()["moved"], done.json()["unchanged"]) == (4, 2) and page(server, "/s/index.xml") == []
    # The command line.
    back = "".join(row + "\n" for row in rows)
    held = server.cli("import", "--index", f"{ORIGIN}/s/index.xml", "-", input=back)
    assert held.code == 1 and "out of /sitemap_index.xml" in held.err and "--max-removed 6" in held.err, held
    done = server.cli("import", "--index", f"{ORIGIN}/s/index.xml", "--max-removed", "6", "-", input=back)
    assert done.code == 0 and "6 moved from another index" in done.out, done


# ---- lists that are refused ---------------------------------------------------------------------


def test_all_or_nothing(server):
    rows = names(20)
    assert server.bulk(rows).json()["created"] == 20
    state = revision(server), page(server)
    bad = rows[:18] + ["relative", f"{ORIGIN}/{XML[1:]}", rows[0], "https://other.example/x.xml"]
    found = problem(server.replace(bad), 422)
    assert [(r["line"], r["code"]) for r in found["rejected"]] == [
        (19, "loc-relative"), (20, "loc-is-index-page"), (21, "duplicate"), (22, "outside-site"),
    ], found
    for query, status, code in (
        ({"index": "/none.xml"}, 404, "index-unknown"), ({"index": "https://other.example/x.xml"}, 404, "index-unknown"),
        ({"max_removed": "-1"}, 400, "malformed-parameter"), ({"max_removed": "x"}, 400, "malformed-parameter"),
        ({"on_error": "x"}, 400, "malformed-parameter"), ({"prune": "1"}, 400, "unknown-parameter"),
    ):
        problem(server.replace(rows, **query), status, code)
    problem(server.api("PUT", "/v1/sitemaps", rows), 400, "missing-parameter", "index")
    problem(server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}", {"loc": rows[0]}), 400, "list-needed")
    assert (revision(server), page(server)) == state
    assert counts(server.replace(bad, on_error="skip")) == (0, 0, 18, 2)


INVALID = [{"digest": ""}, {"unknown": 1}, {"lastmod": 5}, {"position": -1}, {"position": 10**9}, {"index": "x" * 3000}]


def test_a_rejected_line_removes_nothing(server, tmp_path):
    """With on_error=skip: a mistake in a line must not remove the entry that the line names."""
    other = ORIGIN + "/deep/index.xml"
    assert server.api("POST", "/v1/indexes", {"url": other}).status == 201
    listed, gone = names(len(INVALID) + 12), names(2, 900)
    elsewhere = [{"loc": loc, "index": other} for loc in names(len(INVALID) + 12, folder="deep")]
    bad = [{"loc": loc, **fault} for loc, fault in zip(listed, INVALID)]
    lines = bad + [{"loc": loc} for loc in listed[len(INVALID) :]]
    assert counts(server.replace(listed + gone))[0] == len(listed) + 2
    before = {loc: entry for loc, entry in everything(server).items() if loc in listed}
    reply = server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}&on_error=skip", lines)
    assert counts(reply) == (0, 0, 12, 2) and everything(server) == before
    assert (reply.json()["rejected_total"], reply.json()["spared"]) == (len(INVALID), 0)
    # Under the prefix, and of the source, as ever; a line twice counts once.
    reply = server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}&on_error=skip&prefix={q(ORIGIN + '/s/')}", bad[:1] * 2 + lines[1:] + bad)
    assert counts(reply) == (0, 0, 12, 0) and everything(server) == before
    # The command: over HTTP and on the file, one index and several.
    assert server.api("POST", "/v1/sitemaps", elsewhere).json()["created"] == len(elsewhere)
    before = everything(server)
    lines[:6] = [{"loc": loc, **fault} for loc, fault in zip(listed, [{"digest": ""}, {"unknown": 1}, {"lastmod": 5}, {"position": -1}, {"index": 7}, {"source": "*"}])]
    broken = [{**row, "digest": ""} for row in elsewhere[:3]] + elsewhere[3:]
    (tmp_path / "list").write_text("".join(json.dumps(line) + "\n" for line in lines + broken))
    over = {"SITEMAPD_SERVER": "http://" + server.admin, "SITEMAPD_TOKEN": server.token}
    words = "import", "--replace", "--skip-invalid", "--source", "*", tmp_path / "list"
    for command in (sitemapd(*words, env=over), server.cli(*words)):
        assert command.code == 0 and f"read {len(lines + broken)}: 0 created, 0 updated, {len(lines + broken) - 9} unchanged, 0 removed, 9 rejected" in command.out, command
        assert command.err.count("list:1:") == 1 and "of other sources" not in command.err
        assert everything(server) == before


def test_a_page_url_with_an_extension_too_many_stays(server):
    urlset = ORIGIN + "/p.xml"
    assert server.api("POST", "/v1/urlsets", {"url": urlset}).status == 201
    rows = [{"loc": f"{ORIGIN}/{i}"} for i in range(9)]
    replace = lambda rows: server.api("PUT", f"/v1/urls?urlset={q(urlset)}&on_error=skip", rows)
    assert counts(replace(rows)) == (9, 0, 0, 0)
    faults = {"images": [f"{ORIGIN}/1.jpg"]}, {"images": [None]}, {"alternates": 1}
    reply = replace([{**row, **fault} for row, fault in zip(rows, faults)] + rows[3:8])
    assert counts(reply) == (0, 0, 5, 1) and reply.json()["rejected_total"] == 3
    assert [r["loc"] for r in server.api("GET", f"/v1/urls?urlset={q(urlset)}").json()["urls"]] == [row["loc"] for row in rows[:8]]


def test_lists_that_are_too_large(start):
    server = start(config="[limits]\nmax_body = 64K\nmax_bulk = 64K\nmax_bulk_entries = 500\n")
    assert counts(server.replace(names(500))) == (500, 0, 0, 0)
    state = revision(server), page(server)
    problem(server.replace(names(501)), 413)
    problem(server.replace([f"{ORIGIN}/{'x' * 2000}/{i}.xml" for i in range(40)]), 413)
    assert (revision(server), page(server)) == state, "a list that is cut short must not drop what is behind the cut"


def test_an_empty_list(server):
    assert counts(server.replace([])) == (0, 0, 0, 0), "of an empty index"
    assert counts(server.replace([], max_removed=0)) == (0, 0, 0, 0)
    rows = names(3)
    assert server.bulk(rows).json()["created"] == 3
    assert problem(server.replace([]), 409, "shrink-guard")["would_remove"] == 3
    for body, kind in EMPTY:
        reply = server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}", body=body, content_type=kind)
        assert reply.status in (400, 409), (body, reply)
    assert page(server) == rows
    reply = server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}&max_removed=3", body=b"", content_type="application/x-ndjson")
    assert counts(reply) == (0, 0, 0, 3) and server.get(XML).status == 404


EMPTY = ((b"[]", "application/json"), (b"", "application/x-ndjson"), (b"\n\n", "application/x-ndjson"), (b"[ ]\n", "application/json"))


def test_a_failed_export_does_not_empty_a_share(server):
    """What the token owns is 8 of 36: the index as a whole would lose less than the guard allows."""
    token = server.make_token("pipeline")
    rows = [{"loc": n} for n in names(8, folder="pipeline")]
    assert server.bulk(names(28)).json()["created"] == 28
    assert counts(put(server, token, rows)) == (8, 0, 0, 0)
    full = page(server)
    for body, kind in EMPTY:
        reply = server.api("PUT", f"/v1/sitemaps?index={q(INDEX)}", body=body, content_type=kind, token=token)
        assert problem(reply, 409, "shrink-guard")["would_remove"] == 8, (body, reply)
        assert "max_removed=8 allows it" in reply.json()["detail"]
    bad = [{"loc": "relative"}]
    assert problem(put(server, token, bad, on_error="skip"), 409, "shrink-guard")["would_remove"] == 8
    assert problem(put(server, token, rows[:5]), 409, "shrink-guard")["would_remove"] == 3, "more than 30 % of 8"
    assert problem(put(server, token, [], max_removed=7), 409, "shrink-guard")["would_remove"] == 8
    assert page(server) == full
    # What is exchanged is not lost, and a new source has nothing to lose.
    assert counts(put(server, token, rows[:2] + [{"loc": n} for n in names(6, 90, "pipeline")])) == (6, 0, 2, 6)
    assert counts(put(server, token, [], source="new")) == (0, 0, 0, 0)
    assert counts(put(server, token, [], max_removed=8)) == (0, 0, 0, 8)
    assert sorted(page(server)) == sorted(names(28))


def test_an_empty_import_does_not_empty_a_share(server):
    assert server.bulk(names(28)).json()["created"] == 28
    rows = "".join(n + "\n" for n in names(8, folder="cli"))
    full = lambda: server.cli("import", "--index", INDEX, "--replace", "-", input=rows)
    assert full().code == 0
    for text in ("", "\n\n"):
        held = server.cli("import", "--index", INDEX, "--replace", "-", input=text)
        assert held.code == 1 and len(everything(server)) == 36, held
    assert "--max-removed 8" in held.err, held
    for text in ("", "\n\n", "[]"):  # no loc names the index
        result = server.cli("import", "--replace", "--max-removed", "8", "-", input=text)
        assert result.code == 1 and "names no index" in result.err and "--index" in result.err, result
    assert server.cli("import", "--index", INDEX, "--replace", "--max-removed", "8", "-", input="").code == 0
    eventually(lambda: len(page(server)) == 28, "the server serves what the command did")


# ---- the shrink guard ---------------------------------------------------------------------------


def test_the_guard(server):
    rows = names(1000)
    assert counts(server.replace(rows)) == (1000, 0, 0, 0)
    found = problem(server.replace(rows[:699]), 409, "shrink-guard")
    assert found["would_remove"] == 301 and len(page(server)) == 1000
    assert found["detail"].startswith("would remove 301 entries and leave 699, where there were up to 1000 ")
    assert counts(server.replace(rows[:700])) == (0, 0, 700, 300), "30 % may go"
    # Not again and again: the peak of the last days counts, not what is there now.
    again = problem(server.replace(rows[:699]), 409, "shrink-guard")
    assert again["would_remove"] == 1 and again["detail"].startswith("would remove 1 entry and leave 699, ")
    # It is what is left that counts: an exchange of all for as many others is let through.
    others = names(700, 2000)
    assert counts(server.replace(others)) == (700, 0, 0, 700)
    # Approved, it starts again from there.
    problem(server.replace(others[:100], max_removed=599), 409, "shrink-guard")
    assert counts(server.replace(others[:100], max_removed=600)) == (0, 0, 100, 600)
    assert counts(server.replace(others[:70])) == (0, 0, 70, 30)
    # Single removals are never refused, and lower what the next set is measured from.
    for loc in others[:40]:
        assert server.api("DELETE", f"/v1/sitemaps?loc={q(loc)}").status == 204
    problem(server.replace(others[48:70]), 409, "shrink-guard")  # 22, where the peak is 100 - 40
    assert counts(server.replace(others[40:70])) == (0, 0, 30, 0)


def test_an_import_of_several_indexes(server, tmp_path):
    """--max-removed counts the removals of all, and the summary names each revision."""
    paths = "/a/index.xml", "/b/index.xml", "/c/index.xml"
    for path in paths:
        assert server.api("POST", "/v1/indexes", {"url": ORIGIN + path}).status == 201
    rows = [{"loc": f"{ORIGIN}{path[:3]}{i}.xml"} for path in paths for i in range(4)]
    (tmp_path / "whole").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "half").write_text("".join(json.dumps(row) + "\n" for row in rows[::2]))
    over = {"SITEMAPD_SERVER": "http://" + server.admin, "SITEMAPD_TOKEN": server.token}
    run = lambda *words: sitemapd("import", "--replace", "--source", "*", *words, env=over)
    on_file = lambda *words: server.cli("import", "--replace", "--source", "*", *words)
    newest = lambda: json.loads(server.cli("history", "--limit", "1", "--json").out)["revision"]
    first = newest() + 1
    for command in run, on_file:
        done = command(tmp_path / "whole")
        assert done.code == 0 and f"12 created, 0 updated, 0 unchanged, 0 removed, 0 rejected (revisions {first}, {first + 1}, {first + 2})\n" in done.out, done
        again = command(tmp_path / "whole")
        assert again.code == 0 and f"12 unchanged, 0 removed, 0 rejected (revision {first + 2})\n" in again.out, again
        held = command("--max-removed", "5", tmp_path / "half")
        assert held.code == 1 and "/c/index.xml: would remove 2 entries" in held.err and "--max-removed 6 allows it" in held.err, held
        assert newest() == first + 2 and len(everything(server)) == 12
        done = command("--max-removed", "6", tmp_path / "half")
        assert done.code == 0 and f"6 unchanged, 6 removed, 0 rejected (revisions {first + 3}, {first + 4}, {first + 5})\n" in done.out, done
        for i in range(3):
            assert server.api("POST", f"/v1/history/{first + 5 - i}/undo").status == 200
        assert len(everything(server)) == 12
        (tmp_path / "more").write_text((tmp_path / "whole").read_text() + json.dumps({"loc": f"{ORIGIN}/b/more.xml"}) + "\n")
        done = command(tmp_path / "more")
        assert done.code == 0 and f"1 created, 0 updated, 12 unchanged, 0 removed, 0 rejected (revision {first + 9})\n" in done.out, done
        for row in everything(server):
            assert server.api("DELETE", f"/v1/sitemaps?loc={q(row)}").status == 204
        first = newest() + 1


def test_the_guard_sees_what_single_removals_leave(server):
    rows = names(100)
    assert counts(server.replace(rows)) == (100, 0, 0, 0)
    for loc in rows[:50]:
        assert server.api("DELETE", f"/v1/sitemaps?loc={q(loc)}").status == 204
    problem(server.replace(rows[50:84]), 409, "shrink-guard")
    assert counts(server.replace(rows[50:85])) == (0, 0, 35, 15)


def test_the_last_entry_is_held(server):
    assert counts(server.replace(names(1))) == (1, 0, 0, 0)
    assert problem(server.replace([]), 409, "shrink-guard")["would_remove"] == 1
    assert server.api("DELETE", f"/v1/sitemaps?loc={q(names(1)[0])}").status == 204, "a single one goes"
    assert server.get(XML).status == 404


def age_peaks(server, days):
    """As if the server had stood still for so many days."""
    server.stop()
    with sqlite3.connect(server.database) as db:
        assert db.execute("SELECT count(*) FROM index_peak").fetchone()[0] > 0
        db.execute("UPDATE index_peak SET day = day - ?", (days,))
    db.close()
    server.start()


def test_the_guard_remembers_seven_days(server):
    rows = names(100)
    assert counts(server.replace(rows)) == (100, 0, 0, 0)
    assert counts(server.replace(rows[:70])) == (0, 0, 70, 30)
    problem(server.replace(rows[:60]), 409, "shrink-guard")
    age_peaks(server, 7)
    problem(server.replace(rows[:60]), 409, "shrink-guard")
    age_peaks(server, 1)
    # The peak of eight days ago is forgotten; what is there now counts.
    assert counts(server.replace(rows[:60])) == (0, 0, 60, 10)
    problem(server.replace(rows[:48]), 409, "shrink-guard")
    # An index that stood still had its entries until the day of the change.
    assert counts(server.replace(rows[:90])) == (30, 0, 60, 0)
    age_peaks(server, 30)
    assert counts(server.replace(rows[:64])) == (0, 0, 64, 26)
    age_peaks(server, 7)
    problem(server.replace(rows[:62]), 409, "shrink-guard")
    age_peaks(server, 1)
    assert counts(server.replace(rows[:50])) == (0, 0, 50, 14)
    server.stop()
    with sqlite3.connect(server.database) as db:
        kept = db.execute("SELECT count(*), min(day) FROM index_peak").fetchone()
    db.close()
    assert kept[0] <= 8 and kept[1] >= int(time.time()) // DAY - 8, "old days are thrown away"
    server.start()


def test_the_guard_may_be_set(start, tmp_path):
    server = start(config="[catalogue]\nshrink_guard = 50%\n")
    assert counts(server.replace(names(100))) == (100, 0, 0, 0)
    problem(server.replace(names(49)), 409, "shrink-guard")
    assert counts(server.replace(names(50))) == (0, 0, 50, 50)
    server.stop()
    (tmp_path / "sitemapd.conf").write_text("[catalogue]\nshrink_guard = 0\n")
    server.start()
    assert counts(server.replace(names(1))) == (0, 0, 1, 49)
    assert problem(server.replace([]), 409, "shrink-guard")["would_remove"] == 1, "but an empty list empties nothing"
    assert counts(server.replace([], max_removed=1)) == (0, 0, 0, 1)


# ---- beside others ------------------------------------------------------------------------------


def test_readers_see_the_old_list_or_the_new_one(server):
    count = 3000 if PLAIN else 600
    old, new = names(count, folder="old"), names(count, folder="new")
    assert counts(server.replace(old)) == (count, 0, 0, 0)
    seen, end = set(), time.monotonic() + seconds(1.5)
    for n in range(1000):
        if n >= 2 and time.monotonic() > end:
            break
        wanted = new if n % 2 == 0 else old
        assert counts(server.replace(wanted))[0] == count
        xml = page(server)
        assert sorted(xml) == sorted(wanted), "what is acknowledged is in the next GET"
        seen.add(xml[0])
    assert len(seen) == 2


def test_a_replace_keeps_the_positions_that_it_names(server):
    """An export's lines name their positions; the command line's replace puts them there."""
    rows = [{"loc": n, "position": p} for n, p in zip(names(4), (10, 0, 5, 600))]
    text = "".join(json.dumps(r) + "\n" for r in rows)
    assert server.cli("import", "--index", INDEX, "--replace", "-", input=text).code == 0
    assert positions(server) == {r["loc"]: r["position"] for r in rows}
    swapped = [{**rows[0], "position": 0}, {**rows[1], "position": 10}, rows[2], rows[3]]
    text = "".join(json.dumps(r) + "\n" for r in swapped)
    assert server.cli("import", "--index", INDEX, "--replace", "-", input=text).code == 0
    assert positions(server) == {r["loc"]: r["position"] for r in swapped}
    assert server.cli("check").code == 0


def test_a_dry_run_answers_the_same_and_writes_nothing(server):
    """Lists, a PUT, the removal of an index and of a site: refusals too."""
    rows = [{"loc": loc} for loc in names(20)]
    post = f"/v1/sitemaps?index={q(INDEX)}"
    index, site = (server.api("GET", f"/v1/{of}").json()[of][0]["id"] for of in ("indexes", "sites"))
    calls = [
        ("POST", post, rows),
        ("POST", post, rows[:5] + [{"loc": "/no.xml"}]),
        ("POST", post + "&on_error=skip", rows[:5] + [{"loc": "https://other.example/no.xml"}]),
        ("POST", post + "&on_error=skip", [{**row, "lastmod": "2026-01-01"} for row in rows]),
        ("PUT", post + "&source=*", rows[:3]),
        ("PUT", post + "&source=*&max_removed=17", rows[:3] + [{"loc": f"{ORIGIN}/s/new.xml"}]),
        ("DELETE", f"/v1/indexes/{index}", None),
        ("DELETE", f"/v1/indexes/{index}?max_removed=100", None),
        ("DELETE", f"/v1/sites/{site}", None),
        ("DELETE", f"/v1/sites/{site}?max_removed=100", None),
    ]
    for method, target, body in calls:
        before, entries, at = page(server), everything(server), revision(server)
        dry = server.api(method, target + ("&" if "?" in target else "?") + "dry_run=1", body)
        assert (page(server), everything(server), revision(server)) == (before, entries, at), (method, target, dry)
        real = server.api(method, target + ("&" if "?" in target else "?") + "dry_run=0", body)
        assert dry.status == real.status, (method, target, dry, real)
        result, done = dry.json(), real.json()
        if real.status == 200:
            assert result.pop("revision") == at and done.pop("revision") >= at
            assert len(result.pop("rows")) == result.pop("rows_total")
        assert result == done, (method, target, dry, real)
    assert server.api("GET", "/v1/sites").json()["sites"] == []


def test_a_dry_run_is_of_a_set(server):
    body = {"loc": names(1)[0]}
    assert counts(server.api("POST", "/v1/sitemaps?dry_run=1", body)) == (1, 0, 0, 0)  # of one entry
    problem(server.api("POST", "/v1/sitemaps?dry_run=1", {"loc": "/a.xml"}), 422, "entries-refused")
    problem(server.api("POST", "/v1/sitemaps?dry_run=yes", [body]), 400, "malformed-parameter", "dry_run")
    problem(server.api("DELETE", f"/v1/sitemaps?loc={q(body['loc'])}&dry_run=1"), 400, "unknown-parameter")
    assert page(server) == []
