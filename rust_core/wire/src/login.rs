//! The first commands of a new connection: all of them in one write; their replies are counted afterwards.

use std::fmt;

use locks::Script;

use crate::request::push_command;

/// The protocol version of the replies; commands are the same in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// Every server.
    Resp2,
    /// Redis 6 and later, Valkey.
    Resp3,
}

/// The credentials and options of a connection. `Debug` shows no password.
#[derive(Clone, Copy)]
pub struct Login<'a> {
    pub protocol: Protocol,
    /// Absent or empty: the server's `default` user.
    pub username: Option<&'a str>,
    pub password: Option<&'a str>,
    pub db: u32,
    /// Shown by `CLIENT LIST`. Servers accept printable ASCII without spaces; other characters become `-`. Empty: no
    /// name is set.
    pub client_name: &'a str,
    /// The scripts to load, so that their first calls do not get `NOSCRIPT`.
    pub scripts: &'a [Script],
}

impl fmt::Debug for Login<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("protocol", &self.protocol)
            .field("username", &self.username)
            .field("password", &self.password.map(|_| "***"))
            .field("db", &self.db)
            .field("client_name", &self.client_name)
            .field("scripts", &self.scripts)
            .finish()
    }
}

/// The step of a greeting that one reply belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GreetingStep {
    /// `HELLO`, with credentials and name in it.
    Hello,
    Auth,
    SetName,
    Select,
    ScriptLoad,
}

impl GreetingStep {
    /// Whether the connection is useless when this step fails. The client name is optional, and older servers have
    /// none.
    pub fn is_required(self) -> bool {
        match self {
            Self::SetName => false,
            Self::Hello | Self::Auth | Self::Select | Self::ScriptLoad => true,
        }
    }

    /// The command's name, for error messages.
    pub fn command(self) -> &'static str {
        match self {
            Self::Hello => "HELLO",
            Self::Auth => "AUTH",
            Self::SetName => "CLIENT SETNAME",
            Self::Select => "SELECT",
            Self::ScriptLoad => "SCRIPT LOAD",
        }
    }
}

/// The replies that must come before the connection is open, in order. May be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    steps: Vec<GreetingStep>,
}

impl Greeting {
    /// The number of replies that must come.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The step that reply `index`, from 0, belongs to.
    ///
    /// # Panics
    /// When there is no such reply.
    pub fn step(&self, index: usize) -> GreetingStep {
        self.steps[index]
    }
}

/// Appends the commands of a new connection to `out`, and returns the expected replies.
pub fn greeting(login: &Login<'_>, out: &mut Vec<u8>) -> Greeting {
    let mut steps = Vec::new();
    let mut send = |step, arguments: &[&[u8]]| {
        push_command(out, arguments);
        steps.push(step);
    };
    let username = login.username.filter(|name| !name.is_empty());
    let name = client_name(login.client_name);

    match login.protocol {
        Protocol::Resp3 => {
            let mut hello: Vec<&[u8]> = vec![b"HELLO", b"3"];
            if username.is_some() || login.password.is_some() {
                let username = username.unwrap_or("default");
                hello.extend([
                    &b"AUTH"[..],
                    username.as_bytes(),
                    login.password.unwrap_or_default().as_bytes(),
                ]);
            }
            if !name.is_empty() {
                hello.extend([&b"SETNAME"[..], &name]);
            }
            send(GreetingStep::Hello, &hello);
        }
        Protocol::Resp2 => {
            match (username, login.password) {
                (None, None) => {}
                // The only form that servers before Redis 6 know.
                (None, Some(password)) => send(GreetingStep::Auth, &[b"AUTH", password.as_bytes()]),
                (Some(username), password) => {
                    let password = password.unwrap_or_default();
                    send(GreetingStep::Auth, &[b"AUTH", username.as_bytes(), password.as_bytes()]);
                }
            }
            if !name.is_empty() {
                send(GreetingStep::SetName, &[b"CLIENT", b"SETNAME", &name]);
            }
        }
    }
    if login.db != 0 {
        send(GreetingStep::Select, &[b"SELECT", login.db.to_string().as_bytes()]);
    }
    for script in login.scripts {
        send(
            GreetingStep::ScriptLoad,
            &[b"SCRIPT", b"LOAD", script.source().as_bytes()],
        );
    }
    Greeting { steps }
}

/// One invalid character would fail all of `HELLO`.
fn client_name(name: &str) -> Vec<u8> {
    name.chars()
        .map(|char| if char.is_ascii_graphic() { char as u8 } else { b'-' })
        .collect()
}
