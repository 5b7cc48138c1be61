//! `atomic`: takes no lock. The guarded work itself is one atomic step on the server of the resource, so no lock is
//! needed: see `GuardRules::is_atomic`. Its machine is that of `none`.
//!
//! Promises no exclusion: nobody believes in anything, and the guarded resource judges it.

use crate::Traits;

pub(crate) const TRAITS: Traits = Traits {
    name: "atomic",
    ..crate::none::TRAITS
};
