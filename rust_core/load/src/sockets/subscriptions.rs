//! The subscriptions of a thread. All its clients that subscribe to a channel over the same connection share one
//! subscription, as the clients of a process do in common lock libraries. A release then costs the server one message,
//! which is handed to all of them here.
//!
//! ```text
//!               first joins                 confirmed
//!     Forgotten ───────────▶ Asked ───────────────────▶ Stands
//!         ▲                    │                          │
//!         └── refused, closed, the last one has left ─────┘
//! ```
//! Promises: a client that joins gets the server's confirmation of a subscription that still stands; what a closing
//! connection forgets is forgotten here too. The record of a channel without subscribers is kept, so that the next
//! subscriber reuses its memory.

use std::collections::{BTreeMap, VecDeque};

use locks::Key;

use crate::transport::Caller;

#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// By connection and key.
    channels: BTreeMap<(u32, Key), Channel>,
    /// The subjects of the replies that a connection still owes, in order.
    asked: BTreeMap<u32, VecDeque<Asked>>,
}

#[derive(Debug, Default)]
struct Channel {
    state: State,
    /// `SUBSCRIBE`s without a reply; only the last one's reply is about the current subscription.
    unanswered: u32,
    /// In the order in which they receive the next message.
    listeners: VecDeque<u32>,
    /// Clients that came while the `SUBSCRIBE` was under way; its reply answers them too.
    joining: Vec<Caller>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Forgotten,
    Asked,
    Stands,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    Subscribe(Key),
    Unsubscribe,
}

/// How a client's wish to subscribe is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// The client is the first: a `SUBSCRIBE` must be sent for it.
    AsFirst,
    /// The reply to the `SUBSCRIBE` under way answers it.
    Waits,
    /// The subscription stands; there is nothing to wait for.
    Listens,
}

impl Subscriptions {
    pub(crate) fn join(&mut self, connection: u32, key: Key, who: Caller) -> Joined {
        let channel = self.channels.entry((connection, key)).or_default();
        if !channel.listeners.contains(&who.client) {
            channel.listeners.push_back(who.client);
        }
        match channel.state {
            State::Forgotten => {
                channel.state = State::Asked;
                channel.unanswered += 1;
                self.asked
                    .entry(connection)
                    .or_default()
                    .push_back(Asked::Subscribe(key));
                Joined::AsFirst
            }
            State::Asked => {
                channel.joining.push(who);
                Joined::Waits
            }
            State::Stands => Joined::Listens,
        }
    }

    /// Returns whether an `UNSUBSCRIBE` must be sent, because no subscriber is left.
    pub(crate) fn leave(&mut self, connection: u32, key: Key, client: u32) -> bool {
        let Some(channel) = self.channels.get_mut(&(connection, key)) else {
            return false;
        };
        channel.listeners.retain(|listener| *listener != client);
        channel.joining.retain(|who| who.client != client);
        let was_last = channel.listeners.is_empty() && channel.state != State::Forgotten;
        if was_last {
            channel.state = State::Forgotten;
            self.asked.entry(connection).or_default().push_back(Asked::Unsubscribe);
        }
        was_last
    }

    /// Handles the reply to the oldest call of a connection. `joined` lists the other clients that it answers.
    pub(crate) fn answered(&mut self, connection: u32, stands: bool) -> Option<Key> {
        let Some(Asked::Subscribe(key)) = self.asked.get_mut(&connection)?.pop_front() else {
            return None;
        };
        let channel = self.channels.get_mut(&(connection, key))?;
        channel.unanswered -= 1;
        if channel.unanswered > 0 || channel.state != State::Asked {
            return None; // The channel was left meanwhile, and maybe subscribed to again.
        }
        if stands {
            channel.state = State::Stands;
        } else {
            channel.state = State::Forgotten;
            channel.listeners.clear();
        }
        Some(key)
    }

    /// The next client that waited for the reply about a channel.
    pub(crate) fn joined(&mut self, connection: u32, key: Key) -> Option<Caller> {
        self.channels.get_mut(&(connection, key))?.joining.pop()
    }

    pub(crate) fn stands(&self, connection: u32, key: Key) -> bool {
        self.channels
            .get(&(connection, key))
            .is_some_and(|channel| channel.state == State::Stands)
    }

    /// The client that receives a message as the `place`th.
    pub(crate) fn listener(&self, connection: u32, key: Key, place: usize) -> Option<u32> {
        self.channels.get(&(connection, key))?.listeners.get(place).copied()
    }

    /// Lets another client receive the next message first, because the first receiver has the best chance of getting
    /// the lock.
    pub(crate) fn take_turns(&mut self, connection: u32, key: Key) {
        if let Some(channel) = self.channels.get_mut(&(connection, key))
            && let Some(first) = channel.listeners.pop_front()
        {
            channel.listeners.push_back(first);
        }
    }

