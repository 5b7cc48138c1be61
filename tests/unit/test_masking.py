from __future__ import annotations

import itertools
from urllib.parse import quote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pybench.errors import InputError
from pybench.masking import masked_argument, masked_text, masked_url, masked_word, secrets_of, unknown_option, without
from pybench.matrix.backends import parse_url
from pybench.matrix.masked_text import without_secrets
from pybench.notation import shown
from pybench.servers import Endpoint
from pybench.servers.postgres import PostgresEndpoint


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("redis://:s3cret@db:6379/0", "redis://:***@db:6379/0"),
        ("redis://ann:s3cret@db", "redis://ann:***@db"),
        ("rediss://ann:p@ss@db:1", "rediss://ann:***@db:1"),
        ("redis://:se://cret@h", "redis://:***@h"),
        ("postgresql://u:se://cret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://ann:pa/ss@db/app", "postgresql://ann:***@db/app"),
        ("postgresql://h/db?p%61ssword=s3cret", "postgresql://h/db?p%61ssword=***"),
        ("postgresql:///db?password=s&host=x", "postgresql:///db?password=***&***"),
        ("unix://ann:it's@/run/redis.sock", "unix://ann:***@/run/redis.sock"),
        ("REDIS://ANN:S3CRET@DB", "REDIS://ANN:***@DB"),
        ("redis://db:6379?password=s3cret&db=1", "redis://db:6379?password=***&db=1"),
        ("redis://db?password=it's&db=1", "redis://db?password=***&db=1"),
        ("redis://:hu?sh@h", "redis://***"),
        ("redis://ann:hush", "redis://ann:***"),
        ("u:hush@h:6379", "***:***@h:6379"),
        ("host=h password=hush", "host=***"),
        ("redis://db:6379/0", "redis://db:6379/0"),
        ("redis://[::1]:6380/2", "redis://[::1]:6380/2"),
        ("postgresql://ann@db/app", "postgresql://ann@db/app"),
        ("redis://hush@db:6379", "redis://***@db:6379"),
        ("redis://db?username=hush", "redis://db?username=***"),
        ("redis://ann@db?password=hush", "redis://ann@db?password=***"),
        ("redis://${USER}@db:6379", "redis://${USER}@db:6379"),
        ("redis://u%3Ahush@h", "redis://***@h"),
        ("postgresql://u%253Ahush@h/db", "postgresql://***@h/db"),
        ("postgresql:///db?user=u%3Ahush&port=1", "postgresql:///db?user=***&port=1"),
        ("redis://h?db=0&username=u:hush", "redis://h?db=0&username=***"),
        ("redis-cli -h 127.0.0.1 -a hush", "redis-cli ***"),
        ("hush4 -a hush", "***"),
        ("redis://h:1/0 -a hush", "redis://h:1/0 ***"),
        ("redis://h:1/0 -a hu@sh", "redis://***"),
        ("unix:///tmp/x.sock?db=0;password=hush", "unix:///tmp/x.sock?db=***"),
        ("redis://h:1/0;password=hush", "redis://h:1/0***"),
        ("redis://h:hush/0;x=1", "redis://h:***"),
        ("postgresql://h/lab%253Fpassword=hush", "postgresql://h/lab***"),
        ("postgresql://h/lab&sslpassword=hush", "postgresql://h/lab***"),
        ("postgresql://h/lab?user=v%3Bpassword=hush&port=1", "postgresql://h/lab?user=***&port=1"),
        ("postgresql:///db?host=/run/pg&user=ann&port=6000", "postgresql:///db?host=/run/pg&user=ann&port=6000"),
        ("redis://:${PW}@host", "redis://:${PW}@host"),
        ("redis://:${PW}x@host", "redis://:***@host"),
        ("redis://${HOST}:${PORT}/0", "redis://${HOST}:${PORT}/0"),
        ("${URL}", "${URL}"),
    ],
)
def test_an_address_keeps_everything_but_its_password(text: str, kept: str):
    assert masked_url(text) == kept


def test_an_address_is_masked_inside_of_other_text():
    assert masked_word("--redis=rediss://ann:p@ss@db:1") == "--redis=rediss://ann:***@db:1"
    assert masked_text("# was redis://u:1@h and redis://v:2@i") == "# was redis://u:***@h and redis://v:***@i"
    assert masked_text("hold: 2ms  # see https://example.org/a:b") == "hold: 2ms  # see https://example.org/a:b"
    assert masked_argument("nightly-hush1", secrets_of("redis://:hush1@h")) == "nightly-***"


def test_secrets_that_overlap_leave_no_end_of_either():
    assert without("a hush@word b word", {"hush@", "h@word"}) == "a *** b word"
    assert without("aaaaab", {"aaaa"}) == "***b"
    url = "redis://127.0.0.1:1?p%61ssword=hush@word"
    assert "word" not in without(url.partition("p%61ssword")[2], secrets_of(url))


def test_each_piece_behind_a_hidden_option_is_a_secret():
    for url in ("redis://h:1/0;password=hush1?hush2", "redis://h:1/0;password=hush1@hush2"):
        assert {"hush1", "hush2"} <= secrets_of(url)


def test_each_word_of_a_client_call_may_be_its_secret():
    assert secrets_of("redis-cli -h db -a hush1,hush2") == {"hush1,hush2"}
    assert secrets_of("psql -W hush1 shop") == {"hush1", "shop"}


def test_an_option_is_named_unless_it_may_be_a_piece_of_a_password():
    assert unknown_option("db=1&timeout=2", {"db"}) == "unknown option 'timeout'"
    assert unknown_option("password=a&hush=b", {"password"}) == "the address has an unknown option"
    assert unknown_option("db=1&password=x", {"db", "password"}) is None


