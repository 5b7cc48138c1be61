//! What a lock whose servers vote leaves behind about each of them: how long its votes took, what they said, which came
//! after the decision, and how much of the lease was left when one completed a grant.
//!
//! A vote belongs to the window if the server was asked in it, whenever the reply came: so what was asked is the sum of
//! the votes and of what had no reply.

use hdrhistogram::Histogram;
use locks::{CallId, ErrorKind, Nanos, Reply};

use super::Recorder;
use super::stats::FastHistogram;

/// How many calls of a client to one server may lack a reply; of more, the oldest counts as one without. A server that
/// stands still for as long as the node timeout leaves about so many behind.
const DEPTH: usize = 32;

/// A call that asks for a vote and has no reply yet.
#[derive(Clone, Copy, Debug)]
struct Asked {
    call: CallId,
    at: Nanos,
}

/// The calls of one client to one server, in the order in which they left. Their replies come in that order.
#[derive(Clone, Debug)]
struct Awaited {
    calls: [Asked; DEPTH],
    /// How many calls were ever put in, and taken out: a call stands at its number, modulo `DEPTH`.
    put: usize,
    taken: usize,
}

impl Awaited {
    const NONE: Self = Self {
        calls: [Asked {
            call: CallId(0),
            at: Nanos::ZERO,
        }; DEPTH],
        put: 0,
        taken: 0,
    };

    fn put(&mut self, asked: Asked) {
        self.calls[self.put % DEPTH] = asked;
        self.put += 1;
        self.taken = self.taken.max(self.put.saturating_sub(DEPTH));
    }

