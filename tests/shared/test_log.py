"""The log that nodes have in common (db/shared/log.h), on a real PostgreSQL that is killed, stopped, promoted and
lied to: what each call comes to, and that yes and no are certain."""

import os
import signal
import socket
import subprocess

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


def nobody_is_standby(server):
    """From now on a commit waits for ever, and is durable here alone."""
    server.set(synchronous_standby_names="'nobody'")


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
    assert founder("begin", 1 << 20) == "yes"
    told = other.ask("begin", 1 << 20, 300)
    assert told["outcome"] == "busy" and 150 <= told["took_ms"] < 5000
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
    assert "another one than here" in other.last["why"]


@pytest.mark.parametrize("damage", ["body = body || '\\x00'", "chain = sha256(chain)", "id = gen_random_uuid()"])
def test_a_damaged_record_is_not_taken(nodes, founder, database, server, damage):
    other = joined(nodes, founder, database, "other")
    assert founder.write("one") == "yes" and founder.write("two") == "yes"
    server.sql(f"UPDATE sitemapd.log SET {damage} WHERE seq = 2", database_of(database))
    told = other.ask("tail", 1 << 20)
    assert (told["outcome"], told["seq"], told["why"]) == ("diverged", 1, "record 2 of the log is damaged")


def test_a_gap_is_not_skipped(nodes, founder, database, server):
    other = joined(nodes, founder, database, "other")
    assert founder.write("one") == "yes" and founder.write("two") == "yes"
    server.sql("DELETE FROM sitemapd.log WHERE seq = 1", database_of(database))
    assert other("tail", 1 << 20) == "diverged" and other.last["why"] == "record 1 of the log is missing"


def test_no_log_another_log_a_newer_log(nodes, founder, database, server):
    stranger = nodes(database, "stranger", "f" * 32)
    assert stranger("tail", 1 << 20) == "foreign" and "is another one" in stranger.last["why"]
    where = database_of(database)
    server.sql("UPDATE sitemapd.cluster SET layout = 2", where)
    assert nodes(database)("overview") == "foreign"
    server.sql("DROP SCHEMA sitemapd CASCADE", where)
    late = nodes(database)
    assert late("tail", 1 << 20) == "foreign" and "no shared catalogue" in late.last["why"]
    assert late("found", EPOCH) == "yes" and late.write("anew") == "yes"


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
    (backend,) = server.backends("sitemapd founder", database_of(database))
    os.kill(backend, signal.SIGSTOP)
    told = founder.ask("commit", 700)
    assert told["outcome"] == "unknown" and 700 <= told["took_ms"] < 5000
    assert founder("settle", told["id"], 500) == "unknown"
    assert other("begin", 1 << 20, 300) == "busy"
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


def test_a_commit_whose_standby_is_away_ends_in_time(nodes, founder, database, server):
    nobody_is_standby(server)
    assert founder("begin", 1 << 20) == "yes" and founder("add", "one") == "yes"
    told = founder.ask("commit", 500)
    assert told["outcome"] == "unknown" and 500 <= told["took_ms"] < 5000
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
            assert told["outcome"] == "away" and 390 <= told["took_ms"] < 5000
    finally:
        server.resume()
    assert founder.write("two") == "yes"


def test_who_stops_with_the_lock_loses_it(nodes, founder, database, server):
    other = joined(nodes, founder, database, "other")
    assert founder("begin", 1 << 20) == "yes" and founder("add", "one") == "yes"
    assert other.write("mine", 20000) == "yes"  # the server ended the other's session after two seconds
    told = founder.ask("commit")
    assert told["outcome"] == "unknown" and founder("settle", told["id"]) == "no"


