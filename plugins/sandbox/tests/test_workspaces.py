"""Sources of workspaces, results of patches, and counts of the tests in workspaces."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import attrs
import pytest
from boxes import needs_bubblewrap
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast import ConfigError, Failure, Score, Subject
from dicast_sandbox import (
    Bubblewrap,
    Command,
    Docker,
    PassingTests,
    Unconfined,
    VerificationDelta,
)
from dicast_sandbox.backends.pool import Pool
from dicast_sandbox.workspace import repository, workspace
from dicast_sandbox.workspace.archive import Archive, pack_folder
from dicast_sandbox.workspace.cache import Cache
from dicast_sandbox.workspace.patches import MAX_CHARACTERS, PatchError, apply_patch

MB = 1024**2
CODE = "def f(x):\n    return 0\n"
TESTS = """import unittest
from solution import f

class Squares(unittest.TestCase):
    def test_two(self):
        self.assertEqual(f(2), 4)

    def test_nothing(self):
        self.assertEqual(f(0), 0)
"""
UNITTEST = "python3 -m unittest test_it"
RIGHT = """--- a/solution.py
+++ b/solution.py
@@ -1,2 +1,2 @@
 def f(x):
-    return 0
+    return x * x
"""


def judge(metric, output="", **subject) -> Score | Failure:
    return asyncio.run(metric.score(Subject("row", "1", output=output, **subject)))


def git(folder: Path, *words: str) -> str:
    who = {f"GIT_{role}_{what}": "dicast@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    done = subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True, env=environment
    )
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path) -> Path:
    """Return a folder with a module and its tests."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "solution.py").write_text(CODE)
    (folder / "test_it.py").write_text(TESTS)
    return folder


@pytest.fixture
def checkout(project) -> Path:
    """Return a repository of two commits; the older one is tagged ``wrong``."""
    git(project, "init", "-q", "-b", "main")
    (project / ".gitattributes").write_text("test_it.py export-ignore\n")
    (project / "run.sh").write_text("#!/bin/sh\ncat solution.py\n")
    (project / "run.sh").chmod(0o755)
    (project / "link").symlink_to("solution.py")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "Wrong")
    git(project, "tag", "-a", "-m", "Old", "wrong")
    (project / "solution.py").write_text("def f(x):\n    return x * x\n")
    git(project, "commit", "-q", "-a", "-m", "Right")
    return project


# Repositories


@needs_bubblewrap
def test_a_workspace_begins_with_the_files_of_a_commit(checkout):
    result = judge(
        Command(command="ls -A && ./run.sh && cat link | wc -l && cat test_it.py >/dev/null", repository=checkout)
    )
    assert result.value == 1, result
    assert result.details.split("\n", 1)[1] == (
        ".gitattributes\nlink\noutput.txt\nrun.sh\nsolution.py\ntest_it.py\ndef f(x):\n    return x * x\n2"
    )
    assert result.signals["commit"] == git(checkout, "rev-parse", "HEAD")


@needs_bubblewrap
def test_a_ref_may_be_the_subjects_own(checkout):
    metric = PassingTests(command=UNITTEST, repository=checkout, ref="{{ context.base }}")
    assert [judge(metric, context={"base": ref}).value for ref in ("wrong", "main")] == [0, 1]
    unknown = judge(metric, context={"base": "wrnog"})
    assert (unknown.kind, "did you mean 'wrong'?" in unknown.message) == ("missing_input", True)
    assert judge(metric, context={"base": "--all"}).kind == "missing_input"
    assert judge(metric).kind == "missing_input"


@needs_bubblewrap
def test_a_repository_may_be_the_subjects_own_but_stays_in_its_folder(checkout):
    metric = Command(command="true", repository=checkout.parent / "{{ context.repo }}")
    assert judge(metric, context={"repo": "project"}).value == 1
    for place in (f"../{checkout.parent.name}/project", str(checkout), "nothing"):
        assert judge(metric, context={"repo": place}).kind == "missing_input"


@needs_bubblewrap
def test_what_is_not_committed_and_what_came_later_is_not_there(checkout):
    (checkout / "secret.txt").write_text("secret")
    metric = Command(
        command="! ls -A | grep -E 'secret|^.git$' && grep -q 'return 0' solution.py", repository=checkout, ref="wrong"
    )
    assert judge(metric).value == 1


@needs_bubblewrap
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repository": Path("/no/such/folder")}, "/no/such/folder is not a folder"),
        ({"repository": Path("https://example.org/a.git")}, "clone it first"),
        ({"ref": "main"}, "ref needs a repository"),
        ({"output_as": "patch"}, "needs files to patch"),
    ],
)
def test_sources_that_cannot_be_are_refused_when_built(options, message):
    with pytest.raises(ConfigError, match=message):
        Command(command="true", **options)


