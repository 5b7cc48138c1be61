//! The classic counter-examples, found from seeds, and what a lock is blamed for.

use history::Exclusion;
use locks::{ArgValue, Nanos, Strategy};
use sim::{Fault, FaultKind, Found, Fuzz, Part, Scene, Setting, Verdict, World, Wrong};

fn fuzz(name: &str, args: &[(&str, i64)], faults: &[FaultKind]) -> Fuzz {
    let args: Vec<_> = args
        .iter()
        .map(|&(name, value)| (name.to_owned(), ArgValue::Int(value)))
        .collect();
    Fuzz {
        setting: Setting {
            strategy: Strategy::named(name, &args).expect("it is in the catalogue"),
            faults: faults.to_vec(),
            clients: Some(3),
            ttl_ms: Some(50),
            hold: Some(Nanos::from_millis(20)),
            until: Some(Nanos::from_millis(250)),
        },
        exclusion: Exclusion::Always,
    }
}

/// A world runs to its end if nothing goes wrong in it.
#[test]
fn a_world_runs_to_its_end() {
    let fuzz = fuzz("mutex", &[], &[]);
    for seed in 0..10 {
        let scene = Scene::draw(&fuzz.setting, seed).expect("a good setting");
        let world = World::of_scene(&scene, false);
        let last = world.ended.0 as f64 / scene.until.0 as f64;
        assert!(last > 0.8, "seed {seed} ended after {last} of its time");
    }
}

/// The seeds among the first `count` in which a lock gave itself away outside of its promise. None may be broken.
fn outside(fuzz: &Fuzz, count: u64) -> Vec<u64> {
    let tally = fuzz.run(0, count, false).expect("a good setting");
    assert_eq!(tally.broken, Vec::<u64>::new(), "{:?}", fuzz.setting.strategy);
    tally.outside
}

fn shrunk(fuzz: &Fuzz, seed: u64) -> (Found, Vec<Fault>) {
    let found = fuzz.shrink(seed).expect("a good setting").expect("it goes wrong");
    let scene = Scene::draw(&fuzz.setting, seed).expect("a good setting");
    let faults = scene.cut(&found.part).faults;
    (found, faults)
}

fn kinds(faults: &[Fault]) -> Vec<FaultKind> {
    faults.iter().map(|fault| fault.kind).collect()
}

#[test]
fn a_failover_loses_the_lock_of_a_mutex_more_often_than_that_of_replicated_and_none_that_all_replicas_have() {
    let only = &[FaultKind::Failover];
    let mutex = outside(&fuzz("mutex", &[], only), 100);
    let replicated = |replicas| {
        let args = [("timeout_ms", 8), ("replicas", replicas)];
        outside(&fuzz("replicated", &args, only), 100).len()
    };
    let (by_one, by_both) = (replicated(1), replicated(2));
    assert!(
        by_one > 0 && by_one * 4 < mutex.len() * 3,
        "{by_one} of {}",
        mutex.len()
    );
    assert_eq!(by_both, 0);
    let to_the_nearer = |fault: &Fault| fault.lasts() == Nanos::from_millis(2);
    let setting = fuzz("replicated", &[("timeout_ms", 8)], only).setting;
    for seed in 0..10 {
        for fault in Scene::draw(&setting, seed).expect("a good setting").faults {
            assert_eq!(fault.is_survived_by(setting.strategy), to_the_nearer(&fault));
            assert!(!fault.is_survived_by(Strategy::Mutex));
        }
    }
    let (found, faults) = shrunk(&fuzz("mutex", &[], only), mutex[0]);
    assert_eq!(kinds(&faults), [FaultKind::Failover]);
    assert_eq!(found.part.clients.map(|clients| clients.len()), Some(2));
}

#[test]
fn servers_that_vote_cannot_fail_over_and_survive_what_befalls_them_instead() {
    let survived: Vec<FaultKind> = FaultKind::ALL.into_iter().filter(|kind| kind.is_survived()).collect();
    assert!(!FaultKind::Failover.befalls(Strategy::named("redlock", &[]).expect("known")));
    assert_eq!(outside(&fuzz("redlock", &[], &survived), 60), Vec::<u64>::new());
}

