"""Charts: small pictures that never raise."""

from datetime import UTC, datetime, timedelta

import pytest

from ralph_mission.adapters.publishers.publisher import MOST, chart_of, png
from ralph_mission.mission.model.forge import Chart
from ralph_mission.mission.model.mission import Signal

START = datetime(2026, 2, 16, tzinfo=UTC)


def points(*values: float) -> tuple[tuple[datetime, float], ...]:
    return tuple((START + timedelta(hours=at), value) for at, value in enumerate(values))


def test_a_chart_is_a_small_png() -> None:
    picture = png(Chart("APR of $x$ & <b>", "% $_{", points(1, 5, 2), "alt"))
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert 5_000 < len(picture) < 200_000


@pytest.mark.parametrize("values", [(float("nan"),), (1e308, -1e308, 1e308), (0.0, 0.0, 0.0), ()])
def test_whatever_the_values_are_drawing_raises_nothing(values: tuple[float, ...]) -> None:
    assert isinstance(png(Chart("t", "", points(*values), "alt")), bytes)


def test_letters_that_no_font_has_are_no_noise(recwarn: pytest.WarningsRecorder) -> None:
    assert png(Chart("日本 👩🏽\u200d🚀", "円", points(1, 5, 2), "alt")).startswith(b"\x89PNG")
    assert not list(recwarn)


def test_many_values_are_thinned_and_the_words_know_all_of_them() -> None:
    values = [float(at % 97) for at in range(5_000)]
    made = chart_of(Signal("database", "anomaly", "t", ("e",), series=points(*values)), "Hub")
    assert made is not None
    assert len(made.points) == MOST
    assert (made.points[0], made.points[-1]) == (points(*values)[0], points(*values)[-1])
    assert "5000 values: first 0, last 52, lowest 0, highest 96." in made.alt


def test_values_that_are_no_numbers_do_not_count() -> None:
    signal = Signal("database", "anomaly", "t", ("e",), series=points(1, float("nan"), float("inf"), 2))
    assert chart_of(signal, "Hub") is None


@pytest.mark.parametrize("values", [(1e24, 2e24, 3e24), (1e308, -1e308, 1e308), (5e-324, 0.0, 1.0)])
def test_numbers_of_any_size_are_told_in_words(values: tuple[float, ...]) -> None:
    made = chart_of(Signal("database", "anomaly", "t", ("e",), series=points(*values)), "Hub")
    assert made is not None
    assert "3 values: first" in made.alt
