# SPDX-License-Identifier: LicenseRef-Undeclared
"""The log that nodes have in common (db/shared/log.h), on a real PostgreSQL that is killed, stopped, promoted and
lied to: what each call comes to, and that yes and no are certain."""

import contextlib
import hashlib
import os
import signal
import socket
import socketserver
import struct
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import postgres
from conftest import EPOCH


def database_of(url):
    return url.rsplit("/", 1)[1]


def joined(nodes, founder, database, name):
    """Another node, where the founder was when the log was made."""
    node = nodes(database, name)
    node.begin_as(founder)
    return node


@contextlib.contextmanager
def psql(server, where, commands):
    """Somebody's session that has run these, and stays."""
    session = subprocess.Popen([postgres.binary("psql"), "-XAtq", "-d", server.url(where)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    session.stdin.write(commands + "\nSELECT 'in';\n")
    session.stdin.flush()
    try:
        assert session.stdout.readline() == "in\n"
        yield
    finally:
        session.kill()
        session.wait()


def nobody_is_standby(server):
    """From now on a commit waits for ever, and is durable here alone."""
    server.set(synchronous_standby_names="'nobody'")


def busy(node, deadline=2000):
    """The lock is another's until the deadline. Where the server's word of that came too late to be heard, it is asked again."""
    until = time.monotonic() + 60
    while (told := node.ask("begin", 1 << 20, deadline))["outcome"] == "away":
        assert time.monotonic() < until, told
    assert told["outcome"] == "busy", told
    return told


def settled(node, id):
    """Yes or no: a caller that gets no answer asks again."""
    until = time.monotonic() + 60
    while (outcome := node("settle", id)) == "unknown":
        assert time.monotonic() < until, node.last
    return outcome


def commit_that_waits(node, server, text, where):
    """Sends a record whose commit waits for the standby; its answer is yet to come."""
    assert node("begin", 1 << 20) == "yes"
    assert node("add", text) == "yes"
    node.send("commit", 60000)
    server.waits(f"sitemapd {node.name}", "SyncRep", where)


# ---- records ------------------------------------------------------------------------------------


def test_records_come_whole_and_in_order(nodes, founder, database, server):
    other = joined(nodes, founder, database, "other")
    assert founder.write("one") == "yes" and founder.write("two") == "yes"
    assert other.catch_up() == ["one", "two"]
    assert other.write("three") == "yes"
    told = founder.ask("begin", 1 << 20)
    assert (told["outcome"], [r["start"] for r in told["records"]], told["seq"]) == ("yes", ["three"], 3)
    assert founder("add", "four") == "yes" and founder("commit") == "yes"
    assert server.sql("SELECT string_agg(node, ',' ORDER BY seq) FROM sitemapd.log", database_of(database)).startswith(",driver")


def test_a_long_record_goes_in_parts(nodes, founder, database, server):
    """5 MB that do not pack: five parts, and not one in the row."""
    other = joined(nodes, founder, database, "other")
    assert founder("begin", 1 << 20) == "yes"
    told = founder.ask("fill", 5_000_000)
    assert told["outcome"] == "yes" and founder("commit") == "yes"
    record = other.ask("tail", 1 << 20)["records"][0]
    assert (record["size"], record["sum"]) == (5_000_000, told["sum"])
    parts = server.sql("SELECT count(*), max(length(body)), (SELECT length(body) FROM sitemapd.log WHERE seq = 1) FROM sitemapd.part", database_of(database))
    assert parts == f"5|{1 << 20}|0"


def test_who_is_far_behind_follows_first(nodes, founder, database):
    other = joined(nodes, founder, database, "other")
    assert founder("begin", 1 << 20) == "yes" and founder("fill", 3_000_000) == "yes" and founder("commit") == "yes"
    assert other("begin", 1 << 20) == "behind"
    assert founder.write("goes on") == "yes"  # the lock was given up
    assert len(other.catch_up()) == 2
    assert other.write("now") == "yes"


def test_one_writes_at_a_time(nodes, founder, database):
    other = joined(nodes, founder, database, "other")
    other.catch_up()  # connected: of what follows, all is the wait
    assert founder("begin", 1 << 20) == "yes"
    assert 1000 <= busy(other)["took_ms"] < 30000
    assert founder("rollback") == "yes"
    assert other.write("mine") == "yes"


def test_a_rollback_leaves_nothing(nodes, founder, database, server):
    assert founder("begin", 1 << 20) == "yes" and founder("fill", 3_000_000) == "yes" and founder("rollback") == "yes"
    assert server.sql("SELECT count(*) FROM sitemapd.part", database_of(database)) == "0"
    assert founder.write("after") == "yes" and founder.last["seq"] == 1


def test_who_takes_records_may_stop(nodes, founder, database):
    other = joined(nodes, founder, database, "other")
    assert founder.write("one") == "yes" and founder.write("two") == "yes"
    assert other("begin", 1 << 20, 30000, 2) == "stopped" and other.last["seq"] == 1
    assert founder.write("three") == "yes"
    assert other.catch_up() == ["two", "three"]


# ---- what is not believed -----------------------------------------------------------------------


def test_another_past_is_noticed(nodes, founder, database, server):
    other = joined(nodes, founder, database, "other")
    for text in ("one", "two", "three"):
        assert founder.write(text) == "yes"
    other.catch_up()
    where = database_of(database)
    server.sql("DELETE FROM sitemapd.log WHERE seq = 3", where)  # a failover that lost it
    assert other("begin", 1 << 20) == "diverged" and other("tail", 1 << 20) == "diverged"
    founder("at", 2, server.sql("SELECT encode(chain, 'hex') FROM sitemapd.log WHERE seq = 2", where))
    assert founder.write("another") == "yes"  # and wrote on
    assert other("begin", 1 << 20) == "diverged" and other("tail", 1 << 20) == "diverged"
    assert "differs from that of this node" in other.last["why"]


@pytest.mark.parametrize("damage", ["body = body || '\\x00'", "chain = sha256(chain)", "id = gen_random_uuid()"])
def test_a_damaged_record_is_not_taken(nodes, founder, database, server, damage):
    other = joined(nodes, founder, database, "other")
    assert founder.write("one") == "yes" and founder.write("two") == "yes"
    server.sql(f"UPDATE sitemapd.log SET {damage} WHERE seq = 2", database_of(database))
    told = other.ask("tail", 1 << 20)
    assert (told["outcome"], told["seq"], told["why"]) == ("diverged", 1, "record 2 of the log is corrupt")


def test_a_gap_is_not_skipped(nodes, founder, database, server):
    other = joined(nodes, founder, database, "other")
    assert founder.write("one") == "yes" and founder.write("two") == "yes"
    server.sql("DELETE FROM sitemapd.log WHERE seq = 1", database_of(database))
    assert other("tail", 1 << 20) == "diverged" and other.last["why"] == "record 1 of the log is missing"


def test_no_log_another_log_a_newer_log(nodes, founder, database, server):
    stranger = nodes(database, "stranger", "f" * 32)
    assert stranger("tail", 1 << 20) == "foreign" and "is not this node's" in stranger.last["why"]
    where = database_of(database)
    server.sql("UPDATE sitemapd.cluster SET layout = 2", where)
    assert nodes(database)("overview") == "foreign"
    server.sql("DROP SCHEMA sitemapd CASCADE", where)
    late = nodes(database)
    assert late("tail", 1 << 20) == "foreign" and "no shared catalogue" in late.last["why"]
    assert late("found", EPOCH) == "yes" and late.write("again") == "yes"


def test_founding_happens_once(nodes, founder, database):
    again = nodes(database, "again", "-")
    assert again("found", EPOCH) == "yes"  # who did not hear of it asks again
    assert again.last["chain"] == founder.last["chain"]
    assert founder.write("one") == "yes"
    assert again("found", "f" * 32) == "no" and "already" in again.last["why"]
    assert again("found", EPOCH) == "no"


def test_a_nodes_role_needs_no_more_than_it_is_given(nodes, database, server):
    where = database_of(database)
    server.sql('CREATE ROLE "a node" LOGIN', where)
    maker = nodes(database, "maker")
    maker.send("found", EPOCH, "a")
    assert maker.answer()["outcome"] == "no"  # no such role: and nothing is left of it
    server.sql("CREATE ROLE plain LOGIN", where)
    assert maker("found", EPOCH, "plain") == "yes", maker.last
    node = nodes(server.url(where, "plain"), "plain")
    node.begin_as(maker)
    assert node.write("one") == "yes" and node("begin", 1 << 20) == "yes" and node("fill", 2_500_000) == "yes" and node("commit") == "yes"
    assert node("put", "/bin/true") == "yes" and node("trim") == "yes" and node("settle", node.last.get("id", EPOCH[:8] + "-0000-0000-0000-000000000000")) == "no"
    assert node("tell", "plain", "{}") == "yes" and node("list") == "yes" and node("forget", "plain") == "yes" and node("overview") == "yes"
    assert node("hold", "x") == "yes" and node("lease", 10) == "yes" and node("wait", 30000) == "yes"
    with pytest.raises(AssertionError, match="permission denied"):
        server.sql("UPDATE sitemapd.log SET body = ''", where, "plain")


# ---- what a commit came to ----------------------------------------------------------------------


def test_a_refused_statement_is_a_no(nodes, founder, database, server):
    where = database_of(database)
    server.sql("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no room' USING ERRCODE = '53100'; END $$;"
               "CREATE TRIGGER refuse BEFORE INSERT ON sitemapd.log EXECUTE FUNCTION refuse()", where)
    assert founder.write("one") == "no" and founder.last["why"] == "no room"
    server.sql("DROP TRIGGER refuse ON sitemapd.log", where)
    assert founder.write("one") == "yes"


def test_a_commit_that_is_refused_at_its_end_is_a_no(nodes, founder, database, server):
    """What is checked when the transaction commits: the statements themselves went well."""
    where = database_of(database)
    server.sql("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'too late'; END $$;"
               "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON sitemapd.log DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()", where)
    assert founder.write("one") == "no" and founder.last["why"] == "too late"
    server.sql("DROP TRIGGER refuse ON sitemapd.log", where)
    assert founder.write("one") == "yes"


def test_killed_while_it_commits(nodes, founder, database, server):
    """kill -9 between COMMIT and its answer: the record is there, but yes is said only once a standby has it."""
    nobody_is_standby(server)
    commit_that_waits(founder, server, "one", database_of(database))
    server.kill()
    told = founder.answer()
    assert told["outcome"] == "unknown"
    assert founder("settle", told["id"], 500) == "unknown"  # away
    server.start()
    assert server.sql("SELECT count(*) FROM sitemapd.log", database_of(database)) == "2"
    assert founder("settle", told["id"], 1000) == "unknown"  # it waits for the standby
    server.set(synchronous_standby_names="''")
    assert founder("settle", told["id"]) == "yes"
    assert founder.catch_up() == ["one"]


def test_killed_before_it_commits(nodes, founder, database, server):
    """A backend that stands still before it reads COMMIT: the call ends in time, nobody else writes meanwhile, and once it
    is killed the answer is no."""
    assert founder("begin", 1 << 20) == "yes" and founder("add", "one") == "yes"
    other = joined(nodes, founder, database, "other")
    other.catch_up()
    (backend,) = server.backends("sitemapd founder", database_of(database))
    os.kill(backend, signal.SIGSTOP)
    told = founder.ask("commit", 700)
    assert told["outcome"] == "unknown" and 700 <= told["took_ms"] < 30000
    assert founder("settle", told["id"], 500) == "unknown"
    busy(other)
    server.kill()
    server.start()
    assert founder("settle", told["id"]) == "no"
    assert founder.catch_up() == []


def test_a_backend_that_goes_on_is_waited_for(nodes, founder, database, server):
    """The same, but it wakes up: it finds COMMIT among what it was sent, and the record is there."""
    assert founder("begin", 1 << 20) == "yes" and founder("add", "one") == "yes"
    (backend,) = server.backends("sitemapd founder", database_of(database))
    os.kill(backend, signal.SIGSTOP)
    told = founder.ask("commit", 500)
    assert told["outcome"] == "unknown"
    founder.send("settle", told["id"], 60000)
    server.waits("sitemapd founder", "advisory", database_of(database))
    os.kill(backend, signal.SIGCONT)
    assert founder.answer()["outcome"] == "yes"
    assert founder.catch_up() == ["one"]


@pytest.mark.parametrize("how", ["cancel", "terminate"])
def test_a_wait_for_the_standby_that_is_cut_short(nodes, founder, database, server, how):
    """Cancelled it is a success with a warning, terminated a lost connection: neither says yes."""
    nobody_is_standby(server)
    commit_that_waits(founder, server, "one", database_of(database))
    server.sql(f"SELECT pg_{how}_backend(pid) FROM pg_stat_activity WHERE application_name = 'sitemapd founder' AND datname = '{database_of(database)}'")
    told = founder.answer()
    assert told["outcome"] == "unknown"
    assert founder("settle", told["id"], 500) == "unknown"
    server.set(synchronous_standby_names="''")
    assert founder("settle", told["id"]) == "yes"


def test_what_no_standby_has_is_not_confirmed(nodes, founder, database, server):
    """A record whose wait was cut short is visible to all, and gone after a failover."""
    where = database_of(database)
    other = joined(nodes, founder, database, "other")
    nobody_is_standby(server)
    commit_that_waits(founder, server, "one", where)
    server.sql(f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'sitemapd founder' AND datname = '{where}'")
    assert founder.answer()["outcome"] == "unknown"
    assert other.catch_up() == ["one"]
    assert other("begin", 1 << 20) == "yes" and other("confirm", 500) == "unknown"
    server.set(synchronous_standby_names="''")
    assert other("begin", 1 << 20) == "yes" and other("confirm") == "yes"
    nobody_is_standby(server)
    assert other("begin", 1 << 20) == "yes" and other("confirm") == "yes"  # known since: no commit, which would wait
    server.set(synchronous_standby_names="''")


def test_a_commit_whose_standby_is_away_ends_in_time(nodes, founder, database, server):
    nobody_is_standby(server)
    assert founder("begin", 1 << 20) == "yes" and founder("add", "one") == "yes"
    told = founder.ask("commit", 500)
    assert told["outcome"] == "unknown" and 500 <= told["took_ms"] < 30000
    server.set(synchronous_standby_names="''")
    assert founder("settle", told["id"]) == "yes"


# ---- time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [("begin", 1 << 20, 400), ("tail", 1 << 20, 400), ("tell", "n", "{}", 400), ("hold", "x", 400), ("overview", 400)])
def test_a_server_that_stands_still_holds_nobody(nodes, founder, database, server, call):
    """Connected and not: TCP is acknowledged by the kernel, and no call waits longer than it may."""
    assert founder.write("one") == "yes"
    fresh = nodes(database, "fresh")
    server.pause()
    try:
        for node in (founder, fresh):
            told = node.ask(*call)
            assert told["outcome"] == "away" and 390 <= told["took_ms"] < 30000
    finally:
        server.resume()
    assert founder.write("two") == "yes"


def test_who_stops_with_the_lock_loses_it(nodes, founder, database, server):
    other, stops = (joined(nodes, founder, database, name) for name in ("other", "stops"))
    assert stops("hurry") == "yes" and stops("begin", 1 << 20) == "yes" and stops("add", "one") == "yes"
    assert other.write("mine") == "yes"  # the server ended that session after two seconds
    told = stops.ask("commit")
    assert told["outcome"] == "unknown" and stops("settle", told["id"]) == "no"


def test_who_takes_long_keeps_the_lock(nodes, founder, database, server):
    """Five records that take 0.55 s each to apply: more than the server lets a silent session have."""
    other = joined(nodes, founder, database, "other")
    for text in ("one", "two", "three", "four", "five"):
        assert founder.write(text) == "yes"
    told = other.ask("begin", 1 << 20, 30000, 0, 550)
    assert (told["outcome"], told["seq"]) == ("yes", 5)
    assert other("add", "six") == "yes" and other("commit") == "yes"


def test_who_takes_long_for_one_record_keeps_the_lock(nodes, founder, database, server):
    """The same of one record that comes at once, in 16 pieces of 0.2 s each."""
    other = joined(nodes, founder, database, "other")
    assert founder("begin", 1 << 20) == "yes" and founder("fill", 1_000_000) == "yes" and founder("commit") == "yes"
    told = other.ask("begin", 1 << 20, 30000, 0, 0, "-", 200)
    assert (told["outcome"], told["seq"]) == ("yes", 1), told
    assert other("add", "two") == "yes" and other("commit") == "yes"


def test_what_a_machine_holds_that_is_gone_is_free_soon(nodes, founder, database, server):
    """The server asks a silent peer itself, within ten seconds: by default it would after two hours."""
    assert founder("hold", "shop") == "yes"

    def alarms():
        with open("/proc/net/tcp", encoding="ascii") as file:
            rows = [line.split() for line in file][1:]
        return [int(row[5].split(":")[1], 16) / os.sysconf("SC_CLK_TCK") for row in rows
                if int(row[1].split(":")[1], 16) == server.port and row[3] == "01" and row[5].startswith("02:")]

    until = time.monotonic() + 60
    while not (found := alarms()):  # what was answered is acknowledged first
        assert time.monotonic() < until
        time.sleep(0.05)
    assert max(found) <= 10.5


# ---- lists of several nodes ---------------------------------------------------------------------


def long_list(node):
    """A list of more than others apply while they hold the lock."""
    assert node.list() == "yes" and node("fill", 3_000_000) == "yes" and node("commit") == "yes"


def test_a_list_waits_for_no_other_and_is_seen_to_wait(nodes, founder, database):
    other = joined(nodes, founder, database, "other")
    assert founder.list() == "yes"
    assert other.list() == "busy" and other.last["took_ms"] < 50000
    until = time.monotonic() + 60
    while founder.ask("awaited")["ms"] == 0:  # it is asked for each half second
        assert founder("keep") == "yes" and time.monotonic() < until
        time.sleep(0.1)
    assert founder("add", "one") == "yes" and founder("commit") == "yes"
    assert other.list() == "busy"  # what waited where the first was comes before it
    assert founder.ask("pass", 0)["awaited"] == 1
    assert other.list() == "yes" and other("rollback") == "yes"
    assert founder.list() == "busy" and other.ask("pass", 0)["awaited"] == 1
    assert founder.list() == "yes" and founder("rollback") == "yes"
    assert founder.ask("pass", 0)["awaited"] == 0


def test_what_waits_behind_a_list_comes_before_the_next(nodes, founder, database, server):
    """Also where it has to take over first what the list wrote, without the lock."""
    small, lists = (joined(nodes, founder, database, name) for name in ("small", "lists"))
    assert founder.list() == "yes"
    small.send("begin", 1 << 20)
    server.waits("sitemapd small", "advisory", database_of(database))
    assert founder("fill", 3_000_000) == "yes" and founder("commit") == "yes"
    assert small.answer()["outcome"] == "behind"
    founder.ask("pass", 0)
    assert lists.list() == "busy"
    small.catch_up()
    assert small("begin", 1 << 20) == "yes" and small("add", "mine") == "yes" and small("commit") == "yes"
    assert lists.list() == "busy"
    assert small.ask("pass", 0)["awaited"] == 1
    lists.catch_up()
    assert lists.list() == "yes" and lists("rollback") == "yes"


@pytest.mark.parametrize("waits", [1, 0])
def test_what_comes_while_a_list_is_applied_goes_before_the_next(nodes, founder, database, waits):
    """It had asked for nothing when the list ended: where nothing waits for who follows, nobody does."""
    small, lists = (joined(nodes, founder, database, name) for name in ("small", "lists"))
    long_list(founder)
    founder.ask("pass", 0)
    lists.catch_up()
    told = small.ask("tail", 1 << 20, 30000, 0, 0, "-", 5, waits)  # 46 pieces
    assert (told["outcome"], told["seq"]) == ("yes", 1)
    assert lists.list() == ("busy" if waits else "yes")
    if waits:
        assert small.write("mine") == "yes" and lists.list() == "busy"
        assert small.ask("pass", 0)["awaited"] == 1
        lists.catch_up()
        assert lists.list() == "yes"
    assert lists("rollback") == "yes"


def test_who_is_behind_keeps_lists_out_before_it_knows(nodes, founder, database, server):
    """From the moment in which it got the lock: who looks on is the server itself, since a session that says nothing ends. A
    list's commit releases its two locks one after the other: in between it cannot be had, and is asked for later."""
    where = database_of(database)

    def is_shared_by(name):
        small = joined(nodes, founder, database, name)
        shares = (f"SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE application_name = 'sitemapd {name}' AND locktype = 'advisory'"
                  " AND mode = 'ShareLock' AND granted")
        look = f"DO $$ BEGIN LOOP PERFORM pg_sleep(0.005); EXIT WHEN EXISTS ({shares}); END LOOP; END $$"
        assert founder.list() == "yes"
        small.send("begin", 1 << 20, 120000)
        server.waits(f"sitemapd {name}", "advisory", where)
        small.process.send_signal(signal.SIGSTOP)
        try:
            with ThreadPoolExecutor() as pool:
                looked = pool.submit(server.sql, f"SET statement_timeout = '20s'; SET application_name = 'looks {name}'; {look}", where)
                server.waits(f"looks {name}", "PgSleep", where)
                assert founder("fill", 3_000_000) == "yes" and founder("commit") == "yes"
                found = looked.exception() is None
        finally:
            small.process.send_signal(signal.SIGCONT)
        assert small.answer()["outcome"] in ("behind", "away")  # it may have said nothing for too long
        small.end()
        return found

    assert any(is_shared_by(f"small{n}") for n in range(5))


def test_a_list_that_is_not_quite_over_is_waited_for(nodes, founder, database, server):
    """Its commit has released the writers' lock, and of the lists' a moment later: here another session has that one until
    it is waited for."""
    where = database_of(database)
    key = int.from_bytes(hashlib.sha256(b"sitemapd list ").digest()[:8], "big", signed=True)

    def is_kept_out_by(name):
        small = joined(nodes, founder, database, name)
        long_list(founder)
        founder.ask("pass", 0)
        waits = f"SELECT 1 FROM pg_stat_activity WHERE application_name = 'sitemapd {name}' AND wait_event = 'advisory'"
        look = f"PERFORM pg_advisory_xact_lock({key}); LOOP PERFORM pg_sleep(0.005); PERFORM pg_stat_clear_snapshot(); EXIT WHEN EXISTS ({waits}); END LOOP"
        with ThreadPoolExecutor() as pool:
            looked = pool.submit(server.sql, f"SET statement_timeout = '5s'; SET application_name = 'looks {name}'; DO $$ BEGIN {look}; END $$", where)
            server.waits(f"looks {name}", "PgSleep", where)
            assert small("begin", 1 << 20) == "behind"
            found = looked.exception() is None
        lists = joined(nodes, founder, database, f"lists_{name}")
        found = lists.list() == "busy" and found
        small.end()
        lists.end()
        return found

    assert any(is_kept_out_by(f"small{n}") for n in range(5))


def test_a_list_that_is_behind_stays_the_next(nodes, founder, database):
    lists = joined(nodes, founder, database, "lists")
    long_list(founder)
    founder.ask("pass", 0)
    assert lists.list() == "behind"
    assert founder.list() == "busy"
    lists.catch_up()
    assert lists.list() == "yes" and lists("add", "one") == "yes" and lists("commit") == "yes"
    lists.ask("pass", 0)
    founder.catch_up()
    assert founder.list() == "yes" and founder("rollback") == "yes"  # nothing was shared twice


def test_lists_of_sites_take_turns_among_nodes(nodes, founder, database):
    """Whichever node asks first: a site has one place in the line, and the next behind all who waited meanwhile."""
    other, mine = (joined(nodes, founder, database, name) for name in ("other", "mine"))
    theirs = founder.site

    def turn(node, site):
        assert node.list(site) == "yes" and node("add", "one") == "yes" and node("commit") == "yes"
        node.ask("pass", 1)

    assert founder.list(theirs) == "yes"
    assert other.list(theirs) == "elsewhere"
    assert mine.list() == "busy"
    assert founder("add", "one") == "yes" and founder("commit") == "yes"
    founder.ask("pass", 1)
    assert other.list(theirs) == "busy" and founder.list(theirs) == "elsewhere"
    turn(mine, mine.site)
    assert mine.list() == "busy" and founder.list(theirs) == "elsewhere"
    turn(other, theirs)
    assert founder.list(theirs) == "busy"
    mine.ask("pass", 0)  # its list no longer exists
    turn(founder, theirs)


def test_a_place_is_kept_while_small_writes_go_before(nodes, founder, database):
    mine, other = (joined(nodes, founder, database, name) for name in ("mine", "other"))
    assert founder.list() == "yes" and mine.list() == "busy" and other.list() == "busy"
    assert founder("fill", 3_000_000) == "yes" and founder("commit") == "yes"
    founder.ask("pass", 0)
    assert mine("begin", 1 << 20) == "behind"
    mine.catch_up()
    assert mine("begin", 1 << 20) == "yes" and mine("add", "small") == "yes" and mine("commit") == "yes"
    assert mine.ask("pass", 1)["awaited"] == 1
    other.catch_up()
    assert other.list() == "busy" and mine.list() == "yes" and mine("rollback") == "yes"


@pytest.mark.parametrize("theirs", ["elsewhere", "not"])
def test_a_nodes_place_is_its_next_sites(nodes, founder, database, theirs):
    """Of two sites with lists at one node the other may come first; unless another node has that one's turn."""
    mine, late = (joined(nodes, founder, database, name) for name in ("mine", "late"))
    theirs = founder.site if theirs == "elsewhere" else 200
    assert founder.list() == "yes" and mine.list() == "busy" and late.list() == "busy"
    assert mine.list(theirs) == ("elsewhere" if theirs == founder.site else "busy")
    assert founder("rollback") == "yes"
    founder.ask("pass", 0)
    assert late.list() == "busy"
    assert mine.list(mine.site if theirs == founder.site else theirs) == "yes" and mine("rollback") == "yes"


def test_who_is_lost_has_no_place(nodes, founder, database, server):
    mine, other = (joined(nodes, founder, database, name) for name in ("mine", "other"))
    assert founder.list() == "yes" and mine.list() == "busy" and other.list() == "busy"
    assert founder("rollback") == "yes"
    founder.ask("pass", 0)
    mine.end()
    until = time.monotonic() + 60
    while other.list() != "yes":
        assert time.monotonic() < until
        time.sleep(0.1)
    assert other("rollback") == "yes"


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_who_stops_while_lists_wait_loses_its_session(nodes, founder, database, end):
    lists, stops = (joined(nodes, founder, database, name) for name in ("lists", "stops"))
    lists.catch_up()  # connected: the other has ten seconds
    assert stops("hurry") == "yes" and stops.list() == "yes" and stops("add", "one") == "yes" and stops(end) == "yes"
    assert lists.list() == "busy"
    until = time.monotonic() + 60
    while lists.list() == "busy":
        assert time.monotonic() < until
        time.sleep(0.2)
    assert lists("rollback") == "yes"
    lists.ask("pass", 0)
    assert stops.list() in ("away", "yes")


# ---- following ----------------------------------------------------------------------------------


def test_news_are_heard_also_after_a_restart(nodes, founder, database, server):
    other = joined(nodes, founder, database, "other")
    assert other("wait", 60000) == "yes"  # listens; look at what came before
    other.send("wait", 60000)
    assert founder.write("one") == "yes"
    told = other.answer()
    assert told["outcome"] == "yes" and told["took_ms"] < 50000
    other.catch_up()
    server.kill()
    assert other("wait", 500) == "away"
    server.start()
    assert other("wait", 60000) == "yes"
    other.send("wait", 60000)
    assert founder.write("two") == "yes"
    assert other.answer()["took_ms"] < 50000 and other.catch_up() == ["two"]


def test_own_news_wake_nobody(nodes, founder, database):
    follower = nodes(database, "founder")
    assert follower("wait", 60000) == "yes"
    assert founder.write("one") == "yes"
    told = follower.ask("wait", 300)
    assert told["outcome"] == "yes" and told["took_ms"] >= 300


def test_a_wait_is_interrupted(nodes, founder, database, server):
    assert founder("wait", 60000) == "yes"
    founder.send("wait", 60000)
    server.waits("sitemapd founder", "ClientRead", database_of(database))
    founder.interrupt()
    told = founder.answer()
    assert told["outcome"] == "stopped" and told["took_ms"] < 50000
    assert founder("wait", 60000) == "stopped"


def test_a_full_queue_of_notices_stops_nobody(nodes, request):
    """A session that listens in a transaction keeps all notices; before the queue is full, we add none."""
    if float(postgres.binary("postgres").split("/")[4]) < 17:
        pytest.skip("before PostgreSQL 17 the queue holds 8 GB")
    with postgres.Server(settings={"max_notify_queue_pages": "64"}) as server:
        url = server.url()
        founder = nodes(url, "founder")
        assert founder("found", EPOCH) == "yes"
        with psql(server, postgres.DATABASE, "LISTEN anything;\nBEGIN;"):
            while float(server.sql("SELECT pg_notification_queue_usage()")) < 0.4:
                server.sql("SELECT pg_notify('anything', repeat('x', 4000) || n) FROM generate_series(1, 8) n")
            usage = server.sql("SELECT pg_notification_queue_usage()")
            for n in range(20):
                assert founder.write(f"record{n}") == "yes"
            assert server.sql("SELECT pg_notification_queue_usage()") == usage


# ---- several servers ----------------------------------------------------------------------------


@pytest.fixture
def pair():
    with postgres.Server() as primary:
        standby = primary.standby()
        with standby:
            yield primary, standby


def of_both(primary, standby):
    return f"postgresql://postgres@{standby.address}:{standby.port},{primary.address}:{primary.port}/{postgres.DATABASE}"


def test_a_promotion_loses_nothing_that_was_acknowledged(nodes, pair):
    primary, standby = pair
    node = nodes(of_both(primary, standby), "founder")  # the standby takes no writes: the other one is found
    assert node("found", EPOCH) == "yes"
    assert [node.write(f"record{n}") for n in range(20)] == ["yes"] * 20
    assert node("overview") == "yes" and node.last["synchronous"] == 1
    other = nodes(of_both(primary, standby), "other")
    assert node("begin", 1 << 20) == "yes" and node("add", "doubtful") == "yes"
    standby.pause()
    node.send("commit", 60000)
    primary.waits("sitemapd founder", "SyncRep")
    primary.kill()
    doubtful = node.answer()
    assert doubtful["outcome"] == "unknown"
    standby.resume()
    assert other("overview", 500) == "away"  # it is not a primary yet
    standby.promote()
    # It may have come to the standby before that was stopped: then it is there, and yes.
    outcome = settled(node, doubtful["id"])
    assert outcome == ("yes" if standby.sql(f"SELECT 1 FROM sitemapd.log WHERE id = '{doubtful['id']}'") else "no")
    node.catch_up()
    assert node.write("after") == "yes"
    assert other("overview") == "yes" and other.last["head"] == node.last["seq"]
    assert node.last["seq"] == 21 + (outcome == "yes")


def test_a_record_that_was_shown_and_lost_is_noticed(nodes, pair):
    """A primary that crashed while it waited for its standby shows its record when it is back; a follower takes it; the
    standby, promoted, has never heard of it."""
    primary, standby = pair
    node = nodes(of_both(primary, standby), "founder")
    assert node("found", EPOCH) == "yes" and node.write("one") == "yes"
    follower = nodes(of_both(primary, standby), "follower")
    follower.begin_as(node)
    late = nodes(of_both(primary, standby), "late")
    late.begin_as(node)
    # Nothing comes to the standby from here on, and no longer will.
    standby.kill()
    assert node("begin", 1 << 20) == "yes" and node("add", "ghost") == "yes"
    node.send("commit", 60000)
    primary.waits("sitemapd founder", "SyncRep")
    primary.kill()
    assert node.answer()["outcome"] == "unknown"
    primary.start()
    assert follower.catch_up() == ["ghost"]
    primary.kill()
    standby.start(database=False)
    standby.promote()
    standby.set(synchronous_standby_names="''")
    assert follower("tail", 1 << 20) == "diverged" and "exists on this node but not in PostgreSQL" in follower.last["why"]
    assert late.write("two") == "yes"
    assert follower("begin", 1 << 20) == "diverged" and "differs from that of this node" in follower.last["why"]


@contextlib.contextmanager
def a_server_that_rejects(sqlstate, words):
    """Its port: it answers each start of a session with that error."""

    class Rejects(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(10000)
            text = f"SFATAL\0VFATAL\0C{sqlstate}\0M{words}\0\0".encode()
            self.request.sendall(b"E" + struct.pack(">I", len(text) + 4) + text)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Rejects) as listens:
        threading.Thread(target=listens.serve_forever).start()
        try:
            yield listens.server_address[1]
        finally:
            listens.shutdown()


def test_what_each_host_said_is_reported(nodes, founder, database, server):
    """The standby beside a primary that rejects the node is not what is wrong."""
    where, standby = database_of(database), f"{server.address}:{server.port}"
    server.sql(f"ALTER DATABASE {where} SET default_transaction_read_only = on", "postgres")
    with a_server_that_rejects("53300", "sorry, too many clients already") as port:
        for hosts in (f"127.0.0.1:{port},{standby}", f"{standby},127.0.0.1:{port}"):
            told = nodes(f"postgresql://postgres@{hosts}/{where}?sslmode=disable").ask("overview")
            assert told["outcome"] == "away" and told["gist"] == "too many connections: all that it allows are in use", told
            assert "too many clients" in told["why"] and "session is read-only" in told["why"] and "; " in told["why"], told
    told = nodes(f"postgresql://postgres@127.0.0.1:{port},{standby}/{where}?sslmode=disable").ask("overview")  # nobody listens there now
    assert told["gist"].startswith("it accepts no writes") and "refused" in told["why"] and "session is read-only" in told["why"], told


def test_hosts_are_tried_in_turn(nodes, founder, database, server):
    where = database_of(database)
    with socket.socket() as mute:  # that nobody else listens on, either
        mute.bind((server.address, 0))
        dead = mute.getsockname()[1]
        node = nodes(f"postgresql://postgres@{server.address}:{dead},{server.address}:{server.port}/{where}")
        assert node("overview") == "yes"
        assert nodes(f"postgresql://postgres@localhost:{server.port}/{where}")("overview") == "yes"  # one name, two addresses
        alone = nodes(f"postgresql://postgres:secret@{server.address}:{dead}/{where}")
        assert alone("overview", 2000) == "away" and alone.last["why"] and "secret" not in alone.last["why"]


def test_a_silent_name_server_holds_nobody(nodes, tmp_path):
    if os.getuid() != 0:
        pytest.skip("only root gives a process another resolv.conf")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        address = f"127.77.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"  # its own: another build runs this beside us
        silent.bind((address, 53))
        (tmp_path / "resolv.conf").write_text(f"nameserver {address}\n")
        within = ("unshare", "--mount", "sh", "-ec", f'mount --bind {tmp_path}/resolv.conf /etc/resolv.conf; exec "$@"', "sh")
        if subprocess.run([*within, "true"], check=False).returncode != 0:
            pytest.skip("no mounts here")
        node = nodes("postgresql://postgres@database.example.com/sitemapd", within=within)
        for _ in range(2):  # the second finds the first's look-up under way
            told = node.ask("overview", 300)
            assert told["outcome"] == "away" and 300 <= told["took_ms"] < 30000, told
        assert told["why"] == "database.example.com: timeout: DNS did not answer for PostgreSQL's host in time"


# ---- who is there -------------------------------------------------------------------------------


def test_a_name_is_one_nodes_for_as_long_as_it_is_connected(nodes, founder, database, server):
    other = nodes(database, "other")
    assert founder("hold", "source:a") == "yes" and founder("hold", "source:a") == "yes" and founder("hold", "source:b") == "yes"
    assert other("hold", "source:a") == "no" and other("hold", "source:c") == "yes"
    founder("let_go", "source:b")
    assert other("hold", "source:b") == "yes"
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sitemapd founder' AND datname = current_database()", database_of(database))
    founder("tell", "founder", "{}")
    assert founder.ask("held", "source:a")["held"] == 0
    server.until(lambda: other("hold", "source:a") == "yes", "the name that became free")
    assert founder("hold", "source:a") == "no" and other.ask("held", "source:a")["held"] == 1


def test_who_says_nothing_loses_a_name_and_who_reports_keeps_it(nodes, founder, database, server):
    stops, keeps = nodes(database, "stops"), nodes(database, "keeps")
    for node, name in ((stops, "source:a"), (keeps, "source:b")):
        assert node("hurry") == "yes" and node("hold", name) == "yes"

    def is_free():
        assert keeps("tell", "keeps") == "yes"
        return founder("hold", "source:a") == "yes"

    server.until(is_free, "the name of one that stands still")
    assert founder("hold", "source:b") == "no"
    server.until(lambda: stops("hold", "source:a") == "no", "it hears of that")


def test_a_session_may_be_silent_once_it_holds_no_name(nodes, founder, database):
    holds, tries = nodes(database, "holds"), nodes(database, "tries")
    assert holds("hurry") == "yes" and holds("hold", "snapshot") == "yes"
    assert tries("hurry") == "yes" and tries("hold", "snapshot") == "no"
    assert holds.ask("silence", 60000)["ms"] == 30000
    for node in (holds, tries):
        node("let_go", "snapshot")
        assert node.ask("silence", 60000)["ms"] == 0
    assert founder("hold", "snapshot") == "yes"


def test_a_migration_waits_for_older_releases_and_keeps_them_out(nodes, founder, database, server):
    old, new = nodes(database, "old"), nodes(database, "new")
    assert old("lease", 10) == "yes" and old("lease", 10) == "yes" and new("lease", 11) == "yes"
    assert founder("begin", 1 << 20) == "yes"
    assert founder("older", 10) == "yes"  # nobody is older than that
    assert founder("older", 11) == "no"
    assert founder("rollback") == "yes"
    old.end()
    again = nodes(database, "again")
    assert founder("begin", 1 << 20) == "yes"
    server.until(lambda: founder("older", 11) == "yes", "the end of the old one's session")
    assert again("lease", 10) == "no"  # the migration is under way
    assert founder("add", "migration") == "yes" and founder("commit") == "yes"
    assert again("lease", 10) == "yes"
    old.process = again.process  # ended above


def test_nodes_know_of_each_other(nodes, founder, database):
    other = nodes(database, "other")
    assert founder("tell", "founder", '{"a":1}') == "yes" and other("tell", "other") == "yes" and founder("tell", "founder", '{"a":2}') == "yes"
    told = other.ask("list")
    assert told["founder"]["state"] == '{"a":2}' and told["other"]["state"] == "" and told["founder"]["schema"] == 1
    assert 0 <= told["founder"]["silent_ms"] < 60000
    assert other("forget", "founder") == "yes" and "founder" not in other.ask("list")


# ---- several logs in one database ---------------------------------------------------------------


def test_logs_of_two_schemas_do_not_see_each_other(nodes, founder, database, server):
    """Tables, the lock of writers, places in line, names, leases of releases, notifications."""
    other = nodes(database, "founder", "f" * 32, schema="select")  # a word of SQL
    assert other("found", "f" * 32) == "yes", other.last
    assert founder.write("one") == "yes" and other.ask("overview")["head"] == 0
    assert founder.list(7) == "yes" and other.list(7) == "yes"  # both hold the lock, for a list of a site of one number
    assert founder("add", "two") == "yes" and other("add", "three") == "yes" and other("commit") == "yes" and founder("commit") == "yes"
    founder.ask("pass", 0), other.ask("pass", 0)
    assert founder("hold", "source:a") == "yes" and other("hold", "source:a") == "yes"
    old = nodes(database, "old")
    assert old("lease", 10) == "yes"
    assert other("begin", 1 << 20) == "yes" and other("older", 11) == "yes" and other("rollback") == "yes"
    assert founder("tell", "founder") == "yes" and "founder" not in other.ask("list")
    follower = nodes(database, "follower", "f" * 32, schema="select")
    assert follower("wait", 60000) == "yes"
    assert founder.write("four") == "yes"
    assert follower.ask("wait", 300)["took_ms"] >= 300
    follower.send("wait", 60000)
    assert other.write("five") == "yes"
    assert follower.answer()["took_ms"] < 50000
    found = lambda schema: server.sql(f'SELECT count(*) FROM "{schema}".log', database_of(database))
    assert (found("sitemapd"), found("select")) == ("4", "3")


def test_a_log_is_known_by_its_epoch_in_every_schema(nodes, founder, database):
    strange = nodes(database, "strange", schema="elsewhere")
    assert strange("tail", 1 << 20) == "foreign" and "schema elsewhere" in strange.last["why"]
    assert strange("found", "f" * 32) == "yes"
    assert nodes(database, "other", schema="elsewhere")("tail", 1 << 20) == "foreign"


# ---- snapshots ----------------------------------------------------------------------------------


def make_file(path, size, seed=b""):
    with open(path, "wb") as file:
        file.write(os.urandom(size // 2) + seed * (size // 2 // max(1, len(seed))))
    return path


def test_what_a_killed_founder_left_is_made_anew(nodes, founder, database, tmp_path):
    """Nobody could join a log that has no snapshot, no record and no node."""
    other, third = nodes(database, "other"), nodes(database, "third")
    assert other("found", "e" * 32) == "yes" and other.last["chain"] != founder.last["chain"]
    assert founder("put", make_file(tmp_path / "late", 1000)) != "yes"  # it is no longer its log
    assert third("found", "f" * 32) == "no"  # the other is about to send its own
    assert other("put", make_file(tmp_path / "first", 1000)) == "yes", other.last
    other("let_go", "snapshot")
    assert third("found", "f" * 32) == "no"


def test_a_snapshot_goes_up_and_comes_down(nodes, founder, database, server, tmp_path):
    """More than one part; what an upload that broke off has left is not a snapshot, and is gone afterwards."""
    where = database_of(database)
    file, copy = make_file(tmp_path / "file", 6_000_000, b"same "), tmp_path / "copy"
    joining = nodes(database, "joining")
    assert joining("get", copy) == "no"
    assert founder.write("one") == "yes" and founder.write("two") == "yes"
    server.sql("INSERT INTO sitemapd.snapshot_part SELECT 1, n, '\\x00' FROM generate_series(0, 99) n", where)
    assert joining("get", copy) == "no"
    assert founder("put", file) == "yes", founder.last
    assert founder("put", file) == "yes"  # it is there
    copy.write_bytes(b"x" * 7_000_000)  # longer than what comes
    told = joining.ask("get", copy)
    assert (told["outcome"], told["seq"], told["schema"], told["bytes"]) == ("yes", 2, 1, file.stat().st_size)
    assert copy.read_bytes() == file.read_bytes()
    assert server.sql("SELECT count(DISTINCT seq), min(seq) FROM sitemapd.snapshot_part", where) == "1|2"
    assert founder.write("three") == "yes" and joining.catch_up() == ["three"]
    server.sql("UPDATE sitemapd.snapshot_part SET body = '\\x00' WHERE no = 1", where)
    assert joining("get", copy) == "diverged"


def test_a_snapshot_of_what_the_log_has_not_is_none(nodes, founder, database, tmp_path):
    file = make_file(tmp_path / "file", 1000)
    founder("at", 7, "00" * 32)
    assert founder("put", file) == "diverged"
    assert nodes(database)("get", tmp_path / "copy") == "no"


def test_the_log_keeps_what_the_last_but_one_snapshot_needs_and_a_day(nodes, founder, database, server, tmp_path):
    where = database_of(database)
    file = make_file(tmp_path / "file", 1000)
    oldest, joining = joined(nodes, founder, database, "oldest"), nodes(database, "joining")

    def first():
        while founder.ask("trim")["more"]:
            pass
        return int(server.sql("SELECT min(seq) FROM sitemapd.log", where))

    def age():
        server.sql("UPDATE sitemapd.log SET stored_at = stored_at - interval '2 days'", where)

    for n in range(1, 6):
        assert founder("begin", 1 << 20) == "yes" and founder("fill", 2_200_000) == "yes" and founder("commit") == "yes"
        if n in (2, 4):
            assert founder("put", file) == "yes"
    assert first() == 0
    age()
    assert founder.write("six") == "yes" and first() == 2
    assert server.sql("SELECT min(seq) FROM sitemapd.part", where) == "2"
    assert oldest("tail", 1 << 20) == "trimmed" and oldest("begin", 1 << 20) == "trimmed"
    assert joining("get", tmp_path / "copy") == "yes" and joining.last["seq"] == 4 and len(joining.catch_up()) == 2
    assert founder("put", file) == "yes" and first() == 4
    assert server.sql("SELECT count(*) FROM sitemapd.snapshot", where) == "2"
    told = founder.ask("overview")
    assert (told["first"], told["head"], told["snapshot"], told["since"]) == (4, 6, 6, 0)
    assert 2_000_000 < told["log_bytes"] < 2_500_000
    # Where the nodes have each other's files, the log keeps what the newest snapshot needs.
    assert founder.write("seven") == "yes" and founder("put", file, 30000, 1) == "yes"
    assert server.sql("SELECT count(*), min(seq) FROM sitemapd.snapshot", where) == "1|7"
    age()
    assert founder.ask("trim", 30000, 1) and server.sql("SELECT min(seq) FROM sitemapd.log", where) == "7"


def test_of_a_day_the_log_keeps_a_gibibyte(nodes, founder, database, server, tmp_path):
    where = database_of(database)
    file = make_file(tmp_path / "file", 1000)
    for n in range(1, 7):
        assert founder.write(str(n)) == "yes"
        if n == 2:  # as if this one were as large as may be kept
            server.sql(f"UPDATE sitemapd.log SET total = total + {1 << 30} WHERE seq = 2", where)
        if n in (4, 5):
            assert founder("put", file) == "yes"
    told = lambda: founder.ask("trim") and server.sql("SELECT min(seq), max(seq) FROM sitemapd.log", where)
    assert told() == "2|6"  # what is newer is small
    server.sql(f"UPDATE sitemapd.log SET total = total + {1 << 30} WHERE seq = 6", where)
    assert told() == "4|6"  # of what the last but one snapshot needs nothing goes


def test_an_upload_is_interrupted(nodes, founder, database, server, tmp_path):
    """In its middle: somebody keeps the table of parts."""
    file, where = make_file(tmp_path / "file", 5_000_000), database_of(database)
    assert founder.write("one") == "yes"
    with psql(server, where, "BEGIN;\nLOCK TABLE sitemapd.snapshot_part IN SHARE MODE;"):
        founder.send("put", file)
        server.waits("sitemapd founder", "relation", where)
        founder.interrupt()
        assert founder.answer()["outcome"] == "stopped"
    assert nodes(database)("get", tmp_path / "copy") == "no"
