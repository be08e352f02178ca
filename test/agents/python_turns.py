"""Takes turns of one conversation by OpenAI's unmodified SDKs: for each line of stdin, a JSON list of new items, one line of stdout."""

import asyncio
import json
import os
import sys

import httpx2
from agents import Agent, ModelSettings, OpenAIConversationsSession, OpenAIResponsesModel, Runner, function_tool
from agents import set_tracing_disabled
from openai import AsyncOpenAI

by, streamed = sys.argv[1], sys.argv[2] == "streamed"
model = os.environ["MODEL"]
settings = {"max_output_tokens": 100, "temperature": 0}
sent = {}


async def on_request(request):
    if request.method == "POST" and request.url.path == "/v1/responses":
        body = json.loads(request.content)
        sent.update(bytes=len(request.content), items=len(body["input"]))


async def on_response(response):
    if response.request.method == "POST" and response.request.url.path == "/v1/responses":
        sent.update(session=response.headers.get("x-session-id"), cache=response.headers.get("x-context-cache"))


client = AsyncOpenAI(
    base_url=os.environ["GATEWAY_URL"] + "/v1",
    api_key="test-key",
    max_retries=0,
    default_headers={"routing-strategy": "round-robin"},
    http_client=httpx2.AsyncClient(event_hooks={"request": [on_request], "response": [on_response]}, timeout=100),
)
state = {}


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return city


tool = {"type": "function", "name": weather.name, "description": weather.description, "parameters": weather.params_json_schema, "strict": True}


async def sdk_turn(items):
    if by == "conversation" and not state:
        state["conversation"] = (await client.conversations.create()).id
    request = {"model": model, "tools": [tool], "input": items, **settings, **state}
    if streamed:
        async for event in await client.responses.create(stream=True, **request):
            if event.type in ("response.completed", "response.incomplete"):
                answer = event.response
    else:
        answer = await client.responses.create(**request)
    if by == "previous_response_id":
        state["previous_response_id"] = answer.id
    return answer.usage


session = OpenAIConversationsSession(openai_client=client)


async def agents_turn(items):
    extra = {"prompt_cache_key": sys.argv[2]} if by == "agents session" else {}
    agent = Agent(
        name="agent",
        instructions="Be brief.",
        model=OpenAIResponsesModel(model=model, openai_client=client),
        model_settings=ModelSettings(max_tokens=100, temperature=0, extra_args=extra, store=not extra),
        tools=[weather],
    )
    if by == "agents conversation" and not state:
        state["conversation_id"] = (await client.conversations.create()).id
    options = {"session": session} if by == "agents session" else dict(state)
    if by == "agents previous_response_id":
        options["auto_previous_response_id"] = True
    if streamed:
        result = Runner.run_streamed(agent, items, **options)
        async for _ in result.stream_events():
            pass
    else:
        result = await Runner.run(agent, items, **options)
    last = result.raw_responses[-1]
    if by == "agents previous_response_id":
        state["previous_response_id"] = last.response_id
    return last.usage


async def main():
    set_tracing_disabled(True)
    turn = agents_turn if by.startswith("agents ") else sdk_turn
    while line := await asyncio.to_thread(sys.stdin.readline):
        usage = await turn(json.loads(line))
        cached = usage.input_tokens_details.cached_tokens
        tokens = {"input": usage.input_tokens, "output": usage.output_tokens, "cached": cached}
        print(json.dumps({**sent, "tokens": tokens}), flush=True)


asyncio.run(main())
