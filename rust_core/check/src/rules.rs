//! What a cell's lock promises, as far as the checker needs to know.

use locks::Nanos;

/// The default is a plain lock: one holder of a key, or several that all asked to share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How many may hold a key at the same time; with more than one, nobody can ask to share.
    pub permits: u32,
    /// Every grant has a fence, which grows; see `fences`. For locks with one holder at a time.
    pub fences: bool,
    /// Whether a client with a place in the queue must be served before those that come later.
    pub order: Order,
    /// A hold ends with a session, which may end before its holder notices; see `sessions`. For locks with one holder
    /// at a time, or several readers.
    pub sessions: bool,
    /// With `sessions`: within this time of a session's end, in which its driver runs, its holder notices that the
    /// connection was closed. If the holder notices later, the session had ended later.
    pub session_end_seen_within: Nanos,
    /// A grant counts as contended only if its holder believed in it for at least this long; see `contention`.
    pub least_belief: Nanos,
    /// Waiters of a key notice within this time that it was released: a grant that came no later than that after the
    /// end of a lease may be due to the release; see `stalls`.
    pub release_seen_within: Nanos,
    /// A key that a client waits for is granted again within this time; see `stalls`.
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

/// How the order of service is judged among clients with a place in the queue; see `fifo`. Only for one holder at a
/// time: with several, correct grants can overtake each other on their way to the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Not at all: most locks acknowledge no places.
    Ignored,
    /// Inversions are counted, and are not violations: the lock acknowledges places and promises nothing for them.
    Counted,
    /// An inversion is a violation.
    Promised,
}
