# SPDX-License-Identifier: LicenseRef-Undeclared
"""If-Match on a list or a PUT: it is applied while the index's entries are what the client saw, else not
at all; and a dry run, which shows what it would do and leaves everything as it was."""

import threading

from harness import INDEX, ORIGIN, eventually, problem, q

LIST = "/v1/sitemaps"
DEEP = f"{ORIGIN}/deep/index.xml"


def name(number, folder="s"):
    return f"{ORIGIN}/{folder}/{number:05d}.xml"


def rows(numbers, date="2026-01-01", **fields):
    return [{"loc": name(number), "lastmod": date, **fields} for number in numbers]


def send(server, method, body, tag=None, token="", **query):
    query = "&".join(f"{key}={q(str(value))}" for key, value in query.items())
    headers = [("If-Match", tag)] if tag is not None else []
    return server.api(method, f"{LIST}?{query}" if query else LIST, body, headers=headers, **({"token": token} if token else {}))


def put(server, body, tag=None, **query):
    return send(server, "PUT", body, tag, index=INDEX, **query)


def post(server, body, tag=None, **query):
    return send(server, "POST", body, tag, index=INDEX, **query)


def index_id(server, url=INDEX):
    return next(i["id"] for i in server.api("GET", "/v1/indexes").json()["indexes"] if i["url"] == url)


def index_tag(server, url=INDEX):
    return server.api("GET", f"/v1/indexes/{index_id(server, url)}")["ETag"]


def state(tag):
    """What If-Match compares: the tag up to the dot."""
    return tag.strip('"').split(".")[0]


def test_a_list_and_a_put_apply_only_to_the_state_that_was_seen(server):
    empty = index_tag(server)
    first = post(server, rows(range(10)), empty)
    assert first.status == 200 and first.json()["created"] == 10
    assert first["ETag"] == f'"{state(first["ETag"])}"'
    assert state(first["ETag"]).split("-")[1] == str(first.json()["revision"])
    # All answers about the index show the same state.
    listed = send(server, "GET", None, index=INDEX)["ETag"]
    lines = server.api("GET", f"{LIST}?index={q(INDEX)}", headers=[("Accept", "application/x-ndjson")])["ETag"]
    assert {state(t) for t in (index_tag(server), listed, lines)} == {state(first["ETag"])}
    # What was seen is gone: nothing of either is applied.
    before = server.api("GET", "/v1/changes?since=0").json()
    for condition in (empty, '"x"', f"W/{first['ETag']}", '"x", "y"', "", first["ETag"][:-1] + '0"'):
        problem(put(server, rows(range(9)), condition), 412, "precondition-failed")
        problem(post(server, rows([77]), condition), 412, "precondition-failed")
        problem(put(server, rows(range(9)), condition, dry_run=1), 412, "precondition-failed")
    assert server.api("GET", "/v1/changes?since=0").json() == before
    # Any of the tags that are true will do, and each answer's is the next one's.
    second = put(server, rows(range(9)), first["ETag"], source="*", max_removed=1)
    assert second.status == 200 and second.json()["removed"] == 1, second
    third = put(server, rows(range(8)), f'"x", {second["ETag"]}', source="*", max_removed=1)
    assert third.status == 200 and third.json()["removed"] == 1, third
    assert post(server, rows([50]), index_tag(server)).status == 200
    assert post(server, rows([51]), send(server, "GET", None, index=INDEX, limit=1)["ETag"]).status == 200
    assert post(server, rows([52]), "*").status == 200
    # What changes nothing leaves the tag, so that it holds again.
    tag = post(server, rows([52]))["ETag"]
    assert post(server, rows([52]), tag).json()["unchanged"] == 1
    assert put(server, rows([52]), tag, dry_run=1, source="*", max_removed=99)["ETag"] == tag
    assert post(server, rows([53]), tag).status == 200


