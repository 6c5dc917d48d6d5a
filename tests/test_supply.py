"""What a release is made of: wheels of the same bytes, a bill of materials, actions that cannot change, known vulnerabilities."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import zipfile
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PINNED = re.compile(
    r"""[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}['"]?\s+#\s*v?\d[\w.]*\s*$|docker://\S+@sha256:[0-9a-f]{64}|\./"""
)
USES = re.compile(r"""^\s*(?:-\s*)?['"]?uses['"]?:\s*['"]?(.*)$""", re.MULTILINE)

needs_uv = pytest.mark.skipif(shutil.which("uv") is None, reason="the scripts of .ci/ run uv, which is not on the path")
needs_bash = pytest.mark.skipif(os.name != "posix", reason="the scripts of .ci/ are for bash")


def script(name: str, *arguments: object, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    ours = ("VIRTUAL_ENV", "PYTHONPATH", "PYTEST_ADDOPTS", "UV_PROJECT", "UV_PYTHON")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    command = [cwd / ".ci" / name, *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=clean | environment, capture_output=True, text=True, check=False, timeout=300
    )


# Actions


def unpinned(text: str) -> list[str]:
    """What follows each ``uses:`` that names neither a commit with its version, nor an image's digest, nor a local path."""
    return [found.strip() for found in USES.findall(text) if not PINNED.match(found.strip())]


@pytest.mark.parametrize(
    ("line", "pinned"),
    [
        ("      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8 # v5.0.0", True),
        ("        uses: 'owner/repo/folder@08c6903cd8c0fde910a37f88322edcfb5dd907a8'  # 1.2", True),
        ("      - uses: ./.github/actions/dicast", True),
        ("      - uses: docker://image@sha256:" + "0a" * 32, True),
        ("      - uses: actions/checkout@v5", False),
        ("      - uses: actions/checkout@08c6903cd8c0fde910a37f88322edcfb5dd907a8", False),
        ("      - uses: actions/checkout@08c6903 # v5.0.0", False),
        ("      - uses: actions/checkout@main", False),
        ("      - uses: docker://image:latest", False),
        ('  "uses": actions/checkout', False),
    ],
)
def test_an_action_is_pinned_by_a_whole_commit_with_its_version(line, pinned):
    assert (unpinned(f"steps:\n{line}\n") == []) is pinned


def test_every_action_is_pinned():
    """Those of workflows, composite actions, the documentation's examples and the templates alike."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone: git does not list the files")
    names = [
        name for name in listed.stdout.split("\0") if name.endswith((".yml", ".yaml", ".md", ".j2", ".txt", ".tmpl"))
    ]
    found = {name: unpinned((ROOT / name).read_text(encoding="utf-8")) for name in names if (ROOT / name).is_file()}
    assert {name: lines for name, lines in found.items() if lines} == {}


# Wheels


@pytest.mark.slow
@needs_uv
@needs_bash
def test_the_same_files_give_the_same_wheels(tmp_path):
    """Wherever they lie, whenever they were written, and whoever may read them."""
    built = []
    for name, umask, age in (("first", 0o022, 0), ("second", 0o077, 86_400)):
        folder = tmp_path / name
        for part in ("framework", "plugins/tables"):
            shutil.copytree(
                ROOT / part,
                folder / part,
                ignore=shutil.ignore_patterns("__pycache__", ".*", "*.egg-info"),
                symlinks=True,
            )
        for path in folder.rglob("*"):
            os.utime(path, (1_700_000_000 + age,) * 2)
            path.chmod((0o777 if path.is_dir() else 0o666) & ~umask)
        (folder / "plugins/tables/src/dicast_tables/__pycache__").mkdir()
        (folder / f"plugins/tables/src/dicast_tables/__pycache__/{name}.cpython-311.pyc").write_bytes(name.encode())
        (folder / ".ci").mkdir()
        for file in (".ci/wheels", ".ci/backend", "pyproject.toml"):
            shutil.copy(ROOT / file, folder / file)
        out = tmp_path / f"dist-{name}"
        ran = script("wheels", out, "framework", "plugins/tables", cwd=folder)
        assert ran.returncode == 0, ran.stderr
        digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()}
        assert {tuple(line.split("  ")) for line in ran.stdout.splitlines()} == {(b, a) for a, b in digests.items()}
        built.append(digests)
    assert sorted(name.split("-")[0] for name in built[0]) == ["dicast_kernel", "dicast_tables"]
    assert built[0] == built[1]
    for path in (tmp_path / "dist-first").iterdir():
        with zipfile.ZipFile(path) as wheel:
            assert {entry.date_time for entry in wheel.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@needs_uv
@needs_bash
def test_data_without_modules_are_in_their_wheels_and_the_whole_is_nothing_but_its_parts(tmp_path):
    ran = script("wheels", tmp_path, ".", "rubrics", "web")
    assert ran.returncode == 0, ran.stderr
    held = {}
    for path in tmp_path.glob("*.whl"):
        with zipfile.ZipFile(path) as wheel:
            files = {Path(name) for name in wheel.namelist() if not name.endswith("/")}
        held[path.name.split("-")[0]] = {str(path) for path in files if not path.parts[0].endswith(".dist-info")}
    assert held == {
        "dicast": set(),
        "dicast_rubrics": {f"dicast_rubrics/{path.name}" for path in (ROOT / "rubrics/dicast_rubrics").iterdir()},
        "dicast_web": {f"dicast_web/{path.name}" for path in (ROOT / "web/dicast_web").iterdir()},
    }


# The bill of materials


def installed_with(name: str, found: dict[str, str]) -> dict[str, str]:
    """The distributions that *name* brings into a plain install, with their versions."""
    here = distribution(name)
    if canonicalize_name(name) not in found:
        found[canonicalize_name(name)] = here.version
        for text in here.requires or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                installed_with(needed.name, found)
    return found


@needs_uv
@needs_bash
def test_the_bill_of_materials_lists_what_a_plain_install_brings():
    ran = script("bom")
    assert ran.returncode == 0, ran.stderr
    bill = json.loads(ran.stdout)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    main = bill["metadata"]["component"]
    listed = {canonicalize_name(part["name"]): part.get("version") for part in [main, *bill["components"]]}
    expected = installed_with("dicast", {})
    assert {name: listed.get(name) for name in expected} == expected
    assert "litellm" not in listed
    hashed = [part for part in bill["components"] if part.get("purl", "").startswith("pkg:pypi/")]
    assert hashed
    assert all(any(file.get("hashes") for file in part["externalReferences"]) for part in hashed)


# Known vulnerabilities


@contextmanager
def database(*affected: str):
    """A database of vulnerabilities on loopback that knows one for each of the *affected* distributions; gives its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            known = {"vulns": [{"id": "TEST-1", "modified": "2026-01-01T00:00:00Z"}]}
            self._give({"results": [known if query["package"]["name"] in affected else {} for query in asked]})

        def do_GET(self):
            self._give({"id": "TEST-1", "modified": "2026-01-01T00:00:00Z", "summary": "on purpose", "affected": []})

        def _give(self, document):
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@needs_uv
@needs_bash
def test_the_audit_names_a_known_vulnerability():
    with database("pyyaml") as url:
        found = script("audit", "--service-url", url)
    assert found.returncode == 1, found.stderr
    assert "TEST-1: on purpose" in found.stdout


@needs_uv
@needs_bash
def test_the_audit_without_its_database_is_skipped_with_the_reason():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        found = script("audit", "--service-url", f"http://127.0.0.1:{taken.getsockname()[1]}", UV_HTTP_RETRIES="0")
    assert found.returncode == 0, found.stderr
    assert re.fullmatch(r"skipped: the database of vulnerabilities cannot be reached \(.*refused.*\)\n", found.stdout)


@needs_uv
@needs_bash
def test_the_audit_fails_on_anything_else():
    found = script("audit", "--no-such-option")
    assert (found.returncode, found.stdout) == (2, "")
    assert "--no-such-option" in found.stderr
