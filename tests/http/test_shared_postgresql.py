# SPDX-License-Identifier: LicenseRef-Undeclared
"""A shared catalogue whose PostgreSQL is away, refuses, waits for a standby or is too old, and upgrades of its form."""

import contextlib
import os
import re
import sqlite3
import subprocess
import threading
import time

import pytest

from harness import eventually, faster, problem, seconds, sitemapd
from nodes import equal, joined, loc, page, ready, reasons, served
from pooler import Pooler
from postgres import Server as PostgreSQL, binary
from relay import Relay

NEXT = os.environ.get("SITEMAPD_NEXT_BIN", "")  # the program as if its catalogue had a newer form


def test_what_init_is_refused_for_is_reported(cluster):
    database = cluster.database("d")
    cluster.postgres.sql("CREATE ROLE lesser LOGIN", "postgres")
    cluster.postgres.sql("CREATE DATABASE other", "postgres")
    lesser = sitemapd("share", "init", "--shared", cluster.postgres.url("other", "lesser"), database=database)
    assert lesser.code == 1 and "permission denied" in lesser.err, lesser
    nobody = sitemapd("share", "init", "--shared", cluster.postgres.url("other"), "--grant-to", "nobody-there", database=database)
    assert nobody.code == 1 and "nobody-there" in nobody.err, nobody
    assert sitemapd("share", "init", "--shared", cluster.postgres.url("other"), "--grant-to", "lesser", database=database).code == 0
    result = sitemapd("share", "status", "--shared", cluster.postgres.url("other", "lesser"))
    assert result.code == 0 and "no node has served it yet" in result.out, result


def test_a_role_that_was_forgotten_is_granted_later(cluster):
    cluster.postgres.sql("CREATE ROLE forgotten LOGIN", "postgres")
    lesser = cluster.postgres.url(user="forgotten")
    result = sitemapd("share", "status", "--shared", lesser)
    assert result.code == 1 and "share init --if-absent --grant-to" in result.err, result
    granted = sitemapd("share", "init", "--if-absent", "--grant-to", "forgotten", "--shared", cluster.postgres.url(), database=cluster.database("d"))
    assert granted.code == 0 and "granted to forgotten" in granted.out, granted
    assert sitemapd("share", "status", "--shared", lesser).code == 0
    refused = sitemapd("share", "init", "--if-absent", "--grant-to", "nobody-there", "--shared", cluster.postgres.url(), database=cluster.database("d"))
    assert refused.code == 1 and "nobody-there" in refused.err, refused


@pytest.mark.parametrize("what, words", [
    ({"mode": "transaction"}, "a connection pooler in transaction mode is in front of PostgreSQL"),
    ({"release": "14.20"}, "this server is older than PostgreSQL 15"),
])
def test_what_locks_do_not_hold_on_is_refused(cluster, what, words):
    """At the start, in a sentence that says what works; by a node and by commands."""
    with Pooler(cluster.postgres, **what) as between:
        refused = sitemapd("share", "status", "--shared", between.url(cluster.postgres.database))
        assert refused.code == 1 and words in refused.err, refused
        refused = sitemapd("share", "init", "--shared", between.url("postgres"), database=cluster.database("d"))
        assert refused.code == 1 and words in refused.err, refused
        a = cluster.node("a", env={"SITEMAPD_SHARED": between.url(cluster.postgres.database)})
        eventually(lambda: words in reasons(a).get("shared-unavailable", ""), "reported")
        eventually(lambda: f"shared-away: connection to PostgreSQL failed: {words}" in a.log(), "logged")
        assert "Pages are served; writes get 503 (shared-unavailable) until a retry succeeds" in a.log()
        problem(a.register(loc("one")), 503, "shared-unavailable")
        assert ready(a)[0] == 200
        a.stop()  # a node may miss the pooler where others use it at that moment
        b = cluster.node("b", env={"SITEMAPD_SHARED": between.url(cluster.postgres.database)})
        eventually(lambda: re.search(f"shared-away: connection to PostgreSQL failed: {words}.*[.] This node has no catalogue yet and serves nothing until a retry succeeds\n", b.log()), "logged")
        assert "Pages are served" not in b.log()


def test_a_pooler_in_session_mode_is_used(cluster):
    with Pooler(cluster.postgres) as between:
        a = cluster.node("a", env={"SITEMAPD_SHARED": between.url(cluster.postgres.database)})
        b = cluster.node("b")
        joined(b)
        assert a.register(loc("one")).status == 201
        equal([a, b])
        a.stop()


