use history::{Promises, RECORD_SIZE, TrialName};
use locks::{Key, Mode, Strategy};

use super::*;
use crate::by_hand::{A, B, MS, spec};
use crate::recorder::judge::Judge;
use crate::recorder::recording::Recording;
use crate::spec::Process;

const WINDOW: (Nanos, Nanos) = (Nanos(1_000 * MS), Nanos(2_000 * MS));
const ENDED: Nanos = Nanos(3_000 * MS);
/// The bytes before the first record.
const PREAMBLE: u64 = 4_096;

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// Two clients, each in a process of its own.
fn two_processes() -> TrialSpec {
    spec(Strategy::Mutex, 2)
}

fn waits(client: u32) -> Event {
    Event::Waiting {
        client,
        key: Key(0),
        mode: Mode::Exclusive,
    }
}

fn granted(client: u32, until: u64) -> Event {
    Event::Granted {
        client,
        until: ms(until),
        hold: ms(40),
        fence: None,
    }
}

fn released(client: u32) -> Event {
    Event::Released { client }
}

/// The recordings of processes with these events, at milliseconds. Nothing cuts their files, as when they are killed.
struct Recorded {
    folder: PathBuf,
    files: Vec<PathBuf>,
}

impl Recorded {
    fn of(name: &str, processes: &[&[(u64, Event)]]) -> Self {
        let folder = std::env::temp_dir().join(format!("pybench-judging-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let files: Vec<_> = (0..processes.len())
            .map(|index| folder.join(index.to_string()))
            .collect();
        for (index, events) in processes.iter().enumerate() {
            let spec = TrialSpec {
                process: Some(Process {
                    index: index as u32,
                    of: processes.len() as u32,
                }),
                ..two_processes()
            };
            let recording = Recording {
                files: vec![files[index].clone()],
                lock: "mutex".to_owned(),
                promises: Promises::default(),
                trial: TrialName {
                    cell: "cell".to_owned(),
                    trial: 1,
                    keys_per_grant: 1,
                },
            };
            let judges = recording.before(vec![Judge::Later], &spec, &rules(&spec), ms(500));
            let mut judges = judges.expect("the files can be written");
            for &(at, event) in *events {
                judges[0].record(ms(at), event);
            }
            drop(judges);
        }
        Self { folder, files }
    }

    /// Kills the process of client A at that time.
    fn kill(&self, at: u64) -> Buried {
        bury(&two_processes(), (0, 2), &self.files[0], ms(at), WINDOW).expect("the file can be written")
    }

    fn report(&self) -> Report {
        let judged = judge_together(&two_processes(), &self.files, WINDOW, ENDED).expect("the files can be read");
        assert_eq!(judged.report.counts.findings, 0, "{:?}", judged.report.first_finding);
        judged.report
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn two_holders_in_two_processes_are_a_double_grant() {
    let first = [(1_010, waits(A)), (1_020, granted(A, 9_000)), (1_060, released(A))];
    let second = [(1_015, waits(B)), (1_040, granted(B, 9_000)), (1_080, released(B))];
    let report = Recorded::of("double", &[&first, &second]).report();
    assert_eq!((report.counts.double_grants, report.figures.grants), (1, 2));
    assert_eq!(report.violations[0].second.map(|span| span.client), Some(B));
}

#[test]
fn the_belief_of_a_killed_holder_ends_with_its_process() {
    let first = [(1_010, waits(A)), (1_020, granted(A, 9_000))];
    let second = [(1_015, waits(B)), (1_300, granted(B, 9_000)), (1_340, released(B))];
    let recorded = Recorded::of("killed", &[&first, &second]);
    assert_eq!(recorded.report().counts.double_grants, 1, "alive it would still hold");
    recorded.kill(1_200);
    let report = recorded.report();
    assert_eq!(report.counts.double_grants + report.counts.lease_overruns, 0);
    assert_eq!((report.orphans, report.time_to_free), (1, vec![ms(100)]));
}

#[test]
fn what_a_process_recorded_after_the_kill_was_noted_still_happened() {
    // Its release may have left, so the next grant is no fault; and it leaves nothing behind.
    let first = [
        (1_010, waits(A)),
        (1_020, granted(A, 9_000)),
        (1_060, released(A)),
        (1_061, waits(A)),
    ];
    let second = [(1_015, waits(B)), (1_062, granted(B, 9_000)), (1_090, released(B))];
    let recorded = Recorded::of("later", &[&first, &second]);
    recorded.kill(1_055);
    let report = recorded.report();
    assert_eq!(report.counts.double_grants + report.counts.lease_overruns, 0);
    assert_eq!((report.orphans, report.figures.grants), (0, 2));
    // A grant that it recorded then is a lock that it left.
    let first = [(1_010, waits(A)), (1_060, granted(A, 2_000))];
    let second = [(1_015, waits(B)), (1_200, granted(B, 9_000)), (1_240, released(B))];
    let recorded = Recorded::of("left", &[&first, &second]);
    recorded.kill(1_055);
    let report = recorded.report();
    assert_eq!((report.orphans, report.time_to_free), (1, vec![ms(140)]));
    assert_eq!(report.counts.double_grants, 0);
}

#[test]
fn a_stopped_holder_that_goes_on_has_outlived_its_lease() {
    let first = [(1_010, waits(A)), (1_020, granted(A, 1_100)), (1_500, released(A))];
    let second = [(1_015, waits(B)), (1_120, granted(B, 9_000)), (1_160, released(B))];
    let report = Recorded::of("stopped", &[&first, &second]).report();
    let counts = report.counts;
    assert_eq!(
        (counts.lease_overruns, counts.outlived, counts.double_grants),
        (1, 1, 0)
    );
    assert_eq!(report.violations[0].overlap, ms(40));
}

#[test]
fn a_stopped_holder_that_is_killed_overlaps_nobody_after_its_death() {
    let first = [(1_010, waits(A)), (1_020, granted(A, 1_100))];
    let second = [(1_015, waits(B)), (1_120, granted(B, 9_000)), (1_160, released(B))];
    let recorded = Recorded::of("stopped-killed", &[&first, &second]);
    recorded.kill(1_110);
    let report = recorded.report();
    assert_eq!((report.counts.lease_overruns, report.counts.double_grants), (0, 0));
    assert_eq!(report.orphans, 0, "its lease had ended before");
    // Until its death it worked beside the next holder.
    let recorded = Recorded::of("stopped-killed-late", &[&first, &second]);
    recorded.kill(1_130);
    let report = recorded.report();
    assert_eq!(
        (report.counts.lease_overruns, report.violations[0].overlap),
        (1, ms(10))
    );
}

#[test]
fn the_grants_of_a_killed_process_follow_from_its_events() {
    let first = [
        (900, waits(A)),
        (990, granted(A, 9_000)),
        (1_030, released(A)),
        (1_031, waits(A)),
        (1_120, granted(A, 9_000)),
        (1_160, released(A)),
        (1_161, waits(A)),
        (1_330, granted(A, 9_000)),
    ];
    let second = [(1_015, waits(B)), (1_400, granted(B, 9_000)), (1_440, released(B))];
    let recorded = Recorded::of("figures", &[&first, &second]);
    let spec = TrialSpec {
        fault_periods: vec![(ms(300), ms(400))],
        ..two_processes()
    };
    let buried = bury(&spec, (0, 2), &recorded.files[0], ms(1_350), WINDOW).expect("the file can be written");
    let periods: Vec<_> = buried
        .periods
        .iter()
        .map(|one| (one.grants, one.response.max() / MS))
        .collect();
    assert_eq!(periods, [(1, 89), (1, 169), (0, 0)]);
    let sum_and_max = (buried.wait_sum_ns[0] / MS, buried.wait_max_ns[0] / MS);
    assert_eq!(sum_and_max, (89 + 169, 169), "of the waits that ended in the window");
    assert_eq!((buried.grants, buried.steps), (vec![2], vec![0, 1, 0, 1]));
    assert_eq!(
        buried.nominal_hold,
        ms(30 + 40 + 20),
        "within the window, and before its death"
    );
    assert_eq!(recorded.report().figures.grants, 3);
}

#[test]
fn a_file_of_another_kind_is_an_error() {
    let recorded = Recorded::of("other", &[&[(1_010, waits(A))]]);
    std::fs::write(&recorded.files[0], "no recording").expect("it can be written");
    assert!(judge_together(&two_processes(), &recorded.files, WINDOW, ENDED).is_err());
    assert!(bury(&two_processes(), (0, 2), &recorded.files[0], ms(1), WINDOW).is_err());
}

#[test]
fn a_killed_process_that_had_no_room_left_to_record_is_an_error() {
    for (records, is_known) in [(3, true), (2, false)] {
        let recorded = Recorded::of("full", &[&[(1_010, waits(A)), (1_015, granted(A, 9_000))]]);
        let file = OpenOptions::new().write(true).open(&recorded.files[0]);
        let length = PREAMBLE + records * RECORD_SIZE as u64;
        file.and_then(|file| file.set_len(length)).expect("the file can be cut");
        let buried = bury(&two_processes(), (0, 2), &recorded.files[0], ms(1_350), WINDOW);
        assert_eq!(buried.is_ok(), is_known, "room for {records} records");
    }
}