    /// When this call left. What left before it will get no reply any more. `None` for a call that is not among them.
    fn take(&mut self, call: CallId) -> Option<Nanos> {
        while self.taken < self.put && self.calls[self.taken % DEPTH].call <= call {
            let asked = self.calls[self.taken % DEPTH];
            self.taken += 1;
            if asked.call == call {
                return Some(asked.at);
            }
        }
        None
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Votes {
    asked: u64,
    granted: u64,
    refused: u64,
    errors: u64,
    late: u64,
    decided: u64,
}

#[derive(Debug)]
struct Node {
    votes: Votes,
    reply: FastHistogram,
    validity: FastHistogram,
}

#[derive(Debug)]
pub(crate) struct Nodes {
    servers: Vec<Node>,
    /// One for each client and server.
    awaited: Vec<Awaited>,
    /// The server whose reply is being handled.
    replying: Option<u16>,
}

/// One server of a lock whose servers vote, in the window.
#[derive(Clone, Debug)]
pub struct NodeFigures {
    /// How often it was asked to grant.
    pub asked: u64,
    pub granted: u64,
    pub refused: u64,
    pub errors: u64,
    /// Votes that came when the attempt was decided already, whatever they said.
    pub late: u64,
    /// Grants of the lock that its reply completed.
    pub decided: u64,
    /// From the call to the reply, of all votes.
    pub reply: Histogram<u64>,
    /// What was left of the lease, less the clock-skew margin, at the grants that it completed.
    pub validity: Histogram<u64>,
}

impl Nodes {
    /// For so many servers; `None` for a lock of one server, or one whose servers do not vote.
    pub(super) fn of(servers: usize, clients: u32) -> Option<Self> {
        (servers > 1).then(|| Self {
            servers: (0..servers)
                .map(|_| Node {
                    votes: Votes::default(),
                    reply: FastHistogram::new(),
                    validity: FastHistogram::new(),
                })
                .collect(),
            awaited: vec![Awaited::NONE; clients as usize * servers],
            replying: None,
        })
    }

    fn awaited(&mut self, client: u32, server: u16) -> &mut Awaited {
        &mut self.awaited[client as usize * self.servers.len() + usize::from(server)]
    }

    /// A client asks a server; `sent` is whether the call has left, so that a reply may come.
    fn asked(&mut self, (client, call): (u32, CallId), server: u16, at: Nanos, sent: bool) {
        self.servers[usize::from(server)].votes.asked += 1;
        if sent {
            self.awaited(client, server).put(Asked { call, at });
        }
    }

    fn voted(&mut self, (client, call): (u32, CallId), server: u16, at: Nanos, reply: Reply, in_time: bool) {
        let Some(sent) = self.awaited(client, server).take(call) else {
            return;
        };
        let node = &mut self.servers[usize::from(server)];
        match reply {
            // The script is sent again as source, and then it is asked for a vote.
            Reply::Error(ErrorKind::NoScript) => {
                node.votes.asked -= 1;
                return;
            }
            Reply::Ok | Reply::Int(1) => node.votes.granted += 1,
            Reply::Nil | Reply::Int(0) => node.votes.refused += 1,
            _ => node.votes.errors += 1,
        }
        node.votes.late += u64::from(!in_time);
        node.reply.record(at.since(sent).0);
    }

    /// The client has crashed: the next call of it may have the number of one that nobody awaits any more.
    pub(super) fn forget(&mut self, client: u32) {
        let servers = self.servers.len();
        let first = client as usize * servers;
        self.awaited[first..first + servers].fill(Awaited::NONE);
    }

    pub(crate) fn finish(self) -> Vec<NodeFigures> {
        let figures = self
            .servers
            .into_iter()
            .map(|Node { votes, reply, validity }| NodeFigures {
                asked: votes.asked,
                granted: votes.granted,
                refused: votes.refused,
                errors: votes.errors,
                late: votes.late,
                decided: votes.decided,
                reply: reply.finished(),
                validity: validity.finished(),
            });
        figures.collect()
    }
}

/// Adds the figures of another thread.
pub(crate) fn add(nodes: &mut Vec<NodeFigures>, others: Vec<NodeFigures>) {
    if nodes.is_empty() {
        *nodes = others;
    } else {
        nodes.iter_mut().zip(&others).for_each(|(node, other)| node.add(other));
    }
}

impl NodeFigures {
    fn add(&mut self, other: &Self) {
        self.asked += other.asked;
        self.granted += other.granted;
        self.refused += other.refused;
        self.errors += other.errors;
        self.late += other.late;
        self.decided += other.decided;
        for (mine, theirs) in [(&mut self.reply, &other.reply), (&mut self.validity, &other.validity)] {
            mine.add(theirs).expect("all histograms have the same bounds");
        }
    }
}

/// Only for a lock whose servers vote; all others have no `nodes`.
impl Recorder {
    /// A client asks a server for its vote.
    pub(crate) fn asked(&mut self, of: (u32, CallId), server: u16, at: Nanos, sent: bool) {
        if self.counting
            && let Some(nodes) = &mut self.nodes
        {
            nodes.asked(of, server, at, sent);
        }
    }

    /// A reply of a server is handled next; it may be the vote of a call that asked for one. `in_time`: it may still
    /// decide the attempt.
    pub(crate) fn replies(&mut self, of: (u32, CallId), server: u16, at: Nanos, reply: Reply, in_time: bool) {
        if let Some(nodes) = &mut self.nodes {
            nodes.voted(of, server, at, reply, in_time);
            nodes.replying = Some(server);
        }
    }

    /// That reply was handled.
    pub(crate) fn replied(&mut self) {
        if let Some(nodes) = &mut self.nodes {
            nodes.replying = None;
        }
    }

    /// A grant that counts; `validity` is left of its lease. Nobody completed a grant that a timeout decided.
    pub(crate) fn decided(&mut self, validity: Nanos) {
        if let Some(nodes) = &mut self.nodes
            && let Some(server) = nodes.replying
        {
            let node = &mut nodes.servers[usize::from(server)];
            node.votes.decided += 1;
            node.validity.record(validity.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: u32 = 1;

    fn ms(at: u64) -> Nanos {
        Nanos::from_millis(at)
    }

    #[test]
    fn each_vote_is_counted_once_with_the_time_since_its_own_call() {
        let mut nodes = Nodes::of(2, 2).expect("two servers vote");
        nodes.asked((CLIENT, CallId(1)), 1, ms(1), true);
        nodes.asked((CLIENT, CallId(3)), 1, ms(5), true);
        nodes.asked((CLIENT, CallId(5)), 1, ms(6), true);
        // Nobody asked this server for a vote by these calls.
        nodes.voted((CLIENT, CallId(2)), 0, ms(7), Reply::Ok, true);
        nodes.voted((CLIENT, CallId(3)), 0, ms(7), Reply::Ok, true);
        nodes.voted((CLIENT, CallId(1)), 1, ms(9), Reply::Ok, false);
        nodes.voted((CLIENT, CallId(1)), 1, ms(9), Reply::Ok, false);
        // The release is no vote, and the reply to the call before it was lost.
        nodes.voted((CLIENT, CallId(4)), 1, ms(9), Reply::Int(1), false);
        nodes.voted((CLIENT, CallId(5)), 1, ms(9), Reply::Nil, true);
        let figures = &nodes.finish()[1];
        let counts = (figures.asked, figures.granted, figures.refused, figures.late);
        assert_eq!(counts, (3, 1, 1, 1));
        assert_eq!(figures.reply.len(), 2);
        assert!(figures.reply.max().abs_diff(8_000_000) < 8_000);
    }

    #[test]
    fn what_never_left_or_has_no_reply_was_asked_all_the_same() {
        let mut nodes = Nodes::of(3, 2).expect("three servers vote");
        nodes.asked((CLIENT, CallId(1)), 2, ms(1), false);
        let last = 2 * DEPTH as u64 + 1;
        for call in 2..=last {
            nodes.asked((CLIENT, CallId(call)), 2, ms(call), true);
        }
        nodes.voted((CLIENT, CallId(2)), 2, ms(90), Reply::Ok, false);
        let error = Reply::Error(ErrorKind::OutOfMemory);
        nodes.voted((CLIENT, CallId(last)), 2, ms(90), error, true);
        let figures = &nodes.finish()[2];
        assert_eq!((figures.asked, figures.granted, figures.errors), (last, 0, 1));
    }

    #[test]
    fn a_script_that_is_sent_again_as_source_is_asked_once() {
        let mut nodes = Nodes::of(2, 2).expect("two servers vote");
        nodes.asked((CLIENT, CallId(1)), 0, ms(1), true);
        nodes.voted((CLIENT, CallId(1)), 0, ms(2), Reply::Error(ErrorKind::NoScript), true);
        nodes.asked((CLIENT, CallId(2)), 0, ms(2), true);
        nodes.voted((CLIENT, CallId(2)), 0, ms(3), Reply::Int(1), true);
        let figures = &nodes.finish()[0];
        assert_eq!((figures.asked, figures.granted, figures.errors), (1, 1, 0));
    }

    #[test]
    fn a_lock_of_one_server_has_no_votes() {
        assert!(Nodes::of(0, 4).is_none() && Nodes::of(1, 4).is_none());
    }
}