@pytest.mark.own_postgres
def test_commits_that_wait_for_a_standby_are_reported(cluster):
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "10s" if faster(5) else "2s"} | faster(5))
    joined(a)
    cluster.postgres.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "postgres")
    cluster.postgres.sql("SELECT pg_reload_conf()", "postgres")
    eventually(lambda: a.register(loc("waits")).status in (503, 504), "it waits")
    status = lambda: sitemapd("share", "status", "--shared", cluster.postgres.url()).out
    eventually(lambda: "commits wait for a synchronous standby" in status(), "reported")
    eventually(lambda: "shared-standby-missing" in reasons(a), "and by the node", within=60)
    assert a.metrics()["sitemapd_shared_standby_wait_seconds"] >= 5
    eventually(lambda: "shared-standby-missing: timeout: commits of PostgreSQL wait" in a.log(), "and in its log")
    assert "silent" not in status()  # nodes report without the standby
    cluster.postgres.sql("ALTER SYSTEM RESET synchronous_standby_names", "postgres")
    cluster.postgres.sql("SELECT pg_reload_conf()", "postgres")
    eventually(lambda: a.register(loc("after")).status in (200, 201), "writes again", within=60)
    eventually(lambda: "commits wait" not in status(), "over")
    eventually(lambda: "shared-standby-missing" not in reasons(a), "no longer reported", within=60)


@pytest.mark.own_postgres
def test_two_primaries_are_reported_and_none_is_chosen(cluster):
    """A standby that was promoted by mistake: a node that starts might take the one that the others do not write to."""
    primary = cluster.postgres
    with primary.standby(synchronous=False) as standby:
        hosts = f"{standby.address}:{standby.port},{primary.address}:{primary.port}"
        both = {"SITEMAPD_SHARED": f"postgresql://postgres@{hosts}/{primary.database}"}
        a, b = cluster.node("a", env=both), cluster.node("b", env=both)
        joined(b)
        assert a.register(loc("one")).status == 201
        equal([a, b])
        b.stop()
        primary.until(lambda: standby.sql("SELECT pg_last_wal_replay_lsn()") == primary.sql("SELECT pg_current_wal_lsn()"), "all is on the standby")
        standby.promote()
        b.start()
        reason = eventually(lambda: reasons(b).get("shared-unavailable"), "a node that starts takes none")
        assert "two of its hosts accept writes" in reason, reason
        eventually(lambda: f"{standby.address}:{standby.port} and {primary.address}:{primary.port} both accept writes" in b.log(), "named in the log")
        problem(b.register(loc("nowhere")), 503, "shared-unavailable")
        status = sitemapd("share", "status", "--shared", both["SITEMAPD_SHARED"])
        assert status.code == 1 and "both accept writes" in status.err, status
        eventually(lambda: "two of its hosts accept writes" in reasons(a).get("shared-report-failed", ""), "a node that runs says so", within=60)
        standby.stop()
        joined(b)
        eventually(lambda: not {"shared-unavailable", "shared-report-failed"} & (reasons(a).keys() | reasons(b).keys()), "well again", within=60)
        assert b.register(loc("two")).status == 201
        equal([a, b])
        assert [node.metrics()["sitemapd_shared_replaced_total"] for node in (a, b)] == [0, 0]
        for node in (a, b):
            node.stop()


def test_one_postgresql_by_two_names_is_no_second_primary(cluster):
    server = cluster.postgres
    twice = f"postgresql://postgres@{server.address}:{server.port},{server.address}:{server.port}/{server.database}"
    a = cluster.node("a", env={"SITEMAPD_SHARED": twice})
    joined(a)
    assert a.register(loc("one")).status == 201
    a.stop()


def test_a_host_that_drops_packets_is_passed_over(cluster):
    """The first one, whose machine is gone: to follow what others write a node needs the next one, too."""
    first, second = Relay(cluster.postgres.port), Relay(cluster.postgres.port, 20)
    try:
        a = cluster.node("a")
        b = cluster.node("b", env={"SITEMAPD_SHARED": f"postgresql://postgres@127.0.0.1:{first.port},127.0.0.1:{second.port}/{cluster.postgres.database}"})
        joined(b)
        first.cut()
        eventually(lambda: "shared-unavailable" in reasons(b), "it has noticed", within=60)
        assert a.register(loc("one")).status == 201
        eventually(lambda: loc("one") in served(b), "followed", within=60)
        eventually(lambda: not reasons(b), "no longer reported", within=60)
        assert b.register(loc("two")).status == 201
        equal([a, b])
        b.stop()
    finally:
        first.end(), second.end()


def test_a_corrupt_record_is_passed_over_with_a_snapshot(cluster):
    a, b = nodes = [cluster.node(name, env=faster(5)) for name in "ab"]
    joined(b)
    equal(nodes)
    b.stop()
    for name in ("one", "two"):
        assert a.register(loc(name)).status == 201
    cluster.postgres.sql("UPDATE sitemapd.log SET body = body || '\\x00' WHERE seq = 1; DELETE FROM sitemapd.snapshot_part; DELETE FROM sitemapd.snapshot")
    b.start()
    assert "record 1 of the log is corrupt" in b.wait_for_log("shared-diverged: ")[0]
    eventually(lambda: loc("two") in served(b), "a has sent a snapshot", within=120)
    eventually(lambda: not [name for name in os.listdir(a.folder) if ".snapshot" in name], "its copy is removed")
    eventually(lambda: "diverged" not in reasons(b), "well again", within=60)
    assert b.register(loc("three")).status == 201
    equal(nodes)
    assert b.metrics()["sitemapd_shared_replaced_total"] == 1