CLASHING = [
    ["a/"],
    ["a/."],
    ["."],
    ["a", "a/b"],
    ["a/b/c", "./a"],
    ["output.txt/x"],
    ["\ud800"],
    ["x" * 256],
    ["x/" * 2000 + "x"],
    ["a\0"],
]


@pytest.mark.parametrize("names", CLASHING, ids=lambda names: ascii(names)[:20])
def test_names_that_cannot_be_in_one_workspace_are_refused_at_once(names):
    files = dict.fromkeys(names, "")
    with pytest.raises(ConfigError, match="file in the workspace"):
        Command(command="true", backend=Unconfined(), unsafe=True, files=files)
    if len(names) == 1 and "output" not in names[0]:
        with pytest.raises(ConfigError, match="file in the workspace"):
            Command(command="true", backend=Unconfined(), unsafe=True, output_file=names[0])
    result = judge(Command(command="true", backend=Unconfined(), unsafe=True, files="files"), context={"files": files})
    assert (result.kind, result.retryable) == ("missing_input", False), result


def test_what_no_program_can_be_given_is_refused_at_once():
    options = {"backend": Unconfined(), "unsafe": True}
    for command in ("x\0y", ("x", "\0")):
        with pytest.raises(ConfigError, match="command has a NUL"):
            Command(command=command, **options)
    with pytest.raises(ConfigError, match="candidate has a NUL"):
        PassingTests(command="x", mode="isolated", candidate="x\0", **options)
    for box in (Bubblewrap, lambda **box_options: Docker(image="x", **box_options)):
        for environment in ({"A=B": "1"}, {"": "1"}, {"A\0": "1"}, {"A": "\0"}):
            with pytest.raises(ConfigError, match="environment cannot have the variable"):
                box(environment=environment)


@needs_bubblewrap
def test_a_name_that_is_no_text_can_be_patched_and_reported(project):
    metric = Command(command="ls -b x*", template=project, output_as="patch")
    new = '--- /dev/null\n+++ "b/x\\377"\n@@ -0,0 +1 @@\n+b\n'
    assert judge(metric, new).details == "ls -b x* (exit 0)\nx\\377"
    result = judge(metric, new.replace("/dev/null", '"a/x\\377"').replace("-0,0", "-1,0"))
    assert (result.value, result.details) == (0, "x\\udcff is not there")


@needs_bubblewrap
def test_half_a_character_is_written_as_it_is():
    metric = Command(command="wc -c <f | grep -x 3", files={"f": "{{ output }}"})
    assert judge(metric, "\ud800").value == 1


@needs_bubblewrap
def test_a_folder_inside_a_repository_is_no_repository(checkout, tmp_path):
    (checkout / "inner").mkdir()
    with pytest.raises(ConfigError, match="not a git repository"):
        Command(command="true", repository=checkout / "inner")
    with pytest.raises(ConfigError, match=r"no commit 'mian'; did you mean 'main'\?"):
        Command(command="true", repository=checkout, ref="mian")
    with pytest.raises(ConfigError, match="remove one of them"):
        Command(command="true", repository=checkout, template=checkout)


@needs_bubblewrap
def test_without_git_it_is_said_how_to_get_it(checkout, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name, **_: None if name == "git" else f"/usr/bin/{name}")
    with pytest.raises(ConfigError, match="apt install git"):
        Command(command="true", repository=checkout)


@needs_bubblewrap
def test_the_environment_of_a_git_hook_does_not_lead_elsewhere(checkout, monkeypatch):
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert judge(Command(command="./run.sh", repository=checkout)).value == 1


@pytest.mark.slow
@needs_bubblewrap
def test_what_has_no_room_in_the_workspace_is_no_zero(checkout, tmp_path):
    with (checkout / "big").open("wb") as file:
        file.truncate(200 * MB)
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "Big")
    for source in ({"repository": checkout}, {"template": checkout}):
        result = judge(Command(command="true", profile="small", **source))
        assert (result.kind, "that its profile allows" in result.message) == ("missing_input", True)


@needs_bubblewrap
def test_a_run_reads_a_commit_once(checkout, tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(
        workspace,
        "checkout",
        lambda *arguments: read.append(arguments) or repository.checkout(*arguments),
        raising=True,
    )
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"id": "{n}", "output": "", "base": "main"}}\n' for n in range(4)))
    metrics = [{"sandbox/command": {"command": "./run.sh", "repository": str(checkout), "ref": "{{ base }}"}}]
    run = dicast.run(
        {
            "source": {"rows/jsonl": {"path": str(tmp_path / "rows.jsonl")}},
            "ledger": {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}},
            "metrics": metrics,
        }
    )
    assert (run.score["mean"], len(read)) == (1, 1)


