"""`ralph.yml` as a frozen value, composed from each adapter's own Settings, and its JSON Schema; `fleet.yml` beside it.

`settings` defines the options, `reading` parses a file or explains its errors. `fleet` does both for `fleet.yml`,
without pydantic: a fleet's gate reads it without an installation.
"""