def test_who_takes_long_keeps_the_lock(nodes, founder, database, server):
    """Four records that take 0.8 s each to apply: more than the server lets a silent session have."""
    other = joined(nodes, founder, database, "other")
    for text in ("one", "two", "three", "four"):
        assert founder.write(text) == "yes"
    told = other.ask("begin", 1 << 20, 30000, 0, 800)
    assert (told["outcome"], told["seq"]) == ("yes", 4)
    assert other("add", "five") == "yes" and other("commit") == "yes"


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
        stuck = subprocess.Popen([postgres.binary("psql"), "-XAtq", "-d", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        stuck.stdin.write("LISTEN anything;\nBEGIN;\nSELECT 'in';\n")
        stuck.stdin.flush()
        assert stuck.stdout.readline() == "in\n"
        try:
            while float(server.sql("SELECT pg_notification_queue_usage()")) < 0.4:
                server.sql("SELECT pg_notify('anything', repeat('x', 4000) || n) FROM generate_series(1, 8) n")
            usage = server.sql("SELECT pg_notification_queue_usage()")
            for n in range(20):
                assert founder.write(f"record{n}") == "yes"
            assert server.sql("SELECT pg_notification_queue_usage()") == usage
        finally:
            stuck.kill()
            stuck.wait()


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
    assert other("overview", 500) == "away"  # it is no primary yet
    standby.promote()
    # It may have come to the standby before that was stopped: then it is there, and yes.
    settled = node("settle", doubtful["id"])
    assert settled == ("yes" if standby.sql(f"SELECT 1 FROM sitemapd.log WHERE id = '{doubtful['id']}'") else "no")
    node.catch_up()
    assert node.write("after") == "yes"
    assert other("overview") == "yes" and other.last["head"] == node.last["seq"]
    assert node.last["seq"] == 21 + (settled == "yes")


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
    assert follower("tail", 1 << 20) == "diverged" and "is here, and not there" in follower.last["why"]
    assert late.write("two") == "yes"
    assert follower("begin", 1 << 20) == "diverged" and "another one than here" in follower.last["why"]


def test_hosts_are_tried_in_turn(nodes, founder, database, server):
    where = database_of(database)
    dead = postgres.free_port()
    node = nodes(f"postgresql://postgres@{server.address}:{dead},{server.address}:{server.port}/{where}")
    assert node("overview") == "yes"
    assert nodes(f"postgresql://postgres@localhost:{server.port}/{where}")("overview") == "yes"  # one name, two addresses
    alone = nodes(f"postgresql://postgres:secret@{server.address}:{dead}/{where}")
    assert alone("overview", 2000) == "away" and alone.last["why"] and "secret" not in alone.last["why"]


def test_a_silent_name_server_holds_nobody(nodes, tmp_path):
    if os.getuid() != 0:
        pytest.skip("only root gives a process another resolv.conf")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.77", 53))
        (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.77\n")
        within = ("unshare", "--mount", "sh", "-ec", f'mount --bind {tmp_path}/resolv.conf /etc/resolv.conf; exec "$@"', "sh")
        if subprocess.run([*within, "true"], check=False).returncode != 0:
            pytest.skip("no mounts here")
        node = nodes("postgresql://postgres@database.example.com/sitemapd", within=within)
        for _ in range(2):  # the second finds the first's look-up under way
            told = node.ask("overview", 300)
            assert told["outcome"] == "away" and 300 <= told["took_ms"] < 3000, told
        assert told["why"] == "database.example.com: the look-up of PostgreSQL's host was not answered in time"


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


def test_a_migration_waits_for_older_releases_and_keeps_them_out(nodes, founder, database):
    old, new = nodes(database, "old"), nodes(database, "new")
    assert old("lease", 10) == "yes" and old("lease", 10) == "yes" and new("lease", 11) == "yes"
    assert founder("begin", 1 << 20) == "yes"
    assert founder("older", 10) == "yes"  # nobody is older than that
    assert founder("older", 11) == "no"
    assert founder("rollback") == "yes"
    old.end()
    again = nodes(database, "again")
    assert founder("begin", 1 << 20) == "yes" and founder("older", 11) == "yes"
    assert again("lease", 10) == "no"  # the migration is under way
    assert founder("add", "migration") == "yes" and founder("commit") == "yes"
    assert again("lease", 10) == "yes"
    old.process = again.process  # ended above


def test_nodes_know_of_each_other(nodes, founder, database):
    other = nodes(database, "other")
    assert founder("tell", "founder", '{"a":1}') == "yes" and other("tell", "other") == "yes" and founder("tell", "founder", '{"a":2}') == "yes"
    told = other.ask("list")
    assert told["founder"]["state"] == '{"a":2}' and told["other"]["state"] == "" and told["founder"]["schema"] == 10
    assert 0 <= told["founder"]["silent_ms"] < 60000
    assert other("forget", "founder") == "yes" and "founder" not in other.ask("list")


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
    """More than one part; what an upload that broke off has left is no snapshot, and is gone afterwards."""
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
    assert (told["outcome"], told["seq"], told["schema"], told["bytes"]) == ("yes", 2, 10, file.stat().st_size)
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


def test_an_upload_is_interrupted(nodes, founder, database, tmp_path):
    file = make_file(tmp_path / "file", 64_000_000)
    assert founder.write("one") == "yes"
    founder.send("put", file)
    founder.interrupt()
    assert founder.answer()["outcome"] == "stopped"
    assert nodes(database)("get", tmp_path / "copy") == "no"
