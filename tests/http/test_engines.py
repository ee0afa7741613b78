# SPDX-License-Identifier: LicenseRef-Undeclared
"""What search engines report: asked, submitted once, kept, shown; and no secret anywhere."""

import contextlib
import json
import sqlite3
import time
from datetime import datetime
from pathlib import Path

import pytest

from engines import BING_KEY, TOKEN, Bing, Google
from harness import ORIGIN, Clock, eventually, sitemapd

INDEX = ORIGIN + "/sitemap_index.xml"
OTHER = "https://www.example.org"
READ = {"lastSubmitted": "2026-11-20T08:00:00.000Z", "lastDownloaded": "2026-11-26T09:30:00.123Z", "isPending": False}

pytestmark = pytest.mark.faster(5)


def config(engine, more="", sites=(ORIGIN,)):
    return "[fetch]\nallow_address = 127.0.0.2\n" + "".join(
        f'[site "s{i}"]\norigin = {origin}\nindex = /sitemap_index.xml\n' for i, origin in enumerate(sites)) + engine.config(more)


@pytest.fixture
def google():
    with Google() as made:
        yield made


@pytest.fixture
def bing():
    with Bing() as made:
        yield made


def engines(server, **more):
    reply = server.api("GET", "/v1/engines", **more)
    assert reply.status == 200, reply
    return reply.json()["engines"]


def sites(server, name, query="", **more):
    reply = server.api("GET", f"/v1/engines/{name}/sitemaps{query}", **more)
    assert reply.status == 200, reply
    return {site["site"]: site for site in reply.json()["sites"]}


def fill(server, *origins):
    for origin in origins:
        assert server.register(origin + "/a.xml").status == 201


def test_a_property_that_covers_no_site(tmp_path):
    (tmp_path / "key").write_text("k")
    (tmp_path / "key").chmod(0o600)
    path = tmp_path / "sitemapd.conf"
    checked = lambda property: (path.write_text(f'[engine "google"]\ncredentials_file = {tmp_path}/key\nproperty = {property}\n'), sitemapd("check-config", path))[1]
    for property in ("sc-domain:example.com", "https://www.example.com/", "http://example.com", "https://www.example.com:8443"):
        assert checked(property).code == 0, property
    for property in ("example.com", "https://www.example.com/shop/", "sc-domain:", "sc-domain:https://example.com", "sc-domain:Example.com"):
        result = checked(property)
        assert result.code == 1 and f"{path}:1: property {property}: must be sc-domain: and a domain" in result.err, result


def serve(start, engine, sites=(ORIGIN,), **options):
    server = start(sites=(), config=config(engine, sites=sites, **options))
    assert not engines(server)[0]["asked_at"], "nothing is to be said of an empty index"
    fill(server, *sites)
    eventually(lambda: engines(server)[0]["asked_at"], "it was asked")
    return server


def test_an_index_is_submitted_once_and_then_shown(start, google):
    server = serve(start, google)
    assert google.refused == [] and google.count("token") == 1
    assert [call for call in google.calls if call[0] != "token"] == [("list", ORIGIN + "/", None), ("submit", ORIGIN + "/", INDEX)]
    [shown] = sites(server, "google")[ORIGIN]["sitemaps"]
    assert shown["loc"] == INDEX and shown["sent_at"] and not shown["listed"] and shown["pending"]
    # What was kept holds after a restart: nobody is asked before it is time.
    server.restart()
    assert engines(server)[0]["state"] == "ok" and google.count("list") == 1


