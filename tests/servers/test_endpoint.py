from __future__ import annotations

import pytest
from pydantic import SecretStr

from pybench.errors import InputError
from pybench.servers import Endpoint
from pybench.servers.redis.conversation import Refusal
from pybench.servers.redis.refusals import refused


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://localhost", "redis://localhost:6379/0"),
        ("redis://", "redis://localhost:6379/0"),
        ("REDIS://10.0.0.1:7000/4", "redis://10.0.0.1:7000/4"),
        ("redis://[::1]:6380", "redis://[::1]:6380/0"),
        ("redis://h?db=3", "redis://h:6379/3"),
        ("redis://:pw@h", "redis://:***@h:6379/0"),
        ("redis://ann:pw@h:1/2", "redis://ann:***@h:1/2"),
        ("redis://ann@h", "redis://***@h:6379/0"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("unix:///run/redis.sock?db=2", "unix:///run/redis.sock?db=2"),
        ("unix://:pw@/run/my%20redis.sock", "unix://:***@/run/my%20redis.sock"),
    ],
)
def test_a_url_is_read_and_shown_again(url: str, shown: str):
    endpoint = Endpoint.parse(url)
    assert str(endpoint) == shown
    assert Endpoint.parse(endpoint.address).address == endpoint.address


def test_special_characters_of_a_password_are_decoded_once():
    endpoint = Endpoint.parse("redis://us%40er:p%40%2F%23%25@h")
    assert endpoint.username == "us@er"
    assert endpoint.password is not None
    assert endpoint.password.get_secret_value() == "p@/#%"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("rediss://:hush@h", "TLS comes in a later step"),
        ("redis+sentinel://:hush@h/name", "Sentinel comes in a later step"),
        ("redis+cluster://:hush@h", "Cluster comes in a later step"),
        ("postgresql://u:hush@h/db", "is not the URL of a Redis server"),
        ("http://u:hush@h", "not the URL of a Redis server"),
        ("u:hush@h:6379", "not the URL of a Redis server"),
        ("", "not the URL of a Redis server"),
        ("redis://:hush@h:port", "cannot be parsed"),
        ("redis://:hush@h:99999", "cannot be parsed"),
        ("redis://:hu/sh@h", "not a number"),
        ("redis://:hu#sh@h", "'#'"),
        ("redis://:hu?sh@h", "'?'"),
        ("redis://:hush hush@h", "white space"),
        ("redis://:hush\thush@h", "white space"),
        ("redis://:hush@h/nine", "not a number"),
        ("redis://:hush@h?db=nine", "not a number"),
        ("redis://h?socket_timeout=1&password=hush", "unknown option 'socket_timeout'"),
        ("unix:///tmp/x.sock?db=0;password=hush", "';'"),
        ("redis://h:1/0;password=hush", "';'"),
        ("redis://h/0%3Bpassword=hush", "option where none"),
        ("redis://h?db=0%26password=hush", "goes on with another option"),
        ("redis://u%3Ahush@h", "its user holds a colon"),
        ("redis://h?db=0&username=u:hush", "its user holds a colon"),
        ("redis://:hush%ff@h", "not UTF-8"),
        ("redis://:hush\udcff@h", "not UTF-8"),
        ("unix:///tmp/a\udcff.sock?password=hush", "not UTF-8"),
        ("unix:///tmp/a%00.sock?password=hush", "zero byte"),
        (f"redis://:hush@h/{'9' * 4400}", "not a number"),
        ("redis://:hush@h/2147483648", "not a number"),
        ("redis://:hush@h?db=\u0663", "not a number"),
        ("unix://run/redis.sock", "three slashes"),
        ("unix://", "three slashes"),
    ],
)
def test_what_cannot_be_used_is_refused_without_showing_the_password(url: str, told: str):
    with pytest.raises(InputError) as caught:
        Endpoint.parse(url)
    assert told in caught.value.message
    assert caught.value.hint
    assert len(caught.value.message) < 500
    assert caught.value.message.isprintable()
    assert caught.value.__cause__ is None
    for piece in ("hush", "hu/sh", "hu#sh", "hu?sh", "sh@"):
        assert piece not in str(caught.value)


def test_no_text_made_from_an_endpoint_shows_the_password():
    endpoint = Endpoint.parse(SecretStr("redis://ann:hush@h"))
    alone = Endpoint.parse("redis://hush@h")
    for text in (str(endpoint), repr(endpoint), endpoint.address, f"{endpoint}", str(alone), repr(alone)):
        assert "hush" not in text
    assert alone.username == "hush"


def test_a_user_that_stands_alone_is_told_where_a_password_stands():
    endpoint = Endpoint.parse("redis://hush@h")
    for reply in ("WRONGPASS invalid username-password pair", "NOAUTH Authentication required."):
        error = refused(endpoint, Refusal(reply))
        assert error.hint is not None
        assert "redis://:PASSWORD@HOST" in error.hint
    assert "hush" not in str(refused(endpoint, Refusal("ERR unknown command, with args beginning with: 'hush'")))
    named = refused(Endpoint.parse("redis://ann:pw@h"), Refusal("WRONGPASS invalid username-password pair"))
    assert named.hint == "check both; special characters as %XX"


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost:6379/0",
        "redis://ann:p%40ss%2Fword@[::1]:6380/2",
        "redis://:secret@localhost:6379/0",
        "redis://ann@localhost:6379/0",
        "unix:///run/redis.sock",
        "unix://ann:p%3Ass@/run/redis.sock?db=3",
    ],
)
def test_the_whole_url_of_an_endpoint_is_read_as_the_same_endpoint(url: str):
    endpoint = Endpoint.parse(url)
    assert Endpoint.parse(endpoint.url) == endpoint
    assert "secret" not in f"{endpoint} {endpoint.url}"
