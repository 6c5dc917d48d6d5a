"""A receiver of spans that assembles all conversations: ``python own_receiver.py SPOOL TRACES``; its clients: ``python own_receiver.py URL TRACES``.

The receiver prints its address, and after all traces the seconds on the clock from the first request, its CPU seconds and its peak memory.
The clients send a request in protobuf per trace, 32 at a time, and print the number of spans.
"""

from __future__ import annotations

import http.client
import itertools
import json
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CLIENTS = 32
TURNS = 2
DIFFERENT = 200
"""Different traces; the others are the same with other ids."""


def receive(path: Path, traces: int) -> dict[str, Any]:
    """Receive *traces* conversations, and return the figures."""
    from dicast.toolkit.listening import ListenAddress
    from dicast.toolkit.reception import Reception
    from dicast_otel import Receiver

    def report(line: str) -> None:
        print(line.rpartition(" ")[2], flush=True)

    reception = Reception(ListenAddress("127.0.0.1", 0), path, lambda _, id_: id_, report, lambda: None)
    done, began = 0, 0.0
    with Receiver(settle_seconds=0, idle_seconds=3600).receiving(reception) as receiver:
        receiver.sessions(0.0)
        while done < traces:
            sessions = receiver.sessions(time.time() + 1)
            receiver.settle()
            done += len(sessions)
            if not sessions:
                time.sleep(0.01)
            elif not began:
                began, cpu = time.perf_counter(), time.process_time()
                first = done
    seconds = time.perf_counter() - began
    unit = 2**20 if sys.platform == "darwin" else 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return {"seconds": seconds, "cpu": time.process_time() - cpu, "peak_mb": peak, "share": 1 - first / traces}


def send(url: str, traces: int) -> dict[str, Any]:
    """Send *traces* requests, and return the number of spans."""
    from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from reader_sessions import otlp_request
    from reader_texts import Texts

    texts, address = Texts(), urlsplit(url)
    documents = [otlp_request(texts, number, TURNS, is_base64=True) for number in range(DIFFERENT)]
    requests = [ParseDict(document, ExportTraceServiceRequest()) for document in documents]
    spans = [request.resource_spans[0].scope_spans[0].spans for request in requests]
    bodies = []
    for number in range(traces):
        for span in spans[number % DIFFERENT]:
            span.trace_id = number.to_bytes(16, "big").replace(b"\0", b"\1")[:12] + number.to_bytes(4, "big")
            for pair in span.attributes:
                if pair.key == "gen_ai.conversation.id":
                    pair.value.string_value = f"conversation-{number}"
        bodies.append(requests[number % DIFFERENT].SerializeToString())
    count = sum(len(spans[number % DIFFERENT]) for number in range(traces))
    numbers = itertools.count()
    print(json.dumps({"spans": count, "bytes": sum(map(len, bodies))}), flush=True)

    def client(_: int) -> None:
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        while (number := next(numbers)) < traces:
            connection.request("POST", address.path, bodies[number], {"Content-Type": "application/x-protobuf"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"the receiver answered {answer.status}")

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, range(CLIENTS)))
    return {"spans": count}


if __name__ == "__main__":
    where, number = sys.argv[1], int(sys.argv[2])
    print(json.dumps(send(where, number) if where.startswith("http") else receive(Path(where), number)), flush=True)
