use history::Exclusion;
use locks::Strategy;
use sim::{FaultKind, Fuzz, Part, Setting};
fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap();
    let (from, n): (u64, u64) = (
        args.next().unwrap().parse().unwrap(),
        args.next().unwrap().parse().unwrap(),
    );
    let calm = args.next().is_some();
    let fuzz = Fuzz {
        setting: Setting {
            strategy: Strategy::named(&name, &[]).unwrap(),
            faults: if calm { vec![] } else { FaultKind::ALL.to_vec() },
            clients: None,
            ttl_ms: None,
            hold: None,
            until: None,
        },
        exclusion: Exclusion::WhileNobodyOutlives,
    };
    let mut shown = 0;
    for seed in from..from + n {
        if let Some(found) = fuzz.find(seed, &Part::default(), &mut 0).unwrap() {
            if found.verdict == sim::Verdict::Broken {
                println!("{name} {seed} {:?} at {:?}", found.wrong, found.at());
                shown += 1;
                if shown > 3 {
                    break;
                }
            }
        }
    }
    println!("{name} done {shown}");
}
