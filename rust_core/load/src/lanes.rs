//! Which connection a client's commands go over: one that it shares with others, or its own, and what becomes of the
//! calls on a connection that is closed.

use std::collections::VecDeque;

use locks::Nanos;

use crate::client::Doing;
use crate::connection::Awaited;
use crate::thread::Thread;

impl Thread {
    /// The connection that a client shares with others to a server.
    pub(crate) fn shared_connection(&self, client: u32, server: u16) -> u32 {
        u32::from(server) * self.per_server + client % self.per_server
    }

    /// Where the clients' own connections begin.
    fn first_own(&self) -> u32 {
        self.targets.len() as u32 * self.per_server
    }

    pub(crate) fn own_connection(&self, client: u32) -> u32 {
        assert!(
            self.shared.has_own_connections,
            "client {client} has no connection of its own"
        );
        self.first_own() + client
    }

    /// The client that a connection belongs to.
    pub(crate) fn owner_of(&self, connection: u32) -> Option<u32> {
        connection.checked_sub(self.first_own())
    }

    /// Whether it makes sense for a client to start.
    pub(crate) fn can_reach_a_server(&self, client: u32) -> bool {
        let owns_one =
            !self.shared.has_own_connections || self.connections[self.own_connection(client) as usize].is_ready();
        let shares_one = !self.shared.shares_connections
            || (0..self.targets.len() as u16)
                .any(|server| self.connections[self.shared_connection(client, server) as usize].is_ready());
        owns_one && shares_one
    }

    /// Closes a client's own connection, as its lock wishes, and opens it again at once.
    pub(crate) fn hang_up(&mut self, client: u32, now: Nanos) {
        let index = self.own_connection(client);
        let awaited = self.connections[index as usize].hang_up(now);
        self.next_upkeep = Nanos::ZERO;
        self.disconnected.push(client);
        self.lose(awaited);
    }

    /// All that clients sent is answered, but for what blocks: on a client's own connection to Redis it is cut off with
    /// it, and in a session of its own a lock hangs up by itself.
    pub(crate) fn has_nothing_to_say(&self) -> bool {
        let shared = &self.connections[..self.first_own() as usize];
        let own = self.connections[shared.len()..].iter();
        let mut sessions = own.filter(|connection| self.leads_to_a_database(connection));
        self.unsendable.is_empty()
            && shared.iter().all(|connection| connection.awaited.is_empty())
            && sessions.all(|connection| connection.awaited.is_empty())
    }

    /// The clients of these calls hear that no answers will come.
    pub(crate) fn lose(&mut self, calls: VecDeque<Awaited>) {
        self.outstanding -= calls.len();
        self.unsendable
            .extend(calls.into_iter().map(|awaited| (awaited.client, awaited.call)));
    }

    /// A command that takes a lock and whose connection was lost may leave a key that nobody can take back before its
    /// lease ends: that long, at most, the key is an orphan.
    pub(crate) fn count_orphans(&mut self, calls: &VecDeque<Awaited>) {
        let may_take = |awaited: &&Awaited| {
            let doing = self.clients[awaited.client as usize].doing;
            matches!(doing, Doing::Acquiring | Doing::Cancelling)
        };
        let orphans = calls.iter().filter(may_take).count() as u64;
        self.counters.orphan_ns = self
            .counters
            .orphan_ns
            .saturating_add(orphans.saturating_mul(self.shared.ttl.0));
    }
}
