"""``dicast comment``: one comment in a pull request, against a server on loopback that speaks GitHub's API."""

from __future__ import annotations

import json
import re

import attrs
import pytest
from click.testing import CliRunner

from dicast import RequestError
from dicast_github.comment import EMPTY
from dicast_github.posting import PAGE, comment

MARK = "<!-- dicast ci: a.yaml -->"
TOKEN = "ghs_verysecretword"
ISSUE = re.compile(r"/api/v3/repos/o/r/issues/12/comments\?per_page=(\d+)&page=(\d+)")


@attrs.define
class GitHub:
    """The API of a pull request, with its comments. *answers* are statuses for the next requests, then the usual ones."""

    url: str = ""
    comments: list[dict[str, object]] = attrs.field(factory=list)
    requests: list[tuple[str, str]] = attrs.field(factory=list)
    answers: list[int] = attrs.field(factory=list)
    login: str | None = None
    page: bytes | None = None
    complaint: str = "Resource not accessible by integration"

    def add(self, body, kind="Bot", login="github-actions[bot]"):
        number = 100 + len(self.comments)
        self.comments.append({"id": number, "body": body, "user": {"type": kind, "login": login}})
        return self.comments[-1]

    def answer(self, method, path, headers, body):
        self.requests.append((method, path))
        assert headers["Authorization"] == f"Bearer {TOKEN}"
        assert headers["Accept"] == "application/vnd.github+json"
        if self.answers and (status := self.answers.pop(0)) != 200:
            return status, {"message": f"{self.complaint}, {TOKEN}"}
        if path == "/api/v3/user":
            return (403, {"message": "no user"}) if self.login is None else (200, {"login": self.login})
        if method == "GET" and (match := ISSUE.fullmatch(path)):
            size, page = map(int, match.groups())
            return 200, self.comments[size * (page - 1) : size * page]
        if method == "POST" and path == "/api/v3/repos/o/r/issues/12/comments":
            return 201, self.add(body["body"]) | {"html_url": "https://example.org/new"}
        for item in self.comments:
            if method == "PATCH" and path == f"/api/v3/repos/o/r/issues/comments/{item['id']}":
                item.update(body)
                return 200, item
        return 404, {"message": "Not Found"}


@pytest.fixture
def github(tmp_path, monkeypatch, loopback):
    api = GitHub()

    def respond(handler):
        size = int(handler.headers.get("Content-Length") or 0)
        body = json.loads(handler.rfile.read(size)) if size else None
        status, value = api.answer(handler.command, handler.path, handler.headers, body)
        data = json.dumps(value).encode() if api.page is None else api.page
        handler.send_response(status)
        handler.send_header("Retry-After", "0")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    monkeypatch.chdir(tmp_path)
    (tmp_path / "comment.md").write_text(f"{MARK}\n\nall is well\n", "utf-8")
    with loopback(respond) as address:
        api.url = f"{address}/api/v3"
        environment = {"GITHUB_API_URL": api.url, "GITHUB_REPOSITORY": "o/r", "GITHUB_TOKEN": TOKEN}
        for name, value in (environment | {"GITHUB_EVENT_PATH": event(tmp_path, 12)}).items():
            monkeypatch.setenv(name, value)
        yield api


def event(folder, number=None, head="o/r"):
    request = {"number": number, "head": {"repo": {"full_name": head}}, "base": {"repo": {"full_name": "o/r"}}}
    (folder / "event.json").write_text(json.dumps({} if number is None else {"pull_request": request}))
    return str(folder / "event.json")


def post(*arguments):
    result = CliRunner().invoke(comment, arguments or ("comment.md",), catch_exceptions=False, standalone_mode=False)
    assert TOKEN not in result.output
    return result.output


