//! Locks whose names a program gives one by one: any bytes, not the numbered names of a cell.
//!
//! A name has a number, its `Key`, while somebody uses it. A command is first encoded with a stand-in name of fixed
//! length that holds the number; then each argument that begins with a stand-in is copied with the real name. Every
//! command, also a future one, works without a second set of templates, and a name costs nothing but its bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use locks::{Command, Companion, Key};

use crate::encode::{CompareAndDelete, Encoder};
use crate::names::KeyNames;
use crate::request::push_pieces;

/// No other argument of a command begins with this byte: words, tokens, numbers and scripts are text.
const STAND_IN: &[u8] = b"\0";

/// The names in use, shared by the encoders of all servers.
#[derive(Clone, Default)]
pub struct GivenNames(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    keys: BTreeMap<Arc<[u8]>, Key>,
    /// Indexed by key.
    names: Vec<Name>,
    unused: Vec<Key>,
    /// The last command with its stand-in names; kept for its memory.
    scratch: Vec<u8>,
}

struct Name {
    bytes: Arc<[u8]>,
    uses: u32,
}

impl GivenNames {
    /// The longest name, in bytes.
    pub const LONGEST: usize = 1024;

    /// The number of a name. Each call needs a `leave` later.
    ///
    /// # Panics
    /// When the name is longer than [`Self::LONGEST`].
    pub fn enter(&self, name: &[u8]) -> Key {
        assert!(name.len() <= Self::LONGEST, "a name of {} bytes", name.len());
        let mut table = self.table();
        if let Some(&key) = table.keys.get(name) {
            table.names[key.0 as usize].uses += 1;
            return key;
        }
        let key = table.unused.pop().unwrap_or(Key(table.names.len() as u32));
        let bytes: Arc<[u8]> = name.into();
        table.keys.insert(Arc::clone(&bytes), key);
        let name = Name { bytes, uses: 1 };
        match table.names.get_mut(key.0 as usize) {
            Some(unused) => *unused = name,
            None => table.names.push(name),
        }
        key
    }

    /// One user less. After the last one the number may mean another name.
    pub fn leave(&self, key: Key) {
        let table = &mut *self.table();
        let name = &mut table.names[key.0 as usize];
        name.uses -= 1;
        if name.uses == 0 {
            table.keys.remove(&name.bytes);
            table.unused.push(key);
        }
    }

    /// The name of a key that is in use.
    pub fn name(&self, key: Key) -> Arc<[u8]> {
        Arc::clone(&self.table().names[key.0 as usize].bytes)
    }

    /// The key that a channel belongs to, while its name is in use.
    fn of_channel(&self, channel: &[u8]) -> Option<Key> {
        let name = channel.strip_suffix(Companion::Channel.suffix().as_bytes())?;
        self.table().keys.get(name.strip_suffix(b":")?).copied()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for GivenNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GivenNames({} in use)", self.table().keys.len())
    }
}

/// Encodes commands about given names.
#[derive(Debug)]
pub struct NamedEncoder {
    names: GivenNames,
    stand_ins: KeyNames,
    encoder: Encoder,
}

impl NamedEncoder {
    pub fn new(names: GivenNames, dialect: CompareAndDelete) -> Self {
        let stand_ins = KeyNames::new(STAND_IN, u32::MAX);
        let encoder = Encoder::new(&stand_ins, dialect);
        Self {
            names,
            stand_ins,
            encoder,
        }
    }

    /// The key that a channel belongs to.
    pub fn key_of(&self, channel: &[u8]) -> Option<Key> {
        self.names.of_channel(channel)
    }

    /// Appends `command` to `out`; allocates nothing but the growth of buffers.
    ///
    /// # Panics
    /// When a key of the command has no name.
    pub fn encode(&self, command: &Command, out: &mut Vec<u8>) {
        let table = &mut *self.names.table();
        table.scratch.clear();
        self.encoder.encode(command, &mut table.scratch);
        let (head, mut rest) = line(&table.scratch);
        out.extend_from_slice(head);
        while !rest.is_empty() {
            let (head, behind) = line(rest);
            let length = number(&head[1..head.len() - 2]);
            let argument = &behind[..length];
            let whole = head.len() + length + 2;
            match self.real_name(argument, &table.names) {
                Some(name) => {
                    push_pieces(out, &[name, &argument[self.stand_ins.first().len()..]]);
                }
                None => out.extend_from_slice(&rest[..whole]),
            }
            rest = &rest[whole..];
        }
    }

    /// The name that a stand-in at the front of `argument` stands for.
    fn real_name<'a>(&self, argument: &[u8], names: &'a [Name]) -> Option<&'a [u8]> {
        if !argument.starts_with(STAND_IN) {
            return None;
        }
        let key = self.stand_ins.index().read(argument)?;
        Some(&names[key.0 as usize].bytes)
    }
}

/// The first line of `bytes` with its end, and what follows.
fn line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr(b'\n', bytes).expect("the encoder wrote whole lines");
    bytes.split_at(end + 1)
}

fn number(digits: &[u8]) -> usize {
    digits
        .iter()
        .fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}
