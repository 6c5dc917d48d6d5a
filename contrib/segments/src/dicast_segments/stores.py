"""Places of a ledger's files: a folder, or a bucket of S3. A file is put whole and durably, and only if its name is free."""

from __future__ import annotations

import os
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dicast import LedgerError, LedgerRefused
from dicast.toolkit.files import read_bytes

_NEW = ".new"
"""Folder of files that are being written."""

_STALE_SECONDS = 86_400
"""Age from which an unfinished file belongs to a dead process."""

_OUTAGE_SECONDS = 30.0
"""Seconds from the first try in which a request to a server that has answered before is repeated."""

_FEWEST_TRIES = 2
"""Fewest tries of a request, however long each waits."""

_MOST_NAP_SECONDS = 1.0
"""Most seconds between two tries."""

T = TypeVar("T")


class Store(Protocol):
    """Files by names such as ``log/000000000001.jsonl.gz``. *place* names the store in messages.

    Every method raises LedgerError if the place cannot be read or written.
    """

    place: str

    def put(self, name: str, data: bytes) -> bool:
        """Write a new file, durable on return; return False, and write nothing, if the name is taken."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Write a file in place of the file with this name, durable on return."""
        ...

    def get(self, name: str) -> bytes | None:
        """Return the content of a file, or None if there is no such file."""
        ...

    def exists(self, name: str) -> bool:
        """Return True if there is a file with this name."""
        ...

    def names(self, folder: str, after: str = "") -> Sequence[str]:
        """Return the sorted names of the files in *folder* that sort after the name *after*, without the folder."""
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Remove files. A missing file is ignored."""
        ...


class FolderStore:
    """Files in a folder of a file system with hard links. Only their owner can read them."""

    def __init__(self, root: Path) -> None:
        self.place, self._root = str(root), root

    def create(self, folders: Sequence[str]) -> None:
        """Make the folder and *folders* in it, and remove unfinished files of dead processes.

        :raises LedgerRefused: if it cannot be made.
        """
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in (*folders, _NEW):
                (self._root / name).mkdir(mode=0o700, exist_ok=True)
            limit = time.time() - _STALE_SECONDS
            for path in (self._root / _NEW).iterdir():
                with suppress(FileNotFoundError):  # another process removes it too
                    if path.stat().st_mtime < limit:
                        path.unlink()
        except OSError as error:
            raise LedgerRefused(
                f"{self.place}: the ledger cannot be made: {error.strerror}. Choose a folder that you may write to"
            ) from error

    def put(self, name: str, data: bytes) -> bool:
        """Write a new file, durable on return; return False, and write nothing, if the name is taken."""
        with self._errors(name), self._written(data) as new:
            path = self._root / name
            try:
                os.link(new, path)
            except FileExistsError:
                return False
            _sync(path.parent)
            return True

    def replace(self, name: str, data: bytes) -> None:
        """Write a file in place of the file with this name, durable on return."""
        with self._errors(name), self._written(data) as new:
            path = self._root / name
            Path(new).replace(path)
            _sync(path.parent)

    def get(self, name: str) -> bytes | None:
        """Return the content of a file, or None if there is no such file."""
        with self._errors(name):
            try:
                return read_bytes(self._root / name)
            except FileNotFoundError:
                return None

    def exists(self, name: str) -> bool:
        """Return True if there is a file with this name."""
        with self._errors(name):
            return (self._root / name).exists()

    def names(self, folder: str, after: str = "") -> Sequence[str]:
        """Return the sorted names of the files in *folder* that sort after the name *after*, without the folder."""
        with self._errors(folder):
            try:
                return sorted(path.name for path in (self._root / folder).iterdir() if path.name > after)
            except FileNotFoundError:
                return []

    def delete(self, names: Sequence[str]) -> None:
        """Remove files. A missing file is ignored."""
        for name in names:
            with self._errors(name), suppress(FileNotFoundError):
                (self._root / name).unlink()

    @contextmanager
    def _written(self, data: bytes) -> Iterator[str]:
        """Yield the path of a file outside the ledger's folders with *data* on the disk."""
        descriptor, path = tempfile.mkstemp(dir=self._root / _NEW)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            yield path
        finally:
            with suppress(FileNotFoundError):  # it became a file of the ledger
                Path(path).unlink()

    @contextmanager
    def _errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LedgerError(
                f"{self.place}: {name} cannot be read or written: {error.strerror or error}. Check the disk space and the permissions of the folder"
            ) from error


