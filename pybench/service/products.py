"""`POST /reset` and `GET /stock/{product_id}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

from pybench.service.answers import Answer, Problem, invalid, result, unavailable
from pybench.service.calls import parsed
from pybench.service.models import ResetRequest, checked_name
from pybench.service.stock import StockLost

if TYPE_CHECKING:
    from pybench.service.calls import Call
    from pybench.service.stock import Stock

STOCK_PATH: Final = "/stock/"


class Products:
    """The handlers."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock

    async def reset(self, call: Call) -> Answer:
        """Set the stock of a product. Raises Problem."""
        asked = parsed(ResetRequest, await call.body())
        call.resource = str(asked.product_id)
        try:
            await self._stock.reset(str(asked.product_id), asked.stock)
        except StockLost as lost:
            raise unavailable(f"the server of the stock: {lost}") from None
        return result({"status": "ok", "product_id": asked.product_id, "stock": asked.stock})

    async def read(self, call: Call) -> Answer:
        """The stock of a product. Raises Problem."""
        name = call.raw_path.removeprefix(STOCK_PATH.encode())
        try:
            product = checked_name(unquote_to_bytes(name).decode())
        except UnicodeDecodeError:
            raise invalid("the path is not UTF-8") from None
        except ValueError as error:
            raise invalid(f"the product {error}") from None
        call.resource = product
        try:
            stock = await self._stock.read(product)
        except StockLost as lost:
            raise unavailable(f"the server of the stock: {lost}") from None
        if stock is None:
            raise Problem(404, "Product not found", "POST /reset sets its stock")
        return result({"product_id": product, "stock": stock})
