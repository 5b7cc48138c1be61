//! A model of one Redis for the commands of locks: keys with an expiry, and a cache of scripts. `waiting.rs` has what
//! the waiting locks need, `stream.rs` what `fair` needs, `leases.rs` what shared and renewed locks need.

use std::collections::BTreeMap;

use locks::{Command, ErrorKind, Key, KeyList, Nanos, Reply, Script, ScriptForm, Token};

use crate::conditions::Mistake;
use crate::leases::Crowd;
use crate::network::Asker;
use crate::stream::Stream;
use crate::waiting::Place;

#[derive(Clone, Debug)]
pub(crate) struct Redis {
    pub(crate) keys: BTreeMap<Key, Entry>,
    /// The waiters of each key, in order of arrival.
    pub(crate) queues: BTreeMap<Key, Vec<Place>>,
    /// The wake-up lists with an element that nobody has popped: the element, and its expiry.
    pub(crate) wakeups: BTreeMap<Token, (u64, Nanos)>,
    /// The prepared lists of successors, by the holder's token, each with its expiry.
    pub(crate) prepared: BTreeMap<Token, Nanos>,
    /// The clients that are blocked in a pop, also over connections that the server does not know to be closed.
    pub(crate) blocked: Vec<(Token, Asker)>,
    pub(crate) listeners: Vec<(Key, Asker)>,
    pub(crate) streams: BTreeMap<Key, Stream>,
    pub(crate) effects: Vec<RedisEffect>,
    pub(crate) crowd: Crowd,
    pub(crate) writers: Crowd,
    pub(crate) fences: BTreeMap<Key, i64>,
    pub(crate) waits: u64,
    script_cached: bool,
    pub(crate) mistake: Mistake,
}

/// The effect of a command on other clients.
#[derive(Clone, Debug)]
pub(crate) enum RedisEffect {
    /// A blocked client gets its reply.
    Replies(Asker, Reply),
    Publishes(Key, Asker),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// `None`: the `1` of `SETNX`.
    pub(crate) token: Option<Token>,
    /// The successor whose token is stored behind it.
    pub(crate) successor: Option<Token>,
    pub(crate) expires: Nanos,
}

impl Redis {
    pub(crate) fn new(mistake: Mistake) -> Self {
        Self {
            keys: BTreeMap::new(),
            queues: BTreeMap::new(),
            wakeups: BTreeMap::new(),
            prepared: BTreeMap::new(),
            blocked: Vec::new(),
            listeners: Vec::new(),
            streams: BTreeMap::new(),
            effects: Vec::new(),
            crowd: Crowd::default(),
            writers: Crowd::default(),
            fences: BTreeMap::new(),
            waits: 0,
            script_cached: false,
            mistake,
        }
    }

    pub(crate) fn forget_scripts(&mut self) {
        self.script_cached = false;
    }

    /// All connections close, as the server starts again.
    pub(crate) fn disconnect(&mut self) {
        self.forget_scripts();
        self.blocked.clear();
        self.listeners.clear();
        self.effects.clear();
        for stream in self.streams.values_mut() {
            stream.forget_readers();
        }
    }

    pub(crate) fn take_effects(&mut self) -> Vec<RedisEffect> {
        std::mem::take(&mut self.effects)
    }

    /// The reply, or `None` when the command blocks.
    pub(crate) fn run(&mut self, now: Nanos, from: Asker, command: Command) -> Option<Reply> {
        self.keys.retain(|_, entry| entry.expires > now);
        self.wakeups.retain(|_, (_, expires)| *expires > now);
        self.prepared.retain(|_, expires| *expires > now);
        match command {
            Command::AwaitWakeup { token, .. } => self.await_wakeup(token, from),
            Command::ReadTicket { key, .. } => self.read_ticket(key, from),
            Command::Subscribe { key } => {
                self.listeners.push((key, from));
                Some(Reply::Ok)
            }
            Command::Unsubscribe { key } => {
                let is_gone = |&(known, at): &(Key, Asker)| known == key && at.link == from.link;
                self.listeners.retain(|listener| !is_gone(listener));
                Some(Reply::Ok)
            }
            other => Some(self.reply_to(now, other)),
        }
    }

