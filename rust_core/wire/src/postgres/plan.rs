//! The purpose of a session, and the messages that follow from it.

use std::fmt;
use std::io;

use bytes::BytesMut;
use locks::Statement;
use postgres_protocol::message::frontend;

use super::Prepare;
use super::block::Part;

/// The user of a session, and the statements that it sends. `Debug` shows no password.
#[derive(Clone, Copy)]
pub struct SessionSpec<'a> {
    pub user: &'a str,
    pub password: Option<&'a str>,
    pub database: &'a str,
    /// Settings of the session, such as `lock_timeout`.
    pub settings: &'a [(String, String)],
    pub statements: &'a [Statement],
    pub prepare: Prepare,
    /// The table of locks, its name quoted as in SQL.
    pub table: &'a str,
}

impl fmt::Debug for SessionSpec<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionSpec")
            .field("user", &self.user)
            .field("password", &self.password.map(|_| "***"))
            .field("database", &self.database)
            .field("settings", &self.settings)
            .field("statements", &self.statements)
            .field("prepare", &self.prepare)
            .field("table", &self.table)
            .finish()
    }
}

/// The log-in messages of all sessions of a trial with one server. `Debug` shows no password.
#[derive(Clone)]
pub struct LogInPlan {
    pub(crate) user: String,
    pub(crate) password: Option<String>,
    startup: Vec<u8>,
    /// The messages that prepare statements after the log-in; empty when nothing is prepared.
    pub(crate) preparing: Vec<u8>,
    /// The texts of the prepared statements, in the order of the replies.
    pub(crate) prepared: Vec<String>,
}

impl LogInPlan {
    /// # Errors
    /// When a text has a zero byte, which would end it, or is longer than a message can be.
    pub fn new(spec: &SessionSpec<'_>) -> io::Result<Self> {
        let mut startup = BytesMut::new();
        let settings = spec
            .settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let who = [("user", spec.user), ("database", spec.database)];
        frontend::startup_message(who.into_iter().chain(settings), &mut startup)?;
        // Checked here, so that it cannot fail during a log-in.
        frontend::password_message(spec.password.unwrap_or_default().as_bytes(), &mut BytesMut::new())?;
        let parts = match spec.prepare {
            Prepare::Named => Part::all_of_these(spec.statements),
            Prepare::Unnamed => Vec::new(),
        };
        let mut preparing = BytesMut::new();
        for part in &parts {
            part.prepare(spec.prepare, spec.table, &mut preparing)?;
        }
        if !parts.is_empty() {
            frontend::sync(&mut preparing);
        }
        Ok(Self {
            user: spec.user.to_owned(),
            password: spec.password.map(str::to_owned),
            startup: startup.to_vec(),
            preparing: preparing.to_vec(),
            prepared: parts.iter().map(|part| part.sql(spec.table)).collect(),
        })
    }

    /// The first message of a session.
    pub fn startup(&self) -> &[u8] {
        &self.startup
    }
}

impl fmt::Debug for LogInPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogInPlan")
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("prepared", &self.prepared)
            .finish_non_exhaustive()
    }
}