    /// Handles a closed connection. Appends its subscribers to `cut_off`, and to `lost` the calls of clients that
    /// waited for another client's reply.
    pub(crate) fn close(&mut self, connection: u32, disconnected: &mut Vec<u32>, lost: &mut Vec<Caller>) {
        if let Some(asked) = self.asked.get_mut(&connection) {
            asked.clear();
        }
        let all = (connection, Key(0))..=(connection, Key(u32::MAX));
        for channel in self.channels.range_mut(all).map(|(_, channel)| channel) {
            channel.state = State::Forgotten;
            channel.unanswered = 0;
            disconnected.extend(channel.listeners.drain(..));
            lost.append(&mut channel.joining);
        }
    }
}

#[cfg(test)]
mod tests {
    use locks::CallId;

    use super::*;

    const KEY: Key = Key(3);

    fn client(client: u32) -> Caller {
        Caller {
            client,
            call: CallId(u64::from(client) * 10),
        }
    }

    /// Clients 1, 2 and 3 subscribe over connection 7, for which client 1 has sent the command.
    fn three() -> Subscriptions {
        let mut known = Subscriptions::default();
        assert_eq!(known.join(7, KEY, client(1)), Joined::AsFirst);
        assert_eq!(known.join(7, KEY, client(2)), Joined::Waits);
        assert!(!known.stands(7, KEY));
        assert_eq!(known.answered(7, true), Some(KEY));
        assert_eq!(known.joined(7, KEY).map(|who| who.client), Some(2));
        assert!(known.joined(7, KEY).is_none());
        assert_eq!(known.join(7, KEY, client(3)), Joined::Listens);
        known
    }

    fn listeners(known: &Subscriptions, connection: u32) -> Vec<u32> {
        (0..)
            .map_while(|place| known.listener(connection, KEY, place))
            .collect()
    }

    #[test]
    fn all_receive_a_message_and_take_turns_at_being_first() {
        let mut known = three();
        assert_eq!(listeners(&known, 7), [1, 2, 3]);
        known.take_turns(7, KEY);
        assert_eq!(listeners(&known, 7), [2, 3, 1]);
        assert_eq!(listeners(&known, 8), [0; 0]);
        // A client that has already subscribed does not get the message twice.
        assert_eq!(known.join(7, KEY, client(2)), Joined::Listens);
        assert_eq!(listeners(&known, 7), [2, 3, 1]);
    }

    #[test]
    fn only_the_last_who_leaves_ends_the_subscription() {
        let mut known = three();
        assert!(!known.leave(7, KEY, 2));
        assert!(!known.leave(7, KEY, 1));
        assert!(known.stands(7, KEY));
        assert!(known.leave(7, KEY, 3));
        assert!(!known.stands(7, KEY));
        assert!(!known.leave(7, KEY, 3));
        assert_eq!(known.answered(7, true), None);
    }

    #[test]
    fn the_confirmation_of_a_subscription_that_was_left_is_not_taken_for_that_of_the_next() {
        let mut known = Subscriptions::default();
        known.join(7, KEY, client(1));
        assert!(known.leave(7, KEY, 1));
        assert_eq!(known.join(7, KEY, client(2)), Joined::AsFirst);
        assert_eq!(known.answered(7, true), None, "of the first subscribe");
        assert_eq!(known.answered(7, true), None, "of the unsubscribe");
        assert!(!known.stands(7, KEY));
        assert_eq!(known.answered(7, true), Some(KEY));
        assert!(known.stands(7, KEY));
    }

    #[test]
    fn a_refused_subscription_does_not_stand_and_has_no_listeners() {
        let mut known = Subscriptions::default();
        known.join(7, KEY, client(1));
        known.join(7, KEY, client(2));
        assert_eq!(known.answered(7, false), Some(KEY));
        assert_eq!(known.joined(7, KEY).map(|who| who.client), Some(2));
        assert!(!known.stands(7, KEY));
        assert_eq!(listeners(&known, 7), [0; 0]);
        assert_eq!(known.join(7, KEY, client(1)), Joined::AsFirst);
    }

    #[test]
    fn a_connection_that_closes_notifies_its_subscribers_and_those_who_waited_for_another_ones_reply() {
        let mut known = three();
        known.join(8, KEY, client(4));
        known.join(8, KEY, client(5));
        let (mut disconnected, mut lost) = (Vec::new(), Vec::new());
        known.close(8, &mut disconnected, &mut lost);
        assert_eq!((disconnected, lost), (vec![4, 5], vec![client(5)]));
        assert!(known.stands(7, KEY), "another connection's");
        assert_eq!(known.join(8, KEY, client(4)), Joined::AsFirst);
        assert_eq!(known.answered(8, true), Some(KEY));
        assert!(known.stands(8, KEY));
    }
}
