//! Which connection a command goes over: one that clients share, the client's own, or one for subscriptions; and what
//! happens to the calls on a connection that is closed.

use std::collections::VecDeque;

use locks::{Key, Nanos};

use crate::client::Doing;
use crate::connection::{Awaited, Caller};
use crate::thread::Thread;

impl Thread {
    /// The connection to a server that a client shares with others.
    pub(crate) fn shared_connection(&self, client: u32, server: u16) -> u32 {
        u32::from(server) * self.per_server + client % self.per_server
    }

    /// The index of the first connection after the shared ones: the clients' own connections, or those for
    /// subscriptions.
    fn first_own(&self) -> u32 {
        self.targets.len() as u32 * self.per_server
    }

    pub(crate) fn own_connection(&self, client: u32) -> u32 {
        assert!(
            self.params.strategy.owns_connection(),
            "client {client} has no connection of its own"
        );
        self.first_own() + client
    }

    /// The client that owns a connection.
    pub(crate) fn owner_of(&self, connection: u32) -> Option<u32> {
        let own = connection.checked_sub(self.first_own());
        own.filter(|_| self.params.strategy.owns_connection())
    }

    /// The connection over which a client subscribes to the channel of a key. All clients that share connections
    /// subscribe to one channel over the same connection.
    pub(crate) fn subscribing_connection(&self, client: u32, key: Key) -> u32 {
        assert!(self.params.strategy.subscribes(), "client {client} does not subscribe");
        let which = if self.params.per_client { client } else { key.0 };
        self.first_own() + which % self.per_server
    }

    pub(crate) fn subscribes_over(&self, connection: u32) -> bool {
        self.params.strategy.subscribes() && connection >= self.first_own()
    }

    /// Marks the clients that lose more than their calls with this connection; they will be told that it closed.
    pub(crate) fn mark_disconnected(&mut self, connection: u32) {
        self.disconnected.extend(self.owner_of(connection));
        self.subscriptions
            .close(connection, &mut self.disconnected, &mut self.unsendable);
    }

    /// Whether a client can reach its servers, so that it makes sense to start.
    pub(crate) fn can_reach_a_server(&self, client: u32) -> bool {
        let owns_one = !self.params.strategy.owns_connection()
            || self.connections[self.own_connection(client) as usize].is_ready();
        let shares_one = !self.params.strategy.shares_connections()
            || (0..self.targets.len() as u16)
                .any(|server| self.connections[self.shared_connection(client, server) as usize].is_ready());
        owns_one && shares_one
    }

    /// Closes, because the lock asks for it, a client's own connection, or the one over which it waits to subscribe.
    /// The connection is reopened at once.
    pub(crate) fn hang_up(&mut self, client: u32, now: Nanos) {
        let index = if self.params.strategy.subscribes() {
            self.subscribing_connection(client, self.clients[client as usize].key)
        } else {
            self.own_connection(client)
        };
        let awaited = self.connections[index as usize].hang_up(now);
        self.next_upkeep = Nanos::ZERO;
        self.mark_disconnected(index);
        self.lose(awaited);
    }

    /// Whether all commands have replies, except blocking ones: on a client's own connection to Redis they end with the
    /// connection, and in its own session a lock closes the connection itself.
    pub(crate) fn has_no_open_calls(&self) -> bool {
        let shared = &self.connections[..self.first_own() as usize];
        let own = self.connections[shared.len()..].iter();
        let mut sessions = own.filter(|connection| self.leads_to_a_database(connection));
        self.unsendable.is_empty()
            && shared.iter().all(|connection| connection.awaited.is_empty())
            && sessions.all(|connection| connection.awaited.is_empty())
    }

    /// Reports these calls as lost to their clients.
    pub(crate) fn lose(&mut self, calls: VecDeque<Awaited>) {
        self.outstanding -= calls.len();
        let lost = calls
            .into_iter()
            .map(|Awaited { client, call, .. }| Caller { client, call });
        self.unsendable.extend(lost);
    }

    /// Counts orphaned keys. A command that takes a lock and whose connection was lost may leave a key that nobody can
    /// release before its lease ends: the key is an orphan for at most that long.
    pub(crate) fn count_orphans(&mut self, calls: &VecDeque<Awaited>) {
        let may_take = |awaited: &&Awaited| {
            let doing = self.clients[awaited.client as usize].doing;
            matches!(doing, Doing::Acquiring | Doing::Cancelling)
        };
        let orphans = calls.iter().filter(may_take).count() as u64;
        self.counters.orphan_ns = self
            .counters
            .orphan_ns
            .saturating_add(orphans.saturating_mul(self.params.ttl.0));
    }
}