#[test]
fn a_clock_that_jumps_breaks_redlock_outside_of_its_promise() {
    let fuzz = fuzz("redlock", &[], &[FaultKind::Clock]);
    let seeds = outside(&fuzz, 60);
    let (found, faults) = shrunk(&fuzz, *seeds.first().expect("a seed in which clocks jump"));
    assert_eq!(found.verdict, Verdict::Outside);
    assert!(!faults.is_empty() && faults.iter().all(|fault| fault.kind == FaultKind::Clock));
    // The server's clock has to jump over what was left of the lease.
    assert!(faults.iter().any(|fault| fault.length > Nanos::from_millis(1)));
}

#[test]
fn a_server_that_forgets_while_exactly_a_quorum_holds_breaks_redlock_outside_of_its_promise() {
    let fuzz = fuzz("redlock", &[], &[FaultKind::Forget]);
    let seeds = outside(&fuzz, 60);
    // With one restart the lock was on three of five servers, and then on two.
    let by_one = seeds.iter().take(8).find(|&&seed| shrunk(&fuzz, seed).1.len() == 1);
    assert!(by_one.is_some(), "one server was never enough: {seeds:?}");
}

#[test]
fn a_lock_that_forgets_its_fence_is_blamed_for_nothing_either() {
    assert!(!outside(&fuzz("fenced", &[], &[FaultKind::Forget]), 100).is_empty());
}

#[test]
fn no_lock_breaks_its_promise_under_the_faults_that_it_survives() {
    for name in [
        "mutex",
        "watchdog",
        "fenced",
        "reentrant",
        "read-write",
        "semaphore",
        "notify",
        "fair",
        "fair-queue",
        "multilock",
        "redisson-multilock",
        "pg-row",
        "pg-advisory",
        "pg-lease",
        "pg-optimistic",
        "pg-serializable",
    ] {
        let fuzz = fuzz(name, &[], &FaultKind::ALL);
        outside(&fuzz, 40);
    }
}

/// A holder that is stopped for seconds learns as late that its session has ended.
#[test]
fn a_session_whose_end_is_seen_late_breaks_no_promise() {
    let mut fuzz = fuzz("pg-row", &[], &[FaultKind::ClientKill, FaultKind::Pause]);
    (fuzz.setting.ttl_ms, fuzz.setting.until) = (Some(1_000), Some(Nanos::from_secs(4)));
    fuzz.setting.hold = Some(Nanos::from_millis(900));
    let mut found = 0;
    for seed in 0..40 {
        let scene = Scene::draw(&fuzz.setting, seed).expect("a good setting");
        found += World::of_scene(&scene, false).report.counts.sessions_lost;
    }
    assert!(found > 0);
    assert_eq!(outside(&fuzz, 40), Vec::<u64>::new());
}

/// Seed 182 is a world that ends while a holder is stopped whose session is gone.
#[test]
fn a_world_does_not_end_before_a_stopped_holder_has_found_its_session_gone() {
    let mut fuzz = fuzz("pg-row", &[], &FaultKind::ALL);
    let Setting {
        strategy, ref faults, ..
    } = fuzz.setting;
    fuzz.setting = Setting {
        strategy,
        faults: faults.clone(),
        clients: None,
        ttl_ms: None,
        hold: None,
        until: None,
    };
    let tally = fuzz.run(182, 1, false).expect("a good setting");
    assert_eq!(tally.broken, Vec::<u64>::new());
    let scene = Scene::draw(&fuzz.setting, 182).expect("a good setting");
    let world = World::of_scene(&scene, false);
    assert!(world.ended > scene.until && world.report.counts.sessions_lost > 0);
}

/// `naive` takes its lock and sets its expiry by two commands. A connection that closes in between leaves a key for ever.
#[test]
fn a_lock_that_nobody_can_get_any_more_is_found() {
    let fuzz = fuzz("naive", &[], &[FaultKind::Cut]);
    let tally = fuzz.run(0, 300, false).expect("a good setting");
    let stuck = |seed: &&u64| {
        let found = fuzz.find(**seed, &Part::default(), &mut 0).expect("a good setting");
        matches!(found.expect("it goes wrong").wrong, Wrong::Progress(_))
    };
    let first = tally.broken.iter().find(stuck).expect("a key without an expiry");
    let (found, faults) = shrunk(&fuzz, *first);
    assert_eq!(kinds(&faults), [FaultKind::Cut]);
    assert!(found.world.ended > Nanos::from_secs(1));
}

