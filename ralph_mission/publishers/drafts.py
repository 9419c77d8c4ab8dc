"""Our own words for pieces of content, by the sort of a watch: a person reads them before they are said.

Only what the owner asked to be announced is said at once in these words.
"""

from __future__ import annotations

from collections.abc import Mapping

TEXTS: Mapping[str, str] = {
    "change": "{{ about }}: {{ watch | label }} went {{ direction }}"
    "{% if change_percent is defined %} by {{ change_percent | abs | percent }}{% endif %},"
    " from {{ previous | thousands }} to {{ value | thousands }}{{ unit | default('') }}.",
    "new_since": "New in {{ watch | label }}: {{ about }}.",
    "top": "{{ watch | label | capitalize }}:{% for one in rows %}\n\n{{ loop.index }}. {{ one | names }}"
    "{% if one[order_by] is defined %} ({{ one[order_by] | thousands }}){% endif %}{% endfor %}",
    "where": "{{ watch | label | capitalize }}: {{ about }}.",
    "threshold": "{{ about }}: {{ watch | label }} is {{ value | thousands }}{{ unit | default('') }},"
    " {{ direction }} {{ limit | thousands }}{{ unit | default('') }}.",
    "outlier": "{{ about }}: {{ watch | label }} is {{ value | thousands }}{{ unit | default('') }},"
    " usual is {{ usual | thousands }}{{ unit | default('') }}.",
    "missing": "{{ about }}: nothing new in {{ watch | label }}"
    "{% if age is defined %} for {{ age | thousands }} hours{% endif %}.",
}
"""By the fact `sort` of a watch. Tests render each of them."""

COMPLETED = "completed"
ANNOUNCEMENT = (
    "Merged: {{ what }}, pull request {{ pull }}"
    "{% if days > 1 %}, {{ days }} days after it was found{% elif days == 1 %}, a day after it was found{% endif %}."
)
"""Of a mission that came to its end."""