def test_a_node_that_has_diverged_keeps_its_newer_file(cluster):
    """An old copy of PostgreSQL that was started by mistake does not destroy the last copy of what it lacks."""
    a = cluster.node("a")
    joined(a)
    assert a.register(loc("one")).status == 201
    head = cluster.postgres.sql("SELECT max(seq) FROM sitemapd.log")

    def lose(name, replaced):
        """The name is acknowledged, lost by PostgreSQL, and then by the node."""
        assert a.register(loc(name)).status == 201
        cluster.postgres.sql(f"DELETE FROM sitemapd.part WHERE seq > {head}; DELETE FROM sitemapd.log WHERE seq > {head}")
        eventually(lambda: a.metrics()["sitemapd_shared_replaced_total"] == replaced, "replaced")
        joined(a)
        eventually(lambda: loc(name) not in served(a), "lost")

    lose("two", 1)
    kept = a.database + ".diverged"
    eventually(lambda: f"shared-diverged: the replaced file was kept as {kept}; " in a.log(), "named in the log")
    assert os.stat(kept).st_mode & 0o777 == 0o600
    assert sitemapd("check", database=kept).code == 0
    lose("three", 2)
    eventually(lambda: f"shared-diverged: the replaced file was not kept: {kept} is less than a day old" in a.log(), "so is that it is not")
    restored = cluster.database("d")
    assert sitemapd("restore", kept, database=restored).code == 0
    assert {loc("one"), loc("two")} <= set(re.findall(r"https?://[^\s\",]+\.xml", sitemapd("export", database=restored).out))
    made = sitemapd("share", "init", "--shared", cluster.postgres.url(), "--schema", "again", database=restored)
    assert made.code == 0, made
    yesterday = time.time() - 86460
    os.utime(kept, (yesterday, yesterday))
    lose("four", 3)
    eventually(lambda: a.log().count(f"the replaced file was kept as {kept}; ") == 2, "one that is a day old is replaced")
    assert loc("four") in sitemapd("export", database=kept).out
    assert not [name for name in os.listdir(os.path.dirname(kept)) if "diverged." in name]


@pytest.mark.parametrize("gone, code, words", [
    ("seq > 0", "diverged", "exists on this node but not in PostgreSQL"),
    ("true", "shared-unavailable", "table log of its shared catalogue is empty: restore it, or share the state of a node again"),
])
def test_nodes_that_look_while_postgresql_is_restored_go_on(cluster, gone, code, words):
    """The log's records come after its tables, and its snapshots perhaps not at all."""
    nodes = a, b, c = cluster.three()
    assert a.register(loc("one")).status == 201
    equal(nodes)
    sql = cluster.postgres.sql
    sql(f"DELETE FROM sitemapd.snapshot_part; DELETE FROM sitemapd.snapshot; CREATE TABLE aside AS SELECT * FROM sitemapd.log WHERE {gone}; DELETE FROM sitemapd.log WHERE {gone}")
    for node in nodes:
        eventually(lambda node=node: words in reasons(node).get(code, ""), "it has what the log lacks", within=60)
    problem(b.register(loc("two")), 503)
    sql("INSERT INTO sitemapd.log SELECT * FROM aside; DROP TABLE aside")
    for node in nodes:
        eventually(lambda node=node: ready(node)[1]["shared"]["phase"] == "joined", "it goes on", within=60)
    assert b.register(loc("two")).status == 201
    equal(nodes)
    assert [node.metrics()["sitemapd_shared_replaced_total"] for node in nodes] == [0, 0, 0]


def test_a_missing_table_is_not_taken_for_a_missing_catalogue(cluster):
    a = cluster.node("a")
    joined(a)
    status = lambda: sitemapd("share", "status", "--shared", cluster.postgres.url())
    a.stop()
    cluster.postgres.sql("ALTER TABLE sitemapd.cluster RENAME TO aside")
    words = "restore it from a backup; do not run `sitemapd share init`"
    missing = status()
    assert missing.code == 1 and f"table sitemapd.cluster of the shared catalogue is missing in this database, but its other tables exist: {words}" in missing.err, missing
    a.start()
    eventually(lambda: f"table cluster of its shared catalogue is missing, but its other tables exist: {words}" in reasons(a).get("shared-unavailable", ""), "reported")
    eventually(lambda: f"table sitemapd.cluster of the shared catalogue is missing in this database, but its other tables exist: {words}" in a.log(), "in the log")
    cluster.postgres.sql("ALTER TABLE sitemapd.aside RENAME TO cluster")
    eventually(lambda: not reasons(a), "it goes on")
    assert status().code == 0
    a.stop()
    cluster.postgres.sql("DROP SCHEMA sitemapd CASCADE")
    missing = status()
    assert missing.code == 1 and "there is no shared catalogue in schema sitemapd of this database: `sitemapd share init` creates one" in missing.err, missing


