"""The command ``dicast comment``: one comment in a pull request, which later runs replace."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_origin
from urllib.parse import quote

import attrs
import click
import orjson

from dicast import DataError, Problem, RequestError
from dicast.toolkit.endpoint import Address, Answer, ClientLimits, options
from dicast.toolkit.endpoint.faults import ConnectionFault
from dicast.toolkit.endpoint.retries import is_retried
from dicast.toolkit.files import error_reason, read_bytes, read_text
from dicast.toolkit.http_reply import ReplyRefused, retry_after

from .comment import MARK, with_older_result

if TYPE_CHECKING:
    from dicast.toolkit.endpoint.client import Client

API = "https://api.github.com"
"""The address of the API, unless ``GITHUB_API_URL`` has another."""

PAGE = 100
"""Number of comments in a page of GitHub's answer; GitHub allows no more."""

MAX_PAGES = 100
"""Largest number of pages that are read."""

TRIES = 3
LONGEST_WAIT = 20.0
"""Seconds; a longer wait that GitHub asks for is not kept."""

_TIMEOUT = 30.0
_FORBIDDEN = 403
_NO_ACCESS = (401, _FORBIDDEN, 404)

_PERMISSION_FIX = "give the job the permission pull-requests: write, and its token as GITHUB_TOKEN"

_FORK_FIX = (
    "correct GITHUB_API_URL, or give the job's token as GITHUB_TOKEN; a job of a fork cannot get more permissions"
)
_FORK = "no comment is posted, because a pull request from a fork has no secrets and a token that may only read"
_USED_UP = "x-ratelimit-remaining"

T = TypeVar("T")


class PostError(RequestError):
    """GitHub did not accept the comment."""


class AccessDenied(PostError):
    """The token may not read or write the comments: GitHub's HTTP *status* and *reason*."""

    def __init__(self, message: str, status: int, reason: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


@attrs.frozen
class PullRequest:
    """A pull request: its *number* in the *repository* ``OWNER/NAME``; *is_fork* if its branch is in another repository."""

    repository: str
    number: int
    is_fork: bool = False


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--pull-request",
    "number",
    type=click.IntRange(1),
    help="The number of the pull request; by default of the event that started the job.",
)
def comment(file: Path, number: int | None) -> int:
    """Post a comment of dicast ci to a pull request.

    FILE is the file of dicast ci --comment. The comment replaces the older comment on the same pipeline. GitHub Actions sets
    GITHUB_REPOSITORY, GITHUB_EVENT_PATH and GITHUB_API_URL. GITHUB_TOKEN has to be a token with the permission pull-requests: write.
    """
    try:
        text = read_text(file)
    except (OSError, UnicodeDecodeError) as error:
        message = f"the comment cannot be read: {error_reason(error)}; dicast ci FILE --comment PATH writes it"
        raise DataError(Problem(message, file=str(file))) from error
    mark = text.partition("\n")[0]
    if not mark.startswith(MARK.partition("{")[0]):
        message = "it is no comment of dicast ci; dicast ci FILE --comment PATH writes one"
        raise DataError(Problem(message, file=str(file), line=1))
    pull_request = read_pull_request(os.environ, number)
    if pull_request is None:
        click.echo("this job is of no pull request: no comment is posted")
        return 0
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token and pull_request.is_fork:
        click.echo(f"{_FORK}: GITHUB_TOKEN is empty; set it to ${{{{ github.token }}}}, not to a secret")
        return 0
    if not token:
        state = "empty" if "GITHUB_TOKEN" in os.environ else "not set"
        raise RequestError(f"GITHUB_TOKEN is {state}; set it to the job's token: GITHUB_TOKEN: ${{{{ github.token }}}}")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise RequestError(
            "GITHUB_TOKEN has a space, a line end or another character that no token has; set the token alone"
        )
    api = os.environ.get("GITHUB_API_URL") or API
    options.check_address(api, "GITHUB_API_URL")
    click.echo(asyncio.run(_post(api, token, pull_request, mark, text)))
    return 0


def read_pull_request(environment: Mapping[str, str], number: int | None) -> PullRequest | None:
    """Return the pull request of the job; None if its event is about no pull request.

    :raises RequestError: if the repository, or the number, is not known.
    """
    repository, path = environment.get("GITHUB_REPOSITORY", ""), environment.get("GITHUB_EVENT_PATH", "")
    if repository.count("/") != 1:
        raise RequestError(f"GITHUB_REPOSITORY is {repository!r}; set it to OWNER/NAME, as GitHub Actions does")
    if not path:
        if number is None:
            raise RequestError("GITHUB_EVENT_PATH is not set, as outside GitHub Actions; give --pull-request NUMBER")
        return PullRequest(repository, number)
    request = _read_event(Path(path)).get("pull_request") or {}
    pull_request = request.get("number") if number is None else number
    if pull_request is None:
        return None
    sources = [((request.get(side) or {}).get("repo") or {}).get("full_name") for side in ("head", "base")]
    return PullRequest(repository, int(pull_request), is_fork=sources[0] != sources[1])


def _read_event(path: Path) -> dict[str, Any]:
    """Return the event that started the job.

    :raises DataError: if the file at *path* is no JSON object.
    """
    try:
        event = orjson.loads(read_bytes(path))
        if not isinstance(event, dict):
            raise TypeError(f"it is no object but {type(event).__name__}")
    except (OSError, ValueError, TypeError) as error:
        message = f"GITHUB_EVENT_PATH names no event of GitHub: {error_reason(error)}; unset it and give --pull-request NUMBER"
        raise DataError(Problem(message, file=str(path))) from error
    return event


