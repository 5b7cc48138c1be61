//! Command templates: writing a command copies its bytes and patches in the index of its key and the token.

use locks::{Companion, Key, Token};

use crate::names::Index;
use crate::request::{push_bulk, push_head, push_pieces};

/// One argument of a command in a template.
pub(crate) enum Part<'a> {
    Text(&'a str),
    /// The lock's name.
    Key,
    /// The name of a companion key.
    Companion(Companion),
    /// The name of a companion key, with the token after it.
    OfToken(Companion),
    Token,
    /// Only after all others. The caller appends it, because its length varies.
    Number,
}

/// The bytes of a command, or of some of its arguments, with the first key and no token.
#[derive(Debug)]
pub(crate) struct Template {
    bytes: Box<[u8]>,
    /// Where the first name starts. Out of range in bytes without a key, which are never patched with one.
    key_at: usize,
    /// Where the other names start. Separate from the first, so that the usual command, about one key, has no loop.
    companions_at: Box<[usize]>,
    /// Where the token starts. Out of range in bytes without a token, as above.
    token_at: usize,
}

const TOKEN_LEN: usize = 32;

impl Template {
    /// A whole command without the numbers at its end. `name` is the first key's.
    pub(crate) fn new(parts: &[Part<'_>], name: &[u8]) -> Self {
        Self::lay_out(Some(parts.len()), parts, name)
    }

    /// A command in two halves; the caller appends `between` arguments between them.
    pub(crate) fn halves(first: &[Part<'_>], between: usize, second: &[Part<'_>], name: &[u8]) -> [Self; 2] {
        let arguments = first.len() + between + second.len();
        [
            Self::lay_out(Some(arguments), first, name),
            Self::lay_out(None, second, name),
        ]
    }

    /// Arguments of a command whose head is written elsewhere.
    pub(crate) fn fragment(parts: &[Part<'_>], name: &[u8]) -> Self {
        Self::lay_out(None, parts, name)
    }

    fn lay_out(arguments: Option<usize>, parts: &[Part<'_>], name: &[u8]) -> Self {
        const NO_TOKEN: &[u8] = &[b'?'; TOKEN_LEN];
        let mut bytes = Vec::new();
        let mut keys_at = Vec::new();
        let mut token_at = usize::MAX;
        if let Some(arguments) = arguments {
            push_head(&mut bytes, arguments);
        }
        for part in parts {
            match part {
                Part::Text(text) => push_bulk(&mut bytes, text.as_bytes()),
                Part::Key => keys_at.push(push_pieces(&mut bytes, &[name])),
                Part::Companion(companion) => {
                    let suffix = companion.suffix().as_bytes();
                    keys_at.push(push_pieces(&mut bytes, &[name, b":", suffix]));
                }
                Part::OfToken(companion) => {
                    let suffix = companion.suffix().as_bytes();
                    keys_at.push(push_pieces(&mut bytes, &[name, b":", suffix, b":", NO_TOKEN]));
                    token_at = bytes.len() - b"\r\n".len() - TOKEN_LEN;
                }
                Part::Token => token_at = push_pieces(&mut bytes, &[NO_TOKEN]),
                Part::Number => {}
            }
        }
        let (first, others) = keys_at.split_first().unwrap_or((&usize::MAX, &[]));
        Self {
            bytes: bytes.into_boxed_slice(),
            key_at: *first,
            companions_at: others.into(),
            token_at,
        }
    }

    /// Appends a template with one key and no token.
    #[inline]
    pub(crate) fn push(&self, out: &mut Vec<u8>, index: Index, key: Key) {
        self.copy_with_key(out, index, key);
    }

    /// Appends a template with one key and a token.
    #[inline]
    pub(crate) fn push_token(&self, out: &mut Vec<u8>, index: Index, key: Key, token: Token) {
        let command = self.copy_with_key(out, index, key);
        self.write_token(command, token);
    }

    /// Appends a template with a key, any companions of it and a token.
    pub(crate) fn push_companions(&self, out: &mut Vec<u8>, index: Index, key: Key, token: Token) {
        let command = self.copy_with_key(out, index, key);
        for &at in &self.companions_at {
            index.write(key, &mut command[at..]);
        }
        self.write_token(command, token);
    }

    /// Appends a template with a token and no key.
    pub(crate) fn push_keyless(&self, out: &mut Vec<u8>, token: Token) {
        let command = self.copy(out);
        self.write_token(command, token);
    }

    #[inline]
    fn copy_with_key<'a>(&self, out: &'a mut Vec<u8>, index: Index, key: Key) -> &'a mut [u8] {
        let command = self.copy(out);
        index.write(key, &mut command[self.key_at..]);
        command
    }

    #[inline]
    fn copy<'a>(&self, out: &'a mut Vec<u8>) -> &'a mut [u8] {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        &mut out[start..]
    }

    #[inline]
    fn write_token(&self, command: &mut [u8], token: Token) {
        let hole = command[self.token_at..]
            .first_chunk_mut()
            .expect("a template with a token has room for it");
        write_hex(token, hole);
    }
}

/// The two hex digits of every byte.
const HEX: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 15]];
        byte += 1;
    }
    pairs
};

#[inline]
fn write_hex(token: Token, hole: &mut [u8; TOKEN_LEN]) {
    let bytes = (u128::from(token.high) << 64 | u128::from(token.low)).to_be_bytes();
    for (pair, byte) in hole.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&HEX[usize::from(byte)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyNames;

    // A script may have any companions, also ones that no script has yet.
    #[test]
    fn the_index_is_patched_into_every_name() {
        let names = KeyNames::new(b"p:", 100);
        let (queue, writers) = (Part::Companion(Companion::Queue), Part::Companion(Companion::Writers));
        let parts = [Part::Text("X"), Part::Key, queue, writers, Part::Token, Part::Number];
        let template = Template::new(&parts, names.first());
        let token = Token { high: 1, low: 2 };
        let mut out = Vec::new();
        template.push_companions(&mut out, names.index(), Key(42), token);
        let expected = "*6\r\n$1\r\nX\r\n$6\r\np:{42}\r\n$12\r\np:{42}:queue\r\n$14\r\np:{42}:writers\r\n\
                        $32\r\n00000000000000010000000000000002\r\n";
        assert_eq!(out.escape_ascii().to_string(), expected.escape_default().to_string());
    }
}
