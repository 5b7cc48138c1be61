"""The text of a matrix for the record: the passwords of all addresses are masked, in comments, too.

Promises: keys and values are decoded as YAML before masking, so that no quote or escape hides a password. All other
text stays as written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pybench.masking import masked_text, masked_word


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """`text`, the text of a matrix, without the passwords of its addresses and without `secrets` anywhere."""
    known = frozenset(secrets)
    kept: list[str] = []
    end = 0
    for node in _scalars(text):
        masked = masked_word(node.value)
        if masked == node.value or node.start_mark.index < end:
            continue
        begin = node.start_mark.index
        kept += [masked_text(text[end:begin], known), _written(masked)]
        end = node.end_mark.index
        if text[begin:end].endswith("\n"):
            kept.append("\n")  # The node of a block scalar includes the end of its line.
    return "".join([*kept, masked_text(text[end:], known)])


def _scalars(text: str) -> list[ScalarNode]:
    try:
        root = YAML(typ="safe", pure=True).compose(text)
    except YAMLError:
        return []
    return sorted(_below(root, set()), key=lambda node: int(node.start_mark.index))


def _below(node: Node | None, seen: set[int]) -> Iterator[ScalarNode]:
    # An alias is the same node as its anchor, and has one position in the text.
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, ScalarNode):
        yield node
    elif isinstance(node, SequenceNode):
        for item in node.value:
            yield from _below(item, seen)
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            yield from _below(key, seen)
            yield from _below(value, seen)


def _written(text: str) -> str:
    """`text` as a YAML scalar: without quotes where that is safe."""
    is_plain = text[:1].isalpha() and not set(text) & set(" #,[]{}\"'\\\n\t") and not text.endswith(":")
    return text if is_plain else "'{}'".format(text.replace("'", "''"))