def test_whatever_changes_an_entry_moves_the_tag(server):
    """Also what no page shows; and nothing else does."""
    assert post(server, rows(range(3), digest="a")).status == 200
    assert server.api("POST", "/v1/indexes", {"url": DEEP}).status == 201
    page = server.get("/sitemap_index.xml")

    def moves(act):
        tags = {url: index_tag(server, url) for url in (INDEX, DEEP)}
        answer = act()
        assert answer.status in (200, 201, 204), answer
        return {url for url, tag in tags.items() if state(index_tag(server, url)) != state(tag)}

    # Of a digest alone: the page stays, the tag does not.
    assert moves(lambda: post(server, [{"loc": name(0), "digest": "b"}])) == {INDEX}
    assert server.get("/sitemap_index.xml")["ETag"] == page["ETag"]
    assert moves(lambda: server.api("POST", LIST, {"loc": name(1), "digest": "b"})) == {INDEX}
    assert moves(lambda: server.api("POST", LIST, {"loc": name(1), "lastmod": "2026-03-01"})) == {INDEX}
    assert moves(lambda: server.api("DELETE", f"{LIST}?loc={q(name(2))}")) == {INDEX}
    assert moves(lambda: server.api("POST", LIST, {"loc": name(0), "digest": "b"})) == set()
    # A move is a change of both; a new index, or a freeze, of none.
    server.register(f"{ORIGIN}/deep/a.xml")
    assert moves(lambda: server.api("POST", LIST, {"loc": f"{ORIGIN}/deep/a.xml", "index": INDEX})) == {INDEX, DEEP}
    index = index_id(server, DEEP)
    whole = server.api("GET", f"/v1/indexes/{index}")["ETag"]
    assert moves(lambda: server.api("PATCH", f"/v1/indexes/{index}", {"frozen": True})) == set()
    # But what a cache holds is another then.
    assert server.api("GET", f"/v1/indexes/{index}", headers=[("If-None-Match", whole)]).status == 200
    newest = server.api("GET", "/v1/history?limit=100").json()["changes"]
    registration = next(c["revision"] for c in newest if c["kind"] == "list" and c["updated"] == 1)
    assert moves(lambda: server.api("POST", f"/v1/history/{registration}/undo")) == {INDEX}
    # The tag outlives the process.
    tag = index_tag(server)
    server.restart()
    assert state(index_tag(server)) == state(tag)
    assert post(server, rows([9]), tag).status == 200


def test_where_it_cannot_apply_it_is_refused(server):
    assert server.api("POST", "/v1/indexes", {"url": DEEP}).status == 201
    tag = post(server, rows(range(3)))["ETag"]
    before = server.api("GET", "/v1/changes?since=0").json()
    both = rows([7]) + [{"loc": f"{ORIGIN}/deep/a.xml", "index": DEEP}]
    for condition in (tag, "*"):
        problem(send(server, "POST", rows([5]), condition), 400, "precondition-on-list")
        problem(post(server, both, condition), 400, "precondition-on-list")
        problem(post(server, rows([5])[0], condition, dry_run=1), 400, "precondition-on-list")
        problem(send(server, "POST", rows([5]), condition, index=f"{ORIGIN}/none.xml"), 412, "precondition-failed")
        problem(send(server, "PUT", rows([5]), condition, index=f"{ORIGIN}/none.xml"), 404, "index-unknown")
    # An entry's own tag is not one of an index, nor the other way round.
    entry = server.api("GET", f"{LIST}?loc={q(name(0))}").json()["sitemaps"][0]["id"]
    own = server.api("GET", f"{LIST}/{entry}")["ETag"]
    problem(post(server, rows([5]), own), 412, "precondition-failed")
    problem(post(server, rows([0])[0], tag), 412, "precondition-failed")
    assert server.api("GET", "/v1/changes?since=0").json() == before


