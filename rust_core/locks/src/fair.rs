//! `fair`: the stream queue as it is published. `XADD` adds a ticket, `XREADGROUP ... BLOCK` reads one, then `SET NX
//! PX` takes the lock.
//!
//! ```text
//!                             entry:
//!         Acquire             Queued          entry
//!    Idle ──────▶ Open ─────▶ Add ─────▶ Read ─────▶ Set ───── OK in time ──▶ Held
//!                   ▲ └ group known: straight on ▲ ▲     ▲ │ └ OK too late ─▶ │ │ Release, Cancel
//!                   │                  no ticket │ │ Woke│ │ Nil              ▼ ▼
//!                   └────────────────────────────┘ │    Pausing ◀──────── Delete ──────▶ Idle
//!                      (the group is gone: once)   └ Add again
//! ```
//! Not drawn: what ends in `Idle` at once (a refusal, an error, `Unknown`, a `Cancel` that drops the ticket).
//!
//! The published algorithm is not fair: the group hands a ticket to the next reader, no matter whose ticket it is. This
//! machine keeps that flaw so that its inversions can be counted, and changes one thing: it never hangs. A holder that
//! dies leaves its ticket pending for ever, which harms nobody, because each waiter adds a ticket of its own. A client
//! that has read a ticket repeats `SET NX PX` as the retry policy says, and gets the lock when the dead holder's lease
//! has ended. A client that gives up drops the ticket that it read, or, if it read none, its own. A ticket that will
//! never be handed out (trimmed, or read over a connection that then broke) costs its waiter one blocking read; then
//! the waiter adds a new one.
//!
//! The reply to `XADD` acknowledges the place in the queue: from then on the ticket stands, and later clients add
//! theirs behind it. A ticket that replaces a lost one stands at the end and is acknowledged anew. Nobody waits at the
//! earlier place any more, so nobody can be overtaken there: the inversions counted for a client are at most those that
//! happened to it.
//!
//! Promises: never held by a reply to an earlier attempt, never past the lease; deletes no lock but its own; each wait
//! on the server is bounded. Does not promise order, although it acknowledges places.

use crate::calls::{SERVER, TakeEffect};
use crate::shell::{After, Ending, Left, Lock, Next, NoReply, Turn};
use crate::{
    Chance, Command, ConnectionKind, EntryId, ErrorKind, Key, Nanos, Refusal, Reply, Script, ServerId, Token, Traits,
};

pub(crate) const TRAITS: Traits = Traits {
    name: "fair",
    owns_connection: true,
    acknowledges_places: true,
    scripts: &[Script::CompareAndDelete],
    ..Traits::LEASE
};

/// The longest blocking read.
const BLOCK: Nanos = Nanos::from_secs(1);
/// The length to which the queue is trimmed: far more than wait at once, because trimming only removes what dead
/// clients left.
const LENGTH: u64 = 100_000;

#[derive(Debug)]
pub(crate) struct Fair {
    /// The reader's name in the group. One name for all requests of a client, because the server keeps each name for
    /// ever.
    reader: Token,
    /// The key whose group is known to exist.
    open: Option<Key>,
    /// The group was created again during this request.
    reopened: bool,
    ticket: Ticket,
}

/// What this client has in the queue.
#[derive(Clone, Copy, Debug)]
enum Ticket {
    None,
    /// The ticket that this client added.
    Own(EntryId),
    /// The ticket that this client read, which entitles it to try.
    Read(EntryId),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Open,
    Add,
    /// The blocking read.
    Read,
    Set,
    Delete,
}

impl Lock for Fair {
    type Step = Step;
    type Owner = Token;
    const FIRST: Step = Step::Open;
    const UNDO: Step = Step::Delete;

    fn begin(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        self.reopened = false;
        if self.open == Some(turn.key()) {
            add(turn)
        } else {
            Next::Ask(Step::Open)
        }
    }

    /// Tries again with the same ticket.
    fn attempt(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        turn.count_attempt();
        turn.draw_owner();
        Next::Ask(Step::Set)
    }

    fn route(&self, step: Step) -> (ServerId, ConnectionKind) {
        let over = match step {
            Step::Read => ConnectionKind::Own,
            Step::Open | Step::Add | Step::Set | Step::Delete => ConnectionKind::SharedByClients,
        };
        (SERVER, over)
    }

    fn command(&self, step: Step, turn: &Turn<'_, Self>) -> Command {
        let (key, token) = (turn.key(), turn.owner());
        match step {
            Step::Open => Command::CreateQueue { key },
            Step::Add => Command::AddTicket { key, token },
            Step::Read => Command::ReadTicket {
                key,
                token: self.reader,
                timeout_ms: block_ms(turn),
            },
            Step::Set => turn.set_if_absent(),
            Step::Delete => turn.compare_and_delete(),
        }
    }

