"""Each file of docs/how-to/gateways.md judges against a fake with the quirks of its gateway."""

from __future__ import annotations

import json
import re
import threading
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import stamina
import yaml

from dicast.testing import run_pipeline

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "gateways.md"
FILES = dict(re.findall(r'```\w+ title="([\w.-]+)"\n(.*?)```', PAGE.read_text(encoding="utf-8"), re.DOTALL))
VERDICT = '{"seal": "$SEAL", "score": 0.75, "confidence": 0.9, "rationale": "It is."}'
OWN_USAGE = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}


@pytest.fixture(autouse=True)
def no_waits():
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


@pytest.fixture
def judged(chat_server, tmp_path, monkeypatch):
    """Run the file *name* of the page against the server, and return the run's document; *options* are added to its judge."""
    monkeypatch.setenv("JUDGE_KEY", "sk-of-the-file-0123456789")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    chat_server.answer = chat_server.reply(VERDICT)

    def run(name, address=None, **options):
        (tmp_path / "answers.jsonl").write_text(FILES["answers.jsonl"], encoding="utf-8")
        data = yaml.safe_load(FILES[name])
        (model,) = data["define"]["grader"].values()
        option = "base_url" if "base_url" in model else "api_base"
        here = f"http://127.0.0.1:{chat_server.port}"
        model[option] = re.sub(r"^https?://[^/]+", here, model.get(option, here)) if address is None else address
        model.setdefault("price", "free") if "api_key" in model else None
        for judge in data["judges"]:
            judge["llm/judge"] |= options
        path = tmp_path / name
        path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        return run_pipeline(path).document

    return run


def is_whole(document):
    return (document["score"]["mean"], document["coverage"]) == (0.75, 1.0)


def test_every_file_of_the_page_has_a_test():
    source = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in FILES if name.endswith(".yaml") and source.count(f'"{name}"') == 0] == []


# Azure OpenAI

FILTERED = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}},
    }
}


def azure(server):
    """Refuse requests like Azure: without a version or key, or with parameters that a reasoning deployment does not accept."""
    server.answer = server.reply(VERDICT, usage=OWN_USAGE | {"prompt_tokens_details": {"cached_tokens": 900}})
    other = server.answer

    def answer(request):
        versioned = "/deployments/" in request.path
        key = "api-key" if versioned else "authorization"
        if key not in request.headers:
            error = {"code": "401", "message": "Access denied due to invalid subscription key or wrong API endpoint."}
            return server.raw({"error": error}, status=401)
        for name in ("max_tokens", "temperature"):
            if name in request.body:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                return server.raw(
                    {"error": {"message": message, "param": name, "code": "unsupported_parameter"}}, status=400
                )
        return other

    server.answer = answer


def test_azure(chat_server, judged):
    azure(chat_server)
    document = judged("azure.yaml")
    assert is_whole(document)
    assert "['max_tokens', 'temperature']" in str(document["adapted"])
    assert {request.path for request in chat_server.requests} == {"/openai/v1/chat/completions"}
    assert Decimal(document["cost"]["usd"]) == 2 * (100 * Decimal("0.25") + 900 * Decimal("0.025") + 20 * 2) / 1_000_000


def test_azure_with_a_version_in_the_address(chat_server, judged):
    azure(chat_server)
    assert is_whole(judged("azure-versioned.yaml"))
    assert {request.path for request in chat_server.requests} == {"/openai/deployments/my-deployment/chat/completions"}
    assert all("authorization" not in request.headers for request in chat_server.requests)


def test_azure_filters_a_row(chat_server, judged):
    chat_server.script(chat_server.raw(FILTERED, status=400))
    document = judged("azure.yaml")
    assert document["failures"] == {"refused": 1}
    assert chat_server.count == 2


