# SPDX-License-Identifier: LicenseRef-Undeclared
"""What a release needs to be the same in several files."""

import os
import re
import shutil
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


VERSION = re.search(r"^project\(sitemapd VERSION ([0-9.]+)", read("CMakeLists.txt"), re.M)[1]


@pytest.mark.parametrize(
    "name, where, count", [
        ("Dockerfile", r"^ARG VERSION=(.*)$", 1),
        ("deploy/helm/sitemapd/Chart.yaml", r"^(?:version|appVersion): (.*)$", 2),
        ("deploy/kubernetes/kustomization.yaml", r"newTag: (.*)$", 1),
        ("deploy/kubernetes/shared/kustomization.yaml", r"newTag: (.*)$", 1),
        ("deploy/kubernetes/sitemapd.yaml", r"image: sitemapd:(.*)$", 1),
        ("deploy/kubernetes/shared/sitemapd.yaml", r"image: sitemapd:(.*)$", 2),
    ],
)
def test_the_version_is_that_of_the_program(name, where, count):
    assert re.findall(where, read(name), re.M) == [VERSION] * count


SUFFIXES = (".c", ".h", ".def", ".js", ".mjs", ".go", ".py", ".sh", ".cmake", "/CMakeLists.txt")


def marked(top):
    """The licence that each source file names in its first line, or in its second after #!."""
    found = {}
    for name in subprocess.run(["git", "ls-files"], cwd=top, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines():
        if name.startswith("tests/fuzz/corpus/"):
            continue
        with open(os.path.join(top, name), "rb") as file:
            first, second = file.readline(), file.readline()
        if first.startswith(b"#!") or f"/{name}".endswith(SUFFIXES):
            line = second if first.startswith(b"#!") else first
            said = re.fullmatch(rb"(?:# |/\* )SPDX-License-Identifier: (\S+)(?: \*/)?\n", line)
            found[name] = said[1].decode() if said else None
    return found


def test_each_source_file_names_the_licence():
    found = marked(ROOT)
    assert found["CMakeLists.txt"], "run deploy/release/licence"
    lacking = [name for name, said in found.items() if said != found["CMakeLists.txt"]]
    assert len(found) > 900 and not lacking, f"run deploy/release/licence: {lacking[:5]}"


def test_one_command_declares_a_licence_everywhere(tmp_path):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    tree = tmp_path / "tree"
    for name in listed.decode().split("\0")[:-1]:
        os.makedirs(os.path.dirname(tree / name), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, name), tree / name, follow_symlinks=False)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *command], cwd=tree, check=True)

    def declare(*args):
        subprocess.run([tree / "deploy/release/licence", *args], check=True, cwd=tmp_path)

    def changes():
        return subprocess.run(["git", "status", "--porcelain"], cwd=tree, stdout=subprocess.PIPE, check=True).stdout

    declare()
    assert changes() == b"", "nothing to add"
    (tmp_path / "text").write_text("Permission is granted.\n\nProvided that.\n")
    for name in ("MIT", "Apache-2.0"):  # an owner may choose again
        declare(name, tmp_path / "text")
        assert set(marked(tree).values()) == {name}
        assert (tree / "LICENSE").read_text() == "Permission is granted.\n\nProvided that.\n"
        for place in ("Dockerfile", "README.md", "server/api/openapi.c", "deploy/helm/sitemapd/Chart.yaml"):
            assert name in (tree / place).read_text(), place
        for place in marked(tree):
            if place not in ("deploy/release/licence", "deploy/release/build", "deploy/debian/copyright", "tests/release_test.py"):
                assert "LicenseRef-Undeclared" not in (tree / place).read_text(errors="replace"), place
        assert "icence is declared" not in (tree / "README.md").read_text()
        copyright_file = subprocess.run([tree / "deploy/debian/copyright", shutil.which("sh")], stdout=subprocess.PIPE, check=True, text=True).stdout
        assert f"\nLicense: {name}\n Permission is granted.\n .\n Provided that.\n" in copyright_file
        assert re.search(r"^ libc6: ", copyright_file, re.M)
    before = changes()
    declare()
    assert changes() == before
