"""Proof of claims about code: what a claim says, what its runs have to show, and the verdict. Pure."""
