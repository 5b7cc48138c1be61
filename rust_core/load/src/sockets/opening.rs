//! How connections are opened, and opened again, up to the last reply of their handshake.

use std::io;

use locks::Nanos;
use wire::{Frame, error_code, error_text};

use super::Sockets;
use super::connection::{Connection, OPEN_WITHIN, State};
use super::dialect::Handshake;
use super::sessions::{self, AT_ONCE};
use crate::transport::Broken;

/// How far the trial is, which decides what a broken connection means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    New,
    /// Since then not all connections have been open: one that breaks ends the trial.
    Connecting(Nanos),
    Open,
    /// Connections that clients close stay closed.
    Draining,
}

impl Stage {
    pub(super) fn ends_the_trial(self, broken: &Broken, now: Nanos) -> bool {
        match self {
            Self::New => true,
            Self::Connecting(since) => !sessions::may_pass(broken, now.since(since)),
            Self::Open | Self::Draining => false,
        }
    }

    /// Whether the error of a broken connection is one of the trial.
    pub(super) const fn counts(self) -> bool {
        matches!(self, Self::Open | Self::Draining)
    }
}

impl Sockets {
    /// Opens connections whose pause has ended, and gives up those whose log-in takes too long.
    pub(super) fn open_what_is_due(&mut self, now: Nanos, broken: &mut Vec<(u32, Broken)>) {
        if self.stage == Stage::New {
            self.stage = Stage::Connecting(now);
        }
        let mut room = self.room_for_sessions();
        for index in 0..self.connections.len() as u32 {
            if self.connections[index as usize].deadline() > now {
                continue;
            }
            let stays_closed = self.stage == Stage::Draining && self.layout.owner_of(index).is_some();
            let connection = &mut self.connections[index as usize];
            let target = &self.targets[usize::from(connection.server)];
            let is_session = target.handshake.is_database();
            let attempt = match connection.state {
                State::Down { .. } if is_session && (room == 0 || stays_closed) => {
                    connection.put_off(now);
                    Ok(())
                }
                State::Down { .. } if connection.is_refused => Err(Broken::Io(io::ErrorKind::ConnectionRefused.into())),
                State::Down { .. } => {
                    room -= usize::from(is_session);
                    connection.open(target, &self.poller, index, now)
                }
                State::Connecting { .. } | State::Greeting { .. } => Err(Broken::Silent { within: OPEN_WITHIN }),
                State::Ready => Ok(()),
            };
            broken.extend(attempt.err().map(|why| (index, why)));
        }
        for index in std::mem::take(&mut self.overfull) {
            let calls = self.connections[index as usize].awaited.len();
            // It may have been closed since.
            if calls > 0 {
                broken.push((index, Broken::Unanswered { calls }));
            }
        }
        // Those that broke are not counted: `cut` plans for each of them.
        let deadlines = (0..).zip(&self.connections).map(|(index, connection)| {
            if broken.iter().any(|&(at, _)| at == index) {
                Nanos::NEVER
            } else {
                connection.deadline()
            }
        });
        self.next_upkeep = deadlines.min().unwrap_or(Nanos::NEVER);
    }

    /// How many more sessions may be opened now; 0 when no server is a database.
    fn room_for_sessions(&self) -> usize {
        if !self.targets.iter().any(|target| target.handshake.is_database()) {
            return 0;
        }
        let is_opening = |connection: &&Connection| self.leads_to_a_database(connection) && connection.is_opening();
        AT_ONCE.saturating_sub(self.connections.iter().filter(is_opening).count())
    }

    /// The socket became writable for the first time.
    pub(super) fn connected(&mut self, index: u32, now: Nanos) -> Result<(), Broken> {
        let connection = &mut self.connections[index as usize];
        connection.connected(&self.targets[usize::from(connection.server)], now)?;
        self.next_upkeep = self.next_upkeep.min(connection.deadline());
        Ok(())
    }

    /// Handles what was read before the connection is open, up to the reply that opens it.
    pub(super) fn greet(&mut self, index: u32) -> Result<(), Broken> {
        while let State::Greeting { answered, until } = self.connections[index as usize].state {
            let connection = &mut self.connections[index as usize];
            let bytes = self.reading.rest();
            let used = match &self.targets[usize::from(connection.server)].handshake {
                Handshake::Postgres(plan) => connection.log_in(plan, bytes, &self.poller, index)?,
                Handshake::Redis { greeting, .. } => {
                    let Some((frame, used)) = connection.incomplete.parse_frame(bytes)? else {
                        break;
                    };
                    if !matches!(frame, Frame::Push(_)) {
                        let step = greeting.step(answered);
                        if let Some(text) = error_text(&frame)
                            && (step.is_required() || text.starts_with("NOAUTH"))
                        {
                            return Err(Broken::Refused {
                                command: step.command(),
                                code: error_code(&frame).unwrap_or_default(),
                                text,
                            });
                        }
                        if answered + 1 == greeting.len() {
                            connection.greeted();
                        } else {
                            let answered = answered + 1;
                            connection.state = State::Greeting { answered, until };
                        }
                    }
                    Some(used)
                }
            };
            let Some(used) = used else { break };
            self.reading.used(used);
            // The log-in may have written its next message.
            self.arm_delay(index);
        }
        Ok(())
    }
}
