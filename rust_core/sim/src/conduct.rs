//! What a client may not do, whatever its servers and its network do.
//!
//! Two rules, both from the contract (`locks::LockMachine`): nothing is renewed after a release was sent, for such a
//! renewal can keep a lock alive whose release was lost; and a holder that was told that its lock is gone tells its
//! driver so, for its work goes on otherwise. Neither shows as an overlap in most worlds.

use locks::{Action, CallId, Command, Event, Reply, Script};

/// The requests of one client, as far as the rules need them.
#[derive(Debug, Default)]
pub(crate) struct Conduct {
    /// A request to release was made since the last request for the lock.
    releases: bool,
    holds: bool,
    /// The renewals without a reply.
    renewals: Vec<CallId>,
    /// The reply to a renewal has just said that the lock is gone.
    refused: bool,
    pub(crate) breach: Option<&'static str>,
}

impl Conduct {
    /// Before the lock handles an event.
    pub(crate) fn told(&mut self, event: Event) {
        self.refused = false;
        match event {
            Event::Acquire { .. } | Event::Retry => (self.releases, self.holds) = (false, false),
            Event::Release | Event::Cancel => (self.releases, self.holds) = (true, false),
            Event::Replied { call, reply } => {
                self.refused = self.ends(call) && reply == Reply::Int(0) && self.holds;
            }
            Event::Lost { call } => {
                self.ends(call);
            }
            _ => {}
        }
    }

    /// After the lock has handled the event.
    pub(crate) fn did(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Send { call, command, .. } if is_renewal(command) => {
                    if self.releases {
                        self.breach = Some("sent a renewal after it had released the lock");
                    }
                    self.renewals.push(*call);
                }
                Action::Lapsed => (self.holds, self.refused) = (false, false),
                Action::Settle(outcome) => self.holds = matches!(outcome, locks::Outcome::Held { .. }),
                _ => {}
            }
        }
        if self.refused {
            self.breach = Some("was told that its lock was gone, and went on as its holder");
        }
    }

    /// Whether the call was a renewal.
    fn ends(&mut self, call: CallId) -> bool {
        let place = self.renewals.iter().position(|&renewal| renewal == call);
        place.map(|place| self.renewals.swap_remove(place)).is_some()
    }
}

const fn is_renewal(command: &Command) -> bool {
    matches!(
        command,
        Command::Run {
            script: Script::CompareAndExpire,
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use locks::{Actions, Key, KeyList, Lasts, Mode, Nanos, Outcome, ScriptForm, ServerId, Token};

    use super::*;

    fn step(conduct: &mut Conduct, event: Event, acts: impl FnOnce(&mut Actions)) -> Option<&'static str> {
        let mut actions = Actions::default();
        conduct.told(event);
        acts(&mut actions);
        conduct.did(actions.as_slice());
        conduct.breach
    }

    fn renews(actions: &mut Actions) {
        let command = Command::Run {
            script: Script::CompareAndExpire,
            form: ScriptForm::Sha,
            key: Key(0),
            token: Token::NONE,
            numbers: [100, 0],
        };
        actions.send(CallId(7), ServerId(0), command);
    }

    fn holder() -> Conduct {
        let mut conduct = Conduct::default();
        let (keys, mode) = (KeyList::one(Key(0)), Mode::Exclusive);
        step(&mut conduct, Event::Acquire { keys, mode }, |_| {});
        let lasts = Lasts::Until(Nanos::NEVER);
        step(&mut conduct, Event::Woke, |actions| {
            actions.settle(Outcome::Held { lasts, fence: None });
            renews(actions);
        });
        conduct
    }

    fn refusal() -> Event {
        Event::Replied {
            call: CallId(7),
            reply: Reply::Int(0),
        }
    }

    #[test]
    fn a_holder_that_tells_of_its_loss_is_in_order() {
        assert_eq!(step(&mut holder(), refusal(), Actions::lapsed), None);
    }

    #[test]
    fn a_holder_that_does_not_is_not() {
        assert!(step(&mut holder(), refusal(), |_| {}).is_some());
    }

    #[test]
    fn a_refusal_that_comes_after_the_release_changes_nothing() {
        let mut conduct = holder();
        step(&mut conduct, Event::Release, |_| {});
        assert_eq!(step(&mut conduct, refusal(), |_| {}), None);
    }

    #[test]
    fn a_renewal_after_the_release_is_out_of_order() {
        let mut conduct = holder();
        assert_eq!(step(&mut conduct, Event::Woke, renews), None);
        assert!(step(&mut conduct, Event::Release, renews).is_some());
    }
}
