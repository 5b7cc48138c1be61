from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.rewriting_proxy import joined, split, without_nx, without_owner, without_release

COMMANDS = st.lists(st.lists(st.binary(max_size=20), min_size=1, max_size=5), max_size=5)


@given(COMMANDS, st.data())
def test_commands_are_read_whole_wherever_their_bytes_are_cut(commands, data):
    sent = b"".join(joined(command) for command in commands)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=8)))
    read, rest = [], b""
    for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        whole, rest = split(rest + sent[begin:end])
        read += whole
    assert (read, rest) == (commands, b"")


def test_a_rule_changes_the_commands_that_it_is_about_and_no_others():
    take = [b"SET", b"NX", b"NX-token", b"NX", b"PX", b"100"]
    assert without_nx(take) == [b"SET", b"NX", b"NX-token", b"PX", b"100"]
    release = [b"DELIFEQ", b"key", b"token"]
    assert without_owner(release) == [b"DEL", b"key"]
    assert without_release(release)[0] == b"EVAL"
    for rule in (without_nx, without_owner, without_release):
        assert rule([b"GET", b"NX"]) == [b"GET", b"NX"]
    assert without_nx([b"SET", b"key", b"value"]) == [b"SET", b"key", b"value"]
