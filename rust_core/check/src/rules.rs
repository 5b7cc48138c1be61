//! What a cell's lock promises, as far as the judge has to be told.

use locks::Nanos;

/// The default is a plain lock: one holder of a key, who may share it with others that all asked to share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How many may hold a key beside each other; at more than one nobody can ask to share.
    pub permits: u32,
    /// Every grant brings a fence, which grows; see `fences`. For locks with one holder at a time.
    pub fences: bool,
    /// Whether who has a place in the queue has to be served before those who come later.
    pub order: Order,
    /// What is held ends with a session, which may be gone before its holder sees it; see `sessions`. For locks with one
    /// holder at a time, or readers beside each other.
    pub sessions: bool,
    /// Where `sessions`: within this time of a session's end its holder sees that the connection was closed. A session
    /// that its holder finds gone later had not ended yet.
    pub session_end_seen_within: Nanos,
    /// A grant counts as contended only if it was believed in for at least this long; see `contention`.
    pub least_belief: Nanos,
    /// Those who wait for a key see within this time that it was released: a grant that came no later than that after the
    /// end of a lease may be owed to the release; see `stalls`.
    pub release_seen_within: Nanos,
    /// A key that somebody waits for is granted again within this time; see `stalls`.
    pub granted_within: Nanos,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            permits: 1,
            fences: false,
            order: Order::Ignored,
            sessions: false,
            session_end_seen_within: Nanos::NEVER,
            least_belief: Nanos::ZERO,
            release_seen_within: Nanos::ZERO,
            granted_within: Nanos::NEVER,
        }
    }
}

/// What is made of the order in which those are served who have a place in the queue; see `fifo`. It is looked at only
/// where one holds at a time: where several may, honest grants can overtake each other on their way to the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nothing: most locks say of nobody that it has a place.
    Ignored,
    /// Its inversions are counted, and are no violations: the lock says who has a place, and promises nothing for it.
    Counted,
    /// An inversion is a violation.
    Promised,
}