async def _post(api: str, token: str, pull_request: PullRequest, mark: str, text: str) -> str:
    """Post or replace the comment; return a line about it."""
    from dicast.toolkit.endpoint.client import connect  # importing httpx and aiohttp is slow

    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {token}",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    address, limits = Address(api, option="GITHUB_API_URL"), ClientLimits(timeout=_TIMEOUT)
    async with connect(address, limits, 1, headers=headers, secrets=(token,)) as client:
        comments = Comments(client, pull_request)
        try:
            return await comments.write(mark, text)
        except AccessDenied as error:
            if not pull_request.is_fork or error.status != _FORBIDDEN:
                raise
            return f"{_FORK}: {error.reason}"


@attrs.frozen
class _Older:
    """An older comment: its *id* and its text, the *body*."""

    id: int
    body: str


@attrs.frozen
class Comments:
    """The comments of a pull request, through GitHub's REST API (https://docs.github.com/en/rest/issues/comments)."""

    _client: Client
    _of: PullRequest

    async def write(self, mark: str, text: str) -> str:
        """Replace the first comment that begins with the line *mark*, or post a new one; return a line about it.

        A comment without a result keeps the result of the older comment below it.
        """
        older = await self._older(mark)
        if older is None:
            body = orjson.dumps({"body": text})
            answer = await self._send("POST", self._path(f"issues/{self._of.number}/comments"), body)
            return f"posted the comment {self._address(answer)}"
        body = orjson.dumps({"body": with_older_result(text, older.body)})
        answer = await self._send("PATCH", self._path(f"issues/comments/{older.id}"), body)
        return f"replaced the comment {self._address(answer)}"

    async def _older(self, mark: str) -> _Older | None:
        """Return the first comment that begins with *mark* and is by a bot, or by the owner of the token."""
        by_users = list[tuple[_Older, str]]()
        async for item in self._all():
            if str(item.get("body") or "").partition("\n")[0].rstrip("\r") != mark:
                continue
            user, older = item.get("user") or {}, _Older(int(item["id"]), str(item["body"]))
            if user.get("type") == "Bot":
                return older
            by_users.append((older, str(user.get("login"))))
        if not by_users:
            return None
        answer = await self._fetch("GET", "/user", None)  # the token of a job has no user
        login = self._read(answer, dict).get("login") if answer.status == 200 else None
        return next((older for older, user in by_users if user == login), None)

    async def _all(self) -> AsyncIterator[dict[str, Any]]:
        for page in range(1, MAX_PAGES + 1):
            path = self._path(f"issues/{self._of.number}/comments?per_page={PAGE}&page={page}")
            items = self._read(await self._send("GET", path, None), list[dict[str, Any]])
            for item in items:
                yield item
            if len(items) < PAGE:
                return

    def _path(self, rest: str) -> str:
        return f"/repos/{quote(self._of.repository)}/{rest}"

    def _address(self, answer: Answer) -> str:
        """Return the address of the comment in *answer*."""
        return str(self._read(answer, dict).get("html_url") or f"of pull request {self._of.number}")

    def _read(self, answer: Answer, kind: type[T]) -> T:
        """Return the JSON value of *answer*, a list of objects or an object.

        :raises PostError: if it has another form, such as the page of a proxy.
        """
        try:
            value = orjson.loads(answer.data)
        except ValueError:
            value = None
        items = value if isinstance(value, list) else []
        if not isinstance(value, get_origin(kind) or kind) or not all(isinstance(item, dict) for item in items):
            fix = "correct GITHUB_API_URL, or its proxy"
            raise PostError(f"{self._of.repository}: GitHub's answer has another form than its API's; {fix}")
        return cast("T", value)

    async def _send(self, method: str, path: str, body: bytes | None) -> Answer:
        """Send a request until GitHub answers for good.

        :raises AccessDenied: if the token may not do it.
        :raises PostError: if it fails.
        """
        answer = await self._fetch(method, path, body)
        for _ in range(TRIES - 1):
            if not is_retried(answer.status):
                break
            wait = retry_after(answer.headers)
            await asyncio.sleep(1.0 if wait is None else min(wait, LONGEST_WAIT))
            answer = await self._fetch(method, path, body)
        if 200 <= answer.status < 300:
            return answer
        reason = f"GitHub answered HTTP {answer.status}: {self._client.reader.message(answer.complaint().message)}"
        place = f"{self._of.repository}, pull request {self._of.number}"
        if answer.headers.get(_USED_UP) == "0" or "rate limit" in reason.lower():
            raise PostError(f"{place}: {reason}; the token has no requests left for now: run the job again later")
        if answer.status in _NO_ACCESS:
            fix = _FORK_FIX if self._of.is_fork else _PERMISSION_FIX
            raise AccessDenied(f"{place}: {reason}; {fix}", answer.status, reason)
        raise PostError(f"{place}: {reason}; the comment is not posted")

    async def _fetch(self, method: str, path: str, body: bytes | None) -> Answer:
        try:
            return await self._client.fetch(method, path, body)
        except TimeoutError as error:
            raise PostError(f"GitHub did not answer within {_TIMEOUT:g} s; the comment is not posted") from error
        except (ConnectionFault, ReplyRefused) as error:
            reason = self._client.reader.message(str(error))
            raise PostError(f"GitHub was not reached: {reason}; the comment is not posted") from error
