//! The first line of a history: whose clock stamps it, and what its lock promises.

use check::{Order, Rules};
use locks::Nanos;
use serde::{Deserialize, Serialize};

/// The version of the format. A reader refuses a newer one.
pub const VERSION: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub pybench_history: u32,
    pub clock: Clock,
    /// The boot of the machine: the monotonic clock starts anew with each boot.
    pub boot_id: String,
    /// The name of the lock, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    #[serde(default)]
    pub promises: Promises,
    /// The time from which reports count; without it, the time of the first event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<u64>,
    /// Only in the history of a run: such a history is judged by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialName>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// `CLOCK_MONOTONIC` in nanoseconds.
    #[default]
    Monotonic,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialName {
    pub cell: String,
    pub trial: u32,
    /// How many parts a client has, one for each key of a grant.
    pub keys_per_grant: u32,
}

/// What a lock promises: the terms of the verdict, and the rules of the checker. Every field has a default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Promises {
    pub exclusion: Exclusion,
    /// How many clients may hold a key at the same time.
    pub permits: u32,
    /// Every grant of a key has a higher fence than all earlier grants.
    pub fences: bool,
    pub order: Ordering,
    /// A hold ends with a session, which may end before its holder notices.
    pub sessions: bool,
    /// A release wakes a waiting client by a message.
    pub wake_ups: bool,
    pub judged_by: JudgedBy,
    /// A key that a client waits for is granted again within this time; without it no key counts as stalled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted_within_ns: Option<u64>,
    /// Waiting clients notice a release within this time.
    pub release_seen_within_ns: u64,
    /// The holder notices the end of its session within this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_end_seen_within_ns: Option<u64>,
    /// A grant counts as contended only if its holder believed in it for at least this long.
    pub least_belief_ns: u64,
}

impl Default for Promises {
    fn default() -> Self {
        Self {
            exclusion: Exclusion::Always,
            permits: 1,
            fences: false,
            order: Ordering::Ignored,
            sessions: false,
            wake_ups: false,
            judged_by: JudgedBy::Belief,
            granted_within_ns: None,
            release_seen_within_ns: 0,
            session_end_seen_within_ns: None,
            least_belief_ns: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exclusion {
    Nothing,
    /// While no client crashes between its commands, and no client works past its lease.
    WhileNobodyOutlives,
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ordering {
    Ignored,
    Counted,
    Promised,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JudgedBy {
    Belief,
    Effects,
    Guard,
}

impl Promises {
    /// These promises with the rules by which the checker judged a trial.
    #[must_use]
    pub fn with_rules(self, rules: &Rules) -> Self {
        let bounded = |limit: Nanos| (limit < Nanos::NEVER).then_some(limit.0);
        Self {
            permits: rules.permits,
            fences: rules.fences,
            order: match rules.order {
                Order::Ignored => Ordering::Ignored,
                Order::Counted => Ordering::Counted,
                Order::Promised => Ordering::Promised,
            },
            sessions: rules.sessions,
            granted_within_ns: bounded(rules.granted_within),
            release_seen_within_ns: rules.release_seen_within.0,
            session_end_seen_within_ns: bounded(rules.session_end_seen_within),
            least_belief_ns: rules.least_belief.0,
            ..self
        }
    }

    pub(crate) fn rules(&self) -> Rules {
        let limit = |given: Option<u64>| given.map_or(Nanos::NEVER, Nanos);
        Rules {
            permits: self.permits,
            fences: self.fences,
            order: match self.order {
                Ordering::Ignored => Order::Ignored,
                Ordering::Counted => Order::Counted,
                Ordering::Promised => Order::Promised,
            },
            sessions: self.sessions,
            session_end_seen_within: limit(self.session_end_seen_within_ns),
            least_belief: Nanos(self.least_belief_ns),
            release_seen_within: Nanos(self.release_seen_within_ns),
            granted_within: limit(self.granted_within_ns),
        }
    }

    fn problem(&self) -> Option<&'static str> {
        let times = [
            self.granted_within_ns,
            self.session_end_seen_within_ns,
            Some(self.release_seen_within_ns),
            Some(self.least_belief_ns),
        ];
        if self.permits == 0 {
            Some("`permits` must be at least 1")
        } else if self.permits > 1 && (self.fences || self.sessions || self.order != Ordering::Ignored) {
            Some("a lock with several `permits` has no `fences`, no `order` and no `sessions`")
        } else if times.into_iter().flatten().any(|time| time > crate::line::MOST_NS) {
            Some("a time is too long: the most is 2^62 ns")
        } else {
            None
        }
    }
}

impl Header {
    pub(crate) fn parse(line: &[u8]) -> Result<Self, String> {
        let header: Self = crate::line::object(line)?;
        if header.pybench_history != VERSION {
            let version = header.pybench_history;
            return Err(format!(
                "version {version} of the format; this pybench reads version {VERSION}"
            ));
        }
        if header.boot_id.is_empty() {
            return Err("`boot_id` is empty".to_owned());
        }
        if header.trial.as_ref().is_some_and(|trial| trial.keys_per_grant == 0) {
            return Err("`keys_per_grant` must be at least 1".to_owned());
        }
        if header.began.is_some_and(|began| began > crate::line::MOST_NS) {
            return Err("`began` is out of range".to_owned());
        }
        header
            .promises
            .problem()
            .map_or(Ok(header.clone()), |problem| Err(problem.to_owned()))
    }

    /// The line of this header, with its line break.
    ///
    /// # Panics
    /// Never: a header has no maps and no numbers that JSON cannot write.
    #[must_use]
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("a header is plain data");
        line.push(b'\n');
        line
    }
}
