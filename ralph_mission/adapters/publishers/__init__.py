"""Where posts go: X, Telegram, Discord, and a folder for a person to send from.

`press` makes the texts and hands each post to its network; each network is a module with a `build` that takes the
environment. Making a text asks nobody. A network says each post at most once, never tries again, and tells apart what
certainly did not get through from what perhaps did.
"""
