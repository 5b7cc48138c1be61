//! What leaves, and what becomes of connections. Releases are stamped before the write that sends them.

use locks::{Event, LockMachine, Nanos, Reply};

use super::Driver;
use crate::LoadError;
use crate::clock::Clock;
use crate::recorder::ErrorPhase;
use crate::transport::{Broken, Caller, Confirmed, Transport};

impl<L: LockMachine, T: Transport, C: Clock> Driver<L, T, C> {
    /// Writes once to each connection that has commands, except those whose commands wait for the next replies.
    pub(super) fn write_all(&mut self, now: Nanos) -> Result<(), LoadError> {
        let outstanding = self.transport.outstanding();
        let may_hold_back = self.saturation.may_hold_back(now, outstanding, self.clients.working());
        while let Some(connection) = self.transport.next_unwritten(may_hold_back) {
            if let Err(broken) = self.write(connection, now) {
                self.cut(connection, &broken)?;
            }
            // A write takes as long as many holds: timers that became due meanwhile must not wait for the other writes.
            let now = self.read_clock();
            self.fire_timers(now);
        }
        let are_held_back = self.transport.release_held_back();
        self.saturation.held_back(are_held_back, now);
        Ok(())
    }

    /// Writes everything that the round has for a connection, in one call. Releases are stamped first, because belief
    /// ends before the bytes leave.
    pub(super) fn write(&mut self, connection: u32, now: Nanos) -> Result<(), Broken> {
        let mut releasing = std::mem::take(&mut self.releasing);
        self.transport.swap_releasing(connection, &mut releasing);
        if !releasing.is_empty() {
            let now = self.read_clock();
            for client in releasing.drain(..) {
                self.clients.stamp_release(client, now, &mut self.recorder);
            }
        }
        self.transport.swap_releasing(connection, &mut releasing);
        self.releasing = releasing;
        if self.transport.write(connection, now)? && !self.is_guard(connection) {
            self.recorder.wrote();
        }
        Ok(())
    }

    /// Handles the end of a connection: its calls are lost, and it is reopened after a pause.
    pub(super) fn cut(&mut self, connection: u32, broken: &Broken) -> Result<(), LoadError> {
        let now = self.read_clock();
        let cut = self.transport.cut(connection, broken, now)?;
        let server = self.transport.server(connection);
        if self.is_guard(connection) {
            if let Some(error) = &cut.error {
                self.recorder.error(ErrorPhase::Guard, server, now, error);
            }
            return Ok(()); // Not a loss of the lock's calls.
        }
        let orphans = self.clients.count_orphans(&cut.calls);
        self.recorder.cut(server, &cut, now, orphans, self.params.ttl);
        Ok(())
    }

    pub(super) fn upkeep(&mut self, now: Nanos) -> Result<(), LoadError> {
        let mut broken = std::mem::take(&mut self.broken);
        self.transport.upkeep(now, &mut broken);
        for (connection, why) in broken.drain(..) {
            self.cut(connection, &why)?;
        }
        self.broken = broken;
        Ok(())
    }

    /// Tells clients of calls that were answered here or will get no reply, and of connections that have closed. The
    /// locks learn that here and not while they are handling an event.
    pub(super) fn tell_losses(&mut self) {
        if !self.transport.has_news() {
            return;
        }
        let now = self.read_clock();
        while let Some(Confirmed { who, holds }) = self.transport.next_confirmed() {
            let (call, reply) = (who.call, Reply::Ok);
            let event = if holds {
                Event::Replied { call, reply }
            } else {
                Event::Lost { call }
            };
            self.dispatch(who.client, now, event);
        }
        let mut lost = std::mem::take(&mut self.lost);
        self.transport.swap_lost(&mut lost);
        for Caller { client, call } in lost.drain(..) {
            self.dispatch(client, now, Event::Lost { call });
        }
        self.lost = lost;
        for client in self.transport.take_disconnected() {
            self.dispatch(client, now, Event::Disconnected);
        }
    }
}
