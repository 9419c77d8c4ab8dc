"""Publishers: X, Telegram, Discord, and a folder for a person to send from.

`publisher` makes the texts and passes each post to its network; each network is a class of `networks` and a function
that builds it from the environment. Making texts needs no network. A network sends each post at most once, never
retries, and distinguishes certain failures from doubt.
"""
