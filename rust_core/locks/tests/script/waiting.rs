//! Script steps for the locks that wait on the server over their own connection.

use locks::{Command, ConnectionKind, Nanos, Script as Lua, ScriptForm, ServerId};

use crate::words::{KEY, Script};

pub(crate) const SHA: ScriptForm = ScriptForm::Sha;
pub(crate) const SOURCE: ScriptForm = ScriptForm::Source;

impl Script {
    /// A script with the attempt's token, guarded by the reply timeout. `of`: a command with the same token; without it
    /// the token is fresh.
    pub(crate) fn expect_run(
        self,
        label: &'static str,
        lua: Lua,
        of: Option<&str>,
        form: ScriptForm,
        numbers: [u64; 2],
    ) -> Self {
        self.expect_unguarded_run(label, lua, of, form, numbers).expect_guard()
    }

    /// As `expect_run`, but nobody waits for the reply.
    pub(crate) fn expect_unguarded_run(
        self,
        label: &'static str,
        lua: Lua,
        of: Option<&str>,
        form: ScriptForm,
        numbers: [u64; 2],
    ) -> Self {
        let known = of.map(|of| self.token(of));
        let seen = self.tokens();
        let (script, command) = self.expect_send(label);
        let Command::Run { token, .. } = command else {
            panic!("{label} is no script: {command:?}")
        };
        let expected = Command::Run {
            script: lua,
            form,
            key: KEY,
            token,
            numbers,
        };
        assert_eq!(command, expected, "{label}");
        match known {
            Some(known) => assert_eq!(token, known, "the token of {label}"),
            None => assert!(!seen.contains(&token), "a token used twice: {token:?}"),
        }
        script
    }

    /// A command over the client's own connection, guarded or not.
    pub(crate) fn expect_own(self, label: &'static str, expected: Command) -> Self {
        let (script, command) = self.expect_send_to(label, ServerId(0), ConnectionKind::Own);
        assert_eq!(command, expected, "{label}");
        script
    }

    /// A command about a channel, guarded or not.
    pub(crate) fn expect_subscribing(self, label: &'static str, expected: Command) -> Self {
        let (script, command) = self.expect_send_to(label, ServerId(0), ConnectionKind::Subscribing);
        assert_eq!(command, expected, "{label}");
        script
    }

    /// A wake-up between these milliseconds from now.
    pub(crate) fn expect_wake_in(self, ms: std::ops::RangeInclusive<u64>) -> Self {
        self.expect_pause(ms)
    }

    pub(crate) fn expect_wake_at_ms(self, ms: u64) -> Self {
        self.expect_wake_at(Nanos::from_millis(ms))
    }
}