def test_what_is_kept_is_bounded_and_made_once_for_all_who_wait():
    names = []

    async def make(name: str) -> str:
        names.append(name)
        await asyncio.sleep(0.01)
        return name

    async def use() -> None:
        cache: Cache[str] = Cache(2, len)
        assert await asyncio.gather(*(cache.get("a", lambda: make("a")) for _ in range(3))) == ["a"] * 3
        for name in ("a", "b", "a", "c", "a", "b"):
            await cache.get(name, lambda name=name: make(name))
        await cache.get("large", lambda: make("large"))
        await cache.get("large", lambda: make("large"))

    asyncio.run(use())
    assert names == ["a", "b", "c", "b", "large", "large"]


# Patches, applied to archives


@pytest.fixture
def archive(project) -> Archive:
    (project / "tool").write_text("#!/bin/sh\n")
    (project / "tool").chmod(0o755)
    (project / "sub").mkdir()
    (project / "sub" / "a.txt").write_text("1\n2\n3\n4\n5\n6\n7\n8\n9")
    os.link(project / "sub" / "a.txt", project / "sub" / "b.txt")
    (project / "link").symlink_to("/etc")
    return pack_folder(project, MB)


def files(archive: Archive) -> dict[str, bytes]:
    return {name: archive.read(name).content for name, member in archive.members.items() if member.isreg()}


def changes(archive: Archive, patch: str) -> dict[str, bytes | None]:
    """Return the files that *patch* adds or changes in *archive*, and None for each file that it removes."""
    before, after = files(archive), files(apply_patch(archive, patch))
    gone: dict[str, bytes | None] = dict.fromkeys(before.keys() - after.keys())
    return gone | {name: content for name, content in after.items() if before.get(name) != content}


SQUARE = {"solution.py": b"def f(x):\n    return x * x\n"}
HUNK = "@@ -1,3 +1,3 @@\n 4\n-5\n+five\n 6\n"
GOOD = {
    "plain": (RIGHT, SQUARE),
    "without its last newline": (RIGHT.rstrip("\n"), SQUARE),
    "fenced, with words around": (f"Here it is:\n```diff\n{RIGHT}```\nIt squares.\n", SQUARE),
    "as git writes it": (f"diff --git a/solution.py b/solution.py\nindex 12345..54321 100644\n{RIGHT}-- \n2.39.5\n", SQUARE),
    "without prefixes": (RIGHT.replace("a/", "").replace("b/", ""), SQUARE),
    "at another line": (f"--- a/sub/a.txt\n+++ b/sub/a.txt\n{HUNK}", {"sub/a.txt": b"1\n2\n3\n4\nfive\n6\n7\n8\n9"}),
    "no newline at the end": (
        "--- a/sub/a.txt\n+++ b/sub/a.txt\n@@ -8,2 +8,2 @@\n 8\n-9\n\\ No newline at end of file\n+nine\n",
        {"sub/a.txt": b"1\n2\n3\n4\n5\n6\n7\n8\nnine\n"},
    ),
    "two hunks, the first of which adds": (
        "--- a/sub/a.txt\n+++ b/sub/a.txt\n@@ -1,2 +1,3 @@\n 1\n+1.5\n 2\n@@ -7,2 +8,1 @@\n 7\n-8\n",
        {"sub/a.txt": b"1\n1.5\n2\n3\n4\n5\n6\n7\n9"},
    ),
    "insertion without context": ("--- a/sub/a.txt\n+++ b/sub/a.txt\n@@ -2,0 +3 @@\n+2.5\n", {"sub/a.txt": b"1\n2\n2.5\n3\n4\n5\n6\n7\n8\n9"}),
    "new file": ("--- /dev/null\n+++ b/new/n.py\n@@ -0,0 +1,1 @@\n+x = 1\n", {"new/n.py": b"x = 1\n"}),
    "new empty file": ("diff --git a/e.py b/e.py\nnew file mode 100644\nindex 0000000..e69de29\n", {"e.py": b""}),
    "deleted file": ("--- a/tool\n+++ /dev/null\n@@ -1 +0,0 @@\n-#!/bin/sh\n", {"tool": None}),
    "renamed": (
        "diff --git a/tool b/bin/tool\nsimilarity index 100%\nrename from tool\nrename to bin/tool\n",
        {"tool": None, "bin/tool": b"#!/bin/sh\n"},
    ),
    "copied": ("diff --git a/tool b/tool2\nsimilarity index 100%\ncopy from tool\ncopy to tool2\n", {"tool2": b"#!/bin/sh\n"}),
    "quoted name": ('--- /dev/null\n+++ "b/t\\303\\244.py"\n@@ -0,0 +1 @@\n+1\n', {"tä.py": b"1\n"}),
    "not UTF-8": ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+ä\x85\u2028b\ud800\n", {"x": "ä\x85\u2028b\ud800\n".encode(errors="surrogatepass")}),
    "the same file twice": (
        RIGHT + RIGHT.replace("return 0", "return x * x").replace("+    return x * x", "+    return x ** 2"),
        {"solution.py": b"def f(x):\n    return x ** 2\n"},
    ),
    "all escapes in a name": ('--- /dev/null\n+++ "b/\\a\\b\\t\\n\\v\\f\\r\\"\\\\\\377"\n@@ -0,0 +1 @@\n+1\n', {'\a\b\t\n\v\f\r"\\\udcff': b"1\n"}),
    "two mails": (
        "From 1 Mon Sep 17\nSubject: [PATCH] fix\n\n---\n solution.py | 2 +-\n 1 file changed\n\n" + RIGHT + "-- \n2.39.5\n\n"
        "From 2 Mon Sep 17\nSubject: [PATCH] e\n\n---\n\ndiff --git a/e.py b/e.py\nnew file mode 100644\n-- \n2.39.5\n",
        {**SQUARE, "e.py": b""},
    ),
    "a list behind": (f"{RIGHT}\n- It squares.\n- And no more.\n", SQUARE),
    "one of two hard links": ("--- a/sub/b.txt\n+++ b/sub/b.txt\n@@ -1,2 +1,1 @@\n-1\n 2\n", {"sub/b.txt": b"2\n3\n4\n5\n6\n7\n8\n9"}),
}  # fmt: skip


