//! A transport that keeps what is sent until the test answers it.

use std::io;

use locks::{Key, Nanos};

use crate::LoadError;
use crate::transport::{Arrival, Broken, Caller, Confirmed, Cut, ErrorText, Outgoing, Ready, Transport};

/// The calls that were sent and have no reply.
#[derive(Debug, Default)]
pub(crate) struct ByHand {
    pub(crate) sent: Vec<Caller>,
    pub(crate) disconnected: Vec<u32>,
}

impl Transport for ByHand {
    fn wait(&mut self, _: Nanos, _: &mut Vec<Ready>) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, out: Outgoing<'_>) -> Option<usize> {
        self.sent.push(out.sender.caller());
        Some(1)
    }

    fn swap_releasing(&mut self, _: u32, _: &mut Vec<u32>) {}

    fn write(&mut self, _: u32, _: Nanos) -> Result<bool, Broken> {
        Ok(true)
    }

    fn is_unwritten(&self, _: u32) -> bool {
        false
    }

    fn has_unwritten(&self) -> bool {
        false
    }

    fn next_unwritten(&mut self, _: bool) -> Option<u32> {
        None
    }

    fn release_held_back(&mut self) -> bool {
        false
    }

    fn read(&mut self, _: u32) -> Result<Option<usize>, Broken> {
        Ok(None)
    }

    fn is_open(&self, _: u32) -> bool {
        true
    }

    fn next(&mut self, _: u32, _: Nanos, _: &mut Arrival) -> bool {
        false
    }

    fn end_of_read(&mut self, _: u32) -> Result<(), Broken> {
        Ok(())
    }

    fn error_text(&mut self, _: u32) -> Option<ErrorText> {
        None
    }

    fn awaiting(&self, _: u32) -> impl Iterator<Item = u32> {
        std::iter::empty()
    }

    fn server(&self, _: u32) -> u16 {
        0
    }

    fn outstanding(&self) -> usize {
        self.sent.len()
    }

    fn has_open_calls(&self) -> bool {
        !self.sent.is_empty()
    }

    fn next_message(&mut self) -> Option<Nanos> {
        None
    }

    fn next_listener(&mut self) -> Option<u32> {
        None
    }

    fn can_reach_a_server(&self, _: u32) -> bool {
        true
    }

    fn cut(&mut self, _: u32, broken: &Broken, _: Nanos) -> Result<Cut, LoadError> {
        unreachable!("nothing breaks here: {broken}")
    }

    fn hang_up(&mut self, _: u32, _: Key, _: Nanos) {}

    fn next_upkeep(&self) -> Nanos {
        Nanos::NEVER
    }

    fn upkeep(&mut self, _: Nanos, _: &mut Vec<(u32, Broken)>) {}

    fn next_confirmed(&mut self) -> Option<Confirmed> {
        None
    }

    fn swap_lost(&mut self, _: &mut Vec<Caller>) {}

    fn take_disconnected(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.disconnected)
    }

    fn is_disconnected(&self, client: u32) -> bool {
        self.disconnected.contains(&client)
    }

    fn has_news(&self) -> bool {
        !self.disconnected.is_empty()
    }

    fn unopened(&self) -> Option<String> {
        None
    }

    fn all_opened(&mut self) {}

    fn begin_drain(&mut self) {}

    fn leave(&mut self) {}
}
