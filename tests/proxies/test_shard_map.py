# SPDX-License-Identifier: LicenseRef-Undeclared
"""The map of `sitemapd shard map --format nginx` is configuration that a real nginx accepts."""

import subprocess

from proxies import Server  # first: it makes the harness known

from harness import TOKEN, sitemapd


def test_nginx_accepts_the_map(tmp_path):
    hosts = "example.com", "shop.example.net:8443"
    server = Server(tmp_path, sites=()).start()
    try:
        for host in hosts:
            assert server.api("POST", "/v1/sites", {"origin": f"https://{host}"}).status == 201
        told = sitemapd("shard", "map", "--server", f"a=http://{server.admin}", "--format", "nginx", env={"SITEMAPD_TOKEN": TOKEN})
        assert told.code == 0 and all(f'"{host}" a;' in told.out for host in hosts), told
    finally:
        server.stop()
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{ access_log off; {told.out} }}\n")
    done = subprocess.run(["nginx", "-t", "-e", "stderr", "-c", str(tmp_path / "nginx.conf")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
