//! What one Redis does with the commands of locks: keys with an end, and a cache of scripts.

use std::collections::BTreeMap;

use locks::{Command, ErrorKind, Key, Nanos, Reply, ScriptForm, Token};

use crate::setting::Mistake;

pub(crate) struct Redis {
    keys: BTreeMap<Key, Entry>,
    script_cached: bool,
    mistake: Mistake,
}

struct Entry {
    /// `None`: the `1` of `SETNX`.
    token: Option<Token>,
    expires: Nanos,
}

impl Redis {
    pub(crate) fn new(mistake: Mistake) -> Self {
        Self {
            keys: BTreeMap::new(),
            script_cached: false,
            mistake,
        }
    }

    pub(crate) fn forget_scripts(&mut self) {
        self.script_cached = false;
    }

    pub(crate) fn run(&mut self, now: Nanos, command: Command) -> Reply {
        self.keys.retain(|_, entry| entry.expires > now);
        match command {
            Command::SetNxPx { key, token, lease_ms } => {
                if self.keys.contains_key(&key) {
                    return Reply::Nil;
                }
                let expires = now.after(Nanos::from_millis(lease_ms));
                self.keys.insert(
                    key,
                    Entry {
                        token: Some(token),
                        expires,
                    },
                );
                Reply::Ok
            }
            Command::CompareAndDelete {
                form: ScriptForm::Sha, ..
            } if !self.script_cached => Reply::Error(ErrorKind::NoScript),
            Command::CompareAndDelete { key, token, .. } => {
                self.script_cached = true;
                let mine = self.keys.get(&key).is_some_and(|entry| entry.token == Some(token));
                if mine || self.mistake == Mistake::DeleteWithoutCompare {
                    self.delete(key)
                } else {
                    Reply::Int(0)
                }
            }
            Command::SetNx { key } => {
                if self.keys.contains_key(&key) {
                    return Reply::Int(0);
                }
                self.keys.insert(
                    key,
                    Entry {
                        token: None,
                        expires: Nanos::NEVER,
                    },
                );
                Reply::Int(1)
            }
            Command::Expire { key, seconds } => match self.keys.get_mut(&key) {
                Some(entry) => {
                    entry.expires = now.after(Nanos::from_secs(seconds));
                    Reply::Int(1)
                }
                None => Reply::Int(0),
            },
            Command::Del { key } => self.delete(key),
            other => panic!("the model does not know {other:?}"),
        }
    }

    fn delete(&mut self, key: Key) -> Reply {
        Reply::Int(i64::from(self.keys.remove(&key).is_some()))
    }
}
