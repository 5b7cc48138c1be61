"""Postgres servers: find them, start them, ask them, and leave nothing behind. Brings psycopg along."""

from __future__ import annotations
