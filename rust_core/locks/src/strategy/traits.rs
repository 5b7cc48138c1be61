//! The row of the catalogue: what a driver has to know about a strategy. Each strategy writes its own row in its file.

use crate::{Script, ServerId, Statement, Strategy};

macro_rules! traits {
    ($($(#[$about:meta])* $name:ident: $type:ty;)*) => {
        /// What a driver has to know about a strategy.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Traits { $($(#[$about])* pub $name: $type),* }

        impl Strategy {
            $($(#[$about])* #[inline] pub const fn $name(self) -> $type { self.traits().$name })*
        }
    };
}

traits! {
    /// Its name in a matrix.
    name: &'static str;
    /// Whether holders may share the lock: `Mode::Shared` is supported.
    shares: bool;
    /// Whether the holder may enter once more.
    nests: bool;
    /// Whether one acquire may name several keys.
    takes_many_keys: bool;
    /// Whether each client needs its own connection to the first server.
    owns_connection: bool;
    /// Whether its clients subscribe to channels, over separate connections to the first server.
    subscribes: bool;
    /// The server that is a database, if there is one; all other servers are Redis servers.
    database: Option<ServerId>;
    /// Whether a hold ends with a session: see `Lasts::Session`.
    holds_by_session: bool;
    /// Whether its release writes the effect of the work, so that the work counts only if the release settled as
    /// `Released`. Strategies that exclude nobody have no belief: their written values are judged instead.
    writes: bool;
    /// Whether a grant only starts a try, whose release may find a conflict.
    is_optimistic: bool;
    /// Whether each grant has a fence, which grows from grant to grant.
    fences: bool;
    /// Whether its server acknowledges places in a queue, which the machine reports with `Action::Queued`.
    acknowledges_places: bool;
    /// Whether it grants in the order of the acknowledged places.
    is_fifo: bool;
    /// Whether its belief is shorter than the lease by the clock-skew margin, so that the lease has to exceed that.
    takes_skew_margin_off: bool;
    /// How many clients may hold one key at once. A strategy that promises nothing is measured against one holder.
    permits: u32;
    /// How many servers it needs; `None` for a lock that uses only the first of them.
    nodes: Option<u16>;
    /// The scripts that the strategy sends, for a driver that loads them in advance.
    scripts: &'static [Script];
    /// The statements that the strategy sends, for a driver that prepares them in advance.
    statements: &'static [Statement];
}

impl Traits {
    /// A lock with a lease on one Redis server. The row of a strategy names what is different.
    pub(crate) const LEASE: Self = Self {
        name: "",
        shares: false,
        nests: false,
        takes_many_keys: false,
        owns_connection: false,
        subscribes: false,
        database: None,
        holds_by_session: false,
        writes: false,
        is_optimistic: false,
        fences: false,
        acknowledges_places: false,
        is_fifo: false,
        takes_skew_margin_off: true,
        permits: 1,
        nodes: None,
        scripts: &[],
        statements: &[],
    };

    /// A lock of a session of a database.
    pub(crate) const SESSION: Self = Self {
        shares: true,
        owns_connection: true,
        database: Some(ServerId(0)),
        holds_by_session: true,
        takes_skew_margin_off: false,
        ..Self::LEASE
    };

    /// Work that is written only if nobody else has written meanwhile.
    pub(crate) const OPTIMISTIC: Self = Self {
        database: Some(ServerId(0)),
        writes: true,
        is_optimistic: true,
        takes_skew_margin_off: false,
        ..Self::LEASE
    };
}
