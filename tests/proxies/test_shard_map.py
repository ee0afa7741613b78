# SPDX-License-Identifier: LicenseRef-Undeclared
"""A real nginx finds the shard of a host by the map of `sitemapd shard map --format nginx`."""

import os
import subprocess

from proxies import Server, free_port  # first: it makes the harness known

from harness import TOKEN, ask, eventually, sitemapd


def test_nginx_reads_the_map(tmp_path):
    hosts = "example.com", "shop.example.net:8443"
    server = Server(tmp_path, sites=()).start()
    try:
        for host in hosts:
            assert server.api("POST", "/v1/sites", {"origin": f"https://{host}"}).status == 201
        told = sitemapd("shard", "map", "--server", f"a=http://{server.admin}", "--format", "nginx", env={"SITEMAPD_TOKEN": TOKEN})
        assert told.code == 0 and all(f'"{host}" a;' in told.out for host in hosts), told
    finally:
        server.stop()
    address = f"127.0.0.1:{free_port()}"
    places = "".join(f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (tmp_path / "nginx.conf").write_text(f"{'user root;' if os.getuid() == 0 else ''}daemon off;\npid {tmp_path}/pid;\nevents {{}}\nhttp {{ access_log off;\n{places}{told.out}"
                                         f'server {{ listen {address}; if ($sitemapd_shard = "") {{ return 404; }} location / {{ return 200 $sitemapd_shard; }} }} }}\n')
    nginx = subprocess.Popen(["nginx", "-e", "stderr", "-c", str(tmp_path / "nginx.conf")], stdin=subprocess.DEVNULL)
    try:
        def listens():
            try:
                return ask(address, "GET", "/")
            except OSError:
                return None

        eventually(listens, "nginx listens")
        found = {host: ask(address, "GET", "/", host=host).status for host in ("example.com", "EXAMPLE.com:443", "shop.example.net:8443", "shop.example.net", "shop.example.net:443", "x.example")}
        assert list(found.values()) == [200, 200, 200, 404, 404, 404], found
    finally:
        nginx.terminate()
        nginx.wait()
