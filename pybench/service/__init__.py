"""`pybench serve`: the locks as an HTTP service that load generators such as Locust and k6 drive.

A request passes `front` (request id, limits, log, figures) to a handler of `purchases`, `products` or `lock_routes`.
These take locks from `locks`, which has one lock client for each strategy, and keep stock in `stock_redis` or
`stock_postgres`. A `link` watches each server. `serving` has the processes, sockets and signals. FastAPI serves what is
seldom asked: documents, health, figures.

Needs the packages of `pip install 'pybench[service]'`.
"""

from __future__ import annotations