@pytest.mark.parametrize(("patch", "expected"), GOOD.values(), ids=GOOD)
def test_a_patch_changes_what_it_says_and_nothing_else(archive, patch, expected):
    assert changes(archive, patch) == expected


def test_a_patch_keeps_and_changes_modes(archive):
    renamed = apply_patch(archive, GOOD["renamed"][0])
    assert renamed.members["bin/tool"].mode == 0o755
    for name, old, new in (("solution.py", "100644", "100755"), ("tool", "100755", "100644")):
        changed = apply_patch(archive, f"diff --git a/{name} b/{name}\nold mode {old}\nnew mode {new}\n")
        assert changed.members[name].mode == int(new[-3:], 8)
    assert apply_patch(archive, GOOD["new file"][0]).members["new/n.py"].mode == 0o644


ESCAPES = {
    "a parent": "--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+1\n",
    "a parent in the middle": "--- /dev/null\n+++ b/sub/../../x\n@@ -0,0 +1 @@\n+1\n",
    "a parent without a prefix": "--- /dev/null\n+++ ../x\n@@ -0,0 +1 @@\n+1\n",
    "a parent in quotes": '--- /dev/null\n+++ "b/\\056\\056/x"\n@@ -0,0 +1 @@\n+1\n',
    "an absolute path": "--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-root\n+toor\n",
    "an absolute path behind a prefix": "--- /dev/null\n+++ b//etc/x\n@@ -0,0 +1 @@\n+1\n",
    "a null": "--- /dev/null\n+++ b/x\0y\n@@ -0,0 +1 @@\n+1\n",
    "a rename from outside": "diff --git a/../x b/y\nrename from ../x\nrename to y\n",
    "a rename to outside": "diff --git a/tool b/../y\nsimilarity index 100%\nrename from tool\nrename to ../y\n",
    "through a link": "--- /dev/null\n+++ b/link/x\n@@ -0,0 +1 @@\n+1\n",
    "a link itself": "--- a/link\n+++ b/link\n@@ -1 +1 @@\n-/etc\n\\ No newline at end of file\n+/root\n",
    "a renamed link": "diff --git a/link b/l\nsimilarity index 100%\nrename from link\nrename to l\n",
    "a new link": "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n",
    "a file that becomes a link": "diff --git a/tool b/tool\nold mode 100755\nnew mode 120000\n",
    "a submodule": "diff --git a/m b/m\nnew file mode 160000\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n+Subproject commit 1\n",
    "under a file": "--- /dev/null\n+++ b/tool/x\n@@ -0,0 +1 @@\n+1\n",
    "under a new file": "--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+1\n--- /dev/null\n+++ b/n/x\n@@ -0,0 +1 @@\n+1\n",
    "in place of a folder": "--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+1\n",
    "the folder itself": "--- /dev/null\n+++ b/.\n@@ -0,0 +1 @@\n+1\n",
    "a binary file": "diff --git a/x.bin b/x.bin\nnew file mode 100644\nGIT binary patch\nliteral 3\nKcmYex\n\n",
    "a binary file that differs": "diff --git a/tool b/tool\nindex 1..2 100644\nBinary files a/tool and b/tool differ\n",
}  # fmt: skip


@pytest.mark.parametrize("patch", ESCAPES.values(), ids=ESCAPES)
def test_a_patch_that_leads_elsewhere_is_refused(archive, patch):
    with pytest.raises(PatchError):
        apply_patch(archive, patch)