    fn deadline(&self, step: Step, turn: &Turn<'_, Self>) -> Nanos {
        match step {
            Step::Read => {
                let blocked = turn.now.after(Nanos::from_millis(block_ms(turn)));
                blocked.after(turn.spec().reply_timeout)
            }
            Step::Open | Step::Add | Step::Set | Step::Delete => turn.reply_deadline(),
        }
    }

    fn answer(&mut self, step: Step, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match (step, reply) {
            // An error without a known code will also be the reply to the next command.
            (Step::Open, Reply::Ok | Reply::Error(ErrorKind::BusyGroup | ErrorKind::Other)) => {
                self.open = Some(turn.key());
                add(turn)
            }
            (Step::Add, Reply::Entry(own)) => {
                self.ticket = Ticket::Own(own);
                if !turn.is_withdrawn() {
                    // Also for a replacement ticket: the earlier ticket, and its place, are gone.
                    turn.out.queued();
                }
                Next::Ask(Step::Read)
            }
            // No lock was asked for yet.
            (Step::Open | Step::Add, other) => Next::Failed(other.failure(), TakeEffect::Nothing),
            (Step::Read, Reply::Entry(ticket)) => {
                self.ticket = Ticket::Read(ticket);
                self.attempt(turn)
            }
            (Step::Read, other) => self.not_read(other, turn),
            (Step::Set | Step::Delete, other) => Next::of_set(other),
        }
    }

    fn no_reply(&mut self, step: Step, why: NoReply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match (step, why) {
            // Later commands on that connection would get no reply either.
            (Step::Read, NoReply::TimedOut) => turn.out.hang_up(),
            // At worst a ticket remains whose id nobody knows; some reader takes it, or it is trimmed.
            (Step::Open | Step::Add | Step::Read | Step::Set | Step::Delete, _) => {}
        }
        Next::Abandon(Ending::Unknown)
    }

    fn cancel(&mut self, step: Step, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match step {
            // Nobody owns the group that is being created.
            Step::Open => Next::Settle(Ending::Released),
            // The reply names the ticket to drop.
            Step::Add => Next::Withdraw,
            Step::Read => {
                turn.out.hang_up();
                Next::Settle(Ending::Released)
            }
            // Sent at once: the delete follows the `SET` on the same connection and undoes it.
            Step::Set | Step::Delete => Next::Undo(After::CANCEL),
        }
    }

    fn can_undo(&self, step: Step, _turn: &Turn<'_, Self>) -> bool {
        match step {
            Step::Open | Step::Add | Step::Read => false,
            Step::Set | Step::Delete => true,
        }
    }

    /// A ticket that was read is acknowledged and deleted; one that was only added is deleted. Nobody waits for the
    /// replies: a failure leaves a pending ticket, which harms nobody.
    fn clean_up(&mut self, left: Left, turn: &mut Turn<'_, Self>) {
        let key = turn.key();
        match std::mem::replace(&mut self.ticket, Ticket::None) {
            Ticket::None => {}
            Ticket::Own(entry) => drop_ticket(entry, turn),
            Ticket::Read(entry) => {
                turn.send(Command::AckTicket { key, entry });
                drop_ticket(entry, turn);
            }
        }
        if left == Left::Undoing {
            turn.send(Command::TrimQueue { key, length: LENGTH });
        }
    }
}

impl Fair {
    pub(crate) fn new(chance: &mut Chance) -> Self {
        Self {
            reader: chance.token(),
            open: None,
            reopened: false,
            ticket: Ticket::None,
        }
    }

    /// The blocking read found no ticket.
    fn not_read(&mut self, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        match reply {
            // This client's ticket must have been handed to another reader.
            Reply::Nil if turn.backoff().left(turn.now, &turn.spec().retry) > Nanos::ZERO => {
                self.ticket = Ticket::None;
                add(turn)
            }
            Reply::Nil => Next::Settle(Ending::Refused(Refusal::TimedOut)),
            // `NOGROUP`, or the stream was deleted while the read blocked.
            Reply::Error(ErrorKind::Other) if !self.reopened => {
                (self.reopened, self.open) = (true, None);
                self.clean_up(Left::Nothing, turn);
                Next::Ask(Step::Open)
            }
            other => {
                if other.error().is_some() {
                    self.open = None;
                }
                Next::Settle(Ending::Failed(other.failure()))
            }
        }
    }
}

fn add(turn: &mut Turn<'_, Fair>) -> Next<Step> {
    turn.draw_owner();
    Next::Ask(Step::Add)
}

fn drop_ticket(entry: EntryId, turn: &mut Turn<'_, Fair>) {
    let key = turn.key();
    turn.send(Command::DropTicket { key, entry });
}

/// How long the read may block; not 0, because `BLOCK 0` would block for ever.
fn block_ms(turn: &Turn<'_, Fair>) -> u64 {
    let left = turn.backoff().left(turn.now, &turn.spec().retry).min(BLOCK);
    (left.0 / 1_000_000).max(1)
}
