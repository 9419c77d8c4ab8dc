"""What providers ask for their models, as `genai-prices` has it in itself; imported when a price is needed."""

from __future__ import annotations


def listed_price(provider: str, model: str, read: int, written: int) -> float | None:
    """USD for tokens read and written; None when nobody lists this model."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    try:
        usage = Usage(input_tokens=read, output_tokens=written)
        return float(calc_price(usage, model, provider_id=provider.removesuffix("-chat")).total_price)
    except LookupError:
        return None