WRONG = {
    "no patch": ("I could not do it.", "there is no patch"),
    "nothing": ("", "there is no patch"),
    "other context": (RIGHT.replace("def f", "def g"), r"hunk 1 of solution.py \(line 1\) does not apply"),
    "its second hunk": (RIGHT + "@@ -9,1 +9,1 @@\n-x\n+y\n", r"hunk 2 of solution.py \(line 9\) does not apply"),
    "hunks in the wrong order": (
        "--- a/sub/a.txt\n+++ b/sub/a.txt\n@@ -5 +5 @@\n-5\n+five\n@@ -1 +1 @@\n-1\n+one\n",
        r"hunk 2 of sub/a.txt \(line 1\)",
    ),
    "a file that is not there": (RIGHT.replace("solution", "other"), "other.py is not there"),
    "a new file that is there": ("--- /dev/null\n+++ b/tool\n@@ -0,0 +1 @@\n+1\n", "tool is there already"),
    "a rename over a file": ("diff --git a/tool b/solution.py\nsimilarity index 100%\nrename from tool\nrename to solution.py\n", "is there already"),
    "a deletion of half a file": ("--- a/solution.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-def f(x):\n", "more content"),
    "cut off": ("\n".join(RIGHT.split("\n")[:-3]), "Hunk is shorter"),
    "numbers without end": (f"--- a/tool\n+++ b/tool\n@@ -{'9' * 5000} +1 @@\n-x\n", "cannot be read"),
    "a hunk whose beginning cannot be read": (RIGHT + "@@ ... @@\n x\n+y\n", "line 7 of the patch belongs to no hunk: '@@ ... @@'"),
    "the same behind an empty line": (RIGHT + "\n@@ @@\n x\n+y\n", "line 8 of the patch belongs to no hunk"),
    "a hunk without numbers": (RIGHT.replace("@@ -1,2 +1,2 @@", "@@ @@"), "without a change"),
    "a hunk whose beginning has no end": (RIGHT.replace("+1,2 @@", "+1,2"), "without a change"),
    "a line more than the hunk has": (RIGHT + "+    # done\n", "line 7 of the patch belongs to no hunk: '[+]    # done'"),
    "a line more behind a line without end": (RIGHT + "\\ No newline at end of file\n-x\n", "line 8 of the patch belongs to no hunk"),
    "a line more that looks like a name": (RIGHT + "--- old\n", "line 7 of the patch belongs to no hunk"),
    "two lines more that look like names": (RIGHT + "--- old\n+++ new\n", "names new without a change"),
    "lines before the hunk": ("diff --git a/solution.py b/solution.py\n" + RIGHT.replace("@@ -1", " x\n@@ -1"), "line 4 of the patch belongs to no hunk"),
    "names alone": ("--- a/solution.py\n+++ b/solution.py\n", "names b/solution.py without a change"),
    "names alone, as git writes them": ("diff --git a/solution.py b/solution.py\n", "without a change"),
    "names alone of a new file": ("--- /dev/null\n+++ b/x\n", "without a change"),
    "names without a beginning of the hunk": (RIGHT.replace("@@ -1,2 +1,2 @@\n", ""), "without a change"),
    "a mode that stays": ("diff --git a/tool b/tool\nold mode 100755\nnew mode 100755\n", "without a change"),
    "a hunk that changes nothing": ("--- a/tool\n+++ b/tool\n@@ -1 +1 @@\n #!/bin/sh\n", "without a change"),
    "a hunk of nothing": ("--- a/tool\n+++ b/tool\n@@ -1,0 +1,0 @@\n\\ No newline at end of file\n", "without a change"),
    "a name in quotes that do not end": ('--- "a/tool\n+++ "a/tool\n@@ -1 +1 @@\n-x\n+y\n', "not quoted as git quotes"),
    "too long": (RIGHT + " " * MAX_CHARACTERS, "more than"),
    "a URL": ("diff --git " + "://" * 1000 + " " * 1000 + "\n", "a URL"),
}  # fmt: skip


@pytest.mark.parametrize(("patch", "message"), WRONG.values(), ids=WRONG)
def test_a_patch_that_does_not_apply_says_what_of_it(archive, patch, message):
    with pytest.raises(PatchError, match=message):
        apply_patch(archive, patch)


