//! Which connection a command goes over: one that clients share, the client's own, one for subscriptions, or the
//! client's connection to the guarded resource.

use locks::{Key, Strategy};

/// How the connections of a thread are numbered: those to server 0, then those to server 1, and so on; after them each
/// client's own, or those for subscriptions, if there are any; at the end those to the guarded resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    servers: u16,
    per_server: u32,
    clients: u32,
    /// No client shares its connections.
    per_client: bool,
    /// Whether commands go over shared connections at all.
    shares: bool,
    further: Further,
    /// Whether each client has a connection to the guarded resource, on a server after those of the lock.
    is_guarded: bool,
}

/// The connections besides the shared ones; all lead to the first server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Further {
    None,
    /// One for each client.
    Own,
    /// As many again as are shared, for subscriptions.
    Subscribing,
}

impl Layout {
    /// For this many clients of a thread, with `per_server` connections to each server that clients share.
    pub(crate) const fn new(strategy: Strategy, servers: u16, clients: u32, per_server: u32, per_client: bool) -> Self {
        Self {
            servers,
            per_server,
            clients,
            per_client,
            shares: strategy.shares_connections(),
            further: if strategy.owns_connection() {
                Further::Own
            } else if strategy.subscribes() {
                Further::Subscribing
            } else {
                Further::None
            },
            is_guarded: false,
        }
    }

    /// The same, and a connection to the guarded resource for each client.
    pub(crate) const fn guarded(self, is_guarded: bool) -> Self {
        Self { is_guarded, ..self }
    }

    /// The server of each connection.
    pub(crate) fn servers(self) -> impl Iterator<Item = u16> {
        let guarded = if self.is_guarded { self.clients } else { 0 };
        (0..self.servers)
            .flat_map(move |server| (0..self.per_server).map(move |_| server))
            .chain((0..self.further()).map(|_| 0))
            .chain((0..guarded).map(move |_| self.servers))
    }

    const fn further(self) -> u32 {
        match self.further {
            Further::None => 0,
            Further::Own => self.clients,
            Further::Subscribing => self.per_server,
        }
    }

    /// The connection of a client to the guarded resource.
    #[inline]
    pub(crate) fn guard(self, client: u32) -> u32 {
        assert!(self.is_guarded, "client {client} has no guarded resource");
        self.first_guard() + client
    }

    /// The index of the first connection to the guarded resource.
    pub(crate) const fn first_guard(self) -> u32 {
        self.first_own() + self.further()
    }

    /// How many clients send over a connection at most.
    pub(crate) const fn clients_of(self, connection: u32) -> u32 {
        if connection < self.first_own() {
            self.clients.div_ceil(self.per_server)
        } else if self.owns() || connection >= self.first_guard() {
            1
        } else {
            self.clients
        }
    }

    /// The connection to a server that a client shares with others.
    #[inline]
    pub(crate) const fn shared(self, client: u32, server: u16) -> u32 {
        server as u32 * self.per_server + client % self.per_server
    }

    /// The index of the first connection after the shared ones.
    #[inline]
    pub(crate) const fn first_own(self) -> u32 {
        self.servers as u32 * self.per_server
    }

    #[inline]
    pub(crate) fn own(self, client: u32) -> u32 {
        assert!(self.owns(), "client {client} has no connection of its own");
        self.first_own() + client
    }

    /// Whether a client may send over a connection.
    pub(crate) fn is_used_by(self, connection: u32, client: u32) -> bool {
        if let Some(guarded) = connection.checked_sub(self.first_guard()) {
            return guarded == client;
        }
        match connection.checked_sub(self.first_own()) {
            None => connection % self.per_server == client % self.per_server,
            Some(own) if self.owns() => own == client,
            Some(own) => !self.per_client || own == client % self.per_server,
        }
    }

    /// The client that owns a connection.
    pub(crate) fn owner_of(self, connection: u32) -> Option<u32> {
        let own = connection.checked_sub(self.first_own());
        own.filter(|_| self.owns() && connection < self.first_guard())
    }