def test_of_writers_who_saw_the_same_one_wins(server):
    tag = post(server, rows(range(5)))["ETag"]
    for turn in range(5):
        answers = []
        def write(client):
            answers.append(post(server, rows([100 + turn * 10 + client]), tag))
        clients = [threading.Thread(target=write, args=(client,)) for client in range(4)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        assert sorted(a.status for a in answers) == [200, 412, 412, 412]
        tag = next(a["ETag"] for a in answers if a.status == 200)


def test_without_a_history_the_tag_is_the_same(start):
    server = start(config="[history]\nkeep = 0\n")
    tag = post(server, rows(range(3), digest="a"))["ETag"]
    newer = post(server, [{"loc": name(0), "digest": "b"}], tag)
    assert newer.status == 200 and newer["ETag"] != tag
    problem(post(server, rows([5]), tag), 412, "precondition-failed")
    assert post(server, rows([5]), newer["ETag"]).status == 200


# ---- dry runs -----------------------------------------------------------------------------------


def everything(server):
    """Whatever a dry run could have moved: entries, pages with their tags, the revision, the history."""
    pages = [server.get("/sitemap_index.xml"), server.get("/deep/index.xml")]
    return (server.cli("export").out, [(p.status, p["ETag"], p["Last-Modified"], p.body) for p in pages],
            server.metrics()["sitemapd_catalogue_revision"], index_tag(server),
            server.api("GET", "/v1/history?limit=1000").json())


def entry(server, loc):
    found = server.api("GET", f"{LIST}?loc={q(loc)}").json()["sitemaps"]
    return found[0] if found else None


def rows_by_loc(answer):
    """The rows of a dry run by loc, without values that differ in each run."""
    assert answer.status == 200, answer
    return {r["loc"]: (r["before"], r["after"]) for r in answer.json()["rows"]}


def check_dry_run(server, ask):
    """A dry run shows what the call then does, and leaves everything as it was."""
    before = everything(server)
    answer = ask("&dry_run=1")
    assert everything(server) == before
    rows = rows_by_loc(answer)
    shown = {loc: entry(server, loc) for loc in rows}
    assert shown == {loc: row[0] for loc, row in rows.items()}
    real = ask("")
    assert real.status == 200 and "rows" not in real.json(), real
    counts = ("created", "updated", "removed")
    assert [answer.json().get(c) for c in counts] == [real.json().get(c) for c in counts]
    assert answer.json()["rows_total"] == sum(real.json().get(c, 0) for c in counts) == len(rows)
    moving = ("id", "registered_at", "changed_at")
    plain = lambda e: e and {k: v for k, v in e.items() if k not in moving}
    assert {loc: plain(entry(server, loc)) for loc in rows} == {loc: plain(row[1]) for loc, row in rows.items()}
    return rows


def check_all(server):
    assert server.api("POST", "/v1/indexes", {"url": DEEP}).status == 201
    deep = f"{ORIGIN}/deep/a.xml"
    server.register(deep)
    assert post(server, rows(range(10), digest="a")).status == 200
    body = rows([10, 11]) + [{"loc": name(0), "digest": "b"}, {"loc": name(1), "lastmod": "2026-02-02"},
                             {"loc": name(2)}, {"loc": deep, "index": INDEX}]
    seen = check_dry_run(server, lambda more: server.api("POST", f"{LIST}?index={q(INDEX)}{more}", body))
    assert set(seen) == {name(i) for i in (0, 1, 10, 11)} | {deep}
    assert seen[name(10)][0] is None and seen[name(0)][0]["digest"] == "a" and seen[name(0)][1]["digest"] == "b"
    assert seen[deep][0]["index"] == DEEP and seen[deep][1]["index"] == INDEX
    # The same again changes nothing, and reveals nothing.
    assert server.api("POST", f"{LIST}?index={q(INDEX)}&dry_run=1", body).json()["rows"] == []
    seen = check_dry_run(server, lambda more: server.api(
        "PUT", f"{LIST}?index={q(INDEX)}&source=*&max_removed=99{more}", rows([0, 1, 20], "2026-04-01")))
    assert {loc for loc, row in seen.items() if row[1] is None} == {name(i) for i in (*range(2, 10), 10, 11)} | {deep}
    # A PUT of positions parks entries on its way: what they are at the end is reported.
    placed = [{"loc": name(0), "position": 1}, {"loc": name(1), "position": 0}, {"loc": name(20), "position": 2}]
    seen = check_dry_run(server, lambda more: server.api("PUT", f"{LIST}?index={q(INDEX)}&source=*{more}", placed))
    assert {name(0), name(1)} <= set(seen)
    # Of the removals rows are read that nothing touches yet.
    index, every = index_id(server), {name(i) for i in (0, 1, 20)}
    before = everything(server)
    for target in (f"/v1/indexes/{index}", f"/v1/sites/{server.api('GET', '/v1/sites').json()['sites'][0]['id']}"):
        answer = server.api("DELETE", f"{target}?dry_run=1&max_removed=99")
        assert set(rows_by_loc(answer)) == every and answer.json()["rows_total"] == answer.json()["removed"] == 3
        assert all(row["after"] is None and row["before"]["loc"] == row["loc"] for row in answer.json()["rows"])
    assert everything(server) == before


def test_a_dry_run_reports_its_rows(server):
    check_all(server)


def test_a_dry_run_reports_its_rows_where_no_history_is_kept(start):
    check_all(start(config="[history]\nkeep = 0\n"))


def test_an_undo_reports_its_rows(server):
    assert post(server, rows(range(5))).status == 200
    change = put(server, rows([0, 1], "2026-05-05"), source="*", max_removed=9).json()["revision"]
    seen = check_dry_run(server, lambda more: server.api("POST", f"/v1/history/{change}/undo?max_removed=9{more}"))
    assert set(seen) == {name(i) for i in range(5)}
    assert seen[name(3)][0] is None and seen[name(0)][1]["lastmod"] == "2026-01-01"


def test_the_number_of_reported_rows_is_bounded(server):
    many = [{"loc": name(i)} for i in range(2500)]
    answer = post(server, many, dry_run=1).json()
    assert answer["created"] == answer["rows_total"] == 2500
    assert [r["loc"] for r in answer["rows"]] == [name(i) for i in range(1000)]
    assert post(server, many).json()["created"] == 2500
    # However often an entry is touched, it is one row, of its end.
    again = [{"loc": name(i % 3), "lastmod": f"2026-01-{1 + i % 28:02d}"} for i in range(5000)]
    answer = post(server, again, dry_run=1).json()
    assert sorted(r["loc"] for r in answer["rows"]) == [name(i) for i in range(3)]
    assert post(server, again).status == 200
    assert {r["loc"]: r["after"]["lastmod"] for r in answer["rows"]} == {name(i): entry(server, name(i))["lastmod"] for i in range(3)}
    answer = server.api("DELETE", f"/v1/indexes/{index_id(server)}?dry_run=1&max_removed=9999").json()
    assert answer["rows_total"] == 2500 and len(answer["rows"]) == 1000


def test_tokens_see_only_their_rows(server):
    assert post(server, rows(range(4))).status == 200
    token = server.cli("token", "add", "part", "--site", ORIGIN, "--prefix", f"{ORIGIN}/s/", "--role", "write").out.strip()
    server.register(f"{ORIGIN}/other.xml")
    ask = lambda: send(server, "PUT", rows([1]), token=token, index=INDEX, source="*", dry_run=1, max_removed=99)
    eventually(lambda: ask().status == 200, "the new token")
    assert set(rows_by_loc(ask())) == {name(i) for i in (0, 2, 3)}
    # What is refused reveals nothing.
    outside = send(server, "POST", [{"loc": f"{ORIGIN}/other.xml", "lastmod": "2026-01-01"}], token=token, index=INDEX, dry_run=1)
    problem(outside, 403)
    assert "rows" not in outside.json()
