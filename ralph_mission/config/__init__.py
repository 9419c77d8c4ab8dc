"""`ralph.yml` as a frozen value, composed from each adapter's own Settings, and its JSON Schema; `fleet.yml` beside it.

`settings` says what can be configured, `reading` turns a file into it or explains what is wrong with the file. `fleet`
does both for `fleet.yml`, without pydantic: the gate of a fleet reads it where nothing is installed.
"""
