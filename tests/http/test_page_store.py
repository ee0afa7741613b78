# SPDX-License-Identifier: LicenseRef-Undeclared
"""Pages kept on disk: a restart, however it came about, serves the same bytes without rendering, and
what is on disk is never believed against the catalogue."""

import os
import shutil
import signal
import stat
import time

from harness import ORIGIN, eventually, locs

XML = "/sitemap_index.xml"
CHILDREN = [f"{ORIGIN}/products/sitemap-{i}.xml.gz" for i in range(1200)]


def folder(server):
    return server.database + ".pages"


def page(server, target=XML, encoding="gzip"):
    reply = server.get(target, [("Accept-Encoding", encoding)])
    assert reply.status == 200, reply
    return [reply[name] for name in ("ETag", "Last-Modified", "Content-Length")], reply.body


def all_forms(server):
    return [page(server), page(server, encoding="identity"), page(server, "/sitemap_index.xml.gz")]


def counts(server):
    found = server.metrics()
    return tuple(int(found["sitemapd_" + name]) for name in ("segments_rendered_total", "pages_loaded_total", "pages_built_cold_total"))


SEGMENTS = -(-len(CHILDREN) // 250)  # 250 positions each


def wait_stored(server):
    eventually(lambda: server.metrics()["sitemapd_page_store_bytes"] > 0, "the page is stored")


def test_a_restart_renders_nothing(server):
    assert server.bulk(CHILDREN).status == 200
    before = all_forms(server)
    assert counts(server) == (SEGMENTS, 0, 1)
    time.sleep(1.1)  # a Last-Modified made again would differ
    server.restart()
    assert all_forms(server) == before
    assert counts(server) == (0, 1, 0)
    assert stat.S_IMODE(os.stat(folder(server)).st_mode) == 0o700
    (name,) = os.listdir(folder(server))
    assert stat.S_IMODE(os.stat(os.path.join(folder(server), name)).st_mode) == 0o600
    # And goes on from there: one registration, one segment.
    assert server.register(ORIGIN + "/new.xml").status == 201
    assert locs(server.get(XML).body) == CHILDREN + [ORIGIN + "/new.xml"]
    assert counts(server) == (1, 1, 0)


def test_a_kill_serves_what_was_stored_and_nothing_older(server):
    assert server.bulk(CHILDREN).status == 200
    before = all_forms(server)
    wait_stored(server)
    server.kill()
    server.start()
    assert all_forms(server) == before
    assert counts(server) == (0, 1, 0)
    shutil.copytree(folder(server), folder(server) + ".before")
    assert server.register(ORIGIN + "/new.xml").status == 201
    server.kill()  # what is on disk is the page without it: it would be stored after 5 s
    shutil.rmtree(folder(server))
    os.rename(folder(server) + ".before", folder(server))
    server.start()
    assert locs(server.get(XML).body) == CHILDREN + [ORIGIN + "/new.xml"]
    assert counts(server) == (SEGMENTS, 0, 1)
    server.restart()
    assert locs(server.get(XML).body) == CHILDREN + [ORIGIN + "/new.xml"]
    assert counts(server) == (0, 1, 0)


def test_the_command_line_writes_past_it(server):
    assert server.bulk(CHILDREN).status == 200
    page(server)
    server.stop()
    assert server.cli("remove", CHILDREN[7]).code == 0
    server.start()
    assert locs(server.get(XML).body) == CHILDREN[:7] + CHILDREN[8:]
    assert counts(server) == (SEGMENTS, 0, 1)


def test_a_damaged_store_is_not_believed(server):
    assert server.bulk(CHILDREN).status == 200
    before = all_forms(server)
    server.stop()
    (name,) = os.listdir(folder(server))
    path = os.path.join(folder(server), name)
    whole = open(path, "rb").read()
    for bad in (b"", whole[:-1], whole + b"x", whole[:3000] + b"\0" * (len(whole) - 3000), os.urandom(5000)):
        with open(path, "wb") as file:
            file.write(bad)
        server.start()
        assert all_forms(server) == before
        assert counts(server) == (SEGMENTS, 0, 1)
        server.stop()
    assert open(path, "rb").read() == whole
    shutil.rmtree(folder(server))
    server.start()
    assert all_forms(server) == before
    assert counts(server) == (SEGMENTS, 0, 1)
    wait_stored(server)
    shutil.rmtree(folder(server))  # under the running server
    server.stop()
    assert os.listdir(folder(server)) == [name]


def test_a_store_in_trouble_is_reported_once(server):
    assert server.bulk(CHILDREN).status == 200
    before = all_forms(server)
    server.stop()
    shutil.rmtree(folder(server))
    with open(folder(server), "w"):
        pass
    server.start()
    eventually(lambda: "page-store-off" in server.log(), "it is reported")
    assert all_forms(server) == before
    server.stop()
    assert server.log().count("page-store-off") == 1
    os.unlink(folder(server))
    server.start()


def test_it_can_be_turned_off(start, tmp_path):
    server = start(env={"SITEMAPD_CACHE_PAGE_STORE": "0"})
    assert server.bulk(CHILDREN).status == 200
    before = all_forms(server)
    server.restart()
    assert all_forms(server) == before
    assert counts(server) == (SEGMENTS, 0, 1)
    assert not os.path.exists(folder(server))


def test_other_objects_at_the_path_of_a_file(server):
    """A pipe, a link, a file of 50 MiB, a folder: not read, waited for, followed or written through."""
    assert server.bulk(CHILDREN).status == 200
    before = all_forms(server)
    server.stop()
    (name,) = os.listdir(folder(server))
    path, other = os.path.join(folder(server), name), os.path.join(folder(server), "elsewhere")
    temporary = os.path.join(folder(server), "writing.tmp")
    whole = open(path, "rb").read()
    shutil.copy(path, other)

    def sparse(at):
        with open(at, "wb") as file:
            file.truncate(50 << 20)

    for make in (os.mkfifo, lambda at: os.symlink("elsewhere", at), lambda at: os.link(other, at), sparse, os.mkdir):
        for at in (path, temporary):
            if os.path.lexists(at):
                os.unlink(at)
            make(at)
        server.start()
        assert all_forms(server) == before
        assert counts(server)[1] == (1 if make is not os.mkdir and os.path.exists(path) and os.path.samefile(path, other) and not os.path.islink(path) else 0)
        server.stop()
        assert open(other, "rb").read() == whole
        assert (make is os.mkdir) == os.path.isdir(path)
    assert server.log().count("page-store-off") == 1
    os.rmdir(path)
    os.rmdir(temporary)
    server.start()
    assert all_forms(server) == before
    server.stop()
    assert open(path, "rb").read() == whole


def test_the_folder_swapped_under_the_server(start, tmp_path):
    """Gone, a link, somebody's file: the right page is served, each case is logged once, and no file of another folder is touched."""
    server = start()
    assert server.bulk(CHILDREN).status == 200
    page(server)
    wait_stored(server)
    server.process.send_signal(signal.SIGSTOP)  # else it may make the folder again in between
    os.waitpid(server.process.pid, os.WUNTRACED)
    os.rename(folder(server), folder(server) + ".moved")
    os.chmod(folder(server) + ".moved", 0o755)
    kept = os.listdir(folder(server) + ".moved")
    os.symlink(folder(server) + ".moved", folder(server))
    server.process.send_signal(signal.SIGCONT)
    eventually(lambda: server.log().count("page-store-off") == 1, "it is reported")
    assert server.register(ORIGIN + "/new.xml").status == 201
    assert locs(server.get(XML).body) == CHILDREN + [ORIGIN + "/new.xml"]
    assert server.api("DELETE", f"/v1/sitemaps?loc={ORIGIN}/new.xml").status == 204
    server.stop()
    assert stat.S_IMODE(os.stat(folder(server) + ".moved").st_mode) == 0o755
    assert os.listdir(folder(server) + ".moved") == kept
    server.start()
    assert locs(server.get(XML).body) == CHILDREN
    assert len(server.wait_for_log("page-store-off", 2)) == 2