def test_what_google_says_of_an_index_and_its_broken_sitemaps(start, google):
    bad, fine = ORIGIN + "/bad.xml", ORIGIN + "/fine.xml"
    google.sitemaps[INDEX] = {**READ, "isSitemapsIndex": True, "errors": "3", "warnings": 2, "contents": [{"type": "web", "submitted": "1200"}, {"type": "image", "submitted": 34}]}
    google.sitemaps["https://elsewhere.example/a.xml"] = READ
    google.children[INDEX] = [{"path": bad, **READ, "errors": 3, "warnings": "0"}, {"path": fine, **READ, "errors": "0"}]
    server = serve(start, google)
    assert google.count("submit") == 0, "it is listed"
    site = sites(server, "google")[ORIGIN]
    found = {row["loc"]: row for row in site["sitemaps"]}
    assert set(found) == {INDEX, bad}, "of this site, and of its children those with errors"
    assert (found[INDEX]["errors"], found[INDEX]["warnings"], found[INDEX]["urls"]) == (3, 2, 1234)
    assert found[INDEX]["read_at"] == "2026-11-26T09:30:00Z" and found[INDEX]["submitted_at"] == "2026-11-20T08:00:00Z"
    assert found[bad]["index"] == INDEX and found[bad]["errors"] == 3
    assert [(day["errors"], day["urls"]) for day in site["days"]] == [(3, 1234)]
    [summary] = engines(server)
    assert (summary["state"], summary["errors"], summary["warnings"], summary["sitemaps"], summary["sites"]["ok"]) == ("ok", 3, 2, 1, 1)
    eventually(lambda: server.metrics()['sitemapd_engine_sites{engine="google",state="ok"}'] == 1, "it is counted")
    metrics = server.metrics()
    assert metrics['sitemapd_engine_errors{engine="google"}'] == 3 and metrics['sitemapd_engine_up{engine="google"}'] == 1
    assert metrics['sitemapd_engine_last_read_age_seconds{engine="google"}'] > 0


def due(server):
    """Each site is asked again at once, and the outcome is kept."""
    server.stop()
    with contextlib.closing(sqlite3.connect(server.database)) as db, db:
        db.execute("UPDATE local_engine_site SET next_at = 1")
    server.start()

    def waiting():
        with contextlib.closing(sqlite3.connect(f"file:{server.database}?mode=ro", uri=True)) as db:
            return db.execute("SELECT count(*) FROM local_engine_site WHERE next_at = 1").fetchone()[0]

    eventually(lambda: waiting() == 0, "each was asked")


def test_what_an_engine_lists_is_kept_although_more_of_it_fails(start, google):
    """Details of an index fail: the list stays, with the children of before; a submission that fails loses none before it."""
    google.sitemaps[INDEX] = {**READ, "errors": "2"}
    google.children[INDEX] = [{"path": ORIGIN + "/bad.xml", "errors": 2, **READ}]
    server = start(sites=(), config=config(google, sites=()))
    assert server.api("POST", "/v1/sites", {"origin": ORIGIN}).status == 201
    fill(server, ORIGIN)
    eventually(lambda: engines(server)[0]["errors"] == 2, "it was asked")
    google.faults["children"] = (500, {})
    google.sitemaps[INDEX]["errors"] = "3"
    due(server)
    assert engines(server)[0]["errors"] == 3, "the list is the new one"
    one = sites(server, "google")[ORIGIN]
    assert one["state"] == "ok" and [(s["loc"], s["errors"]) for s in one["sitemaps"]] == [(INDEX, 3), (ORIGIN + "/bad.xml", 2)]
    google.faults = {"submit": (403, {})}
    assert server.api("POST", "/v1/indexes", {"url": ORIGIN + "/news.xml"}).status == 201
    assert server.register(ORIGIN + "/n.xml", index=ORIGIN + "/news.xml").status == 201
    google.sitemaps[INDEX]["errors"] = "4"
    due(server)
    assert engines(server)[0]["errors"] == 4, "it is kept, too"
    assert sites(server, "google")[ORIGIN]["state"] == "forbidden"
    google.faults = {}
    sent = google.count("submit")
    due(server)
    assert google.count("submit") == sent + 1, "the other index is submitted"
    google.faults = {"children": (500, {})}
    del google.sitemaps[ORIGIN + "/news.xml"]  # it takes its time until it lists it
    for _ in range(2):
        asked = google.count("list")
        due(server)
        assert google.count("list") > asked, "it was asked"
    assert google.count("submit") == sent + 1, "once, although details failed at each visit"


