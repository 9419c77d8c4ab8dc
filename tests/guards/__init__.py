"""Each guard of the product switched off in turn: a test that is named beside it must then fail (`make guards`).

One row in `rows/*.toml` for each promise, each rule and each mechanism that they rest on. Whether every other line is
tested is for `make mutants` to say.
"""