MATRIX = """\
backends:
  a: {url: "redis://:hu\\x73hush@h"}  # before: redis://u:oldhush@h
  b:
    urls: ['redis://u:hush%20hush@i', redis://v:hu,sh@j]
  c: {url: >-
    redis://:hushhush@k}
name: run-of-hushhush
"""


def test_the_text_of_a_matrix_keeps_no_password_however_it_is_written():
    kept = without_secrets(MATRIX.replace("{url: >-", "\n    url: >-\n  ").replace("@k}", "@k"), {"hushhush"})
    assert "hu" not in kept.replace("hush@", "!")
    assert "# before: redis://u:***@h" in kept
    assert "['redis://u:***@i', redis://v:***@j]" in kept or "[redis://u:***@i, redis://v:***@j]" in kept
    assert "name: run-of-***" in kept


BEGINS, ENDS = "Qx7bq", "zW9kv"
JUNK = st.text(st.sampled_from("/:@?#&=%;,[]{}()'\"\\ +$!~*aZ1é\u00a0"), max_size=6)
PASSWORDS = JUNK.map(lambda junk: f"{BEGINS}{junk}{ENDS}")
"""Two pieces that nothing else contains, around characters that take addresses apart."""

FORMS = (
    *("redis://:{}@h", "redis://u:{}@h:1/2", "unix://:{}@/p", "postgresql://u:{}@h/db", "postgres://u:{}@/db?host=/p"),
    *("redis://h?password={}", "redis://h?p%61ssword={}", "redis://h?db=1&password={}", "unix:///p?password={}&db=1"),
    *("postgresql://h/db?password={}", "postgresql://h/db?p%61ssword={}&user=u", "postgresql://h/db?sslpassword={}"),
    *("rediss://:{}@h", "http://u:{}@h", "u:{}@h", ":{}@h", "redis://u:{}", "redis://:{}@h:port", "redis://:{}@h/nine"),
    *("redis://:{}@h?x=1", "postgresql://u:{}@h/db?sslmode=require", "postgresql://u:{}@a,b/db", "host=h password={}"),
    *("redis-cli -h h -a {}", "psql -h h -W {} db", "redis://h -a {}", "redis://h:1/0 -a {}", "redis://h?db=0 -a {}"),
    *("unix:///p?db=0;password={}", "redis://h:1/0;password={}", "redis://h;password={}", "redis://h/0&password={}"),
    *("postgresql://u@h/db?user=v;password={}", "postgresql://h/db;password={}", "postgresql://h/db%3Fpassword={}"),
    *(
        "postgresql://h/db%253Bpassword%253D{}",
        "postgresql://h/db?user=v%3Bpassword={}",
        "redis://h?db=0%26password={}",
    ),
    *("redis://{}@h", "unix://{}@/p", "redis://h?username={}", "redis://u%3A{}@h", "postgresql://u%3A{}@h/db"),
    *("redis://h?db=0&username=u:{}", "redis://h?username=u%3A{}", "postgresql://h/db?user=u:{}"),
    *("redis://:{}@a..b", "redis://:{}@h:0", "redis://:{}@h/3?db=5", "postgresql://u:{}@a..b/db"),
)


def has_secret(text: str) -> bool:
    return BEGINS in text or ENDS in text


@given(password=PASSWORDS, form=st.sampled_from(FORMS), is_quoted=st.booleans())
@example(password=f"{BEGINS}://{ENDS}", form="redis://:{}@h", is_quoted=False)
@example(password=f"{BEGINS}://{ENDS}", form="u:{}@h", is_quoted=False)
@example(password=f"{BEGINS}&db={ENDS}", form="redis://h?password={}", is_quoted=False)
@example(password=f"{BEGINS}@{ENDS}", form="redis://h?password={}", is_quoted=False)
def test_no_text_made_of_an_address_shows_its_password(password: str, form: str, is_quoted: bool):
    # Where no host follows, what stands behind an @ is the host: nobody can tell it from the end of a password.
    assume(is_quoted or "@" not in password or not form.endswith("u:{}"))
    # What stands before a colon is the user, even where no more than a part of a password was meant by it.
    assume(is_quoted or ":" not in password or "://{}@" not in form)
    url = form.format(quote(password, safe="") if is_quoted else password)
    said = [masked_url(url), masked_word(f"--redis={url}"), shown(url)]
    for parse in (Endpoint.parse, PostgresEndpoint.parse, parse_url):
        try:
            endpoint = parse(url)
        except InputError as error:
            said += [str(error), repr(error)]
            said += [repr(error.__cause__)]
        else:
            said += [str(endpoint), repr(endpoint)]
    assert not [text for text in said if has_secret(text)]


@given(password=PASSWORDS, form=st.sampled_from(FORMS[:12]), quote_mark=st.sampled_from("'\""))
def test_no_secret_of_an_accepted_address_is_kept_with_the_matrix(password: str, form: str, quote_mark: str):
    url = form.format(quote(password, safe=""))
    written = url.replace("'", "''") if quote_mark == "'" else url.replace("\\", "\\\\").replace('"', '\\"')
    text = f"backends:\n  a: {{url: {quote_mark}{written}{quote_mark}}}  # {url}\nname: {quote(password, safe='')}\n"
    assert not has_secret(without_secrets(text, secrets_of(url)))


def test_each_form_of_a_secret_is_known():
    forms = itertools.chain.from_iterable(
        secrets_of(url) for url in ("redis://:p%40ss%2fword@h", "redis://h?password=p@ss/word")
    )
    assert {"p%40ss%2fword", "p@ss/word", "p%40ss%2Fword", "p%40ss/word"} <= set(forms)