def test_the_days_of_all_sites_have_them_all(start, google):
    for origin in (ORIGIN, OTHER):
        google.sitemaps[origin + "/sitemap_index.xml"] = {**READ, "errors": "3", "contents": [{"submitted": 10}]}
    server = serve(start, google)
    assert server.api("POST", "/v1/sites", {"origin": OTHER}).status == 201
    fill(server, OTHER)
    eventually(lambda: engines(server)[0]["errors"] == 6, "both were asked")
    of = lambda query="": server.api("GET", "/v1/stats" + query).json()["engines"]
    today = server.api("GET", "/v1/stats").json()["to"]
    assert of() == [{"name": "google", "days": [{"day": today, "sitemaps": 2, "errors": 6, "warnings": 0, "urls": 20}]}]
    assert of("?site=" + OTHER)[0]["days"] == [{"day": today, "sitemaps": 1, "errors": 3, "warnings": 0, "urls": 10}]
    # Where one site alone is asked the other still counts.
    google.sitemaps[OTHER + "/sitemap_index.xml"]["errors"] = "5"
    other = next(one["id"] for one in server.api("GET", "/v1/sites").json()["sites"] if one["origin"] == OTHER)
    server.stop()
    with contextlib.closing(sqlite3.connect(server.database)) as db, db:
        db.execute("DELETE FROM local_engine_day")
        db.execute("UPDATE local_engine_site SET next_at = 1 WHERE site = ?", (int(other),))
    server.start()
    eventually(lambda: of()[0]["days"], "one was asked")
    assert of()[0]["days"][0]["errors"] == 8 and of("?site=" + ORIGIN)[0]["days"] == []
    # A site that is removed leaves nothing behind.
    assert server.api("DELETE", f"/v1/sites/{other}?max_removed=10").status in (200, 204)
    due(server)
    assert of()[0]["days"][0]["errors"] == 3, "it counts no more"

    def left():
        with contextlib.closing(sqlite3.connect(server.database)) as db:
            return sum(db.execute(f"SELECT count(*) FROM {table} WHERE site = ?", (int(other),)).fetchone()[0] for table in ("local_engine_site", "local_engine_sitemap", "local_engine_day"))

    eventually(lambda: left() == 0, "its rows go")


def test_another_site_of_a_property_takes_no_room(start, google):
    """1,000 sitemaps of one tenant, listed first, and what no link may lead to; the other's index is still found."""
    google.sitemaps = {f"{OTHER}/{n}.xml": READ for n in range(1200)}
    google.sitemaps |= {"javascript:alert(1)": READ, ORIGIN + "/a\x01b.xml": READ, "=1+1": READ, INDEX: {**READ, "errors": "3"}}
    google.children[INDEX] = [{"path": path, "errors": 1, **READ} for path in ("javascript:alert(1)", "data:text/html,x", ORIGIN + "/ x.xml", ORIGIN + "/bad.xml")]
    server = serve(start, google)
    assert [row["loc"] for row in sites(server, "google")[ORIGIN]["sitemaps"]] == [INDEX, ORIGIN + "/bad.xml"]
    assert google.count("submit") == 0 and engines(server)[0]["errors"] == 3
    token = server.make_token("part", "--prefix", ORIGIN + "/shop/", "--role", "read")
    assert engines(server, token=token) == [] and sites(server, "google", token=token) == {}
    stats = server.api("GET", "/v1/stats", token=token).json()
    assert stats["days"] == [] and stats["engines"] == []


def test_a_large_index_has_its_broken_sitemaps(start, google):
    google.sitemaps[INDEX] = {**READ, "errors": "1"}
    row = {**READ, "isSitemapsIndex": False, "errors": "0", "warnings": "0", "contents": [{"type": "web", "submitted": "1", "indexed": "0"}]}
    google.children[INDEX] = [{"path": f"{ORIGIN}/{n}.xml", **row} for n in range(30000)] + [{"path": ORIGIN + "/bad.xml", **row, "errors": "1"}]
    server = serve(start, google)
    assert [one["loc"] for one in sites(server, "google")[ORIGIN]["sitemaps"]] == [INDEX, ORIGIN + "/bad.xml"]


def test_a_domain_property_covers_its_sites(start, google):
    shop = "https://shop.example.com"
    server = serve(start, google, more="property = sc-domain:example.com\n", sites=(shop, OTHER))
    eventually(lambda: google.count("list") == 2, "both are asked")
    assert {call[1] for call in google.calls if call[0] == "list"} == {"sc-domain:example.com", OTHER + "/"}
    eventually(lambda: all(site["state"] == "ok" for site in sites(server, "google").values()), "both are kept")