def applied_by_git(folder: Path, patch: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run(
        ["git", "apply", "-"],
        cwd=folder, input=patch.encode(errors="surrogatepass"), capture_output=True, check=False, env=environment,
    )  # fmt: skip


ESCAPED = st.lists(st.sampled_from([*'\\"abtnvfrxuUN{}01237'])).map("".join) | st.text(
    st.characters(blacklist_characters="\t\n")
)


@given(ESCAPED)
def test_any_name_in_quotes_is_one_or_refused(name):
    with suppress(PatchError):
        archive = apply_patch(Archive(), f'--- /dev/null\n+++ "b/{name}"\n@@ -0,0 +1 @@\n+1\n')
        assert len(archive.members) == 1


@pytest.mark.parametrize("escape", ["\\x41", "\\u1234", "\\N{BULLET}", "\\q", "\\8", "\\12", "\\400", "\\"])
def test_names_are_quoted_as_git_does_it(escape):
    with pytest.raises(PatchError, match="not quoted as git quotes"):
        apply_patch(Archive(), f'--- /dev/null\n+++ "b/{escape}"\n@@ -0,0 +1 @@\n+1\n')


MANGLED = [
    "",
    "+more\n",
    "-3\n",
    " 4\n",
    "@@ @@\n",
    "@@ -2 +2 @@\n",
    "--- a/a\n",
    "+++ b/a\n",
    "words\n",
    "\\ No newline at end of file\n",
]
TWO_HUNKS = "--- a/a\n+++ b/a\n@@ -2,5 +2,5 @@\n 2\n 3\n-4\n+four\n 5\n 6\n@@ -12,5 +12,5 @@\n 12\n 13\n-14\n+fourteen\n 15\n 16\n"


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
@given(st.lists(st.tuples(st.integers(0, 17), st.sampled_from(MANGLED), st.booleans()), max_size=2))
def test_a_mangled_patch_that_applies_does_as_with_git(tmp_path_factory, mangled):
    lines = TWO_HUNKS.splitlines(keepends=True)
    for at, line, instead in mangled:
        lines[at : at + instead] = [line]
    folder, patch = tmp_path_factory.mktemp("mangled"), "".join(lines)
    (folder / "a").write_text("".join(f"{number}\n" for number in range(1, 21)))
    with suppress(PatchError):
        ours = apply_patch(pack_folder(folder, MB), patch).read("a").content
        done = applied_by_git(folder, patch)
        assert done.returncode == 0, done.stderr
        assert (folder / "a").read_bytes() == ours


@pytest.mark.parametrize("expected", [5, 6])
def test_of_several_places_the_nearest_is_changed(tmp_path, expected):
    (tmp_path / "a").write_text("x\n\n\n\n\n\n\n\n\nx\n")
    after = apply_patch(pack_folder(tmp_path, MB), f"--- a/a\n+++ b/a\n@@ -{expected} +{expected} @@\n-x\n+y\n")
    assert after.read("a").content.split(b"\n").index(b"y") == (0 if expected == 5 else 9)


def test_a_hunk_is_looked_for_as_far_off_as_the_one_before_was(tmp_path):
    (tmp_path / "a").write_text("0\n1\n2\n3\nfirst\nx\n6\nx\n")
    hunks = "@@ -2 +2 @@\n-first\n+second\n@@ -5 +5 @@\n-x\n+y\n"
    assert (
        apply_patch(pack_folder(tmp_path, MB), f"--- a/a\n+++ b/a\n{hunks}").read("a").content
        == b"0\n1\n2\n3\nsecond\nx\n6\ny\n"
    )


@given(
    st.text() | st.lists(st.sampled_from([*RIGHT.splitlines(), "diff --git a/x b/x", "rename from x"])).map("\n".join)
)
def test_any_text_is_a_patch_or_refused(text):
    with suppress(PatchError):
        archive = apply_patch(Archive(), text)
        assert archive.members or "+++" not in text


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "d"]), max_size=12).map(
    lambda lines: "".join(
        line if line.endswith("\n") or last == len(lines) - 1 else line + "\n" for last, line in enumerate(lines)
    )
)