    /// The connection over which a client subscribes to the channel of a key. All clients that share connections
    /// subscribe to one channel over the same connection.
    pub(crate) fn subscribing(self, client: u32, key: Key) -> u32 {
        assert!(self.subscribes(), "client {client} does not subscribe");
        let which = if self.per_client { client } else { key.0 };
        self.first_own() + which % self.per_server
    }

    /// Whether connections carry subscriptions at all.
    #[inline]
    pub(crate) const fn subscribes(self) -> bool {
        matches!(self.further, Further::Subscribing)
    }

    const fn owns(self) -> bool {
        matches!(self.further, Further::Own)
    }

    #[inline]
    pub(crate) const fn subscribes_over(self, connection: u32) -> bool {
        self.subscribes() && connection >= self.first_own() && connection < self.first_guard()
    }

    /// Whether a client has what it needs: its own connection, and one of those that it shares.
    pub(crate) fn can_reach_a_server(self, client: u32, is_open: impl Fn(u32) -> bool) -> bool {
        let has_own = !self.owns() || is_open(self.own(client));
        let has_shared = !self.shares || (0..self.servers).any(|server| is_open(self.shared(client, server)));
        let has_guard = !self.is_guarded || is_open(self.guard(client));
        has_own && has_shared && has_guard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(name: &str, servers: u16, clients: u32, per_server: u32) -> Layout {
        let strategy = Strategy::named(name, &[]).expect("it is in the catalogue");
        Layout::new(strategy, servers, clients, per_server, false)
    }

    #[test]
    fn clients_share_the_connections_to_each_server_evenly() {
        let redlock = layout("redlock", 3, 5, 2);
        assert_eq!(redlock.servers().collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
        assert_eq!([0, 1, 2].map(|client| redlock.shared(client, 1)), [2, 3, 2]);
        assert_eq!(redlock.owner_of(5), None);
        assert_eq!(redlock.clients_of(5), 3, "one of them has two");
        assert!(redlock.can_reach_a_server(1, |connection| connection == 5));
        assert!(!redlock.can_reach_a_server(1, |connection| connection == 4));
    }

    #[test]
    fn a_clients_own_connection_leads_to_the_first_server_and_back_to_the_client() {
        let fair = layout("fair", 1, 3, 1);
        assert_eq!(fair.servers().collect::<Vec<_>>(), [0; 4]);
        assert_eq!(
            [0, 1, 2].map(|client| fair.owner_of(fair.own(client))),
            [Some(0), Some(1), Some(2)]
        );
        assert_eq!(fair.owner_of(0), None);
    }

    #[test]
    fn a_lock_that_lives_in_sessions_has_no_shared_connections_to_need() {
        let row = layout("pg-row", 1, 2, 0);
        assert_eq!(row.servers().count(), 2);
        assert!(row.can_reach_a_server(1, |connection| connection == 1));
        assert!(!row.can_reach_a_server(1, |connection| connection == 0));
    }

    #[test]
    fn the_guarded_resource_is_reached_over_a_connection_of_each_client() {
        let fair = layout("fair", 1, 3, 1).guarded(true);
        assert_eq!(fair.servers().collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1]);
        assert_eq!([0, 1, 2].map(|client| fair.guard(client)), [4, 5, 6]);
        assert_eq!(fair.owner_of(4), None, "its lock learns nothing of this connection");
        assert!(fair.is_used_by(5, 1) && !fair.is_used_by(5, 0));
        assert_eq!(fair.clients_of(5), 1);
        assert!(!fair.can_reach_a_server(1, |connection| connection != 5));
        let notify = layout("notify", 1, 2, 1).guarded(true);
        assert!(notify.subscribes_over(1) && !notify.subscribes_over(2));
    }

    #[test]
    fn all_subscribe_to_one_key_over_one_connection() {
        let notify = layout("notify", 1, 8, 2);
        assert_eq!(notify.servers().count(), 4);
        assert_eq!(notify.subscribing(0, Key(3)), notify.subscribing(5, Key(3)));
        assert_ne!(notify.subscribing(0, Key(2)), notify.subscribing(0, Key(3)));
        assert!(notify.subscribes_over(2) && !notify.subscribes_over(1));
    }
}