def test_the_first_comment_is_posted_and_later_runs_replace_it(github, tmp_path):
    github.add("hello", kind="User", login="ann")
    assert "posted the comment https://example.org/new" in post()
    (tmp_path / "comment.md").write_text(f"{MARK}\n\nit got worse\n", "utf-8")
    assert "replaced the comment" in post()
    assert [item["body"] for item in github.comments] == ["hello", f"{MARK}\n\nit got worse\n"]


def test_a_comment_is_found_on_a_later_page_and_with_other_line_ends(github):
    for number in range(PAGE):
        github.add(f"comment {number}")
    older = github.add(f"{MARK}\r\n\r\nolder")
    post()
    assert older["body"] == f"{MARK}\n\nall is well\n"
    assert len(github.comments) == PAGE + 1


@pytest.mark.parametrize(
    "body",
    ["<!-- dicast ci: b.yaml -->\n\nother", f"look: {MARK}", f"quoted\n{MARK}"],
    ids=["other pipeline", "in a line", "later line"],
)
def test_other_comments_are_not_touched(github, body):
    github.add(body)
    post()
    assert [item["body"] for item in github.comments] == [body, f"{MARK}\n\nall is well\n"]


@pytest.mark.parametrize(("login", "count"), [(None, 2), ("bob", 2), ("ann", 1)], ids=["job", "other user", "owner"])
def test_a_users_comment_is_replaced_only_with_the_token_of_that_user(github, login, count):
    github.login = login
    github.add(f"{MARK}\n\nby a user", kind="User", login="ann")
    post()
    assert len(github.comments) == count


@pytest.mark.parametrize("statuses", [[502], [200, 503, 429]])
def test_a_fault_of_github_is_tried_again(github, statuses):
    github.answers = statuses
    assert "posted" in post()
    assert len(github.comments) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_token_without_the_permission_is_refused_with_the_fix_and_is_not_shown(github, status):
    github.answers = [200, status]
    with pytest.raises(RequestError, match="pull-requests: write") as caught:
        post()
    assert TOKEN not in str(caught.value)
    assert f"HTTP {status}" in str(caught.value)


def test_a_pull_request_from_a_fork_does_not_fail_the_job(github, tmp_path):
    event(tmp_path, 12, head="fork/r")
    github.answers = [200, 403]
    assert "no comment is posted, because a pull request from a fork" in post()


def test_a_fork_without_a_token_does_not_fail_the_job(github, tmp_path, monkeypatch):
    event(tmp_path, 12, head="fork/r")
    monkeypatch.setenv("GITHUB_TOKEN", "")
    assert "GITHUB_TOKEN is empty; set it to ${{ github.token }}, not to a secret" in post()
    assert not github.requests


def test_a_repository_that_does_not_exist_fails_the_job_of_a_fork_too(github, tmp_path):
    event(tmp_path, 12, head="fork/r")
    github.answers = [200, 404]
    with pytest.raises(RequestError, match="HTTP 404.*a job of a fork cannot get more permissions"):
        post()


def test_a_server_that_fails_for_good_is_an_error(github):
    github.answers = [500, 500, 500]
    with pytest.raises(RequestError, match="HTTP 500"):
        post()


def test_a_server_that_is_not_reached_is_an_error(github, monkeypatch):
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    with pytest.raises(RequestError, match="was not reached"):
        post()


def test_a_job_of_no_pull_request_posts_nothing(github, tmp_path):
    event(tmp_path)
    assert "of no pull request" in post()
    assert not github.requests
    assert "posted" in post("comment.md", "--pull-request", "12")


def test_an_empty_token_is_named(github, monkeypatch, tmp_path):
    event(tmp_path, 12)
    monkeypatch.setenv("GITHUB_TOKEN", "")
    with pytest.raises(RequestError, match="GITHUB_TOKEN is empty; set it to the job's token"):
        post()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("GITHUB_TOKEN", "GITHUB_TOKEN is not set"),
        ("GITHUB_REPOSITORY", "OWNER/NAME"),
        ("GITHUB_EVENT_PATH", "--pull-request NUMBER"),
    ],
)
def test_a_missing_variable_is_named(github, monkeypatch, name, message):
    monkeypatch.delenv(name)
    with pytest.raises(RequestError, match=message):
        post()
    assert not github.requests