@contextlib.contextmanager
def lock(cluster, table, mode):
    """Another session locks a table of the catalogue."""
    sql = cluster.postgres.sql
    keeps = threading.Thread(target=lambda: sql(
        f"BEGIN; LOCK TABLE sitemapd.{table} IN {mode} MODE; DO $$ BEGIN WHILE NOT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'enough') LOOP PERFORM pg_sleep(0.01); END LOOP; END $$; COMMIT"))
    keeps.start()
    try:
        eventually(lambda: sql(f"SELECT count(*) FROM pg_locks WHERE relation = 'sitemapd.{table}'::regclass AND granted AND mode = '{mode.title().replace(' ', '')}Lock'") == "1", "locked")
        yield
    finally:
        sql("CREATE TABLE public.enough()")
        keeps.join()
        sql("DROP TABLE public.enough")


def test_a_table_that_another_session_locks_is_reported(cluster):
    """And a write gets its answer as soon as the node reports it, long before its own time is over."""
    words = "a table of the shared catalogue is locked by another session: see pg_locks and pg_blocking_pids()"
    a, b = (cluster.node(name, env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "600s"}) for name in "ab")
    joined(b)
    with lock(cluster, "log", "ACCESS EXCLUSIVE"):
        for node in (a, b):
            eventually(lambda node=node: re.match(f"requests to PostgreSQL have failed for [0-9]+ s: {re.escape(words)}; ", reasons(node).get("shared-unavailable", "")), "reported")
            eventually(lambda node=node: f"shared-away: requests to PostgreSQL failed: {words}. Pages" in node.log(), "in the log")
        status = sitemapd("share", "status", "--shared", cluster.postgres.url())
        assert status.code == 1 and words in status.err, status
        for node in (a, b):
            problem(node.register(loc("one")), 503, "shared-unavailable")
    for node in (a, b):
        eventually(lambda node=node: not reasons(node), "no longer reported, without a write")
    with lock(cluster, "log", "SHARE"):
        problem(a.register(loc("one")), 503, "shared-unavailable")
        eventually(lambda: words in reasons(a).get("shared-refused", ""), "reported")
        eventually(lambda: f"shared-refused: PostgreSQL rejects the writes of this node: {words}" in a.log(), "in the log")
    eventually(lambda: not reasons(a), "no longer reported")
    assert a.register(loc("one")).status == 201
    equal([a, b])


@pytest.mark.own_postgres
def test_a_standby_that_is_no_longer_synchronous_is_logged(cluster):
    said = "shared-not-synchronous: "
    sql = lambda text: cluster.postgres.sql(text, "postgres")
    with cluster.postgres.standby():
        a = cluster.node("a", env=faster(5))
        joined(a)
        assert a.register(loc("one")).status == 201
        eventually(lambda: a.metrics()["sitemapd_shared_joined"] == 1 and ready(a)[1]["shared"]["nodes"], "it has reported")
        assert said not in a.log()
        sql("ALTER SYSTEM SET synchronous_standby_names = ''")
        sql("SELECT pg_reload_conf()")
        eventually(lambda: said in a.log(), "logged", within=60)
        a.stop()


@pytest.mark.own_postgres
@pytest.mark.parametrize("options, hba, words", [
    ("", "host all nodes all scram-sha-256", "no password: passfile"),
    ("?sslmode=require", "host all all all trust", "TLS to it failed"),
], ids=["password", "tls"])
def test_why_libpq_itself_does_not_connect_is_reported(cluster, options, hba, words):
    cluster.postgres.sql("CREATE ROLE nodes LOGIN SUPERUSER")
    a = cluster.node("a")
    joined(a)
    a.stop()
    with open(os.path.join(cluster.postgres.data, "pg_hba.conf"), "r+", encoding="utf-8") as file:
        rest = file.read()
        file.seek(0)
        file.write(f"{hba}\n{rest}")
    cluster.postgres.sql("SELECT pg_reload_conf()")
    a.env["SITEMAPD_SHARED"] = cluster.postgres.url(user="nodes") + options
    a.start()
    eventually(lambda: words in reasons(a).get("shared-unavailable", ""), "with its reason", within=60)
    a.stop()


