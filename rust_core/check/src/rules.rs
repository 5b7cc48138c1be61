//! What a cell's lock promises, as far as the judge has to be told.

/// The default is a plain lock: one holder of a key, who may share it with others that all asked to share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How many may hold a key beside each other; at more than one nobody can ask to share.
    pub permits: u32,
    /// Every grant brings a fence, which grows; see `fences`. For locks with one holder at a time.
    pub fences: bool,
    /// Who has a place in the queue is served before those who come later; see `fifo`. For locks with one holder at a
    /// time: where several may hold, honest grants can overtake each other on their way to the clients.
    pub fifo: bool,
    /// What is held ends with a session, which may be gone before its holder sees it; see `sessions`. For locks with one
    /// holder at a time, or readers beside each other.
    pub sessions: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            permits: 1,
            fences: false,
            fifo: false,
            sessions: false,
        }
    }
}