    fn reply_to(&mut self, now: Nanos, command: Command) -> Reply {
        match command {
            Command::SetNxPx { key, token, lease_ms } => {
                if self.keys.contains_key(&key) {
                    return Reply::Nil;
                }
                let expires = now.after(Nanos::from_millis(lease_ms));
                let token = Some(token);
                self.keys.insert(
                    key,
                    Entry {
                        token,
                        successor: None,
                        expires,
                    },
                );
                Reply::Ok
            }
            Command::CompareAndDelete {
                form: ScriptForm::Sha, ..
            }
            | Command::Run {
                form: ScriptForm::Sha, ..
            }
            | Command::RunAll {
                form: ScriptForm::Sha, ..
            } if !self.script_cached => Reply::Error(ErrorKind::NoScript),
            Command::CompareAndDelete { key, token, .. } => self.compare_and_delete(key, token),
            Command::Run {
                script,
                key,
                token,
                numbers,
                ..
            } => {
                self.script_cached = true;
                if script == Script::QueueConfirm {
                    return self.queue_confirm(now, key, token, numbers[0], numbers[1] == 1);
                }
                let leased = self.run_lease(now, script, key, token, numbers);
                leased.unwrap_or_else(|| Reply::Int(self.run_script(now, script, key, token, numbers)))
            }
            Command::RunAll {
                script,
                keys,
                token,
                lease_ms,
                ..
            } => {
                self.script_cached = true;
                Reply::Int(self.run_over_keys(now, script, keys, token, lease_ms))
            }
            Command::SetNx { .. } | Command::Expire { .. } | Command::Del { .. } => self.naively(now, command),
            Command::TimeLeft { key } => self.time_left(now, key),
            Command::HandOver { token, successor, .. } => self.hand_over_by_name(token, successor),
            Command::Wait { replicas, .. } => self.wait(replicas),
            Command::CreateQueue { key } => self.create_queue(key),
            Command::AddTicket { key, .. } => self.add_ticket(key),
            Command::DropTicket { key, entry } => self.drop_ticket(key, entry),
            // The model stores no pending tickets, and no queue gets this long.
            Command::AckTicket { .. } | Command::TrimQueue { .. } => Reply::Int(0),
            other => panic!("the model does not know {other:?}"),
        }
    }

    /// The commands of `naive`.
    fn naively(&mut self, now: Nanos, command: Command) -> Reply {
        match command {
            Command::SetNx { key } => {
                if self.keys.contains_key(&key) {
                    return Reply::Int(0);
                }
                let (token, expires) = (None, Nanos::NEVER);
                self.keys.insert(
                    key,
                    Entry {
                        token,
                        successor: None,
                        expires,
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
            other => panic!("{other:?} is none of them"),
        }
    }

    fn compare_and_delete(&mut self, key: Key, token: Token) -> Reply {
        self.script_cached = true;
        let mine = self.keys.get(&key).is_some_and(|entry| entry.token == Some(token));
        if mine || self.mistake == Mistake::DeleteWithoutCompare {
            self.delete(key)
        } else {
            Reply::Int(0)
        }
    }

    /// `PTTL`, also of a key that does not exist or does not expire.
    fn time_left(&self, now: Nanos, key: Key) -> Reply {
        Reply::Int(match self.keys.get(&key) {
            None => -2,
            Some(entry) if entry.expires == Nanos::NEVER => -1,
            Some(entry) => (entry.expires.since(now).0 / 1_000_000).cast_signed(),
        })
    }

    pub(crate) fn delete(&mut self, key: Key) -> Reply {
        Reply::Int(i64::from(self.keys.remove(&key).is_some()))
    }

    pub(crate) fn run_over_keys(
        &mut self,
        now: Nanos,
        script: Script,
        keys: KeyList,
        token: Token,
        lease_ms: u64,
    ) -> i64 {
        let keys = keys.as_slice();
        match script {
            Script::TakeAll => {
                if keys.iter().any(|key| self.keys.contains_key(key)) {
                    return 0;
                }
                for &key in keys {
                    self.set(now, key, token, lease_ms);
                }
                1
            }
            Script::ReleaseAll => {
                let mut deleted = 0;
                for &key in keys {
                    if self.holds(key, token) || self.mistake == Mistake::DeleteWithoutCompare {
                        deleted += usize::from(self.keys.remove(&key).is_some());
                    }
                }
                i64::from(deleted == keys.len())
            }
            other => panic!("the model does not know {other:?} over several keys"),
        }
    }
}
