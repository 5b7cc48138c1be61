//! A model of Redis for the scripts of the locks whose lease is renewed, shared, counted or numbered.

use std::collections::BTreeMap;

use locks::{Key, Nanos, Reply, Script, Token};

use crate::conditions::Mistake;
use crate::redis::Redis;

/// Several holders of one key, or its waiting writers, each with the last millisecond that counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crowd(BTreeMap<Key, BTreeMap<Token, u64>>);

impl Crowd {
    fn alive(&mut self, now_ms: u64, key: Key) -> &mut BTreeMap<Token, u64> {
        let crowd = self.0.entry(key).or_default();
        crowd.retain(|_, last| *last >= now_ms);
        crowd
    }
}

impl Redis {
    /// The reply to one of these scripts, or `None` for another one.
    pub(crate) fn run_lease(
        &mut self,
        now: Nanos,
        script: Script,
        key: Key,
        me: Token,
        numbers: [u64; 2],
    ) -> Option<Reply> {
        let ([first, second], now_ms) = (numbers, now.0 / 1_000_000);
        let is_free = !self.keys.contains_key(&key);
        Some(match script {
            Script::CompareAndExpire => {
                if !self.holds(key, me) {
                    return Some(Reply::Int(0));
                }
                self.set(now, key, me, first);
                Reply::Int(1)
            }
            Script::FencedTake if is_free => {
                self.set(now, key, me, first);
                let fence = self.fences.entry(key).or_default();
                let forgets = self.mistake == Mistake::FenceComesAgain && *fence % 8 == 7;
                *fence += i64::from(!forgets);
                Reply::Int(*fence)
            }
            Script::ReentrantTake if is_free => {
                self.set(now, key, me, first);
                Reply::Int(1)
            }
            Script::ReentrantLeave if self.holds(key, me) || self.mistake == Mistake::DeleteWithoutCompare => {
                self.delete(key);
                Reply::Int(0)
            }
            Script::SemaphoreTake => {
                let most = first + u64::from(self.mistake == Mistake::OneTooMany);
                join(self.crowd.alive(now_ms, key), most, me, now_ms + second)
            }
            Script::SemaphoreRelease | Script::ReadRelease => {
                let was = self.crowd.alive(now_ms, key).remove(&me);
                Reply::Int(i64::from(was.is_some()))
            }
            Script::ReadTake
                if (is_free || self.mistake == Mistake::OneTooMany) && self.writers.alive(now_ms, key).is_empty() =>
            {
                join(self.crowd.alive(now_ms, key), u64::MAX, me, now_ms + first)
            }
            Script::WriteTake if is_free && self.crowd.alive(now_ms, key).is_empty() => {
                self.writers.alive(now_ms, key).remove(&me);
                self.set(now, key, me, first);
                Reply::Int(1)
            }
            Script::WriteTake => {
                if second > 0 {
                    self.writers.alive(now_ms, key).insert(me, now_ms + second);
                }
                Reply::Nil
            }
            Script::WriteRelease => {
                self.writers.alive(now_ms, key).remove(&me);
                let mine = self.holds(key, me) || self.mistake == Mistake::DeleteWithoutCompare;
                if mine { self.delete(key) } else { Reply::Int(0) }
            }
            Script::FencedTake | Script::ReentrantTake | Script::ReentrantLeave | Script::ReadTake => Reply::Nil,
            _ => return None,
        })
    }

    /// How many of `replicas` confirm; at every third call none does.
    pub(crate) fn wait(&mut self, replicas: u64) -> Reply {
        self.waits += 1;
        Reply::Int(if self.waits.is_multiple_of(3) {
            0
        } else {
            replicas.cast_signed()
        })
    }
}

fn join(crowd: &mut BTreeMap<Token, u64>, most: u64, me: Token, last_ms: u64) -> Reply {
    if crowd.len() as u64 >= most {
        return Reply::Nil;
    }
    crowd.insert(me, last_ms);
    Reply::Int(1)
}