def test_a_file_that_is_no_comment_is_refused(github, tmp_path):
    (tmp_path / "comment.md").write_text("# notes\n")
    with pytest.raises(RequestError, match="no comment of dicast ci"):
        post()
    assert not github.requests


@pytest.mark.parametrize("content", [None, b"\xff\xfe"], ids=["missing", "no text"])
def test_a_comment_that_cannot_be_read_is_refused_with_its_name(github, tmp_path, content):
    (tmp_path / "comment.md").unlink()
    if content is not None:
        (tmp_path / "comment.md").write_bytes(content)
    with pytest.raises(
        RequestError, match=r"^comment.md: the comment cannot be read: .*--comment PATH writes it"
    ) as caught:
        post()
    assert "Errno" not in str(caught.value)
    assert not github.requests


@pytest.mark.parametrize("content", [None, b"{", b"[]"], ids=["missing", "no JSON", "no object"])
def test_an_event_that_cannot_be_read_is_refused_with_its_name(github, tmp_path, content):
    (tmp_path / "event.json").unlink()
    if content is not None:
        (tmp_path / "event.json").write_bytes(content)
    with pytest.raises(RequestError, match=r"event.json: GITHUB_EVENT_PATH names no event of GitHub: ") as caught:
        post()
    assert "Errno" not in str(caught.value)
    assert not github.requests


def test_a_comment_without_a_result_keeps_the_result_of_the_older_comment(github, tmp_path):
    empty = f"{MARK}\n\n{EMPTY}\n\n### dicast: `a.yaml`: nothing was judged\n\n- `%s`\n"
    older = github.add(f"{MARK}\r\n\r\n### dicast: `a`: failed\r\n\r\ntable\r\n")
    for reason in ("disabled", "outage"):
        (tmp_path / "comment.md").write_text(empty % reason, "utf-8")
        post()
        assert older["body"].startswith(empty % reason)
        assert older["body"].count("### dicast: `a`: failed\n\ntable\n") == 1
        assert older["body"].count("nothing was judged") == 1
    (tmp_path / "comment.md").write_text(f"{MARK}\n\nall is well\n", "utf-8")
    post()
    assert older["body"] == f"{MARK}\n\nall is well\n"


def test_without_an_older_result_a_comment_without_a_result_is_posted_alone(github, tmp_path):
    empty = f"{MARK}\n\n{EMPTY}\n\nreason\n"
    (tmp_path / "comment.md").write_text(empty, "utf-8")
    post()
    post()
    assert [item["body"] for item in github.comments] == [empty]


@pytest.mark.parametrize("page", [b"<html>", b'"text"', b"[1]", b"{}"], ids=["page", "text", "numbers", "object"])
def test_an_answer_of_another_form_is_an_error_with_the_fix(github, page):
    github.page = page
    with pytest.raises(RequestError, match="another form than its API's; correct GITHUB_API_URL"):
        post()


def test_a_rate_limit_is_no_lack_of_permission(github):
    github.answers, github.complaint = [200, 403], "API rate limit exceeded"
    with pytest.raises(RequestError, match="run the job again later") as caught:
        post()
    assert "permission" not in str(caught.value)


def test_a_wrong_token_is_refused_in_a_fork_too(github, tmp_path):
    event(tmp_path, 12, head="fork/r")
    github.answers = [401]
    with pytest.raises(RequestError, match="HTTP 401"):
        post()


def test_a_token_with_a_line_end_is_refused(github, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", f"{TOKEN}\n")
    with pytest.raises(RequestError, match="GITHUB_TOKEN has a space, a line end") as caught:
        post()
    assert TOKEN not in str(caught.value)
    assert not github.requests
