//! `locks::Command` to bytes. Every command is a template, made once for the cell's length of name: encoding copies it
//! and patches key and token in at fixed places. A number (lease, seconds) comes last and is appended.

use std::sync::Arc;

use locks::{Command, Script, ScriptForm, Token};

use crate::KeyNames;
use crate::request::{Decimal, push_bulk, push_bulk_head, push_head};

/// How a key is deleted only when it holds my token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompareAndDelete {
    /// The Lua script: any server.
    Script,
    /// `DELIFEQ key token`: Valkey 9 and later.
    DelIfEq,
    /// `DELEX key IFEQ token`: Redis 8.4 and later.
    DelEx,
}

/// Writes commands about the keys of one table, for one dialect of compare-and-delete.
#[derive(Debug)]
pub struct Encoder {
    keys: Arc<KeyNames>,
    set_nx_px: Template,
    delete_by_sha: Template,
    delete_by_source: Template,
    set_nx: Template,
    expire: Template,
    del: Template,
}

impl Encoder {
    pub fn new(keys: Arc<KeyNames>, how: CompareAndDelete) -> Self {
        use Part::{Key, Number, Text, Token};
        let source = Script::CompareAndDelete.source();
        let sha = sha1_smol::Sha1::from(source).digest().to_string();
        let template = |parts: &[Part<'_>]| Template::new(parts, keys.name_len());
        let delete = |script: [&str; 2]| match how {
            CompareAndDelete::Script => template(&[Text(script[0]), Text(script[1]), Text("1"), Key, Token]),
            CompareAndDelete::DelIfEq => template(&[Text("DELIFEQ"), Key, Token]),
            CompareAndDelete::DelEx => template(&[Text("DELEX"), Key, Text("IFEQ"), Token]),
        };
        Self {
            set_nx_px: template(&[Text("SET"), Key, Token, Text("NX"), Text("PX"), Number]),
            delete_by_sha: delete(["EVALSHA", &sha]),
            delete_by_source: delete(["EVAL", source]),
            set_nx: template(&[Text("SETNX"), Key, Text("1")]),
            expire: template(&[Text("EXPIRE"), Key, Number]),
            del: template(&[Text("DEL"), Key]),
            keys,
        }
    }

    /// Appends `command` to `out`; allocates nothing but the growth of `out`.
    ///
    /// # Panics
    /// When the command's key is not one of the table's.
    #[inline]
    pub fn encode(&self, command: &Command, out: &mut Vec<u8>) {
        match *command {
            Command::SetNxPx { key, token, lease_ms } => {
                self.set_nx_px.push_token(out, self.keys.name(key), token);
                push_number(out, lease_ms);
            }
            Command::CompareAndDelete {
                key,
                token,
                form: ScriptForm::Sha,
            } => {
                self.delete_by_sha.push_token(out, self.keys.name(key), token);
            }
            Command::CompareAndDelete {
                key,
                token,
                form: ScriptForm::Source,
            } => {
                self.delete_by_source.push_token(out, self.keys.name(key), token);
            }
            Command::SetNx { key } => {
                self.set_nx.push(out, self.keys.name(key));
            }
            Command::Expire { key, seconds } => {
                self.expire.push(out, self.keys.name(key));
                push_number(out, seconds);
            }
            Command::Del { key } => {
                self.del.push(out, self.keys.name(key));
            }
        }
    }
}

/// One argument of a command as the template sees it.
enum Part<'a> {
    Text(&'a str),
    Key,
    Token,
    /// Only last: its length varies.
    Number,
}

/// The bytes of a command with holes for key and token.
#[derive(Debug)]
struct Template {
    bytes: Box<[u8]>,
    key_at: usize,
    /// Nowhere in the template of a command without a token, which is never patched with one.
    token_at: usize,
}

const TOKEN_LEN: usize = 32;

impl Template {
    fn new(parts: &[Part<'_>], name_len: usize) -> Self {
        let mut bytes = Vec::new();
        let mut key_at = usize::MAX;
        let mut token_at = usize::MAX;
        let hole = |bytes: &mut Vec<u8>, len: usize| {
            push_bulk_head(bytes, len);
            let at = bytes.len();
            bytes.resize(at + len, b'?');
            bytes.extend_from_slice(b"\r\n");
            at
        };
        push_head(&mut bytes, parts.len());
        for part in parts {
            match part {
                Part::Text(text) => push_bulk(&mut bytes, text.as_bytes()),
                Part::Key => key_at = hole(&mut bytes, name_len),
                Part::Token => token_at = hole(&mut bytes, TOKEN_LEN),
                Part::Number => {}
            }
        }
        Self {
            bytes: bytes.into_boxed_slice(),
            key_at,
            token_at,
        }
    }

    /// Appends the command with `name` as its key and hands out its bytes.
    #[inline]
    fn push<'a>(&self, out: &'a mut Vec<u8>, name: &[u8]) -> &'a mut [u8] {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let command = &mut out[start..];
        command[self.key_at..self.key_at + name.len()].copy_from_slice(name);
        command
    }

    #[inline]
    fn push_token(&self, out: &mut Vec<u8>, name: &[u8], token: Token) {
        let command = self.push(out, name);
        let hole = command[self.token_at..]
            .first_chunk_mut()
            .expect("a template with a token has room for it");
        write_hex(token, hole);
    }
}

/// Appends the last argument of a command.
#[inline]
fn push_number(out: &mut Vec<u8>, number: u64) {
    let decimal = Decimal::new(number);
    let digits = decimal.as_bytes();
    // `$`, at most two digits of length, CRLF, at most twenty digits, CRLF: one copy instead of five.
    let mut bulk = [0; 27];
    let tens = digits.len() / 10;
    bulk[0] = b'$';
    bulk[1] = b'0' + tens as u8;
    let at = 1 + usize::from(tens > 0);
    bulk[at] = b'0' + (digits.len() % 10) as u8;
    bulk[at + 1..at + 3].copy_from_slice(b"\r\n");
    bulk[at + 3..at + 3 + digits.len()].copy_from_slice(digits);
    let end = at + 3 + digits.len();
    bulk[end..end + 2].copy_from_slice(b"\r\n");
    out.extend_from_slice(&bulk[..end + 2]);
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
    for (pair, byte) in hole.chunks_exact_mut(2).zip(token.0.to_be_bytes()) {
        pair.copy_from_slice(&HEX[usize::from(byte)]);
    }
}
