//! Encodes a `locks::Command`. Every command is a template, made once for the cell's key names, which have one length:
//! encoding copies the template and patches in the index of the key and the token. A number (lease, seconds) mostly
//! comes last and is appended.

use locks::{Command, Companion, Script, ScriptForm};

use crate::KeyNames;
use crate::names::Index;
use crate::request::{push_bulk, push_entry, push_head, push_number, push_seconds};
use crate::scripts::Scripts;
use crate::template::{Part, Template};

/// How a key is deleted only if it holds my token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompareAndDelete {
    /// The Lua script: any server.
    Script,
    /// `DELIFEQ key token`: Valkey 9 and later.
    DelIfEq,
    /// `DELEX key IFEQ token`: Redis 8.4 and later.
    DelEx,
}

/// Encodes commands about the keys of one set of names, for one dialect of compare-and-delete.
#[derive(Debug)]
pub struct Encoder {
    index: Index,
    set_nx_px: Template,
    delete_by_sha: Template,
    delete_by_source: Template,
    set_nx: Template,
    expire: Template,
    del: Template,
    time_left: Template,
    scripts: Scripts,
    await_wakeup: Template,
    hand_over: [Template; 2],
    subscribe: Template,
    unsubscribe: Template,
    create_queue: Template,
    add_ticket: Template,
    /// The parts before and after the blocking time.
    read_ticket: [Template; 2],
    ack_ticket: Template,
    drop_ticket: Template,
    trim_queue: Template,
}

/// The consumer group of a lock's queue; each waiter is a consumer named by its token.
const GROUP: &str = "waiters";

impl Encoder {
    pub fn new(keys: &KeyNames, dialect: CompareAndDelete) -> Self {
        use Part::{Key, Number, OfToken, Text, Token};
        let source = Script::CompareAndDelete.source();
        let sha = sha1_smol::Sha1::from(source).digest().to_string();
        let template = |parts: &[Part<'_>]| Template::new(parts, keys.first());
        let channel = || Part::Companion(Companion::Channel);
        let tickets = || Part::Companion(Companion::Tickets);
        let delete = |script: [&str; 2]| match dialect {
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
            time_left: template(&[Text("PTTL"), Key]),
            scripts: Scripts::new(keys.first()),
            await_wakeup: template(&[Text("BLPOP"), OfToken(Companion::Wakeup), Number]),
            hand_over: Template::halves(
                &[Text("RENAME"), OfToken(Companion::Prepared)],
                0,
                &[OfToken(Companion::Wakeup)],
                keys.first(),
            ),
            subscribe: template(&[Text("SUBSCRIBE"), channel()]),
            unsubscribe: template(&[Text("UNSUBSCRIBE"), channel()]),
            create_queue: template(&[
                Text("XGROUP"),
                Text("CREATE"),
                tickets(),
                Text(GROUP),
                Text("0"),
                Text("MKSTREAM"),
            ]),
            add_ticket: template(&[Text("XADD"), tickets(), Text("*"), Text("token"), Token]),
            read_ticket: {
                let reader = [Text("XREADGROUP"), Text("GROUP"), Text(GROUP), Token];
                let one_blocking = [Text("COUNT"), Text("1"), Text("BLOCK")];
                let before: Vec<_> = reader.into_iter().chain(one_blocking).collect();
                Template::halves(&before, 1, &[Text("STREAMS"), tickets(), Text(">")], keys.first())
            },
            ack_ticket: template(&[Text("XACK"), tickets(), Text(GROUP), Number]),
            drop_ticket: template(&[Text("XDEL"), tickets(), Number]),
            trim_queue: template(&[Text("XTRIM"), tickets(), Text("MAXLEN"), Text("~"), Number]),
            index: keys.index(),
        }
    }

    /// The key that a channel belongs to.
    pub fn key_of(&self, channel: &[u8]) -> Option<locks::Key> {
        self.index.read(channel)
    }

    /// Appends `command` to `out`; allocates nothing but the growth of `out`.
    ///
    /// # Panics
    /// When a key of the command has no name.
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
            _ => self.encode_other(command, out), // nearly all commands are of the two kinds above
        }
    }

    /// Encodes the commands that `encode` does not. Separate, so that `encode` stays small where it is inlined.
    #[inline(never)]
    fn encode_other(&self, command: &Command, out: &mut Vec<u8>) {
        let index = self.index;
        match *command {
            Command::SetNxPx { .. } | Command::CompareAndDelete { .. } => unreachable!("`encode` wrote it"),
            Command::SetNx { key } => self.set_nx.push(out, index, key),
            Command::Expire { key, seconds } => {
                self.expire.push(out, index, key);
                push_number(out, seconds);
            }
            Command::Del { key } => self.del.push(out, index, key),
            Command::TimeLeft { key } => self.time_left.push(out, index, key),
            Command::Run {
                script,
                form,
                key,
                token,
                numbers,
            } => {
                self.scripts.push(out, index, (script, form), key, token);
                for &number in &numbers[..script.numbers()] {
                    push_number(out, number);
                }
            }
            Command::RunAll {
                script,
                form,
                ref keys,
                token,
                lease_ms,
            } => {
                self.scripts.push_all(out, index, (script, form), keys, token);
                push_number(out, lease_ms);
            }
            Command::Wait { replicas, timeout_ms } => push_wait(out, replicas, timeout_ms),
            Command::AwaitWakeup { key, token, timeout_ms } => {
                self.await_wakeup.push_token(out, index, key, token);
                push_seconds(out, timeout_ms);
            }
            Command::HandOver { key, token, successor } => {
                self.hand_over[0].push_token(out, index, key, token);
                self.hand_over[1].push_token(out, index, key, successor);
            }
            Command::Subscribe { key } => self.subscribe.push(out, index, key),
            Command::Unsubscribe { key } => self.unsubscribe.push(out, index, key),
            Command::CreateQueue { key } => self.create_queue.push(out, index, key),
            Command::AddTicket { key, token } => self.add_ticket.push_token(out, index, key, token),
            Command::ReadTicket { key, token, timeout_ms } => {
                self.read_ticket[0].push_keyless(out, token);
                push_number(out, timeout_ms);
                self.read_ticket[1].push(out, index, key);
            }
            Command::AckTicket { key, entry } => {
                self.ack_ticket.push(out, index, key);
                push_entry(out, entry);
            }
            Command::DropTicket { key, entry } => {
                self.drop_ticket.push(out, index, key);
                push_entry(out, entry);
            }
            Command::TrimQueue { key, length } => {
                self.trim_queue.push(out, index, key);
                push_number(out, length);
            }
            Command::Sql { .. } => panic!("{command:?} for a server that speaks Redis"),
        }
    }
}

fn push_wait(out: &mut Vec<u8>, replicas: u64, timeout_ms: u64) {
    push_head(out, 3);
    push_bulk(out, b"WAIT");
    push_number(out, replicas);
    push_number(out, timeout_ms);
}
