"""Deaths, faults and races, enumerated over every call: nothing twice, nothing lost, no limit broken.

Read in this order: `stages` (what is about to happen, from `setups`, and what must come of it, from `expected`),
`calls` (the calls of a stage), `fault_kinds` and `faults` (what may happen at one; `dying` is a death before or after
it), `cases` (strike one call, start again, compare by `ends`), `test_cases` (all of them). Runners at once are in
`interleaving` and `runners`; third parties that watch are `witness`, `history` and `limit_checks`.
"""
