"""An agent that speaks the Agent Client Protocol, by the SDK's own side of it. The prompt is its script, as JSON."""

import asyncio
import json
import os
import subprocess
import sys

import acp
from acp import helpers
from acp.schema import (
    Cost,
    EnvVarAuthMethod,
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SetSessionConfigOptionResponse,
    ToolCallUpdate,
    Usage,
    UsageUpdate,
)

OPTIONS = [
    PermissionOption(option_id="always", name="Always", kind="allow_always"),
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class Scripted(acp.Agent):
    """Plays the steps of its prompt. `model` is what it was told to use."""

    model = login = ""

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **more):
        key = EnvVarAuthMethod(type="env_var", id="key", name="A key", vars=[{"name": "RALPH_HAT"}])
        other = EnvVarAuthMethod(type="env_var", id="other", name="Another", vars=[{"name": "NO_SUCH_KEY"}])
        return InitializeResponse(protocol_version=protocol_version, auth_methods=[other, key])

    async def authenticate(self, method_id, **more):
        self.login = method_id

    async def new_session(self, cwd, mcp_servers=None, **more):
        if os.environ.get("RALPH_HAT") == "nobody":
            raise acp.RequestError.auth_required({"reason": "log in first"})
        assert self.login == "key"
        models = [SessionConfigSelectOption(value="some-model", name="Some")]
        option = SessionConfigOptionSelect(
            id="model", name="Model", category="model", type="select", current_value="", options=models
        )
        return NewSessionResponse(session_id="s1", config_options=[option])

    async def set_config_option(self, config_id, session_id, value, **more):
        self.model = value
        return SetSessionConfigOptionResponse(config_options=[])

    async def prompt(self, session_id, prompt, **more):
        for number, step in enumerate(json.loads(prompt[0].text)):
            ((verb, given),) = step.items()
            await getattr(self, f"do_{verb}")(session_id, f"call-{number}", given)
        usage = Usage(total_tokens=12, input_tokens=7, output_tokens=3, cached_read_tokens=2)
        return PromptResponse(stop_reason="end_turn", usage=usage)

    async def do_say(self, session, call, text):
        for word in text.replace("MODEL", self.model).split(" "):
            await self.client.session_update(session, helpers.update_agent_message_text(word + " "))

    async def do_cost(self, session, call, amount):
        cost = Cost(amount=amount, currency="USD")
        await self.client.session_update(
            session, UsageUpdate(session_update="usage_update", used=10, size=100, cost=cost)
        )

    async def do_write(self, session, call, given):
        path, text = given
        try:
            await self.client.write_text_file(session_id=session, path=path, content=text)
        except acp.RequestError as error:
            await self.do_say(session, call, f"refused: {error.data}")

    async def do_read(self, session, call, path):
        found = await self.client.read_text_file(session_id=session, path=path)
        await self.do_say(session, call, f"read: {found.content}")

    async def do_ask(self, session, call, given):
        kind, title, raw, path = given
        locations = [{"path": path}] if path else []
        update = ToolCallUpdate(tool_call_id=call, title=title, kind=kind, raw_input=raw, locations=locations)
        await self.client.session_update(session, helpers.start_tool_call(call, title, kind=kind, raw_input=raw))
        answer = await self.client.request_permission(session_id=session, tool_call=update, options=OPTIONS)
        chosen = getattr(answer.outcome, "option_id", "cancelled")
        if kind == "execute" and chosen == "yes":
            subprocess.run(["/bin/sh", "-c", raw["command"]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await self.do_say(session, call, f"{title}: {chosen};")

    async def do_die(self, session, call, code):
        print("it crashed", file=sys.stderr, flush=True)
        os._exit(code)


if __name__ == "__main__":
    asyncio.run(acp.run_agent(Scripted()))