@pytest.mark.own_postgres
def test_what_postgresql_refuses_is_reported(cluster):
    """In its own words in the log; in /readyz, which anybody may read, by no name, address or port."""
    cluster.postgres.sql("CREATE ROLE guest LOGIN", "postgres")
    assert sitemapd("share", "init", "--if-absent", "--grant-to", "guest", "--shared", cluster.postgres.url(), database=cluster.database("d")).code == 0
    a = cluster.node("a", env={"SITEMAPD_SHARED": cluster.postgres.url(user="guest")})
    assert a.register(loc("one")).status == 201

    def assert_reported(code, words):
        eventually(lambda: words in reasons(a).get(code, ""), f"{code} is reported", within=60)
        body = a.api("GET", "/readyz", token=None).body.decode()
        assert not [word for word in ("guest", cluster.postgres.address, str(cluster.postgres.port)) if word in body], body

    cluster.postgres.sql("ALTER ROLE guest NOLOGIN; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'guest'")
    assert_reported("shared-unavailable", "rejects this node")
    eventually(lambda: 'role "guest" is not permitted to log in' in a.log(), "in the log", within=60)
    cluster.postgres.stop()
    eventually(lambda: "rejects" not in reasons(a).get("shared-unavailable", ""), "another reason", within=60)
    assert_reported("shared-unavailable", "connection to PostgreSQL has failed")
    cluster.postgres.start()
    cluster.postgres.sql("ALTER ROLE guest LOGIN; REVOKE INSERT ON sitemapd.log FROM guest")
    eventually(lambda: "shared-unavailable" not in reasons(a), "back", within=60)
    problem(a.register(loc("two")), 503, "shared-unavailable")
    assert_reported("shared-refused", "this node's role lacks permissions")
    eventually(lambda: "shared-refused" in a.log() and "permission denied for table log" in a.log(), "in the log")
    b = cluster.node("b")
    eventually(lambda: b.register(loc("three")).status in (200, 201), "another node writes", within=60)
    applied = lambda node: node.api("GET", "/readyz", token=None).json()["shared"]["applied"]
    eventually(lambda: applied(a) == applied(b), "a follows", within=60)
    assert "this node's role lacks permissions" in reasons(a)["shared-refused"], "what other nodes write does not change why"
    cluster.postgres.sql("GRANT INSERT ON sitemapd.log TO guest")
    eventually(lambda: "shared-refused" not in reasons(a), "no longer reported, without a write of its own")
    eventually(lambda: "shared-accepted: " in a.log(), "in the log")
    cluster.postgres.sql("REVOKE INSERT ON sitemapd.part FROM guest")
    problem(a.bulk([loc(os.urandom(450).hex()) for i in range(5000)]), 503, "shared-unavailable")  # more than a part, however it is packed
    assert_reported("shared-refused", "this node's role lacks permissions")
    cluster.postgres.sql("GRANT INSERT ON sitemapd.part TO guest")
    eventually(lambda: "shared-refused" not in reasons(a), "the same of a list")
    assert a.register(loc("two")).status == 201
    equal([a, b])


def guest(cluster, write_timeout=int(seconds(4)), env=None, **settings):
    """A node of a role that has these settings."""
    cluster.postgres.sql("CREATE ROLE guest LOGIN", "postgres")
    for name, value in settings.items():
        cluster.postgres.sql(f"ALTER ROLE guest SET {name} = {value}", "postgres")
    assert sitemapd("share", "init", "--if-absent", "--grant-to", "guest", "--shared", cluster.postgres.url(), database=cluster.database("d")).code == 0
    a = cluster.node("a", env={"SITEMAPD_SHARED": cluster.postgres.url(user="guest"), "SITEMAPD_CATALOGUE_WRITE_TIMEOUT": f"{write_timeout}s", **(env or {})})
    joined(a)
    return a


@pytest.mark.own_postgres
@pytest.mark.parametrize("privilege, lacks", [
    ("INSERT ON sitemapd.log", "table log (INSERT)"),
    ("INSERT ON sitemapd.part", "table part (INSERT)"),
    ("EXECUTE ON FUNCTION pg_notify", "function pg_notify (EXECUTE)"),
])
def test_a_missing_privilege_is_reported_before_a_write_fails(cluster, privilege, lacks):
    """By each node whose role lacks it, and by `share status`, until it is granted again."""
    a = guest(cluster)
    b = cluster.node("b", env={"SITEMAPD_SHARED": cluster.postgres.url(user="guest")})
    joined(b)
    status = lambda: sitemapd("share", "status", "--shared", cluster.postgres.url())
    assert status().code == 0 and "shared-refused" not in status().out
    of_functions = "GRANT EXECUTE ON FUNCTION pg_notify TO postgres; REVOKE EXECUTE ON FUNCTION pg_notify FROM PUBLIC; " if "FUNCTION" in privilege else ""
    cluster.postgres.sql(f"{of_functions}REVOKE {privilege} FROM guest")
    for node in (a, b):
        eventually(lambda node=node: lacks in reasons(node).get("shared-refused", ""), "reported")
        eventually(lambda node=node: f"permission denied for {lacks}" in node.log(), "in the log")
    eventually(lambda: status().out.count(f": shared-refused, PostgreSQL rejects its writes: permission denied: this node's role lacks permissions: {lacks}") == 2, "of each node")
    assert status().code == 1 and "rejects the writes of 2 nodes" in status().err, status()
    assert f'lacks permissions: {lacks}"' in sitemapd("share", "status", "--json", "--shared", cluster.postgres.url()).out
    own = sitemapd("share", "status", "--shared", cluster.postgres.url(user="guest"))
    assert own.code == 1 and f"lacks permissions for writes: {lacks}" in own.err, own
    cluster.postgres.sql(f"GRANT {privilege} TO guest")
    for node in (a, b):
        eventually(lambda node=node: not reasons(node), "no longer reported, without a write")
        eventually(lambda node=node: "shared-accepted: " in node.log(), "in the log")
    eventually(lambda: status().code == 0, "nor by the command")
    assert a.register(loc("one")).status == 201
    equal([a, b])