@pytest.mark.parametrize("fault, state, of_site", [
    ((403, {"error": {"code": 403, "errors": [{"reason": "forbidden"}]}}), "forbidden", "full user"),
    ((403, {"error": {"code": 403, "errors": [{"reason": "rateLimitExceeded"}]}}), "busy", "rateLimitExceeded"),
    ((429, b"", {"Retry-After": "120"}), "busy", "429"),
    ((500, b"oops"), "failed", "500"),
    ((200, b"<html>"), "failed", "not a JSON object"),
    ((200, b'{"sitemap":' + b"[" * 5000), "failed", "not a JSON object"),
    ((200, b'{"sitemap":[' + b"{}," * 100000 + b"{}]}"), "failed", "not a JSON object"),
    ((200, b'{"sitemap":[' + b"0," * 100000 + b"0]}"), "failed", "not a JSON object"),
])
def test_failures_are_reported_and_retried_later(start, google, fault, state, of_site):
    google.fault = fault
    server = serve(start, google)
    site = sites(server, "google")[ORIGIN]
    assert site["state"] == state and of_site in site["reason"], site
    assert site["next_at"] > site["asked_at"] and site["good_at"] is None
    assert server.wait_for_log("engine-failed")
    assert google.count("list") == 1, "not again at once"


@pytest.mark.parametrize("fault, state, waits", [
    ((500, b"oops"), "failed", (900, 1800, 3600, 3600)),
    ((500, b"oops", {"Retry-After": "5000"}), "failed", (5000, 5000)),
    ((429, b""), "busy", (60, 120, 240)),
    ((429, b"", {"Retry-After": "120"}), "busy", (120, 120)),
    ((403, {"error": {"code": 403, "errors": [{"reason": "forbidden"}]}}), "forbidden", (3600, 3600)),
])
def test_visits_after_failures_are_further_and_further_apart(start, google, tmp_path, fault, state, waits):
    """Unless the engine names the time; and after a success the next failure counts as the first."""
    clock, ahead = Clock(tmp_path), 0
    server = start(sites=(), env=clock.environment, config=config(google))
    google.fault, google.now = fault, lambda: time.time() + ahead
    fill(server, ORIGIN)
    seconds_of = lambda text: datetime.fromisoformat(text).timestamp()
    asked = 0.0
    site = lambda: sites(server, "google").get(ORIGIN, {"state": "waiting"})
    visited = lambda want: site()["state"] == want and seconds_of(site()["asked_at"]) > asked and site()
    wait_of = lambda one: seconds_of(one["next_at"]) - seconds_of(one["asked_at"])
    for faulty, wait in [(True, wait) for wait in waits] + [(False, 30000), (True, waits[0])]:
        google.fault = fault if faulty else None
        clock.set(ahead)
        one = eventually(lambda: visited(state if faulty else "ok"), "it is asked")
        assert wait_of(one) == wait or not faulty
        asked, ahead = seconds_of(one["asked_at"]), ahead + wait


def test_refused_credentials_degrade_readyz_and_nobody_else_is_asked(start, google):
    google.token_uri += "?another"  # the aud that it signs for is not what it takes
    google.token_fault = (401, {"error": "invalid_client"})
    server = serve(start, google, sites=(ORIGIN, OTHER))
    assert google.count("token") == 1 and google.count("list") == 0
    eventually(lambda: engines(server)[0]["state"] == "refused", "it is kept")
    assert "invalid_client" in engines(server)[0]["reason"]
    eventually(lambda: "engine-refused" in {r["code"] for r in server.api("GET", "/readyz").json()["reasons"]}, "it is said")
    assert server.metrics()['sitemapd_engine_up{engine="google"}'] == 0
    assert sites(server, "google")[OTHER]["state"] == "waiting"


def test_bing(start, bing):
    broken = ORIGIN + "/old.xml"
    bing.sitemaps[broken] = {"Status": "Failed", "LastCrawled": "/Date(1764150000000)/", "Submitted": "/Date(1764000000000+0100)/", "UrlCount": 7}
    server = serve(start, bing)
    found = {row["loc"]: row for row in sites(server, "bing")[ORIGIN]["sitemaps"]}
    assert found[broken]["errors"] == 1 and found[broken]["urls"] == 7 and found[broken]["read_at"] == "2025-11-26T09:40:00Z"
    assert found[INDEX]["sent_at"] and bing.count("submit") == 1


def test_bing_says_what_is_wrong_with_a_key(start, bing):
    text = config(bing)
    bing.secret("bing.key", "another-key\n")
    server = start(sites=(), config=text)
    fill(server, ORIGIN)
    eventually(lambda: engines(server)[0]["state"] == "refused", "it is refused")
    assert "another-key" not in json.dumps(sites(server, "bing")) + server.log()


