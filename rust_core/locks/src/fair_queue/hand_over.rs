//! How a waiter of `fair-queue` is woken, and how it confirms the lock that was handed over to it.

use super::{Confirming, FairQueue, Hold, Step, WakeupPop, leave_as};
use crate::calls::SERVER;
use crate::script_form::PendingScript;
use crate::shell::{Ending, Next, State, Turn};
use crate::{Command, ConnectionKind, Lasts, Reply, Script, Token};

impl FairQueue {
    pub(super) fn start_pop(&mut self, turn: &mut Turn<'_, Self>) {
        if self.pop.is_some() {
            // A pop of an earlier request still blocks the connection: the new one would wait behind it.
            turn.out.hang_up();
        }
        let (key, token) = (turn.key(), turn.owner());
        let timeout_ms = self.alive_ms();
        let command = Command::AwaitWakeup { key, token, timeout_ms };
        let call = turn.send_to(SERVER, ConnectionKind::Own, command);
        self.pop = Some(WakeupPop { call, token });
        self.may_block = true;
    }

    pub(super) fn pop_answered(&mut self, token: Token, reply: Reply, turn: &mut Turn<'_, Self>) -> Next<Step> {
        // Only one stale wake-up can arrive. A pop that ended empty may have ended before it came: then the next pop
        // finds it.
        let may_be_stale = self.place.stale_wakeup;
        self.place.stale_wakeup &= reply.is_nil();
        let is_wakeup = matches!(reply, Reply::Int(0..) | Reply::Items);
        match turn.state() {
            State::Waiting(_) if token == turn.owner() => match reply {
                Reply::Int(1..) if !may_be_stale => self.handed_over(turn),
                _ if is_wakeup => self.take(true),
                Reply::Nil => {
                    self.start_pop(turn);
                    Next::Stay
                }
                other => leave_as(Ending::Failed(other.failure())),
            },
            // An error is met again when the reply has come and the pop is repeated.
            State::Asking(_) if token == turn.owner() => {
                self.place.woken |= is_wakeup;
                Next::Stay
            }
            // The wake-up list of an earlier request, or of this one after its end.
            State::Asking(_)
            | State::Waiting(_)
            | State::Withdrawing(_)
            | State::Idle
            | State::Conflicted(_)
            | State::Pausing
            | State::Held
            | State::Undoing(..) => Next::Stay,
        }
    }

    /// The wake-up may have been lost with the connection: ask the server.
    pub(super) fn pop_lost(&mut self, token: Token, turn: &mut Turn<'_, Self>) -> Next<Step> {
        if self.was_cut {
            return Next::Stay; // The next beat asks the server.
        }
        match turn.state() {
            State::Waiting(_) if token == turn.owner() => {
                self.was_cut = true;
                self.take(true)
            }
            State::Asking(_) if token == turn.owner() => {
                (self.was_cut, self.place.woken) = (true, true);
                Next::Stay
            }
            // The wake-up list of an earlier request, or of this one after its end.
            State::Asking(_)
            | State::Waiting(_)
            | State::Withdrawing(_)
            | State::Idle
            | State::Conflicted(_)
            | State::Pausing
            | State::Held
            | State::Undoing(..) => Next::Stay,
        }
    }

    /// The wake-up came: the server handed the lock over after it had carried out the last beat, so not before that
    /// beat was sent.
    fn handed_over(&mut self, turn: &mut Turn<'_, Self>) -> Next<Step> {
        let until = self.handed_over_for(turn.spec()).until(turn.sent());
        if until <= turn.now {
            return self.take(true);
        }
        self.hold = Hold {
            since: turn.now,
            confirming: None,
            confirmed: None,
        };
        self.confirm(self.confirmation(turn), turn);
        Next::Hold(Lasts::Until(until), None)
    }

    /// Sets the whole lease, and asks for the successor.
    fn confirmation(&self, turn: &Turn<'_, Self>) -> Command {
        turn.script(Script::QueueConfirm, [turn.lease_ms(), self.wants_successor.into()])
    }

    fn confirm(&mut self, command: Command, turn: &mut Turn<'_, Self>) {
        let script = PendingScript::new(turn.send(command), command);
        self.hold.confirming = Some(Confirming { script, sent: turn.now });
    }

    pub(super) fn confirmed(&mut self, confirming: Confirming, reply: Reply, turn: &mut Turn<'_, Self>) {
        self.hold.confirming = None;
        match reply {
            Reply::Int(0) | Reply::Token(_) => {
                let until = turn.spec().lease.until(confirming.sent);
                // A reply after the end of the lease revives nothing.
                if turn.now < turn.until() {
                    self.hold.confirmed = Some((turn.now, reply.token()));
                    if until > turn.until() {
                        turn.prolong(until);
                    }
                }
            }
            // The hand-over ended earlier than this client believed.
            Reply::Int(-1) => turn.out.lapsed(),
            other => {
                if let Some(source) = confirming.script.source_after(other, || self.confirmation(turn)) {
                    self.confirm(source, turn);
                }
                // Otherwise the whole lease is not set; the hand-over lasts for its own time all the same.
            }
        }
    }
}