@pytest.mark.own_postgres
def test_a_node_that_can_only_read_or_only_write_is_never_ok(cluster):
    """One connection is left for it, with which it either follows or writes: what one can do does not hide that the other one fails."""
    a = guest(cluster)
    cluster.postgres.sql("ALTER ROLE guest CONNECTION LIMIT 1; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'guest'", "postgres")
    a.register(loc("one"))
    eventually(lambda: "shared-unavailable" in reasons(a), "reported")
    done, looks = threading.Event(), []

    def write():
        for i in range(3):
            a.register(loc(f"more-{i}"))
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        looks.append("shared-unavailable" in reasons(a))
    writer.join()
    looks += ["shared-unavailable" in reasons(a) for _ in range(10)]
    assert all(looks), f"{looks.count(False)} of {len(looks)} looks say that all is well"
    cluster.postgres.sql("ALTER ROLE guest CONNECTION LIMIT -1", "postgres")
    eventually(lambda: not reasons(a), "no longer reported, without a write of its own")
    assert a.register(loc("two")).status == 201


@pytest.mark.own_postgres
def test_a_node_that_cannot_report_or_keep_snapshots_says_so(cluster):
    a = guest(cluster, write_timeout=60, env=faster(5))
    cluster.postgres.sql("REVOKE ALL ON sitemapd.node, sitemapd.snapshot FROM guest")
    assert a.register(loc("one")).status == 201
    for code in ("shared-report-failed", "shared-snapshot-failed"):
        eventually(lambda code=code: "this node's role lacks permissions" in reasons(a).get(code, ""), code, within=120)
        assert a.metrics()[f'sitemapd_shared_failing_seconds{{what="{code.split("-")[1]}"}}'] >= 10
        eventually(lambda code=code: f"{code}: this node cannot" in a.log() and "permission denied for table" in a.log(), "in the log")
    cluster.postgres.sql("GRANT ALL ON sitemapd.node, sitemapd.snapshot TO guest")
    eventually(lambda: not reasons(a), "no longer reported", within=120)


@pytest.mark.own_postgres
def test_a_wait_for_the_standby_that_is_cut_short_is_no_success(cluster):
    """PostgreSQL then commits with a warning, which a role may have turned off."""
    a = guest(cluster, write_timeout=int(seconds(6)), client_min_messages="error")
    cluster.postgres.set(synchronous_standby_names="'nobody'")
    said = []
    sender = threading.Thread(target=lambda: said.append(a.register(loc("one"))))
    sender.start()
    while sender.is_alive():
        cluster.postgres.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
        sender.join(0.1)
    problem(said[0], 504, "outcome-unknown")
    cluster.postgres.set(synchronous_standby_names="''")


def test_a_column_of_another_type_and_a_snapshot_without_its_parts(cluster):
    """What a DBA does to the tables, and what a backup without the large one lacks."""
    a = cluster.node("a")
    assert a.register(loc("one")).status == 201
    cluster.postgres.sql("ALTER TABLE sitemapd.log ALTER node TYPE varchar(300)")
    eventually(lambda: a.register(loc("two")).status in (200, 201), "writes again")
    cluster.postgres.sql("DELETE FROM sitemapd.snapshot_part")
    b = cluster.node("b")
    eventually(lambda: "there is no snapshot yet" in reasons(b).get("joining", ""), "reported")
    eventually(lambda: ready(b)[0] == 200, "a node has sent another one", within=120)
    equal([a, b])
    cluster.postgres.sql("CREATE TABLE public.kept AS SELECT * FROM sitemapd.cluster; DELETE FROM sitemapd.cluster; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'sitemapd%'")
    eventually(lambda: "table cluster of the shared catalogue is empty" in reasons(a).get("shared-unavailable", ""), "reported")
    cluster.postgres.sql("INSERT INTO sitemapd.cluster SELECT * FROM public.kept")
    eventually(lambda: "shared-unavailable" not in reasons(a), "no longer reported")


@pytest.mark.own_postgres
def test_a_list_that_postgresql_leaves_is_reported_by_its_name(cluster):
    """Whatever the list does when PostgreSQL goes: no file of this node is to blame."""
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": f"{int(seconds(5))}s"})
    joined(a)
    assert a.bulk([loc(f"old-{i}") for i in range(60_000)]).status == 200
    entries, said = [loc(f"new-{i}") for i in range(60_000)], []
    sender = threading.Thread(target=lambda: said.append(a.replace(entries, max_removed=60_000)))
    sender.start()
    writing = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND pid IN (SELECT pid FROM pg_stat_activity WHERE xact_start IS NOT NULL AND clock_timestamp() - xact_start > '200 ms')"
    eventually(lambda: cluster.postgres.sql(writing) != "0" or not sender.is_alive(), "it is being written", longest_pause=0.01)
    cluster.postgres.kill()
    sender.join()
    assert said[0].status == 200 or said[0].json()["code"] in ("shared-unavailable", "outcome-unknown"), said[0].json()


