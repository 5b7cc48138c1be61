use super::*;
use locks::{Key, Mode};

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("pybench-recording-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    folder
}

fn waiting(at: u64) -> Record {
    Record {
        at: Nanos(at),
        event: Event::Waiting {
            client: 3,
            key: Key(at as u32),
            mode: Mode::Exclusive,
        },
    }
}

fn records(path: &Path, preamble: usize) -> Vec<Record> {
    let bytes = std::fs::read(path).expect("the file is there");
    let records = bytes[preamble..].as_chunks::<RECORD_SIZE>().0;
    records.iter().map_while(Record::decode).collect()
}

#[test]
fn what_was_appended_is_in_the_file_at_once_and_over_several_steps() {
    let folder = scratch("steps");
    let path = folder.join("one");
    let mut recorder = ThreadRecorder::create(&path, &[7; 4096]).expect("the file can be written");
    let count = (2 * STEP / RECORD_SIZE + 5) as u64;
    let length = || std::fs::metadata(&path).expect("it is there").len();
    for at in 0..count {
        recorder.append(waiting(at));
        if at % 20_000 == 0 {
            assert_eq!(
                records(&path, 4096).len() as u64,
                at + 1,
                "before anything else happens"
            );
        }
        assert!(
            length() > 4096 + (at + 1) * RECORD_SIZE as u64,
            "a full file ran out of room"
        );
    }
    recorder.finish().expect("the file can be cut");
    assert_eq!(records(&path, 4096), (0..count).map(waiting).collect::<Vec<_>>());
    assert_eq!(length(), 4096 + (count + 1) * RECORD_SIZE as u64);
    std::fs::remove_dir_all(folder).expect("it is ours");
}

#[test]
fn a_file_that_cannot_grow_is_an_error_at_the_end_and_no_crash() {
    let folder = scratch("full");
    let path = folder.join("one");
    let mut recorder = ThreadRecorder::create(&path, &[7; 4096]).expect("the file can be written");
    // A descriptor for reading only refuses to allocate, as a full disk does.
    recorder.file = File::open(&path).expect("the file can be read");
    let room = (STEP / RECORD_SIZE) as u64;
    (0..room + 3).for_each(|at| recorder.append(waiting(at)));
    assert!(recorder.finish().is_err());
    assert_eq!(records(&path, 4096).len() as u64, room, "what came before is kept");
    std::fs::remove_dir_all(folder).expect("it is ours");
}
