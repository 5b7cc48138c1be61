//! Property tests: random histories, judged by the checker as they happen and by slow rules afterwards.

mod honest_locks;
mod merging;
mod oracle;
mod random_histories;
