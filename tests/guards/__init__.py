"""Each guard of the product switched off in turn: a test that is named beside it must then fail (`make guards`)."""
