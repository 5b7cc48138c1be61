//! The machine of each strategy, reached by its own type.

use std::fmt::Debug;
use std::sync::Arc;

use locks::{Actions, AnyLock, Chance, Event, LockMachine, MachineVisitor, Mode, Nanos, Spec, Strategy};

use crate::words::{KEY, every_10_ms};

fn spec(strategy: Strategy) -> Arc<Spec> {
    let servers = strategy.nodes().unwrap_or(1);
    Arc::new(Spec {
        servers,
        ..every_10_ms()
    })
}

fn first_actions(mut lock: impl LockMachine) -> String {
    let (keys, mode) = (KEY.into(), Mode::Exclusive);
    let mut out = Actions::default();
    lock.on(Nanos::ZERO, Event::Acquire { keys, mode }, &mut out);
    format!("{out:?}")
}

struct Begin(Strategy);

impl MachineVisitor for Begin {
    type Out = String;

    fn visit<L: LockMachine + Debug + Send + 'static>(
        self,
        make: impl Fn(Arc<Spec>, Chance) -> L + Clone + Send + 'static,
    ) -> String {
        first_actions(make(spec(self.0), Chance::seeded(3)))
    }
}

#[test]
fn each_strategy_is_reached_by_its_own_type() {
    for strategy in Strategy::ALL {
        let any = AnyLock::new(strategy, spec(strategy), Chance::seeded(3));
        assert_eq!(strategy.visit(Begin(strategy)), first_actions(any), "{strategy:?}");
    }
}

struct SizeOf;

impl MachineVisitor for SizeOf {
    type Out = usize;

    fn visit<L: LockMachine + Debug + Send + 'static>(
        self,
        _make: impl Fn(Arc<Spec>, Chance) -> L + Clone + Send + 'static,
    ) -> usize {
        size_of::<L>()
    }
}

#[test]
fn the_machines_of_which_there_are_most_stay_small() {
    for (strategy, most) in [(Strategy::None, 8), (Strategy::Naive, 88), (Strategy::Mutex, 104)] {
        assert!(
            strategy.visit(SizeOf) <= most,
            "{strategy:?}: {}",
            strategy.visit(SizeOf)
        );
    }
}
