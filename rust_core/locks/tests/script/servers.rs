//! Script steps for quorum locks. In a list of labels, the first belongs to server 0, and so on.

use locks::{Command, ConnectionKind, Key, Nanos, Reply, ScriptForm, ServerId, Spec, Strategy, Token};

use crate::words::{KEY, Script, lease, script};

/// The node timeout with a lease of 10 s: the cap.
pub(crate) const NODE_TIMEOUT_MS: u64 = 50;

/// The strategy of that name with these arguments, each a whole number or a word.
pub(crate) fn strategy(name: &str, args: &[(&str, locks::ArgValue)]) -> Strategy {
    let args: Vec<_> = args
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    Strategy::named(name, &args).expect("a strategy with arguments that it takes")
}

pub(crate) fn over(servers: u16, spec: Spec) -> Spec {
    Spec { servers, ..spec }
}

pub(crate) fn with_lease(ms: u64, spec: Spec) -> Spec {
    Spec {
        lease: lease(ms),
        ..spec
    }
}

/// A script with another number of servers than the default: a machine takes it from the spec.
pub(crate) fn on(servers: u16, name: &str, spec: Spec) -> Script {
    script(strategy(name, &[]), over(servers, spec))
}

impl Script {
    /// A `SET` to each server with one fresh token, and then the node timeout.
    pub(crate) fn expect_sets(self, labels: &[&'static str]) -> Self {
        self.expect_sets_within(labels, NODE_TIMEOUT_MS)
    }

    pub(crate) fn expect_sets_within(mut self, labels: &[&'static str], ms: u64) -> Self {
        for (server, label) in labels.iter().enumerate() {
            let token = (server > 0).then(|| self.token(labels[0]));
            self = self.expect_set_on(label, server as u16, KEY, token);
        }
        self.expect_wake_after(ms)
    }

    /// A `SET` with this token, or with a fresh one.
    pub(crate) fn expect_set_on(self, label: &'static str, server: u16, key: Key, token: Option<Token>) -> Self {
        let seen: Vec<Token> = self.tokens();
        let (script, command) = self.expect_send_to(label, ServerId(server), ConnectionKind::SharedByClients);
        let Command::SetNxPx {
            key: set, token: used, ..
        } = command
        else {
            panic!("not a SET: {command:?}")
        };
        assert_eq!(set, key);
        match token {
            Some(token) => assert_eq!(used, token),
            None => assert!(!seen.contains(&used), "a token used twice: {used:?}"),
        }
        script
    }

    /// A compare-and-delete to each server in order, with the token of the `SET` labelled `of`.
    pub(crate) fn expect_deletes(mut self, of: &str, sent: &[(&'static str, ScriptForm)]) -> Self {
        for (server, &(label, form)) in sent.iter().enumerate() {
            self = self.expect_delete_on(label, server as u16, of, form);
        }
        self
    }

    pub(crate) fn expect_delete_on(self, label: &'static str, server: u16, of: &str, form: ScriptForm) -> Self {
        let (key, token) = (KEY, self.token(of));
        self.expect_on(label, server, Command::CompareAndDelete { key, token, form })
    }

    pub(crate) fn expect_on(self, label: &'static str, server: u16, expected: Command) -> Self {
        let (script, command) = self.expect_send_to(label, ServerId(server), ConnectionKind::SharedByClients);
        assert_eq!(command, expected, "{label}");
        script
    }

    pub(crate) fn expect_wake_after(self, ms: u64) -> Self {
        let point = self.now().after(Nanos::from_millis(ms));
        self.expect_wake_at(point)
    }

    /// The same reply to each; only the last may cause an action.
    pub(crate) fn replies(mut self, labels: &[&'static str], reply: Reply) -> Self {
        for (at, label) in labels.iter().enumerate() {
            self = self.reply(label, reply);
            if at + 1 < labels.len() {
                self = self.expect_nothing();
            }
        }
        self
    }
}