def _sync(folder: Path) -> None:
    """Write the names in *folder* to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class BucketStore:
    """Objects in a bucket, below a prefix: ``s3://BUCKET/PREFIX``. Credentials and the region come from the environment.

    A request without an answer is repeated. It may have been carried out: only :meth:`put` has another result then, which its docstring has.
    """

    def __init__(self, url: str) -> None:
        import obstore  # a ledger in a folder needs no client
        from obstore.exceptions import AlreadyExistsError, BaseError, GenericError
        from obstore.store import from_url

        self.place = url.rstrip("/")
        self._api, self._error, self._name_error, self._outage = obstore, BaseError, AlreadyExistsError, GenericError
        self._has_answered = False
        try:
            self._store: Any = from_url(self.place, client_options={"allow_http": _has_http_endpoint()})
        except (BaseError, ValueError) as error:
            raise LedgerRefused(f"{self.place}: the bucket cannot be used: {_reason(error)}. Check the URL") from error

    def put(self, name: str, data: bytes) -> bool:
        """Write a new object; return False, and write nothing, if the name is taken: perhaps by this object, if the answer was lost."""

        def put() -> bool:
            try:
                self._api.put(self._store, name, data, mode="create", use_multipart=False)
            except self._name_error:
                return False
            return True

        return self._request(name, put)

    def replace(self, name: str, data: bytes) -> None:
        """Write an object in place of the object with this name."""
        self._request(name, lambda: self._api.put(self._store, name, data, use_multipart=False))

    def get(self, name: str) -> bytes | None:
        """Return the content of an object, or None if there is no such object."""

        def get() -> bytes | None:
            try:
                return bytes(self._api.get(self._store, name).bytes())
            except FileNotFoundError:
                return None

        return self._request(name, get)

    def exists(self, name: str) -> bool:
        """Return True if there is an object with this name."""

        def exists() -> bool:
            try:
                self._api.head(self._store, name)
            except FileNotFoundError:
                return False
            return True

        return self._request(name, exists)

    def names(self, folder: str, after: str = "") -> Sequence[str]:
        """Return the sorted names of the objects in *folder* that sort after the name *after*, without the folder."""
        offset = f"{folder}/{after}" if after else None
        metas = self._request(folder, lambda: self._api.list(self._store, prefix=f"{folder}/", offset=offset).collect())
        return sorted(meta["path"].rpartition("/")[2] for meta in metas)

    def delete(self, names: Sequence[str]) -> None:
        """Remove objects. A missing object is ignored."""
        if names:
            self._request(names[0], lambda: self._api.delete(self._store, list(names)))

    def _request(self, name: str, request: Callable[[], T]) -> T:
        """Return the result of *request*, which may be made several times.

        The client raises one class for all failures without an answer about the object: a lost connection, a timeout, an overloaded server. It repeats some
        of them for some seconds, but no deletion and no conditional write whose connection was lost, and no list that was cut.
        """
        until = time.monotonic() + (_OUTAGE_SECONDS if self._has_answered else 0)
        tries = 0
        while True:
            tries += 1
            try:
                result = request()
            except (self._error, OSError) as error:
                if isinstance(error, self._outage) and (tries < _FEWEST_TRIES or time.monotonic() < until):
                    time.sleep(random.uniform(0, min(_MOST_NAP_SECONDS, 0.05 * 2**tries)))
                    continue
                raise LedgerError(
                    f"{self.place}: {name} cannot be read or written: {_reason(error)}. Check the bucket, the credentials and the network"
                ) from error
            self._has_answered = True
            return result


def _has_http_endpoint() -> bool:
    """Return True if the environment names an endpoint without TLS, such as a server of S3 on this machine."""
    return any(os.environ.get(name, "").startswith("http://") for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT"))


def _reason(error: BaseException) -> str:
    """Return the message of the server in *error*, else its first line."""
    text = str(error)
    match = re.search("<Message>(.*?)</Message>", text)
    return match[1] if match else text.strip().partition("\n")[0]