def test_azure_without_the_deployment_ends_the_run(chat_server, judged):
    error = {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist."}
    chat_server.answer = chat_server.raw({"error": error}, status=404)
    document = judged("azure.yaml")
    assert document["stopped"]["reason"] == "refused_by_provider"


# OpenRouter


def test_openrouter(chat_server, judged):
    none_found = {
        "error": {"message": "No endpoints found that support the requested parameters (response_format).", "code": 404}
    }
    inside = {
        "error": {
            "message": "Provider returned error",
            "code": 502,
            "metadata": {"raw": "upstream", "provider_name": "x"},
        }
    }

    def answer(request):
        if request.body.get("response_format", {}).get("type") == "json_schema":
            return chat_server.raw(none_found, status=404)
        body = {
            "id": "gen-1",
            "provider": "Anthropic",
            "model": "anthropic/claude-haiku-4.5",
            "choices": [
                {
                    "finish_reason": "stop",
                    "native_finish_reason": "end_turn",
                    "message": {
                        "role": "assistant",
                        "content": VERDICT.replace("$SEAL", request.seal),
                        "refusal": None,
                    },
                }
            ],
            "usage": OWN_USAGE | {"cost": 0.0011},
        }
        return chat_server.raw(b"\n         \n" + json.dumps(body).encode())  # the line is kept open by blanks

    chat_server.script(chat_server.raw(inside))
    chat_server.answer = answer
    document = judged("openrouter.yaml")
    assert is_whole(document)
    assert "response_format" in str(document["adapted"])
    sent = chat_server.requests[-1]
    assert sent.body["provider"] == {"require_parameters": True, "data_collection": "deny"}
    assert sent.headers["x-title"] == "dicast"
    assert sent.headers["authorization"] == "Bearer sk-of-the-file-0123456789"


def test_openrouter_without_credits_ends_the_run(chat_server, judged):
    error = {"message": "This request requires more credits, or fewer max_tokens.", "code": 402}
    chat_server.answer = chat_server.raw({"error": error}, status=402)
    assert judged("openrouter.yaml")["stopped"]["reason"] == "refused_by_provider"


# servers on the own machine


def test_ollama(chat_server, judged):
    thought = {"reasoning": "The capital is right."}
    chat_server.answer = chat_server.reply(VERDICT, message=thought)
    document = judged("ollama.yaml")
    assert is_whole(document)
    assert document["cost"]["usd"] == "0"
    assert "is free" in str(document["assumed"])
    body = chat_server.requests[0].body
    assert body["response_format"]["type"] == "json_schema"
    assert body["max_tokens"] > 2048
    assert all("authorization" not in request.headers for request in chat_server.requests)


def test_ollama_without_the_model_ends_the_run(chat_server, judged):
    error = {
        "message": 'model "qwen3:8b" not found, try pulling it first',
        "type": "api_error",
        "param": None,
        "code": None,
    }
    chat_server.answer = chat_server.raw({"error": error}, status=404)
    assert "try pulling it first" in judged("ollama.yaml")["stopped"]["message"]


def test_lm_studio(chat_server, judged):
    def answer(request):
        form = request.body.get("response_format", {}).get("type", "text")
        if form == "json_object":
            return chat_server.raw({"error": "'response_format.type' must be 'json_schema' or 'text'"}, status=400)
        if form == "json_schema":
            return chat_server.raw({"error": "Model does not support structured output."}, status=400)
        return chat_server.reply(VERDICT, message={"reasoning_content": "hm"})

    chat_server.answer = answer
    document = judged("lmstudio.yaml")
    assert is_whole(document)
    assert "response_format" in str(document["adapted"])


def test_vllm(chat_server, judged):
    def answer(request):
        if any(message["role"] == "system" for message in request.body["messages"]):
            message = "System role not supported"
            body = {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": 400}
            return chat_server.raw(body, status=400)
        return chat_server.reply(VERDICT, message={"reasoning_content": None, "tool_calls": []})

    chat_server.answer = answer
    document = judged("vllm.yaml")
    assert is_whole(document)
    assert "system_role" in str(document["adapted"])
    assert chat_server.requests[-1].body["chat_template_kwargs"] == {"enable_thinking": False}


def test_vllm_with_a_prompt_that_is_too_long_fails_its_row(chat_server, judged):
    message = (
        "This model's maximum context length is 4096 tokens. However, you requested 5113 tokens (4857 in the messages, "
        "256 in the completion). Please reduce the length of the messages or completion."
    )
    body = {"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}}
    chat_server.script(chat_server.raw(body, status=400))
    document = judged("vllm.yaml")
    assert document["failures"] == {"judge_call_failed": 1}
    assert not document["adapted"]
    assert "maximum context length is 4096" in str(document["failed_subjects"])


def test_llamacpp_server(chat_server, judged):
    loading = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
    chat_server.script(chat_server.raw(loading, status=503))
    assert is_whole(judged("llamacpp-server.yaml"))


@pytest.mark.slow
def test_llamacpp_server_for_real(model_server, judged):
    """A model of 270 million parameters judges badly; it is enough that the server answers every request."""
    document = judged("llamacpp-server.yaml", model_server.base_url, retries=0, max_output_tokens=40)
    assert document["stopped"] is None
    assert set(document["failures"]) <= {"judge_output_invalid"}
    assert document["models"] or document["failures"]


def test_sglang(chat_server, judged):
    error = {
        "object": "error",
        "message": "Failed to compile json grammar",
        "type": "BadRequest",
        "param": None,
        "code": 400,
    }

    def answer(request):
        is_schema = request.body.get("response_format", {}).get("type") == "json_schema"
        if is_schema:
            return chat_server.raw(error, status=400)
        return chat_server.reply(VERDICT, usage=OWN_USAGE | {"reasoning_tokens": 0, "prompt_tokens_details": None})

    chat_server.answer = answer
    document = judged("sglang.yaml")
    assert is_whole(document)
    assert "response_format" in str(document["adapted"])


# through litellm


def text_of(data):
    """Return all texts in JSON data."""
    if isinstance(data, str):
        return data
    values = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return "\n".join(map(text_of, values))


def sealed(request):
    return VERDICT.replace("$SEAL", re.findall(r"^seal: ([0-9a-f]{12})\s*$", text_of(request.body), re.MULTILINE)[-1])


@pytest.mark.slow
def test_bedrock(chat_server, judged):
    throttled = {"message": "Too many requests, please wait before trying again."}
    chat_server.script(chat_server.raw(throttled, status=429))

    def answer(request):
        assert request.headers["authorization"] == "Bearer sk-of-the-file-0123456789"
        tools = request.body.get("toolConfig", {}).get("tools")
        text = sealed(request)
        used = {"toolUse": {"toolUseId": "t", "name": "json_tool_call", "input": json.loads(text)}}
        return chat_server.raw(
            {
                "output": {"message": {"role": "assistant", "content": [used if tools else {"text": text}]}},
                "stopReason": "tool_use" if tools else "end_turn",
                "usage": {"inputTokens": 100, "outputTokens": 20, "totalTokens": 1020, "cacheReadInputTokens": 900},
                "metrics": {"latencyMs": 1},
            }
        )

    chat_server.answer = answer
    document = judged("bedrock.yaml")
    assert is_whole(document), document["failed_subjects"]
    assert chat_server.requests[-1].path.startswith("/model/us.anthropic.claude-haiku-4-5-20251001-v1")


@pytest.fixture
def tokens():
    """The address of a server that gives out access tokens, as Google's does."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            data = json.dumps(
                {"access_token": "token-of-the-test", "expires_in": 3600, "token_type": "Bearer"}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/token"
    server.shutdown()
    server.server_close()


def test_vertex(chat_server, judged, tokens, tmp_path, monkeypatch):
    pytest.importorskip("google.auth")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(service_account(tmp_path, tokens)))

    def answer(request):
        assert request.headers["authorization"] == "Bearer token-of-the-test"
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 30, "totalTokenCount": 150}
        candidate = {"content": {"role": "model", "parts": [{"text": sealed(request)}]}, "finishReason": "STOP"}
        return chat_server.raw({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"})

    chat_server.answer = answer
    document = judged("vertex.yaml")
    assert is_whole(document), document["failed_subjects"]
    assert Decimal(document["cost"]["usd"]) == 2 * (100 * Decimal("0.3") + 50 * Decimal("2.5")) / 1_000_000


def service_account(folder, token_uri):
    """Write the file of a service account with a new key."""
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import serialization

    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    data = {
        "type": "service_account",
        "project_id": "my-project",
        "private_key": key.decode(),
        "client_email": "judge@example.com",
        "token_uri": token_uri,
    }
    path = folder / "credentials.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path