def test_a_reason_names_no_path_of_the_machine(start, bing):
    server = start(sites=(), config=config(bing))
    bing.secret("bing.key", "x").unlink()
    fill(server, ORIGIN)
    eventually(lambda: engines(server)[0]["state"] == "refused", "the key cannot be read")
    token = server.make_token("one", "--site", ORIGIN, "--role", "read")
    assert engines(server, token=token)[0]["reason"] == "api_key_file cannot be read: No such file or directory"
    assert sites(server, "bing", token=token)[ORIGIN]["reason"] == "api_key_file cannot be read: No such file or directory"


def test_a_token_of_one_site_sees_no_other(start, google):
    server = serve(start, google, sites=(ORIGIN, OTHER))
    eventually(lambda: all(site["state"] == "ok" for site in sites(server, "google").values()), "both are asked")
    token = server.make_token("one", "--site", OTHER, "--role", "read")
    assert set(sites(server, "google", token=token)) == {OTHER}
    assert engines(server, token=token)[0]["sites"]["ok"] == 1
    assert server.api("GET", f"/v1/engines/google/sitemaps?site={ORIGIN}", token=token).status in (403, 404)
    assert server.api("GET", "/v1/engines/yahoo/sitemaps").status == 404


def test_no_secret_is_anywhere(start, google, bing):
    text = config(google) + bing.config()
    server = start(sites=(), config=text)
    fill(server, ORIGIN)
    eventually(lambda: all(e["asked_at"] for e in engines(server)), "both are asked")
    bing.fault = (400, {"ErrorCode": 3, "Message": "ERROR!!! InvalidApiKey " + BING_KEY})
    shown = json.dumps([engines(server), sites(server, "google"), sites(server, "bing")]) + server.log() + json.dumps(server.metrics())
    with sqlite3.connect(f"file:{server.database}?mode=ro", uri=True) as db:
        shown += "\n".join(db.iterdump())
    private = google.key.read_text().splitlines()[1]
    for secret in (TOKEN, BING_KEY, private):
        assert secret not in shown


def test_the_command_shows_it_with_and_without_the_server(start, google):
    google.sitemaps[INDEX] = {**READ, "errors": 1}
    server = serve(start, google)
    config_file = Path(server.folder) / "sitemapd.conf"
    for run in (lambda *words: sitemapd("engines", *words, "--server", f"http://{server.admin}", env={"SITEMAPD_TOKEN": server.token}),
                lambda *words: server.cli("engines", *words, "--config", config_file)):
        result = run()
        assert result.code == 0 and "google   ok" in result.out, result
        result = run("google")
        assert result.code == 0 and INDEX in result.out and "2026-11-26 09:30" in result.out, result
        result = run("google", "--json")
        assert json.loads(result.out)["sitemaps"][0]["errors"] == 1
        assert run("yahoo").code != 0


def test_an_outcome_that_cannot_be_stored_causes_no_request_loop(start, google):
    text = config(google)
    server = start(sites=(), config=text[:text.index("[engine")])
    fill(server, ORIGIN)
    server.restart(write_timeout="1s")
    with contextlib.closing(sqlite3.connect(server.database, timeout=60, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        google.fault = (500, {})
        server.reload(text)
        server.wait_for_log("engine-not-kept")
        time.sleep(3)  # enough for three requests
        assert google.count("list") == 1
        assert "engine-failed" not in server.log(), "it is logged once it is stored"
        db.execute("ROLLBACK")


@pytest.mark.parametrize("section, said", [
    ('[engine "yahoo"]\nendpoint = https://x.example/\n', "the engines are google and bing"),
    ('[engine "google"]\n', "needs credentials_file"),
    ('[engine "bing"]\napi_key_file = /nonexistent\n', "cannot be read"),
    ('[engine "bing"]\ncredentials_file = /etc/hostname\n', "can only be used for google"),
    ('[engine "bing"]\napi_key_file = /etc/hostname\n', "other users can read it"),
])
def test_a_configuration_that_is_wrong(tmp_path, section, said):
    path = tmp_path / "bad.conf"
    path.write_text(section)
    result = sitemapd("serve", "--config", path, database=tmp_path / "catalogue.db")
    assert result.code != 0 and said in result.err, result


def test_plain_http_only_where_it_is_allowed(start, google):
    server = start(sites=(), config=config(google).replace("allow_address = 127.0.0.2", "allow_address = 127.0.0.9"))
    fill(server, ORIGIN)
    eventually(lambda: engines(server)[0]["state"] == "failed", "it is not asked")
    assert "plain http" in engines(server)[0]["reason"] and google.calls == []
