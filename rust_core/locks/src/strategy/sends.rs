//! What each strategy sends, for a driver that loads or prepares it in advance.

use crate::reentrant::Count;
use crate::{Script, Statement, postgres};

use super::Strategy;

impl Strategy {
    /// The scripts that the strategy sends, for a driver that loads them in advance.
    pub const fn scripts(self) -> &'static [Script] {
        match self {
            Self::None
            | Self::Naive
            | Self::PgAdvisory { .. }
            | Self::PgRow { .. }
            | Self::PgLease
            | Self::PgOptimistic
            | Self::PgSerializable => &[],
            Self::Mutex
            | Self::Layered
            | Self::Reentrant { count: Count::Local }
            | Self::Fair
            | Self::Replicated { .. }
            | Self::Redlock(_) => &[Script::CompareAndDelete],
            Self::Watchdog { .. } | Self::RedissonRedlock(_) | Self::RedissonMultilock(_) => {
                &[Script::CompareAndDelete, Script::CompareAndExpire]
            }
            Self::Reentrant { count: Count::Server } => {
                &[Script::ReentrantTake, Script::ReentrantEnter, Script::ReentrantLeave]
            }
            Self::ReadWrite { .. } => &[
                Script::ReadTake,
                Script::ReadRelease,
                Script::WriteTake,
                Script::WriteRelease,
            ],
            Self::FairQueue { .. } => &[Script::QueueTake, Script::QueueConfirm, Script::QueueLeave],
            Self::Notify { renews: false } => &[Script::NotifyAcquire, Script::NotifyRelease],
            Self::Notify { renews: true } => &[Script::NotifyAcquire, Script::NotifyRelease, Script::CompareAndExpire],
            Self::Semaphore { .. } => &[Script::SemaphoreTake, Script::SemaphoreRelease],
            Self::Fenced { renews: false } => &[Script::FencedTake, Script::CompareAndDelete],
            Self::Fenced { renews: true } => &[Script::FencedTake, Script::CompareAndDelete, Script::CompareAndExpire],
            Self::Multilock(_) => &[Script::TakeAll, Script::ReleaseAll],
        }
    }

    /// The statements that the strategy sends, for a driver that prepares them in advance.
    pub const fn statements(self) -> &'static [Statement] {
        match self {
            Self::PgAdvisory { scope, wait, .. } => postgres::advisory_statements(scope, wait),
            Self::PgRow { wait } => postgres::row_statements(wait),
            Self::PgLease => &[Statement::LeaseTake, Statement::LeaseRelease],
            Self::PgOptimistic => &[Statement::VersionRead, Statement::VersionWrite],
            Self::PgSerializable => &[
                Statement::SerializableRead,
                Statement::SerializableWrite,
                Statement::Rollback,
            ],
            Self::Layered => &[Statement::FenceTake, Statement::ValueRead, Statement::FencedWrite],
            _ => &[],
        }
    }
}
