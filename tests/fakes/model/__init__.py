"""A language model on loopback that says what a test wrote down: Anthropic, OpenAI (two dialects) and Gemini.

    with ScriptedModel([call("Write", file_path="a.py", content="1"), say("Done.")]) as model:
        ...  # a client at model.url with the key model.key
    assert model.said_all and not model.refused

Replies are given in order, one for each request of an agent. What a client asks besides (a title for its window,
whether its model exists) is answered without taking one. Nothing that is not known here is answered: it is refused, and
stands in `refused`. Every request is in `journal`.
"""

from tests.fakes.model.script import Call, Fault, Reply, Text, call, fault, say
from tests.fakes.model.server import KEY, Request, ScriptedModel

__all__ = ["KEY", "Call", "Fault", "Reply", "Request", "ScriptedModel", "Text", "call", "fault", "say"]