@pytest.mark.own_postgres
def test_without_postgresql_all_is_served_and_nothing_taken(cluster):
    a, b = cluster.node("a"), cluster.node("b", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "2s"})
    joined(b)
    eventually(lambda: b.register(loc("one")).status in (200, 201), "written, though it may wait for two seconds only")
    eventually(lambda: loc("one") in served(a), "followed")
    cluster.postgres.kill()
    status = sitemapd("status", "--shared", cluster.postgres.url(), database=b.database)
    assert status.code == 1 and "(shared-unavailable)" in status.out, status
    refused = lambda reply: reply if reply.json().get("code") == "shared-unavailable" else None
    reply = eventually(lambda: refused(b.register(loc("two"))), "refused")
    assert reply.status == 503 and int(reply["Retry-After"]) > 0
    eventually(lambda: "shared-unavailable" in reasons(b), "reported")
    status, result = ready(b)
    assert status == 200 and result["status"] == "degraded"
    assert served(b) == {loc("one")}
    b.kill()
    b.start()  # a restart needs no PostgreSQL
    assert served(b) == {loc("one")} and ready(b)[0] == 200
    cluster.postgres.start()
    eventually(lambda: b.register(loc("two")).status in (200, 201), "writes again", within=60)
    eventually(lambda: served(a) == {loc("one"), loc("two")}, "followed")
    equal([a, b])


@pytest.mark.own_postgres
def test_what_nobody_knew_a_key_answers_on_any_node(cluster):
    """A commit that waits for a standby which is not there: applied or not, nobody can say."""
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": f"{int(seconds(4))}s"} | faster(4))
    b = cluster.node("b")
    joined(b)
    call = ("POST", "/v1/sitemaps", {"loc": loc("one")})
    key = {"Idempotency-Key": "k1"}
    cluster.postgres.set(synchronous_standby_names="'nobody'")
    begun = lambda: (reply := a.api(*call, headers=key)).status != 503 and reply  # 503: its time was over before the commit
    problem(eventually(begun, "the commit waits"), 504, "outcome-unknown")
    cluster.postgres.set(synchronous_standby_names="''")
    for node in (b, a):  # it was applied, once
        eventually(lambda node=node: loc("one") in served(node), "applied", within=60)
        again = node.api(*call, headers=key)
        assert again.status == 201 and again["Idempotency-Replayed"] == "true", again.body
    equal([a, b])


@pytest.mark.own_postgres
def test_what_no_standby_has_is_not_acknowledged(cluster):
    """A PostgreSQL that restarts shows a record that no standby has: it would be gone after a failover, and a client that
    repeats its write would believe that it is safe."""
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": f"{int(seconds(4))}s"} | faster(4))
    joined(a)
    call, key = ("POST", "/v1/sitemaps", {"loc": loc("one")}), {"Idempotency-Key": "k1"}
    cluster.postgres.set(synchronous_standby_names="'nobody'")
    begun = lambda: (reply := a.api(*call, headers=key)).status != 503 and reply  # 503: its time was over before the commit
    problem(eventually(begun, "the commit waits"), 504, "outcome-unknown")
    cluster.postgres.kill()
    cluster.postgres.start(database=False)
    eventually(lambda: loc("one") in served(a), "the record is applied", within=60)
    whole = "PUT", "/v1/sitemaps?index=/sitemap_index.xml", [{"loc": loc("one")}]
    for reply in (a.api(*call, headers=key), a.api(*call), a.api(*whole)):
        problem(reply, 503)  # or busy: the one before it still waits
    cluster.postgres.set(synchronous_standby_names="''")
    again = eventually(lambda: (reply := a.api(*call, headers=key)).status < 300 and reply, "acknowledged", within=60)
    assert again.status == 201 and again["Idempotency-Replayed"] == "true", again.body
    unchanged = a.api(*call)
    assert (unchanged.status, unchanged.json()["unchanged"]) == (200, 1), unchanged.body


@pytest.mark.own_postgres
def test_a_stop_does_not_wait_for_postgresql(cluster):
    """It stands still, as a machine that is gone, with a commit under way: Docker kills after ten seconds."""
    a = cluster.node("a", env={"SITEMAPD_CATALOGUE_WRITE_TIMEOUT": "600s"})
    joined(a)
    cluster.postgres.set(synchronous_standby_names="'nobody'")
    said = []
    sender = threading.Thread(target=lambda: said.append(a.register(loc("one"))))
    sender.start()
    cluster.postgres.until(lambda: cluster.postgres.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "1", "the commit waits")
    cluster.postgres.pause()
    try:
        a.stop()
    finally:
        cluster.postgres.resume()
    sender.join()
    problem(said[0], 504, "outcome-unknown")
    cluster.postgres.set(synchronous_standby_names="''")


