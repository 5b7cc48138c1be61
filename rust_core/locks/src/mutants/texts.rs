//! Mistakes in scripts and statements: a text is replaced in the honest one.
//!
//! Promises: a text that the honest one does not have exactly as often as said here is a panic at the start, so that no
//! mutant quietly becomes an honest lock.

use super::{Mutant, chosen};
use crate::{Script, Statement};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Script(Script),
    Statement(Statement),
}

use Where::{Script as InScript, Statement as InStatement};

struct Change {
    mutant: Mutant,
    place: Where,
    old: &'static str,
    new: &'static str,
}

const fn change(mutant: Mutant, place: Where, old: &'static str, new: &'static str) -> Change {
    Change {
        mutant,
        place,
        old,
        new,
    }
}

const CHANGES: &[Change] = &[
    change(
        Mutant::ScriptReleaseUnchecked,
        InScript(Script::CompareAndDelete),
        "if redis.call('GET', KEYS[1]) == ARGV[1] then",
        "if redis.call('EXISTS', KEYS[1]) == 1 then",
    ),
    change(
        Mutant::PartOfTheSet,
        InScript(Script::TakeAll),
        "if not redis.call('SET', key, ARGV[1], 'NX', 'PX', ARGV[2]) then",
        "if taken < #KEYS and not redis.call('SET', key, ARGV[1], 'NX', 'PX', ARGV[2]) then",
    ),
    change(
        Mutant::FirstOfTheSet,
        InScript(Script::ReleaseAll),
        "for _, key in ipairs(KEYS) do",
        "for place, key in ipairs(KEYS) do if place == 1 then deleted = 1 else",
    ),
    change(
        Mutant::FirstOfTheSet,
        InScript(Script::ReleaseAll),
        "    end\nend\nreturn",
        "    end\nend end\nreturn",
    ),
    change(
        Mutant::NobodyWoken,
        InScript(Script::NotifyRelease),
        "redis.call('PUBLISH', KEYS[2], 'free')\n",
        "",
    ),
    change(
        Mutant::LastServedFirst,
        InScript(Script::QueueLeave),
        "redis.call('ZPOPMIN', KEYS[2])",
        "redis.call('ZPOPMAX', KEYS[2])",
    ),
    change(
        Mutant::LastServedFirst,
        InScript(Script::QueueConfirm),
        "ARGV[3] == '1' and redis.call('ZRANGE', queue, 0, 0)[1]",
        "ARGV[3] == '1' and redis.call('ZRANGE', queue, -1, -1)[1]",
    ),
    change(
        Mutant::LeaveReleasesAll,
        InScript(Script::ReentrantLeave),
        "redis.call('LTRIM', KEYS[1], ARGV[2], -1)\nreturn redis.call('LLEN', KEYS[1])",
        "local left = redis.call('LLEN', KEYS[1]) - ARGV[2]\nredis.call('DEL', KEYS[1])\nreturn left",
    ),
    change(
        Mutant::ReaderIgnoresWriter,
        InScript(Script::ReadTake),
        "redis.call('EXISTS', KEYS[1]) == 1",
        "false",
    ),
    change(
        Mutant::WriterIgnoresReaders,
        InScript(Script::WriteTake),
        " and redis.call('ZCARD', KEYS[2]) == 0",
        "",
    ),
    change(Mutant::NoForUpdate, InStatement(Statement::RowLock), " FOR UPDATE", ""),
    change(
        Mutant::VersionNotCompared,
        InStatement(Statement::VersionWrite),
        " AND version = $2",
        "",
    ),
    change(
        Mutant::ExpiryNotChecked,
        InStatement(Statement::LeaseTake),
        " WHERE l.expires_at <= clock_timestamp()",
        "",
    ),
    change(
        Mutant::RowOwnerNotChecked,
        InStatement(Statement::LeaseRelease),
        " AND owner = $2",
        " AND $2::uuid IS NOT NULL",
    ),
    change(
        Mutant::FenceNotChecked,
        InStatement(Statement::FencedWrite),
        " AND fence = $2",
        " AND $2 IS NOT NULL",
    ),
];

/// The text of a script, with the chosen mistake.
pub(crate) fn script(script: Script, honest: &'static str) -> &'static str {
    text(Where::Script(script), honest)
}

/// The text of a statement, with the chosen mistake.
pub(crate) fn statement(statement: Statement, honest: &'static str) -> &'static str {
    text(Where::Statement(statement), honest)
}

/// Panics where a change does not find its text.
pub(super) fn check() {
    for change in CHANGES {
        let honest = match change.place {
            Where::Script(script) => script.honest_source(),
            Where::Statement(statement) => statement.honest_sql(),
        };
        let found = honest.matches(change.old).count();
        let (name, old) = (change.mutant.name(), change.old);
        assert_eq!(found, 1, "{name}: the text to change is found {found} times: {old}");
    }
}

fn text(place: Where, honest: &'static str) -> &'static str {
    let Some(mutant) = chosen() else { return honest };
    let mine = |change: &&Change| change.mutant == mutant && change.place == place;
    let mut changes = CHANGES.iter().filter(mine).peekable();
    if changes.peek().is_none() {
        return honest;
    }
    let broken = changes.fold(honest.to_owned(), |text, change| text.replace(change.old, change.new));
    // A few short texts in a process that ends with its trial.
    Box::leak(broken.into_boxed_str())
}
