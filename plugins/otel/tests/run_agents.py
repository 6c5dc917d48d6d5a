"""Run an agent of OpenAI's Agents SDK with a tool, and write its spans and its conversation to files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

folder, url = Path(sys.argv[1]), sys.argv[2]


@function_tool
def weather(city: str) -> str:
    """Return the weather."""
    return "22C"


with (folder / "spans.json").open("w") as spans:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=spans)))
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
    model = OpenAIChatCompletionsModel("m-1", AsyncOpenAI(base_url=url, api_key="none", max_retries=0))
    agent = Agent("helper", instructions="Be brief.", model=model, tools=[weather], model_settings=ModelSettings())
    result = Runner.run_sync(agent, "Weather in Rome?")
    provider.shutdown()
(folder / "items.json").write_text(json.dumps({"messages": result.to_input_list()}))
