from __future__ import annotations

import pytest
from pydantic import SecretStr

from pybench.errors import InputError
from pybench.servers.postgres import PostgresEndpoint


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann@h/db", "postgresql://ann@h:5432/db"),
        ("postgres://ann@h:7000/db", "postgresql://ann@h:7000/db"),
        ("PostgreSQL://ann@h/db", "postgresql://ann@h:5432/db"),
        ("postgresql://ann@h", "postgresql://ann@h:5432/ann"),
        ("postgresql://ann:pw@[::1]:6000/db", "postgresql://ann:***@[::1]:6000/db"),
        ("postgresql://ann@/db?host=/run/pg", "postgresql://ann@/db?host=/run/pg"),
        ("postgresql:///db?host=/run/pg&user=ann&port=6000", "postgresql://ann@/db?host=/run/pg&port=6000"),
        ("postgresql://ann@%2Frun%2Fpg/db", "postgresql://ann@/db?host=/run/pg"),
        ("postgresql://ann@/db", "postgresql://ann@/db?host=/var/run/postgresql"),
        ("postgresql://a%40b@h/d%2Fb?sslmode=prefer", "postgresql://a%40b@h:5432/d%2Fb"),
        ("postgresql://ann@name/db?hostaddr=10.0.0.1", "postgresql://ann@10.0.0.1:5432/db"),
    ],
)
def test_a_url_is_read_and_shown_again(url: str, shown: str):
    endpoint = PostgresEndpoint.parse(url)
    assert str(endpoint) == shown
    assert PostgresEndpoint.parse(endpoint.address).address == endpoint.address


def test_the_user_is_whoever_we_are_where_none_is_named():
    import getpass

    assert PostgresEndpoint.parse("postgresql://h/db").user == getpass.getuser()


def test_a_name_of_ours_that_is_not_utf_8_is_no_user(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOGNAME", "us\udcffer")
    with pytest.raises(InputError, match="is not UTF-8") as caught:
        PostgresEndpoint.parse("postgresql://h/db")
    assert caught.value.message.isprintable()
    assert PostgresEndpoint.parse("postgresql://ann@h/db").user == "ann"


def test_a_socket_has_the_port_in_its_name():
    assert PostgresEndpoint.parse("postgresql:///db?host=/run/pg/&port=6000").unix == "/run/pg/.s.PGSQL.6000"
    assert PostgresEndpoint.parse("postgresql://h/db").unix is None


def test_special_characters_of_a_password_are_decoded_once():
    endpoint = PostgresEndpoint.parse("postgresql://us%40er:p%40%2F%23%25@h/db")
    assert endpoint.user == "us@er"
    assert endpoint.password is not None
    assert endpoint.password.get_secret_value() == "p@/#%"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("redis://:hush@h", "not the URL of a Postgres database"),
        ("u:hush@h:5432", "not the URL of a Postgres database"),
        ("host=h password=hush", "not the URL of a Postgres database"),
        ("", "not the URL of a Postgres database"),
        ("postgresql://u:hush@h/db?sslmode=require", "TLS comes in a later step"),
        ("postgresql://u:hush@h/db?sslmode=verify-full", "TLS comes in a later step"),
        ("postgresql://u:hush@h/db?sslrootcert=/x", "unknown option 'sslrootcert'"),
        ("postgresql://u:hush@h/db?connect_timeout=1", "unknown option 'connect_timeout'"),
        ("postgresql://u:hush@h/db?options=-cfsync%3Doff", "unknown option 'options'"),
        ("postgresql://u:hush@h/db?nonsense=1", "cannot be parsed"),
        ("postgresql://u:hush@h1,h2/db", "several servers"),
        ("postgresql://u:hush@h:port/db", "port"),
        ("postgresql://u:hush@h:99999/db", "port"),
        ("postgresql://u:hu#sh@h/db", "'#'"),
        ("postgresql://u:hu?sh@h/db", "'?'"),
        ("postgresql://u:hush hush@h/db", "white space"),
        ("postgresql://u@h/db?user=v;password=hush", "';'"),
        ("postgresql://h/db;password=hush", "';'"),
        ("postgresql://h/db%3Fpassword=hush", "option where none"),
        ("postgresql://h/db?user=v%3Bpassword=hush", "goes on with another option"),
        ("postgresql://u%3Ahush@h/db", "its user holds a colon"),
        ("postgresql://u:hush%ff@h/db", "not UTF-8"),
        ("postgresql://u:hush\udcff@h/db", "not UTF-8"),
        ("postgresql://u:hush@h/la\udcffb", "not UTF-8"),
        ("postgresql://u:hush@h/db%00", "zero byte"),
        (f"postgresql://u:hush@h/db?port={'9%' * 5000}", "cannot be parsed"),
        (f"postgresql://u:hush@h/db?port={'9' * 5000}", "port"),
        ("postgresql://u:hush@h/db?port=\u0663", "port"),
        # A client would take hush@h for the host of the first, and u for that of the second.
        ("postgresql://u:hu@hush@h/db", "unescaped '@'"),
        ("postgresql://u:12/hush@h/db", "unescaped '@'"),
    ],
)
def test_what_cannot_be_used_is_refused_without_showing_the_password(url: str, told: str):
    with pytest.raises(InputError) as caught:
        PostgresEndpoint.parse(url)
    assert told in caught.value.message
    assert caught.value.hint
    assert len(caught.value.message) < 500
    assert caught.value.message.isprintable()
    assert caught.value.__cause__ is None
    for piece in ("hush", "hu#sh", "hu?sh", "sh@"):
        assert piece not in str(caught.value)


def test_no_text_made_from_an_endpoint_shows_the_password():
    endpoint = PostgresEndpoint.parse(SecretStr("postgresql://ann:hush@h/db"))
    for text in (str(endpoint), repr(endpoint), endpoint.address):
        assert "hush" not in text
