use super::*;

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn fault(at: u64, lasts: u64, action: FaultAction) -> Fault {
    Fault {
        at: ms(at),
        lasts: ms(lasts),
        action,
    }
}

const ALL: Links = Links {
    server: None,
    client: None,
};

fn links(at: u64, lasts: u64, how: LinkFault) -> Fault {
    fault(at, lasts, FaultAction::OfLinks(ALL, how))
}

fn steps(schedule: &mut Schedule, open: u64) -> Vec<(bool, Fault)> {
    let steps = std::iter::from_fn(|| schedule.pop(ms(open)));
    steps.map(|step| (step.begins, step.fault)).collect()
}

#[test]
fn a_fault_begins_and_ends_at_its_time_and_of_equal_times_the_end_comes_first() {
    let plan = [
        links(20, 10, LinkFault::Cut),
        links(10, 10, LinkFault::BlackHole),
        links(15, 0, LinkFault::Reset),
    ];
    let mut schedule = Schedule::new(&plan, 0, 1);
    assert_eq!(schedule.next(), ms(10));
    assert_eq!(steps(&mut schedule, 9), []);
    assert_eq!(
        steps(&mut schedule, 16),
        [(true, plan[1].clone()), (true, plan[2].clone())]
    );
    assert_eq!(schedule.links(), [(ALL, LinkFault::BlackHole)]);
    assert_eq!(
        steps(&mut schedule, 20),
        [(false, plan[1].clone()), (true, plan[0].clone())]
    );
    assert_eq!(schedule.links(), [(ALL, LinkFault::Cut)]);
    schedule.end_all();
    assert_eq!(steps(&mut schedule, 25), [(false, plan[0].clone())]);
    assert_eq!(schedule.next(), Nanos::NEVER);
    let span = |began, ended| FaultSpan {
        began: Some(ms(began)),
        ended: Some(ms(ended)),
    };
    assert_eq!(schedule.spans, [span(20, 25), span(16, 20), span(16, 16)]);
}

#[test]
fn a_thread_carries_out_the_faults_of_its_own_clients_and_of_all() {
    let of_client = |client| fault(10, 0, FaultAction::OfClient(client, ClientFault::Crash));
    let plan = [of_client(3), of_client(5), links(10, 0, LinkFault::Reset)];
    let mut second = Schedule::new(&plan, 4, 4);
    let done = steps(&mut second, 10);
    assert_eq!(done, [(true, of_client(1)), (true, plan[2].clone())]);
    assert_eq!(second.spans[0], FaultSpan::default());
}

#[test]
fn periods_are_the_union_of_all_that_disturbs() {
    let strategy = locks::Strategy::Mutex;
    let spec = TrialSpec {
        faults: vec![links(10, 10, LinkFault::Cut), links(50, 0, LinkFault::Reset)],
        fault_periods: vec![(ms(30), ms(40)), (ms(15), ms(25))],
        ..crate::by_hand::spec(strategy, 1)
    };
    let expected = [(ms(10), ms(25)), (ms(30), ms(40)), (ms(50), ms(50))];
    assert_eq!(periods(&spec).expect("they are in order"), expected);
}