/// A client that gets on is not taken for one that does not, whatever befell its servers before.
#[test]
fn no_lock_waits_for_ever_after_the_last_fault() {
    for name in [
        "mutex",
        "watchdog",
        "fair",
        "fair-queue",
        "notify",
        "semaphore",
        "read-write",
        "redlock",
    ] {
        let mut fuzz = fuzz(name, &[], &FaultKind::ALL);
        fuzz.setting.ttl_ms = Some(1_000);
        for seed in 0..40 {
            let found = fuzz.find(seed, &Part::default(), &mut 0).expect("a good setting");
            let wrong = found.map(|found| found.wrong);
            assert!(
                !matches!(wrong, Some(Wrong::Progress(_))),
                "{name}, seed {seed}: {wrong:?}"
            );
        }
    }
}

#[test]
fn a_lock_that_promises_nothing_is_never_blamed() {
    let mut fuzz = fuzz("none", &[], &FaultKind::ALL);
    assert!(!fuzz.run(0, 5, false).expect("a good setting").broken.is_empty());
    fuzz.exclusion = Exclusion::Nothing;
    assert_eq!(outside(&fuzz, 5).len(), 5);
}

#[test]
fn a_lock_in_front_of_a_guarded_row_loses_no_write_whatever_befalls_its_server() {
    let mut fuzz = fuzz("layered", &[], &FaultKind::ALL);
    fuzz.exclusion = Exclusion::Nothing;
    assert_eq!(outside(&fuzz, 60), Vec::<u64>::new());
}

#[test]
fn a_seed_is_the_same_world_each_time_and_in_each_part() {
    let fuzz = fuzz("redlock", &[], &FaultKind::ALL);
    for seed in 0..5 {
        let scene = Scene::draw(&fuzz.setting, seed).expect("a good setting");
        let part = Part {
            clients: Some(vec![0, 2]),
            requests: Some(3),
            ..Part::default()
        };
        for scene in [scene.clone(), scene.cut(&part)] {
            let run = || World::of_scene(&scene, true);
            let (first, second) = (run(), run());
            assert_eq!(
                (first.trace(), first.events),
                (second.trace(), second.events),
                "seed {seed}"
            );
            assert_eq!(first.served, second.served, "seed {seed}");
        }
    }
}

#[test]
fn a_client_that_is_left_out_sends_nothing_and_one_with_few_requests_sends_only_those() {
    let fuzz = fuzz("mutex", &[], &[]);
    let part = Part {
        clients: Some(vec![0, 2]),
        requests: Some(2),
        ..Part::default()
    };
    let scene = Scene::draw(&fuzz.setting, 1).expect("a good setting").cut(&part);
    let world = World::of_scene(&scene, true);
    let asks = |client| {
        let is_asking = |&&(_, event): &&(Nanos, check::Event)| matches!(event, check::Event::Waiting { client: by, .. } if by == client);
        world.heard.iter().filter(is_asking).count()
    };
    assert_eq!([0, 1, 2].map(asks), [2, 0, 2]);
}

#[test]
fn the_shortest_world_still_goes_wrong_and_each_of_its_faults_is_needed() {
    let fuzz = fuzz("mutex", &[], &FaultKind::ALL);
    for &seed in outside(&fuzz, 40).iter().take(3) {
        let (found, faults) = shrunk(&fuzz, seed);
        let again = fuzz
            .find(seed, &found.part, &mut 0)
            .expect("a good setting")
            .expect("it goes wrong");
        assert_eq!(again.at(), found.at());
        assert!(matches!(found.wrong, Wrong::Violation(_)));
        for fault in &faults {
            let others = faults
                .iter()
                .map(|fault| fault.number)
                .filter(|&number| number != fault.number);
            let part = Part {
                faults: Some(others.collect()),
                ..found.part.clone()
            };
            let without = fuzz.find(seed, &part, &mut 0).expect("a good setting");
            assert!(
                without.is_none_or(|without| without.verdict != found.verdict),
                "seed {seed}: {fault:?}"
            );
        }
    }
}