@given(LINES, LINES, st.integers(0, 3))
def test_what_git_says_of_two_texts_makes_one_of_the_other(tmp_path_factory, before, after, context):
    folder = tmp_path_factory.mktemp("diff")
    (folder / "old").write_text(before)
    (folder / "new").write_text(after)
    done = subprocess.run(
        ["git", "diff", "--no-index", f"-U{context}", "old", "new"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    (folder / "new").unlink()
    if done.stdout:
        patch = done.stdout.replace("b/new", "b/old")
        assert apply_patch(pack_folder(folder, MB), patch).read("old").content.decode() == after


# Patches, judged


@needs_bubblewrap
@pytest.mark.parametrize("source", ["template", "repository"])
def test_a_patch_is_tested(checkout, source):
    options = {"repository": checkout, "ref": "wrong"} if source == "repository" else {"template": checkout}
    if source == "template":
        (checkout / "solution.py").write_text(CODE)
    metric = PassingTests(command=UNITTEST, output_as="patch", **options)
    result = judge(metric, f"```diff\n{RIGHT}```")
    assert (result.value, result.signals["passed"], result.signals["collected"]) == (1, 2, 2), result
    assert judge(metric, RIGHT.replace("x * x", "x + 1")).value == 0


@needs_bubblewrap
def test_a_patch_that_does_not_apply_scores_0_and_is_not_run(checkout):
    metric = Command(command="true", output_as="patch", repository=checkout)
    result = judge(metric, RIGHT)
    assert (result.value, result.details, result.cost.is_zero) == (
        0,
        "hunk 1 of solution.py (line 1) does not apply",
        True,
    )
    assert result.signals == {"patched": False}
    assert judge(metric, "").value == 0


@needs_bubblewrap
@pytest.mark.parametrize("backend", [Bubblewrap(), Unconfined()], ids=["bubblewrap", "none"])
def test_files_lie_over_what_a_patch_wrote(project, backend):
    forged = RIGHT + NO_ASSERTION
    wrong = forged.replace("x * x", "0 * x")
    options = {"command": UNITTEST, "template": project, "output_as": "patch", "backend": backend, "unsafe": True}
    assert judge(PassingTests(**options), wrong).value == 1
    metric = PassingTests(**options, files={"test_it.py": TESTS})
    assert judge(metric, wrong).value == 0
    assert judge(metric, forged).value == 1


NO_ASSERTION = """--- a/test_it.py
+++ b/test_it.py
@@ -5,2 +5,2 @@
     def test_two(self):
-        self.assertEqual(f(2), 4)
+        pass
"""
HIDDEN = "--- a/test_it.py\n+++ /dev/null\n@@ -1,9 +0,0 @@\n" + "".join(f"-{line}\n" for line in TESTS.splitlines())


@needs_bubblewrap
def test_a_folder_of_tests_that_a_patch_makes_a_file_is_still_there(project):
    (project / "tests").mkdir()
    (project / "tests" / "__init__.py").write_text("x\n")
    patch = "--- a/tests/__init__.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    metric = PassingTests(
        command="python3 -m unittest tests.test_it",
        template=project,
        output_as="patch",
        files={"tests/test_it.py": TESTS},
    )
    assert judge(metric, RIGHT + patch + "--- /dev/null\n+++ b/tests\n@@ -0,0 +1 @@\n+x\n").value == 0
    assert judge(metric, RIGHT + patch).value == 1


@needs_bubblewrap
def test_a_patch_is_isolated_in_the_workspace_of_its_own(project):
    (project / "other.py").write_text("def square(x):\n    return 0\n")
    (project / "solution.py").write_text("from other import square\ndef f(x):\n    return square(x)\n")
    patch = "--- a/other.py\n+++ b/other.py\n@@ -1,2 +1,2 @@\n def square(x):\n-    return 0\n+    return x * x\n"
    metric = PassingTests(
        command=UNITTEST, template=project, output_as="patch", mode="isolated", output_file="solution.py"
    )
    result = judge(metric, patch)
    assert (result.value, result.confidence, result.signals["collected"]) == (1, 1, 2), result
    assert judge(metric, patch.replace("x * x", "x")).value == 0
    assert judge(metric, NO_ASSERTION).value == 0
    assert judge(PassingTests(command=UNITTEST, template=project, output_as="patch"), NO_ASSERTION).value == 1


@needs_bubblewrap
def test_an_isolated_patch_may_be_of_a_module_in_a_package(checkout):
    package = checkout / "src" / "pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from .solution import f\n")
    (package / "power.py").write_text("TWO = 2\n")
    (package / "solution.py").write_text(f"from .power import TWO\n{CODE}")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "Package")
    patch = "--- a/src/pkg/solution.py\n+++ b/src/pkg/solution.py\n@@ -2,2 +2,2 @@\n def f(x):\n-    return 0\n+    return x ** TWO\n"
    metric = PassingTests(
        command="PYTHONPATH=src python3 -m unittest test_pkg", repository=checkout, output_as="patch", mode="isolated",
        output_file="src/pkg/solution.py", files={"test_pkg.py": TESTS.replace("solution", "pkg")},
    )  # fmt: skip
    result = judge(metric, patch)
    assert (result.value, result.signals["collected"]) == (1, 2), result.details
    assert judge(metric, patch.replace("TWO", "3")).value == 0


# Counting


REMOVALS = {
    "replaces the tests": f"{HIDDEN}--- /dev/null\n+++ b/test_it.py\n@@ -0,0 +1,4 @@\n"
    "+import unittest\n+class T(unittest.TestCase):\n+    def test_a(self):\n+        pass\n",
    "renames a test": "--- a/test_it.py\n+++ b/test_it.py\n@@ -5,2 +5,2 @@\n"
    "-    def test_two(self):\n+    def two(self):\n         self.assertEqual(f(2), 4)\n",
    "deletes a test": "--- a/test_it.py\n+++ b/test_it.py\n@@ -4,4 +4,1 @@\n class Squares(unittest.TestCase):\n"
    "-    def test_two(self):\n-        self.assertEqual(f(2), 4)\n-\n",
}


@needs_bubblewrap
@pytest.mark.parametrize("patch", REMOVALS.values(), ids=REMOVALS)
def test_a_patch_that_removes_tests_is_found_out(project, patch):
    result = judge(PassingTests(command=UNITTEST, template=project, output_as="patch"), patch)
    assert (result.value, result.signals["collected"]) == (0, 2), result
    assert "; 1 of 2 tests ran" in result.details
    assert judge(PassingTests(command=UNITTEST, template=project, output_as="patch", tests=1), patch).value == 1


