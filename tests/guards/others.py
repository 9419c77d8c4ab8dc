"""What has no guard of its own, and why: folders of the product, and modules whose neighbours have some."""

from __future__ import annotations

WITHOUT = {
    "ralph_mission/agents": "how clients are called; what runs is kept apart by gateways/process and isolation",
    "ralph_mission/bootstrap": "puts parts together; what each part may do is decided in the part",
    "ralph_mission/cli": "parsing and printing; every effect goes through acting, flows or a store",
    "ralph_mission/config": "settings are read by strict_yaml and typed; ceilings hold in policy",
    "ralph_mission/embedding.py": "the loop without files: scope and limits are the loop's own",
    "ralph_mission/flows": "stories over the same gate (acting, policy, ledger), which holds for each of them",
    "ralph_mission/forges": "what is done there is decided before; merging, sending and identity have their guards",
    "ralph_mission/gateways": "wrapped system calls; what they refuse is refused by the modules that have guards",
    "ralph_mission/hands": "fixers: text in, text out; objections measure what they made",
    "ralph_mission/loop": "prompts, stories and teams; completion, scope, limits and routing end and bound them",
    "ralph_mission/mission": "words and steps; what leaves is judged by rules and sent by acting",
    "ralph_mission/observers": "they only read; what they saw is redacted by gathering and quoted by wording",
    "ralph_mission/publishers": "wording for each network; the wire, the facts and public_text have the guards",
    "ralph_mission/report": "told to people: texts are made inert by safety/text, outputs fenced",
    "ralph_mission/safety": "what these hold is a part of what their neighbours look for",
    "ralph_mission/servers": "tools over the same locked files as the commands of their names",
    "ralph_mission/stores": "files and objects; position, provenance and branch say what may be believed",
    "ralph_mission/thinkers": "a model's words; the answer is checked and only rearranges what rules found",
    "ralph_mission/trouble.py": "an error's words",
    "ralph_mission/wakers": "what a wake needs; how many there are is decided by schedule",
    "ralph_mission/__main__.py": "an entry",
}
