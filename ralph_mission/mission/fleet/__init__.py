"""A fleet: many repositories, one gate. Pure: who is due, in which order, within which budget (`plan`), and the nouns
(`model`). Each repository's memory stays its own; the fleet keeps only what it started and has not seen the end of.
"""
