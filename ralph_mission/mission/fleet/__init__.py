"""A fleet: many repositories, one gate. Pure: due repositories, their order and budget (`plan`), and the models
(`model`). Each repository has its own memory; the fleet only records starts whose end it has not seen.
"""
