"""Events over HTTP: permitted senders, and the times of the answers."""

from __future__ import annotations

import http.client
import json
import threading
import time
from urllib.parse import urlsplit

import pytest

from dicast import ConfigError
from dicast.toolkit import listening
from dicast.toolkit.listening import ListenAddress
from dicast_traces.live.listening import Listener


class Taker:
    """Stands in for the watch: answers each request at once."""

    def __init__(self):
        self.posts = []
        self.answer = {"accepted": 1, "duplicates": 0, "errors": []}

    def __call__(self, post):
        self.posts.append(post)
        if isinstance(self.answer, Exception):
            post.answer.set_exception(self.answer)
        elif self.answer is not None:
            post.answer.set_result(self.answer)


@pytest.fixture
def taker():
    return Taker()


@pytest.fixture
def listener(taker):
    with Listener(ListenAddress("127.0.0.1", 0), "secret", 1000, taker, lambda: {"backlog": 3}) as listener_:
        yield listener_


@pytest.fixture
def ask(listener):
    def send(method, path, body=b"", token="secret", **headers):
        place = urlsplit(listener.url)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=100)
        try:
            headers_ = {"Authorization": f"Bearer {token}"} | {
                name.replace("_", "-"): text for name, text in headers.items()
            }
            connection.request(method, path, body, {name: text for name, text in headers_.items() if text is not None})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    return send


def test_events_are_taken_and_answered(ask, taker):
    assert ask("POST", "/events", b'{"a":1}\n{"b":2}') == (200, {"accepted": 1, "duplicates": 0, "errors": []})
    assert [line.data for line in taker.posts[0].lines] == [b'{"a":1}', b'{"b":2}']


def test_answer_waits_until_the_events_are_recorded(ask, taker):
    taker.answer = None
    answers = []
    asking = threading.Thread(target=lambda: answers.append(ask("POST", "/events", b"{}")))
    asking.start()
    while not taker.posts:
        time.sleep(0.01)
    asking.join(0.2)
    assert answers == []
    taker.posts[0].answer.set_result({"accepted": 1, "duplicates": 0, "errors": []})
    asking.join(100)
    assert answers[0][0] == 200


@pytest.mark.parametrize("token", ["", "wrong", "secret2"])
def test_wrong_token_is_401_and_takes_nothing(ask, taker, token):
    assert ask("POST", "/events", b"{}", token=token)[0] == 401
    assert ask("GET", "/status", token=token)[0] == 401
    assert taker.posts == []


def test_no_token_is_401(ask):
    assert ask("POST", "/events", b"{}", Authorization=None)[0] == 401


def test_too_much_is_413_and_is_not_read(ask, monkeypatch):
    monkeypatch.setattr(listening.Handler, "max_body", 10)
    code, body_ = ask("POST", "/events", b"x" * 11)
    assert code == 413
    assert "send less at a time" in body_["error"]


def test_request_without_length_is_411(ask):
    assert ask("POST", "/events", iter([b"{}"]))[0] == 411


def test_compressed_request_is_415(ask):
    assert ask("POST", "/events", b"x", Content_Encoding="gzip")[0] == 415


@pytest.mark.parametrize(
    ("length", "code"), [("9" * 5000, 413), ("0" * 5000, 413), ("many", 400), ("-1", 400), ("1_0", 400), ("", 400)]
)
def test_length_that_is_none_or_beyond_all_bounds_is_answered(ask, taker, length, code):
    address_, body_ = ask("POST", "/events", Content_Length=length)
    assert (address_, len(body_["error"]) < 200, taker.posts) == (code, True, [])


def test_broken_array_is_400(ask):
    code, body_ = ask("POST", "/events", b"[1,")
    assert code == 400
    assert "the array is not JSON" in body_["error"]


def test_request_of_bad_lines_alone_is_400_and_names_them(ask, taker):
    taker.answer = {"accepted": 0, "duplicates": 0, "errors": [{"line": 1, "message": "no"}]}
    assert ask("POST", "/events", b"x") == (400, taker.answer)
    taker.answer = {**taker.answer, "accepted": 1}
    assert ask("POST", "/events", b"x")[0] == 200


def test_events_that_were_not_recorded_are_503(ask, taker):
    taker.answer = RuntimeError("the watch has ended")
    code, body_ = ask("POST", "/events", b"{}")
    assert code == 503
    assert "send them again" in body_["error"]


def test_status_is_told(ask):
    assert ask("GET", "/status") == (200, {"backlog": 3})


def test_unknown_path_is_404_and_names_those_there_are(ask):
    code, body_ = ask("POST", "/event", b"{}")
    assert code == 404
    assert "POST /events" in body_["error"]


def test_connection_serves_one_request_after_the_other_and_at_once(listener):
    place = urlsplit(listener.url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=100)
    times_ = []
    try:
        for _ in range(120):
            began = time.monotonic()
            connection.request("POST", "/events", b"{}", {"Authorization": "Bearer secret"})
            assert connection.getresponse().read()
            times_.append(time.monotonic() - began)
    finally:
        connection.close()
    assert min(times_[60:]) < 0.03, (
        "the body waits until the client has said that it has the head, which it does after 40 ms"
    )


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8765", ("127.0.0.1", 8765)),
        (":8765", ("127.0.0.1", 8765)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("localhost:1", ("127.0.0.1", 1)),
        ("[::1]:99", ("::1", 99)),
        ("127.3.2.1:99", ("127.3.2.1", 99)),
    ],
)
def test_addresses_of_this_machine(text, address):
    address_ = ListenAddress.parse(text)
    assert (address_.host, address_.port) == address


@pytest.mark.parametrize(
    "text", ["0.0.0.0:80", "192.168.1.2:80", "[::]:80", "example.org:80", "x", "127.0.0.1:", "1:99999"]
)
def test_other_addresses_are_refused(text):
    with pytest.raises(ConfigError, match="--listen"):
        ListenAddress.parse(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost:80", "[::1]:80", "LOCALHOST"])
def test_a_request_to_a_name_of_this_machine_is_answered(ask, host):
    assert ask("GET", "/status", Host=host)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "10.0.0.1", "127.0.0.1.evil.example", "[x", "", "0.0.0.0"]
)
def test_a_request_to_another_name_is_refused_although_it_has_the_token(ask, taker, host):
    code, answer = ask("POST", "/events", b"{}", Host=host)[:2]
    assert (code, taker.posts) == (421, [])
    assert "Host" in str(answer)


def test_a_page_of_another_origin_is_refused(ask, taker):
    assert ask("POST", "/events", b"{}", Origin="https://evil.example")[0] == 403
    assert ask("POST", "/events", b"{}", Origin="null")[0] == 403
    assert taker.posts == []
    assert ask("GET", "/status", Origin="http://localhost:3000")[0] == 200


def test_taken_port_is_an_error(listener):
    port = urlsplit(listener.url).port
    with pytest.raises(ConfigError, match=f"--listen 127.0.0.1:{port}"):
        Listener(ListenAddress("127.0.0.1", port), "t", 10, print, dict)
