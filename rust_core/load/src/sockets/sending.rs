//! How a command comes among the unwritten bytes of its connection.

use locks::{Command, Nanos};

use super::Sockets;
use super::connection::Awaited;
use crate::transport::Outgoing;

impl Sockets {
    /// Puts the command among the unwritten bytes of this connection.
    pub(super) fn send_over(&mut self, index: u32, out: &Outgoing<'_>) -> Option<usize> {
        let connection = &mut self.connections[index as usize];
        if !connection.is_ready() {
            self.lost.push(out.sender.caller());
            return None;
        }
        if connection.awaits_too_many() {
            self.lost.push(out.sender.caller());
            self.overfull.push(index);
            self.next_upkeep = Nanos::ZERO;
            return None;
        }
        let before = connection.out.len();
        let block = self.encoders[usize::from(connection.server)].encode(out.command, &mut connection.out);
        let sender = out.sender;
        if connection.await_reply(Awaited::new(sender, block)) {
            self.unwritten.push(index);
        }
        self.outstanding += 1;
        if out.ends_hold {
            connection.releasing.push(sender.client);
        }
        Some(connection.out.len() - before)
    }

    /// Sends a command about a channel, or answers it here.
    pub(super) fn subscribe(&mut self, out: &Outgoing<'_>) -> Option<usize> {
        let who = out.sender.caller();
        let (Command::Subscribe { key } | Command::Unsubscribe { key }) = *out.command else {
            unreachable!("{:?} is not about a channel", out.command)
        };
        let index = self.layout.subscribing(who.client, key);
        let is_sent = if let Command::Subscribe { .. } = out.command {
            if !self.connections[index as usize].is_ready() {
                self.lost.push(who);
                return None;
            }
            self.channels.join(index, key, who)
        } else {
            self.channels.leave(index, key, who)
        };
        if is_sent { self.send_over(index, out) } else { None }
    }
}