@needs_bubblewrap
@pytest.mark.parametrize(
    "command", [UNITTEST, ("python3", "-m", "unittest", "-v", "test_it"), f"cd . && {UNITTEST} -k test_"]
)
def test_a_candidate_that_removes_tests_is_found_out(command):
    remover = (
        "def f(x): return 0\n"
        "import unittest\nloaded = unittest.TestLoader.getTestCaseNames\n"
        "unittest.TestLoader.getTestCaseNames = lambda *given: [n for n in loaded(*given) if n != 'test_two']\n"
    )
    metric = PassingTests(command=command, output_file="solution.py", files={"test_it.py": TESTS})
    result = judge(metric, remover)
    assert (result.value, result.signals["passed"], result.signals["collected"]) == (0, 1, 2), result
    honest = judge(metric, "def f(x): return x * x\n")
    assert (honest.value, honest.signals["collected"]) == (1, 2)


@needs_bubblewrap
@pytest.mark.parametrize("error", ["ImportError", "ValueError"])
def test_tests_that_cannot_be_loaded_without_the_candidate_are_not_counted(error):
    tests = f"import solution\nif solution.VERSION != 3: raise {error}\n{TESTS}"
    metric = PassingTests(command=UNITTEST, output_file="solution.py", files={"test_it.py": tests})
    result = judge(metric, "VERSION = 3\ndef f(x): return x * x\n")
    assert (result.value, "collected" in result.signals) == (1, False)


@needs_bubblewrap
def test_tests_next_to_the_output_are_counted_without_it():
    files = {"test_it.py": "{{ output }}\n" + TESTS.replace("from solution import f\n", "")}
    own_tests = "import unittest\nclass Own(unittest.TestCase):\n    def test_own(self): pass\n"
    result = judge(PassingTests(command=UNITTEST, files=files), f"{own_tests}def f(x): return x * x\n")
    assert (result.value, result.signals["passed"], result.signals["collected"]) == (1, 3, 2)


@needs_bubblewrap
def test_other_runners_run_the_original_to_count(tmp_path):
    (tmp_path / "check.sh").write_text("echo 1..2\necho ok 1\necho ok 2\n")
    patch = "--- a/check.sh\n+++ b/check.sh\n@@ -1,3 +1,2 @@\n-echo 1..2\n+echo 1..1\n echo ok 1\n-echo ok 2\n"
    result = judge(PassingTests(command="sh check.sh", report="tap", template=tmp_path, output_as="patch"), patch)
    assert (result.value, result.signals["collected"]) == (0, 2)


@needs_bubblewrap
def test_equal_tests_are_counted_once_in_a_run(tmp_path, monkeypatch):
    ran = []
    really = Pool.execute

    async def execute(self, program):
        ran.append(program.command)
        return await really(self, program)

    monkeypatch.setattr(Pool, "execute", execute)
    (tmp_path / "rows.jsonl").write_text(
        "".join(f'{{"id": "{n}", "output": "def f(x): return x ** {n}"}}\n' for n in (1, 2, 3, "2 + 0"))
    )
    tests = {"command": UNITTEST, "output_file": "solution.py", "files": {"test_it.py": TESTS}}
    dicast.run(
        {
            "source": {"rows/jsonl": {"path": str(tmp_path / "rows.jsonl")}},
            "ledger": {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}},
            "metrics": [{"sandbox/tests_pass": tests}],
        }
    )
    assert len(ran) == 4 + 1 + 1  # the tests are counted once, and the runner is looked for once


# What was before


@needs_bubblewrap
@pytest.mark.parametrize(("code", "value"), [("x * x", 1.0), ("-0", 0.5), ("1", 0.0)])
def test_without_a_baseline_the_original_is_measured(project, code, value):
    metric = VerificationDelta(command=UNITTEST, template=project, output_as="patch")
    result = judge(metric, RIGHT.replace("x * x", code))
    assert (result.value, result.signals["tests_before"]) == (value, 1), result
    assert judge(metric, RIGHT, context={"tests_passing": 2}).value == 0.5


@needs_bubblewrap
@pytest.mark.parametrize(
    "original", ["true", pytest.param("{ sleep 90; }", marks=pytest.mark.slow)], ids=["says nothing", "takes too long"]
)
def test_a_baseline_that_cannot_be_measured_is_a_failure(project, original):
    command = f"grep -q 'x \\* x' solution.py && echo 1 passed || {original}"
    metric = VerificationDelta(command=command, template=project, output_as="patch", timeout=5.0)
    result = judge(metric, RIGHT)
    assert (result.kind, "before" in result.message) == ("missing_input", True), result
    metric = attrs.evolve(metric, baseline_missing="zero")
    assert judge(metric, RIGHT).signals["tests_before"] == 0


def test_every_option_is_described_where_it_is_listed():
    for metric in (Command, PassingTests, VerificationDelta):
        for field in metric.__attrs_attrs__:
            assert metric.__doc__.count(f":param {field.name}:") == 1, (metric, field.name)
