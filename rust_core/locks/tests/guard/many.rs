//! Many works on one resource, in any order: with exclusion nothing is lost, without it something can be.

use locks::{
    Action, Actions, CallId, Command, GuardKind, GuardedWork, Key, Nanos, Reply, Script, Work, WorkEnd, WorkEvent,
};
use proptest::prelude::*;

use super::{ms, rules};

/// A client with its work, and the call that waits at the server.
struct Client {
    work: GuardedWork,
    waiting: Option<(CallId, Command)>,
}

/// A resource, and what its clients were told.
#[derive(Default)]
struct World {
    value: i64,
    acknowledged: i64,
    sold_out: u32,
    most_at_once: usize,
}

impl World {
    /// The server carries the command out.
    fn serve(&mut self, command: &Command) -> Reply {
        let Command::Run { script, numbers, .. } = *command else {
            panic!("not a script: {command:?}")
        };
        match script {
            Script::GuardRead => return Reply::Int(self.value),
            Script::GuardWrite => self.value = numbers[0].cast_signed(),
            Script::GuardTake => self.value -= 1,
            other => panic!("{other:?} is of no such work"),
        }
        Reply::Int(1)
    }
}

/// Runs `works` works of each client; `choices` says who moves next. With `exclusive`, a client begins only while no
/// other is at work.
fn run(kind: GuardKind, initial: i64, exclusive: bool, choices: &[usize], works: usize) -> World {
    let mut world = World {
        value: initial,
        ..World::default()
    };
    let mut clients: Vec<Client> = (0..4)
        .map(|_| Client {
            work: GuardedWork::new(rules(kind)),
            waiting: None,
        })
        .collect();
    let mut left = [works; 4];
    let mut now = ms(0);
    let mut turn = 0;
    while left.iter().any(|&left| left > 0) || clients.iter().any(|client| !client.work.is_idle()) {
        now = now.after(Nanos(1));
        let at_work = clients.iter().filter(|client| !client.work.is_idle()).count();
        world.most_at_once = world.most_at_once.max(at_work);
        let chosen = choices[turn % choices.len()] % clients.len();
        turn += 1;
        // Whoever cannot move is passed over, so that each run ends.
        let can_move =
            |index: usize| !clients[index].work.is_idle() || (left[index] > 0 && !(exclusive && at_work > 0));
        let Some(index) = (0..4).map(|step| (chosen + step) % 4).find(|&index| can_move(index)) else {
            unreachable!("somebody can always move")
        };
        let client = &mut clients[index];
        let mut out = Actions::default();
        let end = if client.work.is_idle() {
            left[index] -= 1;
            let work = Work {
                keys: [Key(0); 2],
                writes: true,
                think: Nanos(1),
                fence: None,
            };
            client.work.begin(now, work, &mut out);
            None
        } else {
            let event = match client.waiting.take() {
                Some((call, command)) => WorkEvent::Replied {
                    call,
                    reply: world.serve(&command),
                },
                None => WorkEvent::Woke,
            };
            client.work.on(now, event, &mut out)
        };
        for action in out.drain() {
            let Action::Send { call, command, .. } = action else {
                panic!("a work only sends")
            };
            client.waiting = Some((call, command));
        }
        match end {
            Some(WorkEnd::Done) => world.acknowledged += 1,
            Some(WorkEnd::SoldOut) => world.sold_out += 1,
            Some(other) => panic!("nothing fails here: {other:?}"),
            None => {}
        }
    }
    world
}

proptest! {
    #[test]
    fn a_counter_loses_nothing_where_works_exclude_each_other(choices in prop::collection::vec(0..4_usize, 1..200)) {
        let world = run(GuardKind::Counter, 0, true, &choices, 5);
        prop_assert_eq!(world.most_at_once, 1);
        prop_assert_eq!((world.value, world.acknowledged), (20, 20));
    }

    #[test]
    fn a_stock_is_sold_exactly_where_works_exclude_each_other(choices in prop::collection::vec(0..4_usize, 1..200)) {
        let world = run(GuardKind::Stock, 7, true, &choices, 5);
        prop_assert_eq!((world.value, world.acknowledged, world.sold_out), (0, 7, 13));
    }

    #[test]
    fn no_interleaving_makes_a_counter_larger_than_its_writes(choices in prop::collection::vec(0..4_usize, 1..200)) {
        let world = run(GuardKind::Counter, 0, false, &choices, 5);
        prop_assert!(world.value <= world.acknowledged);
        let sold = run(GuardKind::Stock, 7, false, &choices, 5);
        prop_assert_eq!(7 - sold.value, sold.acknowledged, "relative writes lose nothing");
    }
}

#[test]
fn works_that_take_turns_without_a_lock_lose_updates_and_oversell() {
    // Each reads before any of them writes.
    let in_turn = [0, 1, 2, 3];
    let counter = run(GuardKind::Counter, 0, false, &in_turn, 1);
    assert_eq!((counter.value, counter.acknowledged), (1, 4));
    let stock = run(GuardKind::Stock, 1, false, &in_turn, 1);
    assert_eq!((stock.value, stock.acknowledged), (-3, 4));
}
