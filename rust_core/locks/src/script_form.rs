//! How scripts are sent: by SHA-1 as long as somebody awaits the reply, and as source after `NOSCRIPT` or when nobody
//! does. All that a lock needs to know of it is in this file.

use crate::{CallId, Command, ErrorKind, Key, KeyList, Reply, Script, Token};

/// How a script is sent: by its SHA-1, or, after `NOSCRIPT`, as its whole text, which the server then caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScriptForm {
    #[default]
    Sha,
    Source,
}

impl Command {
    /// A script about one lock, named by its SHA-1. Whoever awaits the reply sends it as source after `NOSCRIPT`.
    pub(crate) const fn by_sha(script: Script, key: Key, token: Token, numbers: [u64; 2]) -> Self {
        Self::Run {
            script,
            form: ScriptForm::Sha,
            key,
            token,
            numbers,
        }
    }

    /// As `by_sha`, about several locks.
    pub(crate) const fn all_by_sha(script: Script, keys: KeyList, token: Token, lease_ms: u64) -> Self {
        Self::RunAll {
            script,
            form: ScriptForm::Sha,
            keys,
            token,
            lease_ms,
        }
    }

    /// The release of most locks, named by its SHA-1 where it is a script.
    pub(crate) const fn compare_and_delete(key: Key, token: Token) -> Self {
        Self::CompareAndDelete {
            key,
            token,
            form: ScriptForm::Sha,
        }
    }

    /// How the command was sent. Whatever cannot get `NOSCRIPT` counts as source.
    pub(crate) const fn form(&self) -> ScriptForm {
        match self {
            Self::CompareAndDelete { form, .. } | Self::Run { form, .. } | Self::RunAll { form, .. } => *form,
            _ => ScriptForm::Source,
        }
    }

    /// The same command with the script's whole text, if it was sent by SHA-1: what to send after `NOSCRIPT`.
    pub fn as_source(mut self) -> Option<Self> {
        match &mut self {
            Self::CompareAndDelete { form, .. } | Self::Run { form, .. } | Self::RunAll { form, .. }
                if *form == ScriptForm::Sha =>
            {
                *form = ScriptForm::Source;
                Some(self)
            }
            _ => None,
        }
    }

    /// The command as it is sent when nobody awaits its reply: as source, because nobody could send it again after a
    /// `NOSCRIPT`.
    #[must_use]
    pub(crate) fn unawaited(self) -> Self {
        self.as_source().unwrap_or(self)
    }
}

/// What to send after this reply to a command of this form: the same script as source, if the server does not know its
/// SHA-1.
pub(crate) fn source_after(reply: Reply, form: ScriptForm, command: impl FnOnce() -> Command) -> Option<Command> {
    if reply == Reply::Error(ErrorKind::NoScript) && form == ScriptForm::Sha {
        command().as_source()
    } else {
        None
    }
}

/// A script that has no reply yet, for a lock that awaits it beside the steps of the shell or on several servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PendingScript {
    call: CallId,
    form: ScriptForm,
}

impl PendingScript {
    /// A script that was just sent by this call, or any other command.
    pub(crate) fn new(call: CallId, command: Command) -> Self {
        let form = command.form();
        Self { call, form }
    }

    /// Whether the server may not know the script: it was sent by SHA-1.
    pub(crate) fn may_be_unknown(self) -> bool {
        self.form == ScriptForm::Sha
    }

    /// Whether the reply to this call is awaited. All others were given up.
    pub(crate) fn is(self, call: CallId) -> bool {
        self.call == call
    }

    /// The same script as source, if `reply` says that the server does not know its SHA-1.
    pub(crate) fn source_after(self, reply: Reply, command: impl FnOnce() -> Command) -> Option<Command> {
        source_after(reply, self.form, command)
    }
}
