"""Findings: identity, what people forbade, overlap with people's work, ranking, engagement."""
