# SPDX-License-Identifier: LicenseRef-Undeclared
"""Remote sources against an origin of many faults: nothing it sends costs more than its own poll, and nothing it says leads elsewhere."""

import contextlib
import gzip
import random
import re
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from harness import PLAIN, Clock, ask, eventually, seconds, sitemapd
from origin import Origin, answer, bomb, index, urlset

SETTINGS = "[fetch]\nallow_address = 127.0.0.2\nrate = 1000\nper_host = 32\n"


def config(base, **more):
    settings = "".join(f"{key} = {value}\n" for key, value in more.items())
    return f'{SETTINGS}[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\n[source "shop"]\nupstream = {base}/list.xml\n{settings}'


def body(server, origin):
    return ask(server.public, "GET", "/sitemap_index.xml", host=f"{origin.address}:{origin.port}").body.decode()


def test_what_cannot_be_stored_is_not_reported(start):
    """Another process holds the catalogue's lock: a result is in the log once, when it is stored."""
    with Origin() as origin:
        base = f"http://127.0.0.2:{origin.port}"
        origin.answers.update({"/list.xml": answer(200, index(base + "/a.xml")), "/a.xml": answer(200, urlset(base + "/p"))})
        server = start(sites=(), config=config(base))
        poll = lambda: server.api("POST", f"/v1/checks?loc={quote(base + '/a.xml')}")
        state = lambda reply: reply.status == 200 and reply.json()["check"]["state"]
        eventually(lambda: state(poll()) == "good", "it is polled")
        server.restart(write_timeout="1s")
        with contextlib.closing(sqlite3.connect(server.database, timeout=60, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            origin.answers["/a.xml"] = answer(404)
            eventually(lambda: poll().status != 200 and "check-not-kept" in server.log(), "it cannot be stored")
            assert "check-problem" not in server.log()
            db.execute("ROLLBACK")
        eventually(lambda: state(poll()) == "gone", "it is stored")
        assert server.log().count("check-problem") == 1


def test_what_takes_long_to_read_leaves_other_sites_their_part(start):
    """One site's sitemaps are small as sent and take long to read, many at once; another's large one is read between
    pieces of them, and not behind a piece of each for each of its own."""
    pages = lambda base: [f"{base}/page{i:06}" for i in range(20000)]
    with Origin() as heavy, Origin("127.0.0.3") as other:
        here, there = f"http://127.0.0.2:{heavy.port}", f"http://127.0.0.3:{other.port}"
        random.seed(1)
        noise = "".join(f"<!--{random.getrandbits(4000):x}-->" for _ in range(200))  # within 500 times what is sent
        text = urlset(here + "/page")[:-10].replace(b"<urlset ", b'<urlset xmlns:x="urn:x" ') + noise.encode() + b"<x:a b='c'/>" * (40 << 20 >> 4) + b"</urlset>"
        packed = answer(200, gzip.compress(text), Content_Encoding="gzip")
        heavy.answers.update({f"/{i}.xml": packed for i in range(64)})
        heavy.answers["/list.xml"] = answer(200, index(*(f"{here}/{i}.xml" for i in range(64))))
        before = []

        def large(connection, _):
            before.append(read())
            connection.sendall(answer(200, urlset(*pages(there))))

        other.answers["/large.xml"] = large
        server = start(sites=(), config=SETTINGS.replace("127.0.0.2", "127.0.0.2 127.0.0.3") + f'[site "heavy"]\norigin = {here}\nindex = /i.xml\n[source "shop"]\nupstream = {here}/list.xml\n'
                       f'[site "other"]\norigin = {there}\nindex = /i.xml\ncheck = yes\n')
        read = lambda: sum(check["check"]["state"] == "good" for check in server.api("GET", f"/v1/checks?limit=100&site={here}").json()["checks"])
        eventually(lambda: len(heavy.asked) > 16 and read() >= 1, "some are read", longest_pause=0.02)
        assert server.register(there + "/large.xml").status == 201
        polled = eventually(lambda: (lambda reply: reply.status == 200 and reply.json()["check"])(server.api("POST", f"/v1/checks?loc={quote(there + '/large.xml')}")), "it is polled")
        assert polled["state"] == "good" and polled["urls"] == 20000, polled
        assert read() - before[-1] <= 4


def test_faults_of_children(start):
    with Origin() as origin, Origin("127.0.0.1") as secret:
        base = f"http://{origin.address}:{origin.port}"
        elsewhere = f"http://{secret.address}:{secret.port}"
        secret.answers["/x.xml"] = answer(200, urlset(base + "/secret"))
        good = urlset(base + "/page", lastmod="2025-02-03")
        answers = {
            "/good.xml": (answer(200, good), None),
            "/packed.xml": (answer(200, gzip.compress(good), Content_Encoding="gzip"), None),
            "/packed.xml.gz": (answer(200, gzip.compress(good)), None),
            "/moved.xml": (answer(301, Location="/good.xml"), None),
            "/round.xml": (answer(302, Location="/round.xml"), "is unreachable (redirect)"),
            "/away.xml": (answer(302, Location=elsewhere + "/x.xml"), "is unreachable (redirect)"),
            "/file.xml": (answer(302, Location="file:///etc/passwd"), "is unreachable (redirect)"),
            "/bomb.xml": (answer(200, bomb(200 << 20)), "is broken (gzip-bomb)"),
            "/endless.xml": (origin.endless(b"HTTP/1.1 200 OK\r\n\r\n" + good[:-10], b"<!-- more and more and more -->" * 2000), "is broken ("),
            "/head.xml": (origin.endless(b"HTTP/1.1 200 OK\r\n", b"X: " + b"x" * 1000 + b"\r\n"), "is unreachable (broken-answer)"),
            "/cut.xml": (origin.cut(answer(200, good, length=len(good) + 9)), "is unreachable (broken-answer)"),
            "/short.xml": (answer(200, good[:-30]), "is broken (truncated)"),
            "/reset.xml": (origin.cut(b""), "is unreachable ("),
            "/page.xml": (answer(200, b"<!doctype html><html></html>"), "is not-a-sitemap (not-a-sitemap)"),
            "/nested.xml": (answer(200, index(base + "/good.xml")), "is not-a-sitemap (nested-index)"),
            "/empty.xml": (answer(200, urlset()), "is empty (empty)"),
            "/gone.xml": (answer(404), "is gone (gone)"),
            "/wall.xml": (answer(403, cf_mitigated="challenge"), "is refused (bot-wall)"),
            "/entities.xml": (answer(200, b'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + good[39:]), "is broken (doctype)"),
        }
        origin.answers.update({path: given for path, (given, _) in answers.items()})
        origin.answers["/list.xml"] = answer(200, index(*(base + path for path in answers), elsewhere + "/x.xml", "nonsense"))
        server = start(sites=(), config=config(base))
        outcome = {path: what for path, (_, what) in answers.items() if what}
        missing = lambda: {f"{path} {what}" for path, what in outcome.items() if f"{base}{path} {what}" not in server.log()}
        eventually(lambda: not missing(), "all are reported")
        for path, (_, what) in answers.items():
            if what is None:
                assert f"{base}{path} is " not in server.log()
        bad = {word: sum(f" is {word} (" in f" {what}" for what in outcome.values()) for word in ("empty", "gone", "not-a-sitemap", "broken", "refused", "unreachable")}
        ready = server.api("GET", "/readyz").json()
        reasons = {r["code"]: r["detail"] for r in ready["reasons"]}
        assert reasons["source-checks"] == (
            f"shop: {len(outcome)} sitemaps have problems: " + ", ".join(f"{n} {word}" for word, n in bad.items()) +
            "; GET /v1/checks?source=shop&state=empty, and the same for each other state, shows which and why"), ready
        assert reasons["source-problems"].startswith("shop: 2 sitemaps of the upstream's index are rejected"), ready  # two that the list may not name
        assert server.log().count(" warning source-file-problem: shop: 2 sitemaps of the upstream's index are rejected; GET /v1/sources/shop shows which and why\n") == 1
        status = sitemapd("status", "--server", f"http://{server.admin}", env={"SITEMAPD_TOKEN": server.token})
        assert f"sitemaps listed, {len(outcome) + 2} with a problem" in status.out, status
        # All are listed still, what is dated by its pages is dated; nothing leads to where nobody may look.
        eventually(lambda: body(server, origin).count("<lastmod>2025-02-03</lastmod>") == 4, "the good ones are dated")
        assert body(server, origin).count("<loc>") == len(answers)
        assert secret.asked == []
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < seconds(10)


def test_a_list_that_leads_back(start):
    """The upstream's name leads to this server now: what it lists stays, and it is reported."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        server = start(sites=(), config=config(base, check="no"))
        eventually(lambda: "/a.xml" in body(server, origin), "it is mirrored")
        loop = origin.asked[0].split("CDN-Loop: ")[1].split("\r\n")[0]
        back = ask(server.public, "GET", "/sitemap_index.xml", {"CDN-Loop": f"other, {loop}"}, host=f"{origin.address}:{origin.port}")
        assert back.status == 508
        assert ask(server.public, "GET", "/sitemap_index.xml", {"CDN-Loop": "sitemapd-other"}, host=f"{origin.address}:{origin.port}").status == 200


def test_a_source_that_waits_for_a_resting_host_is_failing(start):
    """One list of a host is answered 503 and a day: until then the second is not read, and nothing says that it is well."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers["/list.xml"] = origin.answers["/other.xml"] = answer(503, Retry_After="86400")
        settings = config(base).replace("per_host = 32", "per_host = 1")
        server = start(sites=(), config=settings + f'[source "other"]\nupstream = {base}/other.xml\n')
        reasons = lambda: [(reason["code"], reason["detail"].split(":")[0]) for reason in server.api("GET", "/readyz").json()["reasons"]]
        eventually(lambda: sorted(reasons()) == [("source-failing", "other"), ("source-failing", "shop")], "both are failing")
        outcome = {source["name"]: source["failure_code"] for source in server.api("GET", "/v1/sources").json()["sources"]}
        assert sorted(outcome.values()) == ["host-resting", "server-error"], outcome
        assert len(server.wait_for_log("source-scan-failed", 2)) == 2


def test_what_the_api_registers_is_watched(start):
    """A site with `check`: its entries are polled, and their dates move where the content does."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers["/a.xml"] = answer(404)
        server = start(sites=(), config=f'{SETTINGS}[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\ncheck = yes\n')
        assert server.register(base + "/a.xml", lastmod="2026-01-01").status == 201
        eventually(lambda: f"{base}/a.xml is gone (gone)" in server.log(), "it is reported")
        assert "2026-01-01" in body(server, origin)
        assert [check["loc"] for check in server.api("GET", "/v1/checks").json()["checks"]] == [base + "/a.xml"]
        settings = Path(server.args[server.args.index("--config") + 1])
        settings.write_text(settings.read_text().replace("check = yes\n", ""))
        server.process.send_signal(1)
        eventually(lambda: server.api("GET", "/v1/checks").json()["checks"] == [], "nothing is known of what is not watched any more")
        server.stop()


def test_a_list_of_polls_looks_at_a_bounded_part_of_them(start):
    """A token with a prefix has one of very many sitemaps: a call looks at some of the others, and the next ones go on."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers["/their/s.xml"] = answer(404)
        server = start(sites=(), config=f'{SETTINGS}[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\ncheck = yes\n')
        server.stop()
        with sqlite3.connect(server.database) as db:  # named by a list, and not due for hours
            db.execute("WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO fetch(site, source, list, loc, state, status, marks, next_at,"
                       " interval_s, failures, checked_at, good_ago, changed_at, full_ago, since_ago, urls, bytes, one_lastmod, line, listed)"
                       " SELECT (SELECT id FROM site), 0, 0, '/others/' || i, 1, 200, 0, unixepoch() + 40000, 43200, 0, unixepoch(), 0, 0, 0, 0, 0, 0, 0, 0, 1 FROM n")
        server.start()
        assert server.register(f"{base}/their/s.xml").status == 201
        poll = lambda: server.api("POST", f"/v1/checks?loc={quote(base + '/their/s.xml', safe='')}")
        eventually(lambda: poll().json().get("check", {}).get("state") == "gone", "theirs is polled")
        token = server.make_token("their", "--prefix", base + "/their/")
        first = server.api("GET", "/v1/checks?limit=1", token=token).json()
        second = server.api("GET", f"/v1/checks?limit=1&after={first['next']}", token=token).json()
        assert first["checks"] == [] and [one["loc"] for one in second["checks"]] == [base + "/their/s.xml"] and second["next"] is None
        whole = server.make_token("whole", "--site", base)
        assert f"{base}/their/s.xml: " in sitemapd("status", "--server", f"http://{server.admin}", env={"SITEMAPD_TOKEN": whole}).out


def sites_on(start, there, names, rate):
    """A server with sites whose sitemaps are all on one host, and what registers some of a site's."""
    origin = lambda name: f"https://{name}.example"
    server = start(sites=(), config=f"[fetch]\nallow_address = 127.0.0.2\nrate = {rate}\n" + "".join(
        f'[site "{name}"]\norigin = {origin(name)}\ncross_host = {there}\ncheck = yes\n' for name in names))
    rows = lambda name, paths: [{"loc": f"http://{there}{path}", "index": origin(name) + "/sitemap_index.xml"} for path in paths]
    return server, lambda name, paths: server.api("POST", "/v1/sitemaps", rows(name, paths)).status


@pytest.mark.parametrize("configured", [False, True])
def test_a_source_ends_no_polls_of_what_a_token_of_its_name_registered(start, configured):
    """Not of another site, whose token has the name of a source that somebody makes; nor where the configuration has one."""
    with Origin() as shop, Origin("127.0.0.3") as other:
        here, there = f"http://127.0.0.2:{shop.port}", f"http://127.0.0.3:{other.port}"
        shop.answers["/a.xml"] = answer(200, urlset(here + "/page"))
        other.answers["/list.xml"] = answer(200, index(there + "/b.xml"))
        other.answers["/b.xml"] = answer(200, urlset(there + "/page"))
        section = f'[source "shop-a"]\nupstream = {there}/list.xml\n' if configured else ""
        server = start(sites=(), config=SETTINGS.replace("127.0.0.2", "127.0.0.2 127.0.0.3") +
                       f'[site "shop"]\norigin = {here}\nindex = /i.xml\ncheck = yes\n[site "other"]\norigin = {there}\nindex = /i.xml\n{section}')
        token = server.make_token("shop-a", "--site", here)
        mine = lambda: [check["loc"] for check in server.api("GET", f"/v1/checks?site={here}").json()["checks"]]
        assert server.api("POST", "/v1/sitemaps", [{"loc": here + path} for path in ("/a.xml", "/c.xml")], token=token).status == 200
        eventually(lambda: sorted(mine()) == [here + "/a.xml", here + "/c.xml"], "both are watched")
        if not configured:
            hostile = server.make_token("hostile", "--site", there, "--role", "admin")
            assert server.api("POST", "/v1/sources", {"name": "shop-a", "upstream": there + "/list.xml"}, token=hostile).status == 201
        polled = lambda: server.api("GET", f"/v1/checks?site={there}").json()["checks"]
        eventually(lambda: [check["check"]["state"] for check in polled()] == ["good"], "the source is polled, and its sitemap")
        assert server.api("DELETE", f"/v1/sitemaps?loc={quote(here + '/c.xml', safe='')}").status == 204
        eventually(lambda: here + "/c.xml" not in mine(), "what is watched was looked through")
        assert mine() == [here + "/a.xml"]


def test_sites_take_turns_on_a_host_that_they_share(start):
    """One site lists very many sitemaps of a CDN's host: those of another site there do not wait behind them."""
    with Origin() as cdn:
        there, many = f"{cdn.address}:{cdn.port}", 3000
        names = [f"/many/{i}.xml" for i in range(many)] + [f"/few/{i}.xml" for i in range(5)]
        for name in names:
            cdn.answers[name] = answer(200, urlset(f"http://{there}/page"))
        _, register = sites_on(start, there, ("many", "few"), 20)
        asked = lambda word: [number for number, path in enumerate(cdn.paths()) if path.startswith(word)]
        assert register("many", names[:many]) == 200
        eventually(lambda: asked("/many/"), "the first of very many is polled")
        assert register("few", names[many:]) == 200
        eventually(lambda: len(asked("/few/")) == 5, "the other site's are polled")
        few = asked("/few/")
        assert few[-1] - few[0] <= 5 * 4, "in turns with the others"
        assert few[-1] < many, "and not behind all of them"


def test_a_site_leaves_others_a_place_on_a_host_that_they_share(start):
    """One site's sitemaps on a CDN's host never answer: another site's there are read meanwhile."""
    with Origin() as cdn:
        there = f"{cdn.address}:{cdn.port}"
        slow, good = [f"/slow/{i}.xml" for i in range(20)], [f"/good/{i}.xml" for i in range(5)]
        for name in slow:
            cdn.answers[name] = cdn.silent()
        for name in good:
            cdn.answers[name] = answer(200, urlset(f"http://{there}/page"))
        server, register = sites_on(start, there, ("slow", "good"), 1000)
        states = lambda site: {check["loc"].removeprefix(f"http://{there}"): check["check"]["state"] for check in server.api("GET", f"/v1/checks?site={site}").json()["checks"]}
        poll = lambda name: server.api("POST", f"/v1/checks?loc={quote(f'http://{there}{name}', safe='')}").json().get("check", {}).get("state")
        assert register("good", good) == 200
        eventually(lambda: [poll(name) for name in good] == ["good"] * 5, "they are there")
        assert register("slow", slow) == 200
        eventually(lambda: any(path in slow for path in cdn.paths()), "one that does not answer is under way")
        for name in good:
            assert poll(name) == "good"
        assert set(states("https://slow.example").values()) == {"new"}, "none of the others has ended"


def test_a_site_leaves_the_lists_of_others_a_place_on_a_host_that_they_share(start):
    """One site's sitemaps on a CDN's host never answer: the list of another site, which has no sitemaps there, is read meanwhile."""
    with ThreadPoolExecutor(2) as waiting, Origin() as cdn:
        there = f"{cdn.address}:{cdn.port}"
        slow = [f"/slow/{i}.xml" for i in range(2)]
        cdn.answers.update({name: cdn.silent() for name in slow})
        cdn.answers["/list.xml"] = answer(404)
        server, register = sites_on(start, there, ("slow", "other"), 1000)
        assert server.api("POST", "/v1/sources", {"name": "list", "upstream": f"http://{there}/list.xml", "index": "https://other.example/sitemap_index.xml"}).status == 201
        lists = lambda: cdn.paths().count("/list.xml")
        eventually(lambda: lists() > 0, "the list is polled")
        assert register("slow", slow) == 200
        checks = lambda: server.api("GET", "/v1/checks?site=https://slow.example").json()["checks"]
        eventually(lambda: len(checks()) == 2, "they are watched")
        for name in slow:
            waiting.submit(server.api, "POST", f"/v1/checks?loc={quote(f'http://{there}{name}', safe='')}")
        eventually(lambda: any(path in slow for path in cdn.paths()), "one that does not answer is under way")
        for check in (False, True, False):  # a changed source is polled at once
            before = lists()
            assert server.api("PATCH", "/v1/sources/list", {"check": check}).status == 200
            eventually(lambda: lists() > before, "the list is polled again")
        assert {check["check"]["state"] for check in checks()} == {"new"}, "none of the others has ended"


def test_what_a_site_answers_slows_no_other_on_a_host_that_they_share(start):
    """One site's sitemaps on a CDN's host ask for a day of rest, or break off five times: another site's there are polled on."""
    with Origin() as cdn:
        there = f"{cdn.address}:{cdn.port}"
        busy, broken, good = ["/busy.xml"], [f"/broken/{i}.xml" for i in range(5)], ["/good.xml"]
        cdn.answers["/busy.xml"] = answer(503, Retry_After="86400")
        cdn.answers.update({name: cdn.reset for name in broken})
        cdn.answers["/good.xml"] = answer(200, urlset(f"http://{there}/page"))
        server, register = sites_on(start, there, ("busy", "broken", "good"), 1000)
        poll = lambda name: server.api("POST", f"/v1/checks?loc={quote(f'http://{there}{name}', safe='')}")
        for site, names in (("busy", busy), ("broken", broken), ("good", good)):
            assert register(site, names) == 200
        resting = lambda: [poll(name[0]).json().get("detail", "") for name in (busy, broken)]
        eventually(lambda: all("its host is resting" in detail for detail in resting()), "both rest")
        for _ in range(3):
            assert poll("/good.xml").json()["check"]["state"] == "good"
        assert "sitemapd_fetch_hosts_resting 1\n" in server.api("GET", "/metrics").body.decode()


def test_what_crawlers_cannot_use_is_green_nowhere(start):
    """What the API registered, of a site with `check`: readyz, status of server and file, the list and the metric name each state, also one of many, and no longer once all is well."""
    bad = {
        "empty": answer(200, urlset()),
        "gone": answer(404),
        "not-a-sitemap": answer(200, b"<!doctype html><html></html>"),
        "broken": answer(200, urlset("http://127.0.0.2/page")[:-30]),
        "refused": answer(403, cf_mitigated="challenge"),
        "unreachable": answer(500),
    }
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        states = {f"{base}/{state}.xml": state for state in bad} | {f"{base}/good-{i}.xml": "good" for i in range(120)}
        well = answer(200, urlset(base + "/page"))
        origin.answers.update({loc.removeprefix(base): bad.get(state, well) for loc, state in states.items()})
        server = start(sites=(), config=f'{SETTINGS}max_interval = 1h\n[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\ncheck = yes\n')
        assert server.bulk([{"loc": loc} for loc in states]).status == 200
        listed = lambda: {row["loc"]: row.get("check", {}).get("state") for row in server.api("GET", "/v1/sitemaps?checks=1&limit=1000").json()["sitemaps"]}
        eventually(lambda: listed() == states, "all were polled")
        commands = [("--server", f"http://{server.admin}"), ("--database", server.database)]

        def assert_bad(*left):
            """All places that say how it is: of these states one sitemap each."""
            detail = f"registered sitemaps: {len(left)} {'sitemap has a problem' if len(left) == 1 else 'sitemaps have problems'}: {', '.join('1 ' + state for state in left)}; GET /v1/checks?source=&state={(left or ' ')[0]}{', and the same for each other state,' if len(left) > 1 else ''} shows which and why"
            ready = server.api("GET", "/readyz").json()
            assert (ready["status"], ready["reasons"]) == (("degraded", [{"code": "registered-checks", "detail": detail}]) if left else ("ok", []))
            metrics = server.api("GET", "/metrics").body.decode()
            counts = {state: int(metrics.split(f'sitemapd_checks{{state="{state}"}} ')[1].split("\n")[0]) for state in ("new", "good", *bad)}
            assert counts == {"new": 0, "good": len(states) - len(left), **{state: int(state in left) for state in bad}}
            for where in commands:
                status = sitemapd("status", *where, env={"SITEMAPD_TOKEN": server.token})
                assert status.code == (1 if left else 0) and (f"{detail} (registered-checks)\n" in status.out) == bool(left), status
                shown = [state for state in left if re.search(f"\n  {re.escape(base)}/{state}[.]xml: .+ [(][a-z-]+[)]\n", status.out)]
                assert len(shown) == min(len(left), 5), status

        assert_bad(*bad)
        polls = [check["check"] for check in server.api("GET", "/v1/checks?limit=1000").json()["checks"]]
        waits = [datetime.fromisoformat(check["next_at"]) - datetime.fromisoformat(check["checked_at"]) for check in polls]
        assert max(waits) <= timedelta(hours=1.1, seconds=10), "also the first interval, give or take a tenth and ten seconds"
        assert [check["loc"] for check in server.api("GET", "/v1/checks?source=&state=gone").json()["checks"]] == [f"{base}/gone.xml"]
        assert all("check" not in row for row in server.api("GET", "/v1/sitemaps").json()["sitemaps"])
        lines = server.api("GET", "/v1/sitemaps?checks=1", headers={"Accept": "application/x-ndjson"})
        assert (lines.status, lines.json()["field"]) == (400, "checks")

        def mend(state):
            origin.answers[f"/{state}.xml"] = well
            eventually(lambda: server.api("POST", f"/v1/checks?loc={base}/{state}.xml").status == 200, "its turn comes")

        for state in bad:
            if state != "gone":
                mend(state)
        assert_bad("gone")  # one of 126
        mend("gone")
        assert_bad()


def test_what_polls_changed_is_in_the_history_for_who_asks(start):
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers["/a.xml"] = answer(200, urlset(base + "/page"))
        server = start(sites=(), config=f'{SETTINGS}[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\ncheck = yes\n')
        assert server.register(base + "/a.xml", lastmod="2026-01-01").status == 201
        poll = lambda: server.api("POST", f"/v1/checks?loc={base}/a.xml")
        outcome = lambda query: [(change["kind"], change["updated"]) for change in server.api("GET", "/v1/history?" + query).json()["changes"]]
        eventually(lambda: poll().status == 200, "it is watched")
        origin.answers["/a.xml"] = answer(200, urlset(base + "/another", lastmod="2026-02-02"))
        eventually(lambda: poll().status == 200, "its turn comes")
        eventually(lambda: "<lastmod>2026-02-02</lastmod>" in body(server, origin), "its date moves")
        assert ("registration", 0) in outcome("") and "check" not in dict(outcome("")) and outcome("limit=1")[0] == ("registration", 0)
        assert outcome("kind=check") == [("check", 1)]
        assert outcome(f"loc={base}/a.xml") == [("check", 1), ("registration", 0)]
        revision = server.api("GET", "/v1/history?kind=check").json()["changes"][0]["revision"]
        (row,) = server.api("GET", f"/v1/history/{revision}").json()["rows"]
        assert (row["before"]["lastmod"], row["after"]["lastmod"]) == ("2026-01-01", "2026-02-02")
        assert row["loc"] == base + "/a.xml"


def test_an_upstream_is_scanned_once_from_the_command_line(tmp_path):
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        settings, database = tmp_path / "s.conf", tmp_path / "c.db"
        settings.write_text(config(base))
        run = lambda *words: sitemapd(*words, "--config", settings, database=database)
        assert run("site", "add", base).code == 0
        origin.answers["/list.xml"] = answer(200, index((base + "/a.xml", "2026-01-02"), base + "/b.xml", "nonsense"))
        dry, wet, again = run("scan", "shop", "--dry-run"), run("scan", "shop"), run("scan", "shop")
        assert dry.code == wet.code == again.code == 0, (dry, wet, again)
        assert f"new       {base}/a.xml  2026-01-02" in wet.out
        assert dry.out.endswith("would be: 2 added, 0 updated, 0 removed, 1 sitemap with a problem\n"), dry
        assert wet.out.endswith("\n2 added, 0 updated, 0 removed, 1 sitemap with a problem\n"), wet
        assert again.out.endswith("\n0 added, 0 updated, 0 removed, 1 sitemap with a problem\n"), again
        assert run("list").out.count(base) >= 2
        # What it no longer names is held; what is not a list, or leads back, changes nothing.
        origin.answers["/list.xml"] = answer(200, index(base + "/b.xml"))
        held = run("scan", "shop", "--max-removed", "0")
        assert held.code == 1 and "1 entry that the upstream no longer lists is held back" in held.err, held
        for bad, outcome in ((answer(200, urlset(base + "/x")), "urlset-not-index: "), (answer(508), "upstream-is-this-server: ")):
            origin.answers["/list.xml"] = bad
            refused = run("scan", "shop", "--dry-run")
            assert refused.code == 1 and outcome in refused.err, refused
        assert "CDN-Loop: sitemapd-" in origin.asked[-1]
        problem = run("scan", "shop", "--url", base + "/")
        assert problem.code == 2 and "--url can only be used with a folder" in problem.err


def test_a_list_that_was_never_read_is_seen_in_the_file(start):
    """A command on the file has no configuration that names the source."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers["/list.xml"] = answer(404)
        server = start(sites=(), config=config(base))
        eventually(lambda: server.api("GET", "/v1/sources/shop").json()["failure"], "it fails")
        outcome = eventually(lambda: (found := server.cli("status")) and "failing: " in found.out and found, "it is seen")
        assert "  shop " in outcome.out and "scanned never; not declared here" in outcome.out, outcome
        server.stop()
        assert server.cli("source", "remove", "shop").out == "shop: removed; its entries stay; sitemaps served for it are 404 until another source serves them\n"
        assert "  shop " not in server.cli("status").out


@pytest.mark.skipif(not PLAIN, reason="as much data as one thread reads in minutes there")
def test_large_lists_are_read_one_after_another(start):
    """Each needs twice its size in memory."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        bodies = {name: index(*(f"{base}/{name}/{i}{'x' * 900}.xml" for i in range(24000))) for name in ("one", "two")}
        reached, released, sent = threading.Event(), threading.Event(), []

        def send(name, connection):
            body = bodies[name]
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
            if name == "two":
                assert reached.wait(60)
            for at in range(0, len(body) - 100, 65536):
                connection.sendall(body[at:min(at + 65536, len(body) - 100)])
                sent.append((name, time.monotonic()))
            if name == "one":
                reached.set()
                assert released.wait(60)
            connection.sendall(body[-100:])

        for name in bodies:
            origin.answers[f"/{name}.xml"] = lambda connection, _, name=name: send(name, connection)
        source = '[source "{0}"]\nupstream = {1}/{0}.xml\ncheck = no\nindex = {1}/sitemap_index.xml\n'
        server = start(sites=(), config=f'[fetch]\nallow_address = 127.0.0.2\nrate = 1000\nper_host = 32\n[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\n' + "".join(source.format(name, base) for name in bodies))
        members = lambda name: server.api("GET", f"/v1/sources/{name}").json()["members"]
        try:
            assert reached.wait(60)
            at = time.monotonic()
            pieces = len(range(0, len(bodies["two"]) - 100, 65536))
            stands = lambda: sent[-1][0] == "two" and sum(name == "two" for name, _ in sent) < pieces and time.monotonic() - sent[-1][1] > 1
            eventually(lambda: members("two") or stands(), "the second is read, or waits")
            assert not members("two") or time.monotonic() - at > 40, "it waits so long"
        finally:
            released.set()
        eventually(lambda: members("one") == members("two") == 24000, "both are read")


def test_a_scan_beside_a_server_ends_what_the_guard_held(start, tmp_path):
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers.update({f"/{i}.xml": answer(200, urlset(base + f"/{i}")) for i in range(4)})
        origin.answers["/list.xml"] = answer(200, index(*(f"{base}/{i}.xml" for i in range(4))))
        server = start(sites=(), config=config(base, poll="24h"))
        eventually(lambda: body(server, origin).count("<loc>") == 4, "all are listed")
        origin.answers["/list.xml"] = answer(200, index(base + "/0.xml"))
        assert server.api("POST", "/v1/sources/shop/scan").json()["held_removals"] == 3
        reasons = lambda: {r["code"] for r in ask(server.admin, "GET", "/readyz", host=server.admin).json()["reasons"]}
        assert "source-held" in reasons()
        metric = 'sitemapd_source_upstream_held_removals{source="shop"} '
        assert f"{metric}3\n" in server.api("GET", "/metrics").body.decode()
        done = server.cli("scan", "shop", "--max-removed", "3", "--config", tmp_path / "sitemapd.conf")
        assert done.code == 0 and "3 removed" in done.out, done
        eventually(lambda: "source-held" not in reasons(), "the server knows", seconds(30))
        assert f"{metric}0\n" in server.api("GET", "/metrics").body.decode()


def test_what_polls_found_gone_leaves_with_the_list_that_they_ask_for(start):
    """The list is read for it at once, but not before it is in the catalogue."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers.update({f"/{i}.xml": answer(200, urlset(base + f"/{i}")) for i in range(4)})
        origin.answers["/list.xml"] = answer(200, index(*(f"{base}/{i}.xml" for i in range(4))))
        server = start(sites=(), config=config(base, drop_after="1s", poll="24h"))
        states = lambda: [check["check"]["state"] for check in server.api("GET", "/v1/checks").json()["checks"]]
        eventually(lambda: states() == ["good"] * 4, "all are good", seconds(40))
        for found, left in ((answer(404), 3), (answer(200, urlset(base + "/3")), 4)):
            origin.answers["/3.xml"] = found
            for _ in range(3):
                poll = lambda: server.api("POST", f"/v1/checks?loc={base}/3.xml").status == 200
                eventually(poll, "it is polled")
                time.sleep(0.6)  # the three are over a second
            eventually(lambda: body(server, origin).count("<sitemap>") == left, f"{left} are listed", seconds(40))


def test_a_site_that_keeps_one_waiting_leaves_room_for_others(start):
    """Twenty lists and a crowd of polls asked for, of a host that never comes to an end: another's list is read, another's poll is made."""
    with Origin() as slow, Origin("127.0.0.3") as good:

        def drip(connection, _):
            """As much as is not given up before two minutes are over."""
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + index()[:-15])
            while not slow.ended.wait(0.5):
                connection.sendall(b" " * 100)

        theirs, ours = f"http://{slow.address}:{slow.port}", f"http://{good.address}:{good.port}"
        good.answers["/list.xml"] = answer(200, index(ours + "/a.xml"))
        good.answers["/a.xml"] = answer(200, urlset(ours + "/page"))
        settings = SETTINGS.replace("127.0.0.2", "127.0.0.2 127.0.0.3")
        server = start(sites=(), config=f'{settings}[site "theirs"]\norigin = {theirs}\ncheck = yes\n[site "ours"]\norigin = {ours}\nindex = /sitemap_index.xml\n')
        token = server.cli("token", "add", "theirs", "--site", theirs, "--role", "admin").out.strip()
        eventually(lambda: server.api("GET", "/v1/token", token=token).status == 200, "the token is known")
        for i in range(20):
            slow.answers[f"/list{i}.xml"] = drip
            made = server.api("POST", "/v1/sources", {"name": f"slow{i}", "upstream": f"{theirs}/list{i}.xml"}, token=token)
            assert made.status == 201, made
        eventually(lambda: len(slow.asked) >= 4, "they keep it waiting")
        assert server.api("POST", "/v1/sources", {"name": "ours", "upstream": ours + "/list.xml"}).status == 201
        eventually(lambda: any("/a.xml" in head for head in good.asked), "the other's list is read, and what it lists", 40)
        # Scans of one whose answer does not come wait, a few of them.
        replies = []
        waiting = [threading.Thread(target=lambda: replies.append(server.api("POST", "/v1/sources/slow0/scan", token=token)), daemon=True) for _ in range(6)]
        for thread in waiting:
            thread.start()
        eventually(lambda: len(replies) == 2, "two are too many", 40)
        assert all(reply.status == 503 and "too many scans of this source are waiting" in reply.json()["detail"] for reply in replies)
        # Changes of sources leave alone what is under way of others, and what is known of them.
        assert server.api("PATCH", "/v1/sources/ours", {"poll": 7200}).status == 200
        assert len(slow.asked) == len(set(slow.asked)), "no poll was begun again"
        asked = lambda: sum("/a.xml" in head for head in good.asked)
        assert asked() == 1 and server.api("DELETE", "/v1/sources/ours").status == 204
        again = server.api("POST", "/v1/sources", {"name": "ours", "upstream": ours + "/list.xml"})
        assert again.status == 201 and server.api("POST", "/v1/sources/ours/scan").status == 200
        assert asked() <= 2
        server.stop()
        for thread in waiting:
            thread.join()


def test_two_sites_that_keep_one_waiting_leave_room_for_others(start):
    """Two sites have very many sitemaps on hosts that never come to an end: another site's are polled meanwhile."""
    with Origin("0.0.0.0") as slow, Origin() as good:

        def drip(connection, _):
            """As much as is not given up before two minutes are over."""
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + urlset()[:-9])
            while not slow.ended.wait(0.5):
                connection.sendall(b" " * 100)

        slow.answers = dict.fromkeys((f"/{site}/{i}.xml" for site in "ab" for i in range(60)), drip)
        ours = f"http://{good.address}:{good.port}"
        hosts = {site: [f"127.{net}.0.{i}:{slow.port}" for i in range(1, 41)] for net, site in ((1, "a"), (2, "b"))}
        server = start(sites=(), config="[fetch]\nallow_address = 127.0.0.0/8\n" + f'[site "ours"]\norigin = {ours}\ncheck = yes\n' + "".join(
            f'[site "{site}"]\norigin = https://{site}.example\ncheck = yes\n' + "".join(f"cross_host = {host}\n" for host in hosts[site]) for site in hosts))
        held = lambda site: sum(path.startswith(f"/{site}/") for path in slow.paths())
        for site, least in (("a", 16), ("b", 8)):
            rows = [{"loc": f"http://{hosts[site][i % 40]}/{site}/{i}.xml", "index": f"https://{site}.example/sitemap_index.xml"} for i in range(60)]
            assert server.api("POST", "/v1/sitemaps", rows).status == 200
            eventually(lambda: held(site) >= least, "it keeps many waiting")
        names = [f"/{i}.xml" for i in range(5)]
        good.answers.update({name: answer(200, urlset(ours + "/page")) for name in names})
        for name in names:
            assert server.register(ours + name).status == 201
            eventually(lambda: name in good.paths(), "it is polled")
        assert held("a") == 16, "none of the others has ended"


def test_scans_on_request_keep_to_the_rate_of_their_host(start):
    """A client scans several sources of one host without end: the host gets no more requests than its rate."""
    with Origin() as origin:
        base, at = f"http://{origin.address}:{origin.port}", []

        def send(connection, _):
            at.append(time.monotonic())
            connection.sendall(answer(503, Retry_After="86400"))

        names = [f"list{i}" for i in range(4)]
        origin.answers.update({f"/{name}.xml": send for name in names})
        server = start(sites=(), config=f'[fetch]\nallow_address = 127.0.0.2\nrate = 1\n[site "m"]\norigin = {base}\n' + "".join(
            f'[source "{name}"]\nupstream = {base}/{name}.xml\nindex = {base}/sitemap_index.xml\n' for name in names))
        for name in names:
            assert server.api("POST", f"/v1/sources/{name}/scan").status == 503
        assert len(at) >= 4 and at[-1] - at[-4] > 2.5, at


def test_requests_of_two_sites_that_wait_leave_room_for_anothers(start):
    """Two sites' tokens have as many requests wait as they may: another client's are answered."""
    with Origin() as one, Origin("127.0.0.3") as two:
        config, bases = "[fetch]\nallow_address = 127.0.0.0/8\n[admin]\nmax_suspended = 8\n", []
        for name, origin in (("one", one), ("two", two)):
            origin.answers["/list.xml"] = origin.silent()
            bases.append(f"http://{origin.address}:{origin.port}")
            config += f'[site "{name}"]\norigin = {bases[-1]}\nindex = /sitemap_index.xml\n[source "{name}"]\nupstream = {bases[-1]}/list.xml\nindex = {bases[-1]}/sitemap_index.xml\n'
        server = start(sites=(), config=config)
        waiting = lambda: server.metrics()['sitemapd_http_suspended{listener="admin"}']
        for (name, base), count in zip((("one", bases[0]), ("two", bases[1])), (4, 6)):
            token = server.make_token(name, "--site", base)
            eventually(lambda: one.asked and two.asked, "both lists are being read")
            for _ in range(4):
                threading.Thread(target=lambda name=name, token=token: server.api("POST", f"/v1/sources/{name}/scan", token=token), daemon=True).start()
            eventually(lambda: waiting() == count, "half of the free places")
        assert server.api("GET", "/v1/sites").status == 200


def test_what_is_undone_is_read_anew_in_its_turn(start, tmp_path):
    """A list and its sitemaps: validators are forgotten. Each sitemap is due when it was, the list at the thaw."""
    clock = Clock(tmp_path)
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        names = [f"/{n}.xml" for n in "abcd"]
        origin.answers.update({name: answer(200, urlset(base + name + "/page"), ETag='"1"') for name in names})
        origin.answers["/list.xml"] = lambda connection, head: connection.sendall(
            answer(304) if "If-None-Match" in head else answer(200, index(*(base + name for name in names)), ETag='"1"'))
        server = start(sites=(), env=clock.environment, config=config(base, poll="10m"))
        checks = lambda: {c["loc"]: c["check"] for c in server.api("GET", "/v1/checks").json()["checks"]}
        eventually(lambda: len(checks()) == 4 and all(c["state"] == "good" for c in checks().values()), "all are read")
        made = [c["revision"] for c in server.api("GET", "/v1/history?kind=scan").json()["changes"] if c["created"] == 4]
        assert server.cli("freeze", base + "/sitemap_index.xml").code == 0
        undone = server.api("POST", f"/v1/history/{made[0]}/undo?max_removed=4&on_conflict=overwrite")
        assert undone.status == 200 and undone.json()["removed"] == 4, undone
        with sqlite3.connect(f"file:{server.database}?mode=ro", uri=True) as db:
            rows = db.execute("SELECT loc, list, next_at, etag FROM fetch").fetchall()
        # A look through what is watched may have removed those that are named no more; none has a validator left.
        assert all(etag is None for *_, etag in rows) and sum(row[1] for row in rows) == 1, rows
        assert all(at > time.time() + 3600 for _, is_list, at, _ in rows if not is_list), rows
        read = lambda: sum("/list.xml" in head for head in origin.asked)
        count = read()
        clock.set(1200)  # its next poll finds all of it, and may not write
        eventually(lambda: read() > count and server.api("GET", "/v1/sources/shop").json()["members"] == 4, "it is read", 100)
        assert "<loc>" not in body(server, origin)
        assert server.cli("thaw", base + "/sitemap_index.xml").code == 0
        eventually(lambda: body(server, origin).count("<loc>") == 4, "it lists them again")


def mirror(start, origin, *names, **settings):
    """The origin's address, and a server that mirrors a list of these sitemaps."""
    base = f"http://{origin.address}:{origin.port}"
    origin.answers["/list.xml"] = answer(200, index(*(base + name for name in names)))
    origin.answers.update({name: answer(200, urlset(base + "/page")) for name in names})
    return base, start(sites=(), config=config(base, **settings))


def test_a_list_is_read_after_an_undo_under_a_freeze(start):
    with Origin() as origin:
        base, server = mirror(start, origin, "/a.xml", "/b.xml", poll="24h")
        eventually(lambda: body(server, origin).count("<loc>") == 2, "it is read")
        made = [c["revision"] for c in server.api("GET", "/v1/history?kind=scan").json()["changes"] if c["created"] == 2]
        assert server.cli("freeze", base + "/sitemap_index.xml").code == 0
        assert server.api("POST", f"/v1/history/{made[0]}/undo?max_removed=2&on_conflict=overwrite").json()["removed"] == 2
        assert "<loc>" not in body(server, origin)
        assert server.cli("thaw", base + "/sitemap_index.xml").code == 0
        eventually(lambda: body(server, origin).count("<loc>") == 2, "it is read again at the thaw")


def test_connect_is_for_the_entries_of_its_own_site(start):
    """It may be an inner address. Another site's entries on that host, which a token may add, are requested as by anybody."""
    with Origin() as origin:
        inner, other = "http://inner.example", "http://other.example"
        origin.answers.update({f"/{name}.xml": answer(200, urlset(inner + "/page")) for name in ("own", "other")})
        server = start(sites=(), config=f'{SETTINGS}[site "n"]\norigin = {inner}\nconnect = {origin.address}:{origin.port}\ncheck = yes\n')
        assert server.api("POST", "/v1/sites", {"origin": other, "cross_hosts": ["inner.example"], "check": True}).status == 201
        for name, host in (("own", inner), ("other", other)):
            assert server.api("POST", "/v1/sitemaps", {"loc": f"{inner}/{name}.xml", "index": host + "/sitemap_index.xml"}).status == 201
        state = lambda name: server.api("POST", f"/v1/checks?loc={quote(f'{inner}/{name}.xml')}").json().get("check", {}).get("state")
        eventually(lambda: state("own") == "good", "by connect")
        eventually(lambda: state("other") == "unreachable", "by its name, which has no address")
        assert "/other.xml" not in origin.paths()


@pytest.mark.parametrize("status, state", [(200, "good"), (500, "unreachable")])
def test_a_sitemap_that_an_undo_restored_is_removed_at_the_thaw(start, status, state):
    """The list does not have it any more; it was read before (200), or never (500)."""
    with Origin() as origin:
        base, server = mirror(start, origin, *(f"/{name}.xml" for name in "abcde"), poll="24h")
        origin.answers["/f.xml"] = origin.answers["/a.xml"]
        origin.answers["/e.xml"] = answer(status, urlset(base + "/page"))
        lists = lambda names: origin.answers.update({"/list.xml": answer(200, index(*(f"{base}/{name}.xml" for name in names)))})
        listed = lambda: re.findall(r"/(.)\.xml</loc>", body(server, origin))
        eventually(lambda: len(listed()) == 5, "all are listed")
        polled = lambda: [check["loc"] for check in server.api("GET", f"/v1/checks?limit=9&state={state}").json()["checks"]]
        eventually(lambda: base + "/e.xml" in polled(), "it was polled")
        lists("abcd")
        assert server.api("POST", "/v1/sources/shop/scan").json()["removed"] == 1
        revision = next(change["revision"] for change in server.api("GET", "/v1/history?kind=scan").json()["changes"] if change["removed"] == 1)
        assert server.cli("freeze", base + "/sitemap_index.xml").code == 0
        assert server.api("POST", f"/v1/history/{revision}/undo").json()["created"] == 1
        assert sorted(listed()) == list("abcde")
        lists("abcf")
        assert server.cli("thaw", base + "/sitemap_index.xml").code == 0
        eventually(lambda: sorted(listed()) == list("abcf"), "as the list has it")


def test_a_sitemap_with_pages_of_another_host_is_polled_soon_after_the_site_has_that_host(start, tmp_path):
    clock, ahead = Clock(tmp_path), [0]
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers.update({"/list.xml": answer(200, index(base + "/a.xml")), "/a.xml": answer(200, urlset("http://img.example.org/page"))})
        server = start(sites=(base,), env=clock.environment, config=SETTINGS + config(base, poll="24h").split("index.xml\n")[1])
        check = lambda: server.api("GET", "/v1/checks").json()["checks"][0]["check"]
        eventually(lambda: server.api("GET", "/v1/checks").json()["checks"] and check()["code"] == "outside-site", "it is polled")
        assert server.cli("site", "update", base, "--add-cross-host", "img.example.org").code == 0

        def is_good():
            ahead[0] = min(ahead[0] + 30, 600)  # it would be polled again after 15 minutes
            clock.set(ahead[0])
            return check()["state"] == "good"

        eventually(is_good, "it is polled again")


def test_a_sitemap_that_was_gone_while_the_clock_was_ahead_is_dropped(start, tmp_path):
    clock = Clock(tmp_path)
    clock.set(10**8)
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        names = [f"/{n}.xml" for n in "abcde"]
        origin.answers["/list.xml"] = answer(200, index(*(base + name for name in names)))
        origin.answers.update({name: answer(200, urlset(base + "/page")) for name in names})
        server = start(sites=(), env=clock.environment, config=config(base, drop_after="1h"))
        poll = lambda: server.api("POST", f"/v1/checks?loc={quote(base + '/a.xml')}")
        eventually(lambda: poll().status == 200, "it is polled")
        origin.answers["/a.xml"] = answer(404)
        assert poll().json()["check"]["state"] == "gone"
        clock.set(0)
        assert poll().json()["check"]["since"] < "2029", "not in the future"
        clock.set(4000)
        assert poll().json()["check"]["remarks"] == ["dropped"]
        eventually(lambda: base + "/a.xml" not in body(server, origin), "it leaves the index")


def unless_known(content):
    """An answer with a validator: 304 for those who have it."""
    return lambda connection, head: connection.sendall(answer(304) if 'If-None-Match: "1"' in head else answer(200, content, ETag='"1"'))


@pytest.mark.parametrize("what", ["source", "host", "site"])
def test_what_was_refused_is_tried_again_when_it_may_be_accepted(start, tmp_path, what):
    """Long before the next poll is due. The list is the same, and its server says so."""
    clock = Clock(tmp_path)
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        listed = base.replace("127.0.0.2", "127.0.0.4" if what == "host" else "127.0.0.2") + "/a.xml"
        origin.answers["/a.xml"] = answer(200, urlset(base + "/page"))
        origin.answers["/list.xml"] = origin.answers["/other.xml"] = unless_known(index(listed))
        source = SETTINGS + config(base, poll="24h", index=base + "/sitemap_index.xml").split("index.xml\n", 1)[1]
        server = start(sites=() if what == "site" else (base,), env=clock.environment, config=source)
        state = lambda name: server.api("GET", f"/v1/sources/{name}").json()
        if what == "source":
            eventually(lambda: state("shop")["checks"].get("good") == 1, "it is polled")
            server.reload(source.replace('[source "shop"]', '[source "new"]').replace("/list.xml", "/other.xml"))
        name = "new" if what == "source" else "shop"
        eventually(lambda: state(name).get("failure") or state(name).get("problems"), "it is rejected")
        change = {"source": ("source", "remove", "shop"), "host": ("site", "update", base, "--add-cross-host", listed.split("/")[2]), "site": ("site", "add", base)}
        assert server.cli(*change[what]).code == 0
        clock.set(70)
        eventually(lambda: state(name)["listed"] == 1 and state(name)["problems"] == [] and not state(name)["failure"], "it is listed")
        assert listed in body(server, origin)


@pytest.mark.parametrize("what", ["entry", "list", "index", "site", "undo"])
def test_entries_that_something_else_removed_are_back_after_the_next_poll(start, tmp_path, what):
    """The list is the same, and its server says so."""
    clock = Clock(tmp_path)
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        names = ("/a.xml", "/b.xml")
        origin.answers.update({name: unless_known(urlset(base + "/page")) for name in names})
        origin.answers["/list.xml"] = unless_known(index(*(base + name for name in names)))
        source = SETTINGS + config(base, poll="10m").split("index.xml\n")[1]
        server = start(sites=(base,), env=clock.environment, config=SETTINGS)
        if what == "undo":
            assert server.cli("import", "-", "--source", "shop", input="".join(base + name + "\n" for name in names)).code == 0
        server.reload(source)
        state = lambda: server.api("GET", "/v1/sources/shop").json()
        eventually(lambda: state()["checks"].get("good") == 2, "all are polled")
        clock.set(700)
        eventually(lambda: sum("/list.xml" in head and "If-None-Match" in head for head in origin.asked) > 0, "it is the same")
        eventually(lambda: not state()["scanning"], "the poll ends")
        changes = lambda: server.api("GET", "/v1/history").json()["changes"]
        before = changes()[0]["revision"]
        if what == "entry":
            done = server.cli("remove", base + "/a.xml")
        elif what == "list":
            done = server.cli("import", "-", "--index", base + "/sitemap_index.xml", "--replace", "--source", "*", "--max-removed", "2", input="")
        elif what == "index":
            assert server.cli("index", "remove", base + "/sitemap_index.xml", "--max-removed", "2").code == 0
            done = server.cli("index", "add", base + "/sitemap_index.xml")
        elif what == "site":
            assert server.cli("site", "remove", base, "--max-removed", "2").code == 0
            done = server.cli("site", "add", base)
        else:
            done = server.cli("undo", str(server.api("GET", "/v1/history?kind=list").json()["changes"][-1]["revision"]), "--max-removed", "2")
        assert done.code == 0, done
        clock.set(1400)
        eventually(lambda: any(change["revision"] > before and change["created"] > 0 for change in changes()), "the next poll puts them back")
        eventually(lambda: body(server, origin).count("<loc>") == 2, "all are in the index")


def test_only_lists_that_lost_an_entry_are_read_whole_after_a_replace(start, tmp_path):
    """A client replaces what anyone owns in one site: the next poll of another site's list is conditional."""
    clock = Clock(tmp_path)
    with Origin() as origin, Origin("127.0.0.3") as other:
        one, two = (f"http://{at.address}:{at.port}" for at in (origin, other))
        for at, base in ((origin, one), (other, two)):
            at.answers["/list.xml"] = unless_known(index(base + "/a.xml", base + "/b.xml"))
        server = start(sites=(), env=clock.environment, config="[fetch]\nallow_address = 127.0.0.2 127.0.0.3\nrate = 1000\n" + "".join(
            f'[site "{name}"]\norigin = {base}\nindex = /sitemap_index.xml\n[source "{name}"]\nupstream = {base}/list.xml\ncheck = no\npoll = 10m\n' for name, base in (("one", one), ("two", two))))
        idle = lambda: all(source["listed"] == 2 and not source["scanning"] for source in server.api("GET", "/v1/sources").json()["sources"])
        eventually(idle, "both are read")
        def stored():
            with contextlib.closing(sqlite3.connect(server.database)) as db:
                return db.execute("SELECT count(*) FROM fetch WHERE list = 1 AND etag IS NOT NULL").fetchone() == (2,)

        eventually(stored, "their validators are stored")
        asked = lambda at: [head for head in at.asked if "/list.xml" in head]
        before = [len(asked(at)) for at in (origin, other)]
        assert server.cli("import", "-", "--index", one + "/sitemap_index.xml", "--replace", "--source", "*", "--max-removed", "1", input=one + "/a.xml\n").code == 0
        clock.set(700)
        eventually(lambda: all(len(asked(at)) > n for at, n in zip((origin, other), before)), "both are polled again")
        assert ["If-None-Match" in asked(at)[n] for at, n in zip((origin, other), before)] == [False, True]
        eventually(lambda: server.api("GET", "/v1/sitemaps?prefix=" + quote(one, safe="")).json()["sitemaps"][1:], "what was removed is back")


def test_what_a_freeze_held_is_in_the_index_after_a_restart_and_the_thaw(start, tmp_path):
    clock = Clock(tmp_path)
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers.update({name: answer(200, urlset(base + "/page")) for name in ("/a.xml", "/b.xml")})
        origin.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        server = start(sites=(), env=clock.environment, config=config(base, poll="10m"))
        eventually(lambda: body(server, origin).count("<loc>") == 1, "it is read")
        assert server.cli("freeze", base + "/sitemap_index.xml").code == 0
        origin.answers["/list.xml"] = unless_known(index(base + "/a.xml", base + "/b.xml"))
        clock.set(700)
        eventually(lambda: "source-frozen" in server.log() or server.api("GET", "/v1/sources/shop").json()["members"] == 2, "the new list is read")
        server.stop()
        server.start()
        assert server.cli("thaw", base + "/sitemap_index.xml").code == 0
        clock.set(1400)
        eventually(lambda: body(server, origin).count("<loc>") == 2, "its next poll finds what the freeze held")


def test_a_site_that_an_undo_brings_back_is_polled_again(start, tmp_path):
    clock = Clock(tmp_path)
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        origin.answers["/a.xml"] = answer(200, urlset(base + "/page"))
        text = f'{SETTINGS}[source "shop"]\nupstream = {base}/list.xml\npoll = 10m\n'
        server = start(sites=(base,), env=clock.environment, config=text)
        reads = lambda name: sum(name in head for head in origin.asked)
        eventually(lambda: server.api("GET", "/v1/sources/shop").json()["checks"].get("good") == 1, "it is polled")
        site = server.api("GET", "/v1/sites").json()["sites"][0]["id"]
        assert server.api("DELETE", f"/v1/sites/{site}?max_removed=9").status in (200, 204)
        lists, polls = reads("/list.xml"), reads("/a.xml")
        clock.set(7 * 3600)
        eventually(lambda: reads("/list.xml") > lists, "its sitemap is due, too")
        removed = [c["revision"] for c in server.api("GET", "/v1/history?limit=50").json()["changes"] if c["kind"] == "site-remove"]
        assert server.api("POST", f"/v1/history/{removed[0]}/undo?max_removed=9").status == 200
        clock.set(9 * 3600)
        eventually(lambda: reads("/a.xml") > polls, "it is polled again")


def test_a_removed_source_is_still_called_remote(start):
    with Origin() as origin:
        base, server = mirror(start, origin, "/a.xml", serve="yes")
        eventually(lambda: server.api("GET", "/v1/sources/shop").json()["checks"].get("good") == 1, "it is polled")
        origin.answers["/other.xml"] = origin.answers["/list.xml"]
        server.reload(config(base, serve="yes").replace('[source "shop"]', '[source "new"]').replace("/list.xml", "/other.xml"))
        eventually(lambda: server.api("GET", "/v1/sources/new").json().get("problems"), "the other one is read")
        assert [p["detail"] for p in server.api("GET", "/v1/sources/new").json()["problems"]] == [
            f'is owned by "shop", in {base}/sitemap_index.xml; it was not changed; if that is an old name of this source, run `sitemapd source remove` for it']
        outcome = [line for line in server.log().splitlines() if "source-no-longer-configured" in line]
        assert outcome[-1].endswith("shop: was removed from the configuration: the upstream is no longer read, and its sitemaps are no longer served: crawlers get 404; its entries stay; "
                                 "`sitemapd source remove shop` lets another source take them over and serve them"), outcome
        eventually(lambda: re.search(r"^shop +remote  not declared here", server.cli("source", "list").out, re.M), "it is known as what it was")
        orphaned = lambda: [r["detail"] for r in server.api("GET", "/readyz").json()["reasons"] if r["code"] == "source-orphaned"]
        sentence = ("shop: no source has this name any more, but its sitemaps are still listed; the server no longer reads or serves them; configure the source again, "
                    "or run `sitemapd source remove shop` to let another source take them over")
        assert orphaned() == [sentence]
        server.stop()
        server.start()
        assert " warning source-not-read: shop: no source has this name any more: its upstream is no longer read" in server.log()
        assert orphaned() == [sentence]
        assert sentence + " (source-orphaned)" in sitemapd("status", "--server", f"http://{server.admin}", env={"SITEMAPD_TOKEN": server.token}).out
        server.reload(config(base, serve="yes"))
        assert orphaned() == []
        server.reload(config(base, serve="yes").replace('[source "shop"]', '[source "new"]').replace("/list.xml", "/other.xml"))
        assert orphaned() == [sentence]
        assert server.cli("source", "remove", "shop").code == 0
        eventually(lambda: orphaned() == [], "another source may take them over")


@pytest.mark.parametrize("how", ["reload", "restart"])
def test_a_renamed_source_keeps_its_entries_and_serves_them(start, how):
    with Origin() as origin:
        base, server = mirror(start, origin, "/a.xml", "/b.xml", serve="yes")
        eventually(lambda: server.api("GET", "/v1/sources/shop").json()["checks"].get("good") == 2, "they are polled")
        before = body(server, origin)
        renamed = config(base, serve="yes").replace('[source "shop"]', '[source "new"]')
        if how == "reload":
            server.reload(renamed)
        else:
            server.stop()
            Path(server.folder, "sitemapd.conf").write_text(renamed)
            server.start()
        eventually(lambda: "source-renamed: shop: source new now reads the same upstream and takes over its entries" in server.log(), "its old name is released")
        assert "source-no-longer-configured" not in server.log() and "source-not-read" not in server.log()
        eventually(lambda: server.api("GET", "/v1/sources/new").json()["checks"].get("good") == 2, "the new name has them")
        assert body(server, origin) == before
        assert ask(server.public, "GET", "/a.xml", host=f"{origin.address}:{origin.port}").status == 200
        assert [source["name"] for source in server.api("GET", "/v1/sources").json()["sources"]] == ["new"]


def test_a_renamed_source_serves_what_it_has_while_its_upstream_is_away(start):
    """What it has is the new name's at once: nothing needs the upstream for it."""
    with Origin() as origin:
        base, server = mirror(start, origin, "/a.xml", "/b.xml", serve="yes")
        eventually(lambda: server.api("GET", "/v1/sources/shop").json()["checks"].get("good") == 2, "they are polled")
        before = body(server, origin)
        origin.answers.update({name: answer(503) for name in origin.answers})
        for old, new in (("shop", "new"), ("new", "newer")):
            server.reload(config(base, serve="yes").replace('[source "shop"]', f'[source "{new}"]'))
            assert ask(server.public, "GET", "/a.xml", host=f"{origin.address}:{origin.port}").status == 200
            eventually(lambda: f"source-renamed: {old}: source {new} now reads the same upstream" in server.log(), "it has its new name")
            assert ask(server.public, "GET", "/b.xml", host=f"{origin.address}:{origin.port}").status == 200
            assert server.api("GET", f"/v1/sources/{new}").json()["listed"] == 2
        assert body(server, origin) == before


def test_an_entry_is_served_as_its_owner_says(start):
    """Two sources list a sitemap: that of the one that does not own the entry decides nothing."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers["/list.xml"] = origin.answers["/other.xml"] = answer(200, index(base + "/a.xml"))
        origin.answers["/a.xml"] = answer(200, urlset(base + "/page"))
        other = config(base).replace('[source "shop"]', '[source "other"]').replace("/list.xml", "/other.xml")
        server = start(sites=(), config=config(base, serve="yes"))
        eventually(lambda: server.api("GET", "/v1/sources/shop").json()["checks"].get("good") == 1, "it is polled")
        server.reload(config(base, serve="yes") + other[other.index('[source "other"]'):])
        eventually(lambda: server.api("GET", "/v1/sources/other").json()["problems"], "the other one has looked")
        assert ask(server.public, "GET", "/a.xml", host=f"{origin.address}:{origin.port}").status == 200


def test_a_cross_host_does_not_claim_a_source_on_it(start):
    """A token may give its own site any cross host that belongs to no site: the source of the configuration there stays hidden from it."""
    with Origin() as origin:
        base, shop, mine = f"http://{origin.address}:{origin.port}", "https://shop.example", "https://a.example"
        origin.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        origin.answers["/a.xml"] = answer(200, urlset(shop + "/page"))
        text = f'{SETTINGS}[site "m"]\norigin = {shop}\n[source "shop"]\nupstream = {base}/list.xml\nmap = {base} {shop}\n'
        server = start(sites=(mine,), config=text)
        token = server.cli("token", "add", "mine", "--site", mine, "--role", "admin").out.strip()
        eventually(lambda: server.api("GET", "/v1/token", token=token).status == 200, "the token is known")
        site = server.api("GET", "/v1/sites", token=token).json()["sites"][0]
        assert server.api("PATCH", f"/v1/sites/{site['id']}", {"add_cross_hosts": [origin.address]}, token=token).status == 200
        assert server.api("GET", "/v1/sources", token=token).json()["sources"] == []
        for method, tail, status in (("GET", "", 404), ("POST", "/scan", 403), ("POST", "/scan?max_removed=9", 403)):
            assert server.api(method, "/v1/sources/shop" + tail, token=token).status == status
        text += f'[site "mine"]\norigin = {mine}\ncross_host = {origin.address}\n'
        server.reload(text)
        assert [s["name"] for s in server.api("GET", "/v1/sources", token=token).json()["sources"]] == ["shop"], "the configuration says so"


def test_a_sitemap_at_the_url_of_its_index_is_not_accepted(start):
    """The index would lose all that it lists, and could not list it."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers["/sitemap_index.xml"] = answer(200, index(base + "/a.xml", base + "/b.xml"))
        origin.answers.update({name: answer(200, urlset(base + "/page")) for name in ("/a.xml", "/b.xml")})
        server = start(sites=(), config=config(base).replace("/list.xml", "/sitemap_index.xml"))
        eventually(lambda: body(server, origin).count("<loc>") == 2, "it is read")
        origin.answers["/sitemap_index.xml"] = answer(200, urlset(base + "/page"))
        for query in ("", "?max_removed=2"):
            assert server.api("POST", f"/v1/sources/shop/scan{query}").status == 503
        assert server.api("GET", "/v1/sources/shop").json()["failure"] == (
            "is a sitemap (urlset) at the URL of an index here, which cannot list itself: add an index at another path, set it as the index of the source, "
            "and pass /sitemap_index.xml to the old server again")
        assert body(server, origin).count("<loc>") == 2


def test_what_was_under_way_at_an_undo_brings_no_validators_back(start):
    """A sitemap is asked for what is new, its date is set back meanwhile, and it says that nothing is: it is read in full nevertheless."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        released = threading.Event()

        def nothing_new(connection, head):
            released.wait(60)
            connection.sendall(answer(304, ETag='"2"'))

        origin.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        origin.answers["/a.xml"] = answer(200, urlset(base + "/one"), ETag='"1"')
        server = start(sites=(), config=config(base))
        poll = lambda: server.api("POST", f"/v1/checks?loc={base}/a.xml")
        asked = lambda: [head for head in origin.asked if "/a.xml" in head]

        def etag():
            with sqlite3.connect(f"file:{server.database}?mode=ro", uri=True) as db:
                return (db.execute("SELECT etag FROM fetch WHERE list = 0").fetchone() or [None])[0]

        eventually(lambda: (poll().status, etag()) == (200, '"1"'), "it is read")
        origin.answers["/a.xml"] = answer(200, urlset(base + "/two"), ETag='"2"')
        assert poll().status == 200 and etag() == '"2"' and "<lastmod>" in body(server, origin)
        moved = server.api("GET", "/v1/history?kind=check").json()["changes"][0]["revision"]
        assert server.cli("freeze", base + "/sitemap_index.xml").code == 0
        origin.answers["/a.xml"] = nothing_new
        count, replies = len(asked()), []
        polling = threading.Thread(target=lambda: replies.append(poll()))
        polling.start()
        eventually(lambda: len(asked()) > count, "it is asked")
        assert 'If-None-Match: "2"' in asked()[-1]
        assert server.api("POST", f"/v1/history/{moved}/undo").json()["updated"] == 1
        assert etag() is None and "<lastmod>" not in body(server, origin)
        released.set()
        polling.join()
        assert replies[0].status == 200 and etag() is None
        assert server.cli("thaw", base + "/sitemap_index.xml").code == 0
        origin.answers["/a.xml"] = answer(200, urlset(base + "/two"), ETag='"2"')
        assert poll().status == 200 and "If-None-Match" not in asked()[-1] and etag() == '"2"'


def test_a_list_that_redirects_to_its_site(start):
    """The server, `scan` without one and `probe` follow it to the hosts of the upstream and of the site, and to no other site's."""
    with Origin() as old, Origin("127.0.0.3") as www, Origin("127.0.0.4") as other:
        upstream, site, stranger = (f"http://{o.address}:{o.port}" for o in (old, www, other))
        for origin, base in ((www, site), (other, stranger)):
            origin.answers["/list.xml"] = answer(200, index(site + "/a.xml"))
            origin.answers["/a.xml"] = answer(200, urlset(site + "/page"))
        text = SETTINGS.replace("127.0.0.2", "127.0.0.0/8") + "".join(f'[site "{name}"]\norigin = {base}\n' for name, base in (("www", site), ("other", stranger)))
        text += f'[source "shop"]\nupstream = {upstream}/list.xml\nindex = {site}/sitemap_index.xml\n'
        old.answers["/list.xml"] = answer(301, Location=stranger + "/list.xml")
        server = start(sites=(), config=text)
        why = f"it redirects to a host that does not belong to the site: {stranger}"
        commands = lambda: [server.cli(*words, "--config", Path(server.folder) / "sitemapd.conf") for words in (("scan", "shop"), ("probe", "shop"))]
        eventually(lambda: server.api("GET", "/v1/sources/shop").json()["failure"] == why, "the redirect to another site is rejected")
        assert all(why in done.err + done.out and done.code == 1 for done in commands())
        old.answers["/list.xml"] = answer(301, Location=site + "/list.xml")
        assert all(done.code == 0 for done in commands())
        assert server.api("POST", "/v1/sources/shop/scan").status == 200
        assert server.api("GET", "/v1/sources/shop").json()["failure"] is None
        assert other.asked == []


def test_changed_settings_of_a_failing_list_apply_at_once(start):
    """They may be the remedy: what was `failing` does not stay so until the next poll, after a reload or a restart."""
    with Origin() as origin, Origin("127.0.0.3") as moved:
        base = f"http://{origin.address}:{origin.port}"
        text = config(base).replace("= 127.0.0.2\n", "= 127.0.0.2 127.0.0.3\n")
        for at in (origin, moved):
            at.answers["/a.xml"] = answer(200, urlset(base + "/page"))
        origin.answers["/list.xml"] = answer(500)
        moved.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        server = start(sites=(), config=text)
        settings = Path(server.folder) / "sitemapd.conf"
        shop = lambda: server.api("GET", "/v1/sources/shop").json()
        connect = f"connect = {moved.address}:{moved.port}\n"
        restart = lambda change: (server.stop(), settings.write_text(change), server.start())
        for change, apply in (
            (text + connect, server.reload),
            (text, server.reload),
            (text + connect, restart),
            (text, restart),
            (text.replace('[source "shop"]', connect + '[source "shop"]'), server.reload),
        ):
            eventually(lambda: (shop()["failure"] is None) == (connect in settings.read_text()), "the list is read with the settings of before")
            apply(change)
        eventually(lambda: shop()["failure"] is None, "the connect of the site applies")


def test_a_source_that_is_read_through_other_settings_for_a_moment(start):
    """Whatever was stored of the list meanwhile is of those: with the settings that it had before, it is read in full at once."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        released = threading.Event()
        listed = answer(200, index(base + "/a.xml"), ETag='"1"')
        origin.answers["/list.xml"] = listed
        server = start(sites=(), config=config(base))
        eventually(lambda: base + "/a.xml" in body(server, origin), "it is listed")
        asked = lambda path: [head for head in origin.asked if head.startswith(f"GET {path} ")]
        settings = Path(server.folder) / "sitemapd.conf"
        for other, path in (
            (config(base).replace("/list.xml", "/moved.xml"), "/moved.xml"),
            (config(base, map=f"https://old.example {base}"), "/list.xml"),
        ):
            origin.answers[path] = lambda connection, head: released.wait(60)
            server.stop()
            settings.write_text(other)
            count = len(asked(path))
            server.start()
            eventually(lambda count=count, path=path: len(asked(path)) > count, "it is asked with the other settings")
            server.kill()
            origin.answers["/list.xml"] = listed
            settings.write_text(config(base))
            count = len(asked("/list.xml"))
            server.start()
            eventually(lambda count=count: len(asked("/list.xml")) > count, "it is read again")
            assert "If-None-Match" not in asked("/list.xml")[-1]
            eventually(lambda: not server.api("GET", "/v1/sources/shop").json()["scanning"], "it is scanned")
        released.set()


def test_a_list_that_dates_anew_what_a_poll_has_just_dated(start):
    """The poll's date is on its way to the catalogue when the list is read: it stays."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        origin.answers["/list.xml"] = answer(200, index((base + "/a.xml", "2026-01-01")))
        origin.answers["/a.xml"] = answer(200, urlset(base + "/one"))
        server = start(sites=(), config=config(base))
        poll = lambda: server.api("POST", f"/v1/checks?loc={base}/a.xml")
        scan = lambda: server.api("POST", "/v1/sources/shop/scan")
        asked = lambda path: sum(path in head for head in origin.asked)
        eventually(lambda: poll().status == 200, "it is read")
        eventually(lambda: "<lastmod>2026-01-01</lastmod>" in body(server, origin), "the list's page is served")
        held = sqlite3.connect(server.database, isolation_level=None)
        held.execute("BEGIN IMMEDIATE")  # another process keeps what is found waiting
        origin.answers["/a.xml"] = answer(200, urlset(base + "/two", lastmod="2026-02-02"))
        origin.answers["/list.xml"] = answer(200, index((base + "/a.xml", "2026-03-03")))
        with ThreadPoolExecutor() as pool:
            replies = []
            for path, begin in (("/a.xml", poll), ("/list.xml", scan)):
                count = asked(path)
                replies.append(pool.submit(begin))
                eventually(lambda: asked(path) > count, "it is asked")
                eventually(lambda: server.metrics()["sitemapd_catalogue_queue_depth"] >= len(replies), "the result is handed over")
            held.execute("ROLLBACK")
            assert [reply.result().status for reply in replies] == [200, 200]
        assert "<lastmod>2026-02-02</lastmod>" in body(server, origin)


def test_dates_that_polls_found_stay_without_polls(start):
    """With `check = no` the list moves them forward only."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        claim = lambda date: origin.answers.update({"/list.xml": answer(200, index((base + "/a.xml", date) if date else base + "/a.xml"))})
        dated = lambda date: f"<loc>{base}/a.xml</loc><lastmod>{date}</lastmod>" in body(server, origin)
        claim("2025-01-01")
        origin.answers["/a.xml"] = answer(200, urlset(base + "/one"))
        server = start(sites=(), config=config(base))
        poll = lambda: server.api("POST", f"/v1/checks?loc={base}/a.xml")
        eventually(lambda: poll().status == 200 and dated("2025-01-01"), "it is read")
        origin.answers["/a.xml"] = answer(200, urlset(base + "/two", lastmod="2026-02-02"))
        assert poll().status == 200
        eventually(lambda: dated("2026-02-02"), "the poll dates it")
        server.reload(config(base, check="no"))
        for listed, date in (("2025-01-01", "2026-02-02"), (None, "2026-02-02"), ("2026-03-03", "2026-03-03"), ("2026-02-03", "2026-03-03")):
            claim(listed)
            assert server.api("POST", "/v1/sources/shop/scan").status == 200
            assert dated(date), body(server, origin)
        server.reload(config(base))
        claim(None)
        assert server.api("POST", "/v1/sources/shop/scan").status == 200
        assert dated("2026-03-03")


def test_a_list_that_waits_for_its_turn_keeps_no_poll_waiting(start):
    """Of the lists one is sent after the other; a client that asks meanwhile is answered by the next."""
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        for name in "ab":
            origin.answers[f"/{name}.xml"] = answer(200, urlset(base + f"/{name}"))
            origin.answers[f"/list-{name}.xml"] = answer(200, index(base + f"/{name}.xml"))
        both = "".join(f'[source "{name}"]\nupstream = {base}/list-{name}.xml\n' for name in "ab")
        server = start(sites=(), config=f'{SETTINGS}[site "m"]\norigin = {base}\nindex = /sitemap_index.xml\n{both}')
        poll = lambda name: server.api("POST", f"/v1/checks?loc={base}/{name}.xml")
        scan = lambda name, query="": server.api("POST", f"/v1/sources/{name}/scan{query}")
        asked = lambda path: sum(path in head for head in origin.asked)
        eventually(lambda: poll("a").status == poll("b").status == 200, "both are read")
        held = sqlite3.connect(server.database, isolation_level=None)
        held.execute("BEGIN IMMEDIATE")  # another process keeps every scan waiting
        with ThreadPoolExecutor() as pool:
            for name in "ab":
                origin.answers[f"/list-{name}.xml"] = answer(200, index(base + f"/{name}.xml", base + f"/{name}{name}.xml"))
            before = [asked(f"/list-{name}.xml") for name in "ab"]
            scans = [pool.submit(scan, *of) for of in (("a", ""), ("b", ""), ("a", ""), ("b", "?dry_run=1"))]
            eventually(lambda: all(asked(f"/list-{name}.xml") > count for name, count in zip("ab", before)), "both are asked")
            time.sleep(0.5)  # and were read
            count = asked("/a.xml")
            polled = pool.submit(poll, "a")
            eventually(lambda: asked("/a.xml") > count, "a sitemap is asked for while they wait")
            held.execute("ROLLBACK")
            assert [reply.result().status for reply in (*scans, polled)] == [200] * 5, [reply.result() for reply in scans]
        assert body(server, origin).count("<loc>") == 4
        held.execute("BEGIN IMMEDIATE")
        origin.answers["/list-a.xml"] = answer(200, index(base + "/a.xml"))
        count = asked("/list-a.xml")
        with ThreadPoolExecutor() as pool:
            waits = pool.submit(scan, "a", "?max_removed=1")
            eventually(lambda: asked("/list-a.xml") > count, "it is asked")
            server.process.send_signal(signal.SIGHUP)  # what is under way goes on
            held.execute("ROLLBACK")
            assert (waits.result().status, waits.result().json()["removed"]) == (200, 1)


def test_a_date_that_the_list_took_back_while_the_first_read_was_under_way(start):
    """A first read leaves the date that the list gave; if none exists any more, the next one dates it."""
    begun, goes_on = threading.Event(), threading.Event()
    with Origin() as origin:
        base = f"http://{origin.address}:{origin.port}"
        good = answer(200, urlset(base + "/page", lastmod="2025-02-03"))

        def held(connection, _):
            begun.set()
            goes_on.wait(seconds(60))
            connection.sendall(good)

        origin.answers.update({"/a.xml": held, "/list.xml": answer(200, index((base + "/a.xml", "2026-01-02")))})
        server = start(sites=(), config=config(base))
        eventually(begun.is_set, "it is read")
        assert "<lastmod>2026-01-02</lastmod>" in body(server, origin)
        origin.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        assert server.api("POST", "/v1/sources/shop/scan").status == 200
        assert "<lastmod>" not in body(server, origin)
        origin.answers["/a.xml"] = good
        goes_on.set()
        poll = lambda: server.api("POST", f"/v1/checks?loc={base}/a.xml")
        eventually(lambda: poll().status == 200 and "<lastmod>2025-02-03</lastmod>" in body(server, origin), "it is dated")


def test_a_web_server_that_leads_sitemaps_elsewhere(start):
    """Polls go past the switch (`connect`). Some sitemaps are asked for by their public address, too, as crawlers get them:
    where that has none, the sitemap is not good, and stays listed."""
    with Origin() as door, Origin("127.0.0.3") as old:
        base = f"http://{door.address}:{door.port}"
        names = [f"/sitemap.xml?page={n}" for n in (1, 2, 3)]
        for name in names:
            old.answers[name] = door.answers[name] = answer(200, urlset(base + "/page"))
        old.answers["/list.xml"] = answer(200, index(*(base + name for name in names)))
        door.answers[names[1]] = answer(404)  # the location block catches it
        door.answers[names[2]] = answer(403)  # this machine is locked out, which says nothing of crawlers
        server = start(sites=(), config=config(base, connect=f"{old.address}:{old.port}").replace("127.0.0.2\n", "127.0.0.2\nallow_address = 127.0.0.3\n"))
        outcome = f"{base}{names[1]} is unreachable (public-differs): at its public address it answers 404; {old.address}:{old.port} serves it"
        eventually(lambda: outcome in server.log(), "it is reported")
        eventually(lambda: sorted(door.paths()) == names, "all were asked for by their public address")
        assert server.log().count("check-problem") == 1
        assert "credentials" not in "".join(door.asked).lower()

        def poll(name):
            reply = server.api("POST", f"/v1/checks?loc={quote(base + name, safe='')}")
            assert reply.status == 200, reply
            return reply.json()["check"]

        bad = poll(names[1])
        assert (bad["state"], bad["code"]) == ("unreachable", "public-differs") and bad["detail"] in outcome, bad
        reasons = {r["code"]: r["detail"] for r in server.api("GET", "/readyz").json()["reasons"]}
        assert "1 unreachable" in reasons["source-checks"], reasons
        assert poll(names[0])["state"] == poll(names[2])["state"] == "good"
        door.answers[names[1]] = answer(503)
        assert poll(names[1])["state"] == "unreachable", "it does not say: it is as it was"
        door.answers[names[1]] = answer(200, b"<!doctype html><title>Not found</title>")
        assert poll(names[1])["state"] == "unreachable"
        assert ask(server.public, "GET", "/sitemap_index.xml", host=f"{door.address}:{door.port}").body.count(b"<loc>") == 3
        door.answers[names[1]] = answer(200, urlset(base + "/page"))
        assert poll(names[1])["state"] == "good"
        server.wait_for_log(f"{base}{names[1]} is good again")

        def pass_on(connection, head):
            """The rule that is too wide leads to this very server, with all that the request has."""
            loop = dict(line.split(": ", 1) for line in head.split("\r\n") if line.startswith("CDN-Loop: "))
            reply = ask(server.public, "GET", head.split(" ")[1], loop, host=f"{door.address}:{door.port}")
            connection.sendall(answer(reply.status, reply.body))

        door.answers[names[0]] = pass_on
        bad = poll(names[0])
        assert bad["code"] == "public-differs" and "it answers 404" in bad["detail"], bad


def test_the_public_address_is_left_alone(start):
    with Origin() as door, Origin("127.0.0.3") as old:
        base = f"http://{door.address}:{door.port}"
        old.answers["/a.xml"] = answer(200, urlset(base + "/page"))
        old.answers["/list.xml"] = answer(200, index(base + "/a.xml"))
        text = config(base, connect=f"{old.address}:{old.port}").replace("127.0.0.2\n", "127.0.0.2\nallow_address = 127.0.0.3\n")
        server = start(sites=(), config=text.replace("[source", "public_check = no\n[source"))
        eventually(lambda: "/a.xml" in old.paths(), "it is polled")
        reply = server.api("POST", f"/v1/checks?loc={base}/a.xml")
        assert reply.json()["check"]["state"] == "good" and door.asked == []


def test_a_site_is_polled_past_the_web_server(start):
    """`connect` of a site: after the switch its registered sitemaps, and its sources, are read from the old server; each
    registered one is asked for by its public address, too. A source that a token made is asked as everybody asks."""
    with Origin() as door, Origin("127.0.0.3") as old:
        base = f"http://{door.address}:{door.port}"
        for path in ("/a.xml", "/b.xml", "/c.xml"):
            old.answers[path] = door.answers[path] = answer(200, urlset(base + "/page"))
        old.answers["/list.xml"] = answer(200, index(base + "/c.xml"))
        text = config(base, poll="1h").replace("127.0.0.2\n", "127.0.0.2\nallow_address = 127.0.0.3\n")
        text = text.replace("[source", f"check = yes\nconnect = {old.address}:{old.port}\n[source")
        server = start(sites=(), config=text)
        for path in ("/a.xml", "/b.xml"):
            assert server.register(base + path).status in (200, 201)
        poll = lambda path: server.api("POST", f"/v1/checks?loc={base}{path}").json()["check"]
        eventually(lambda: {"/list.xml", "/a.xml", "/b.xml", "/c.xml"} <= set(old.paths()), "all are read past the web server")
        assert (poll("/a.xml")["state"], poll("/c.xml")["state"]) == ("good", "good")
        assert {"/a.xml", "/c.xml"} <= set(door.paths()) and "/list.xml" not in door.paths()
        door.answers["/a.xml"] = answer(404)
        bad = poll("/a.xml")
        assert (bad["state"], bad["code"]) == ("unreachable", "public-differs") and f"{old.address}:{old.port} serves it" in bad["detail"], bad
        door.answers["/a.xml"] = answer(200, urlset(base + "/page"))
        assert poll("/a.xml")["state"] == "good"
        made = server.api("POST", "/v1/sources", {"name": "made", "upstream": base + "/list.xml"}, token=server.make_token("m", "--site", base, "--role", "admin"))
        assert made.status == 201, made
        eventually(lambda: "/list.xml" in door.paths(), "it is asked as everybody asks")
        # Another address is taken by a reload.
        server.reload(text.replace(f"connect = {old.address}:{old.port}\n", ""))
        count = len(old.asked)
        assert poll("/b.xml")["state"] == "good" and len(old.asked) == count
