//! Carries out the faults of a plan on the models.

use std::collections::VecDeque;

use locks::{Command, Nanos, Reply, ServerId};

use crate::database::Backend;
use crate::network::{Asker, Happening, Inbound, Link, Network};
use crate::plan::{Fault, FaultKind, LAGS};
use crate::redis::Redis;

/// What the plan did to one server.
#[derive(Debug, Default)]
pub(crate) struct Suffered {
    /// It replies to nobody before this time.
    pub(crate) down_until: Nanos,
    /// Until when messages to and from it take long, and up to how long.
    pub(crate) slow: Option<(Nanos, Nanos)>,
    /// How far its clock is ahead.
    pub(crate) ahead: Nanos,
    /// Its data as it was after each command of the last while. Kept only for a server that a failover awaits.
    pub(crate) past: Option<VecDeque<(Nanos, Redis)>>,
    /// When the last write came that replicas copy.
    pub(crate) written: Nanos,
}

impl Network {
    /// Takes over the faults, each of which will strike at its time.
    pub(crate) fn follow_plan(&mut self, faults: &[Fault]) {
        for &fault in faults {
            self.later(fault.at, Happening::Strikes(fault));
            if fault.kind == FaultKind::Failover {
                self.suffered[usize::from(fault.server.0)].past.get_or_insert_default();
            }
        }
    }

    pub(crate) fn strike(&mut self, fault: Fault) {
        let Fault {
            kind,
            process,
            server,
            length,
            ..
        } = fault;
        let (now, at, process) = (self.time.now(), usize::from(server.0), process as usize);
        match kind {
            FaultKind::Delay => self.suffered[at].slow = Some((now.after(fault.lasts()), length)),
            FaultKind::Cut => self.cut(process, server),
            FaultKind::Pause => {
                let until = &mut self.stopped_until[process];
                *until = now.after(length).max(*until);
                self.mail.touched.push(process);
            }
            FaultKind::ClientKill => {
                let index = self.own_connection();
                let generation = self.mail.way(process, index).generation;
                self.terminate(Backend::Own(Link {
                    process,
                    index,
                    generation,
                }));
            }
            FaultKind::Kill => {
                self.suffered[at].down_until = now.after(length);
                self.begin_anew(server);
            }
            FaultKind::Restart => self.begin_anew(server),
            FaultKind::Forget => {
                self.servers[at] = Redis::new(self.mistake);
                self.begin_anew(server);
            }
            FaultKind::Failover => self.fail_over(server, fault.lasts()),
            FaultKind::Clock => {
                let suffered = &mut self.suffered[at];
                suffered.ahead = suffered.ahead.after(length);
            }
        }
    }

    /// The server has started again: scripts, blocked clients and connections are gone.
    fn begin_anew(&mut self, server: ServerId) {
        self.servers[usize::from(server.0)].disconnect();
        for process in 0..self.stopped_until.len() {
            self.cut(process, server);
        }
    }

    /// Closes all connections of a process to a server.
    fn cut(&mut self, process: usize, server: ServerId) {
        self.mail.push(process, u32::from(server.0), Inbound::Closed);
        if server == ServerId(0) {
            // The client's own connection, and the one for subscriptions.
            let own = self.own_connection();
            self.mail.push(process, own, Inbound::Closed);
            self.mail.push(process, own + 1, Inbound::Closed);
        }
    }

    /// The number of a client's own connection, where each process has one client. It follows those to the servers.
    const fn own_connection(&self) -> u32 {
        self.servers.len() as u32
    }

    /// A replica takes over, with what it had received by then.
    fn fail_over(&mut self, server: ServerId, lag: Nanos) {
        let at = usize::from(server.0);
        let then = Nanos(self.time.now().0.saturating_sub(lag.0));
        let past = self.suffered[at].past.as_ref();
        let seen = past.and_then(|past| past.iter().rev().find(|&&(at, _)| at <= then));
        self.servers[at] = seen.map_or_else(|| Redis::new(self.mistake), |(_, redis)| redis.clone());
        self.begin_anew(server);
        self.remember(server);
    }

    /// Notes the state of a server after a command, for a failover to come.
    pub(crate) fn remember(&mut self, server: ServerId) {
        let at = usize::from(server.0);
        let now = self.time.now();
        self.suffered[at].written = now;
        let Some(past) = &mut self.suffered[at].past else {
            return;
        };
        past.push_back((now, self.servers[at].clone()));
        // All but the last that is older than the longest lag can be forgotten.
        let oldest = now.0.saturating_sub(LAGS[1].0);
        while past.get(1).is_some_and(|(at, _)| at.0 <= oldest) {
            past.pop_front();
        }
    }

    /// `WAIT`: the reply comes when enough replicas have what was written, or when its time is over.
    pub(crate) fn confirm(&mut self, from: Asker, replicas: u64, timeout_ms: u64) {
        let since = self.suffered[usize::from(from.server.0)].written;
        let now = self.time.now();
        let limit = now.after(Nanos::from_millis(timeout_ms));
        let enough = match replicas.checked_sub(1) {
            None => now,
            Some(last) => LAGS.get(last as usize).map_or(Nanos::NEVER, |&lag| since.after(lag)),
        };
        let at = enough.min(limit).max(now);
        let count = LAGS.iter().filter(|&&lag| since.after(lag) <= at).count();
        let reply = Reply::Int((count as u64).cast_signed());
        self.note(from, Command::Wait { replicas, timeout_ms }, Some(reply));
        let Asker { client, tag, .. } = from;
        self.deliver_after(at.since(now), from, Inbound::Reply { client, tag, reply });
    }

    /// From when on the faults of the plan delay nothing and nobody any more.
    pub(crate) fn calm_from(&self) -> Nanos {
        let slow = |suffered: &Suffered| {
            suffered
                .slow
                .map_or(Nanos::ZERO, |(until, longest)| until.after(longest))
        };
        let of_servers = self
            .suffered
            .iter()
            .map(|suffered| suffered.down_until.max(slow(suffered)));
        let of_processes = self.stopped_until.iter().copied();
        of_servers.chain(of_processes).max().unwrap_or(Nanos::ZERO)
    }

    pub(crate) fn is_down(&self, server: ServerId) -> bool {
        self.suffered[usize::from(server.0)].down_until > self.time.now()
    }
}
