//! Planned faults: begun and ended between two rounds, see `crate::faults`.

use locks::{LockMachine, Nanos};

use super::Driver;
use crate::LoadError;
use crate::clock::Clock;
use crate::faults::{ClientFault, FaultAction, LinkFault, Step};
use crate::transport::{Broken, Transport};

impl<L: LockMachine, T: Transport, C: Clock> Driver<L, T, C> {
    /// When the next fault begins or ends.
    #[inline]
    pub(super) fn next_fault(&self) -> Nanos {
        self.recorder.window().start().after(self.faults.next())
    }

    /// Begins and ends the faults whose time has come.
    #[cold]
    pub(super) fn turn_faults(&mut self, now: Nanos) -> Result<(), LoadError> {
        let open = now.since(self.recorder.window().start());
        let mut changed = false;
        while let Some(step) = self.faults.pop(open) {
            changed |= self.carry_out(&step, now)?;
        }
        if changed { self.disturb_links(now) } else { Ok(()) }
    }

    /// Ends all faults: the drain is not disturbed.
    #[cold]
    pub(super) fn end_faults(&mut self, now: Nanos) -> Result<(), LoadError> {
        self.faults.end_all();
        self.turn_faults(now)
    }

    /// Returns whether the faults that disturb connections are others now.
    fn carry_out(&mut self, step: &Step, now: Nanos) -> Result<bool, LoadError> {
        let (begins, lasts) = (step.begins, step.fault.lasts);
        match &step.fault.action {
            FaultAction::OfLinks(links, how) => {
                if begins && matches!(how, LinkFault::Cut | LinkFault::Reset) {
                    self.cut_all(self.transport.touched(*links))?;
                }
                Ok(true)
            }
            FaultAction::OfClient(client, how) => {
                let (client, until) = (*client, now.after(lasts));
                if !begins && self.faults.is_under_way(client, *how) {
                    return Ok(false); // Another such fault lasts longer.
                }
                let (clients, mut to) = self.split();
                match (how, begins) {
                    (ClientFault::Crash, true) => {
                        clients.crash(client, now, until, &mut to);
                        let of_its_own = self.transport.forget(client);
                        self.cut_all(of_its_own)?;
                    }
                    (ClientFault::Crash, false) => {}
                    (ClientFault::Pause, true) => clients.hold_up(client, until),
                    (ClientFault::Pause, false) => clients.go_on(client, now, &mut to),
                    (ClientFault::DropRenewals, drops) => clients.drop_renewals(client, drops),
                }
                Ok(false)
            }
        }
    }

    fn disturb_links(&mut self, now: Nanos) -> Result<(), LoadError> {
        let active = self.faults.links();
        let unusable = self.transport.disturb(&active, now);
        self.cut_all(unusable)
    }

    fn cut_all(&mut self, connections: Vec<u32>) -> Result<(), LoadError> {
        connections
            .into_iter()
            .try_for_each(|connection| self.cut(connection, &Broken::Planned))
    }
}
