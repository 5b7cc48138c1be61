//! Merges the sources of a section by their times, and has the checker judge them.

use std::collections::BTreeMap;

use check::{Checker, Report};
use locks::Nanos;

use crate::header::Header;
use crate::section::{Section, Stamped};

/// A judged history.
#[derive(Debug)]
pub struct Judged {
    pub header: Header,
    /// The files that were merged.
    pub files: Vec<String>,
    /// The names of the clients and of the keys, by the numbers that the report uses.
    pub clients: Vec<String>,
    pub keys: Vec<String>,
    pub report: Report,
    /// What the writer counted and no event shows.
    pub counts: BTreeMap<String, u64>,
    pub events: u64,
    /// The time from which a report counts.
    pub began: Nanos,
    /// Files whose last line was torn off, with the number of that line.
    pub torn: Vec<(String, u32)>,
    /// File and line of the first event that its client's state does not allow.
    pub finding: Option<(String, u32)>,
}

pub(crate) fn judge(mut section: Section) -> Judged {
    section.number_by_name();
    let rules = section.header.promises.rules();
    let (clients, keys) = (section.clients.len() as u32, section.keys.len() as u32);
    let mut checker = Checker::new(clients, keys, rules);
    let stamps = || {
        section
            .sources
            .iter()
            .flat_map(|source| &source.events)
            .map(|event| event.at)
    };
    let first = stamps().min().unwrap_or(Nanos::ZERO);
    let last = section
        .sources
        .iter()
        .filter_map(|source| source.ended)
        .chain(stamps())
        .max();
    let ended = last.unwrap_or(first);
    // A trial turns its window at an event, and a trial that was killed has not marked it.
    let is_marked = section.header.trial.is_some() && section.sources.iter().any(|source| source.ended.is_some());
    let (starts, ends) = window(&section, (!is_marked).then_some(first));
    let (mut begun, mut over) = (false, false);
    let mut finding = None;
    let mut events = 0;
    merged(&section, |source, stamped| {
        if let Some(start) = starts
            && !begun
            && stamped.at >= start
        {
            checker.begin_window(start);
            begun = true;
        }
        if let Some(end) = ends
            && begun
            && !over
            && stamped.at >= end
        {
            checker.end_window(end);
            over = true;
        }
        checker.on(stamped.at, stamped.event);
        events += 1;
        if finding.is_none() && checker.findings() > 0 {
            finding = Some((section.sources[source].file.clone(), stamped.line));
        }
    });
    if begun && !over && !is_marked {
        checker.end_window(ends.unwrap_or(ended));
    }
    Judged {
        report: checker.finish(ended),
        clients: section.client_names(),
        files: section.sources.iter().map(|source| source.file.clone()).collect(),
        began: section.header.began.map_or(first, Nanos),
        header: section.header,
        keys: section.keys,
        counts: section.counts,
        torn: section.torn,
        events,
        finding,
    }
}

/// Start and end of the window: as its writers marked them, otherwise from `unmarked` on.
fn window(section: &Section, unmarked: Option<Nanos>) -> (Option<Nanos>, Option<Nanos>) {
    let start = section.sources.iter().filter_map(|source| source.window_began).min();
    let end = section.sources.iter().filter_map(|source| source.window_ended).max();
    (start.or(unmarked), end)
}

/// Hands every event on in the order of the times. Events of one source keep their order; between sources, at the same
/// time, those that end a belief come first, because intervals exclude their end.
fn merged(section: &Section, mut deliver: impl FnMut(usize, Stamped)) {
    let mut next = vec![0; section.sources.len()];
    loop {
        let fronts = section.sources.iter().enumerate().filter_map(|(index, source)| {
            let stamped = source.events.get(next[index])?;
            Some((stamped.at, !stamped.event.ends_belief(), index))
        });
        let Some((_, _, source)) = fronts.min() else { break };
        deliver(source, section.sources[source].events[next[source]]);
        next[source] += 1;
    }
}
