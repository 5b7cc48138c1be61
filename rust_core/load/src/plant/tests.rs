//! Every plant is found for every kind of lock, with one thread and through rings.

use locks::{ArgValue, Strategy};

use super::Planted;
use crate::by_hand::spec_for_plants;

fn named(name: &str, args: &[(&str, ArgValue)]) -> Strategy {
    let args: Vec<_> = args
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    Strategy::named(name, &args).expect("it is in the catalogue")
}

fn kinds(strategy: Strategy, threads: u32, keys_per_grant: u32) -> Vec<&'static str> {
    let found = super::all(&spec_for_plants(strategy, threads, keys_per_grant)).expect("the trial is sound");
    let missed: Vec<&Planted> = found.iter().filter(|planted| !planted.caught).collect();
    assert!(missed.is_empty(), "{strategy:?} by {threads} threads: {missed:?}");
    found.iter().map(|planted| planted.kind).collect()
}

#[test]
fn the_checker_finds_whatever_a_lock_may_be_planted_with() {
    for threads in [1, 2, 3] {
        let leased = ["double grant", "double grant in a renewed lease"];
        assert_eq!(
            kinds(named("mutex", &[]), threads, 1),
            [&leased[..], &["no fault"]].concat()
        );
        assert_eq!(
            kinds(named("semaphore", &[("permits", ArgValue::Int(3))]), threads, 1),
            ["one permit too many", "double grant in a renewed lease", "no fault"]
        );
        assert_eq!(
            kinds(named("multilock", &[]), threads, 2),
            [
                "double grant",
                "overlap in a second key",
                "double grant in a renewed lease",
                "no fault"
            ]
        );
        assert_eq!(
            kinds(named("fenced", &[]), threads, 1),
            [&leased[..], &["stale fence", "no fault"]].concat()
        );
        assert_eq!(
            kinds(named("fair-queue", &[]), threads, 1),
            [&leased[..], &["FIFO inversion", "no fault"]].concat()
        );
        assert_eq!(
            kinds(named("read-write", &[]), threads, 1),
            [&leased[..], &["reader beside a writer", "no fault"]].concat()
        );
        assert_eq!(
            kinds(named("pg-advisory", &[]), threads, 1),
            ["double grant", "reader beside a writer", "no fault"]
        );
        assert_eq!(kinds(named("pg-optimistic", &[]), threads, 1), ["lost update"]);
    }
}