def test_postgresql_is_moved_to_another_server(cluster):
    """As docs/several-machines.md says."""
    nodes = a, b, c = cluster.three()
    assert a.register(loc("one")).status == 201
    equal(nodes)
    tag, old = page(a)[1], cluster.postgres
    old.sql(f"ALTER DATABASE {old.database} SET default_transaction_read_only = on")
    old.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
    eventually(lambda: all("it accepts no writes" in reasons(node).get("shared-unavailable", "") for node in nodes), "no node writes there")
    problem(b.register(loc("two")), 503, "shared-unavailable")
    dump = str(cluster.folder / "sitemapd.dump")
    subprocess.run([binary("pg_dump"), "-Fc", "-n", "sitemapd", "--exclude-table-data=sitemapd.snapshot_part", "-f", dump, old.url()], check=True)
    with PostgreSQL() as new:
        subprocess.run([binary("pg_restore"), "-d", new.url(), dump], check=True)
        for node in nodes:
            node.stop()
            node.env["SITEMAPD_SHARED"] = new.url()
            node.start()
        assert page(c)[1] == tag
        eventually(lambda: b.register(loc("two")).status in (200, 201), "writes again")
        equal(nodes)
        assert [node.metrics()["sitemapd_shared_replaced_total"] for node in nodes] == [0, 0, 0]
        for node in nodes:
            node.stop()


def schema(node):
    with sqlite3.connect(f"file:{node.database}?mode=ro", uri=True) as db:
        return db.execute("PRAGMA user_version").fetchone()[0] % 1_000_000


def chance(node):
    with sqlite3.connect(f"file:{node.database}?mode=ro", uri=True) as db:
        return db.execute("SELECT chance FROM next").fetchone()


def renewed(node):
    """The node, stopped, and started as the next release."""
    node.stop()
    node.binary = NEXT
    return node.start()


def newer_on_older(cluster, node, writer):
    """It follows and serves, and takes no write."""
    joined(node)
    eventually(lambda: "upgrade-pending" in reasons(node), "reported", within=60)
    assert ready(node)[0] == 200
    problem(node.register(loc("refused")), 503, "upgrade-pending")
    assert writer.register(loc("older-writes")).status in (200, 201)
    eventually(lambda: loc("older-writes") in served(node), "followed", within=60)
    for path in ("/v1/sites", "/v1/sitemaps", "/v1/history", "/v1/indexes", "/v1/sources", "/v1/crawlers"):
        assert node.api("GET", path).status == 200, path


def test_nodes_are_upgraded_one_after_another(cluster):
    a, b = cluster.node("a"), cluster.node("b")
    joined(b)
    assert a.register(loc("one")).status == 201
    before = schema(a)
    newer_on_older(cluster, renewed(b), a)
    c = cluster.node("c", binary=NEXT)  # a newer one joins the older ones
    newer_on_older(cluster, c, a)
    renewed(a)  # the last: the catalogue gets its form by itself
    for node in (a, b, c):
        eventually(lambda node=node: node.register(loc(f"by-{id(node)}")).status in (200, 201), "writes", within=60)
        eventually(lambda node=node: "upgrade-pending" not in reasons(node), "no longer reported", within=60)
    equal([a, b, c])
    assert [schema(node) for node in (a, b, c)] == [before + 1] * 3
    for node in (a, b):  # c began with a copy of the older form
        eventually(lambda node=node: f"shared-upgraded: the catalogue was upgraded from schema {before} to schema {before + 1}" in node.log(), "it is logged")
    assert len({chance(node) for node in (a, b, c)}) == 1  # one node's, not each one's own
    late = cluster.node("d")  # an older release comes too late
    eventually(lambda: "upgrade-needed" in reasons(late), "it reports that it must be upgraded", within=60)


def test_an_upgrade_by_hand(cluster):
    by_hand = {"SITEMAPD_SHARED_UPGRADE": "manual"} | faster(5)
    a, b = cluster.node("a", env=by_hand), cluster.node("b", env=by_hand)
    joined(b)
    newer_on_older(cluster, renewed(b), a)
    refused = sitemapd("share", "upgrade", "--shared", cluster.postgres.url(), database=b.database, binary=NEXT, env=faster(10))  # it waits for the older ones
    assert refused.code == 1 and "older release" in refused.err, refused
    renewed(a)
    eventually(lambda: "upgrade-pending" in reasons(a), "reported", within=60)
    problem(a.register(loc("two")), 503, "upgrade-pending")
    checked = sitemapd("check", "--shared", cluster.postgres.url(), database=a.database, binary=NEXT)
    assert checked.code == 0 and checked.err == "" and checked.out.count("upgrade pending") == 1, checked
    done = sitemapd("share", "upgrade", "--shared", cluster.postgres.url(), database=b.database, binary=NEXT)
    assert done.code == 0, done
    for node in (a, b):
        eventually(lambda node=node: node.register(loc("two")).status in (200, 201), "writes", within=60)
    equal([a, b])
    assert schema(a) == schema(b) and chance(a) == chance(b)
