//! `locks::Command` to bytes. Every command is a template, made once for the cell's names, which have one length:
//! encoding copies it and patches in the index of the key and the token. A number (lease, seconds) comes last and is
//! appended.

use locks::{Command, Key, Script, ScriptForm, Token};

use crate::KeyNames;
use crate::names::Index;
use crate::request::{push_bulk, push_head, push_number};

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

/// Writes commands about the keys of one set of names, for one dialect of compare-and-delete.
#[derive(Debug)]
pub struct Encoder {
    index: Index,
    set_nx_px: Template,
    delete_by_sha: Template,
    delete_by_source: Template,
    set_nx: Template,
    expire: Template,
    del: Template,
}

impl Encoder {
    pub fn new(keys: &KeyNames, how: CompareAndDelete) -> Self {
        use Part::{Key, Number, Text, Token};
        let source = Script::CompareAndDelete.source();
        let sha = sha1_smol::Sha1::from(source).digest().to_string();
        let template = |parts: &[Part<'_>]| Template::new(parts, keys.first());
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
            index: keys.index(),
        }
    }

    /// Appends `command` to `out`; allocates nothing but the growth of `out`.
    ///
    /// # Panics
    /// When the command's key has no name.
    #[inline]
    pub fn encode(&self, command: &Command, out: &mut Vec<u8>) {
        match *command {
            Command::SetNxPx { key, token, lease_ms } => {
                self.set_nx_px.push_token(out, self.index, key, token);
                push_number(out, lease_ms);
            }
            Command::CompareAndDelete {
                key,
                token,
                form: ScriptForm::Sha,
            } => {
                self.delete_by_sha.push_token(out, self.index, key, token);
            }
            Command::CompareAndDelete {
                key,
                token,
                form: ScriptForm::Source,
            } => {
                self.delete_by_source.push_token(out, self.index, key, token);
            }
            Command::SetNx { key } => {
                self.set_nx.push(out, self.index, key);
            }
            Command::Expire { key, seconds } => {
                self.expire.push(out, self.index, key);
                push_number(out, seconds);
            }
            Command::Del { key } => {
                self.del.push(out, self.index, key);
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

/// The bytes of a command, with the first key and no token.
#[derive(Debug)]
struct Template {
    bytes: Box<[u8]>,
    key_at: usize,
    /// Nowhere in a command without a token, which is never patched with one.
    token_at: usize,
}

const TOKEN_LEN: usize = 32;

impl Template {
    fn new(parts: &[Part<'_>], name: &[u8]) -> Self {
        let mut bytes = Vec::new();
        let mut key_at = usize::MAX;
        let mut token_at = usize::MAX;
        let argument = |bytes: &mut Vec<u8>, argument: &[u8]| {
            push_bulk(bytes, argument);
            bytes.len() - argument.len() - 2
        };
        push_head(&mut bytes, parts.len());
        for part in parts {
            match part {
                Part::Text(text) => push_bulk(&mut bytes, text.as_bytes()),
                Part::Key => key_at = argument(&mut bytes, name),
                Part::Token => token_at = argument(&mut bytes, &[b'?'; TOKEN_LEN]),
                Part::Number => {}
            }
        }
        Self {
            bytes: bytes.into_boxed_slice(),
            key_at,
            token_at,
        }
    }

    /// Appends the command with the name of `key` and hands out its bytes.
    #[inline]
    fn push<'a>(&self, out: &'a mut Vec<u8>, index: Index, key: Key) -> &'a mut [u8] {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let command = &mut out[start..];
        index.write(key, &mut command[self.key_at..]);
        command
    }

    #[inline]
    fn push_token(&self, out: &mut Vec<u8>, index: Index, key: Key, token: Token) {
        let command = self.push(out, index, key);
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
    for (pair, byte) in hole.chunks_exact_mut(2).zip(token.0.to_be_bytes()) {
        pair.copy_from_slice(&HEX[usize::from(byte)]);
    }
}
