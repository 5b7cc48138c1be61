//! What joins, leaves, replies and messages do to the subscriptions of a thread.

use locks::CallId;
use proptest::prelude::*;

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
    assert_eq!(known.joined().map(|who| who.client), Some(2));
    assert!(known.joined().is_none());
    assert_eq!(known.join(7, KEY, client(3)), Joined::Listens);
    known
}

/// Hands out a message, and returns who received it.
fn listeners(known: &mut Subscriptions, connection: u32) -> Vec<u32> {
    known.begin_message(connection, KEY);
    std::iter::from_fn(|| known.next_listener()).collect()
}

#[test]
fn all_receive_a_message_and_take_turns_at_being_first() {
    let mut known = three();
    assert_eq!(listeners(&mut known, 7), [1, 2, 3]);
    assert_eq!(listeners(&mut known, 7), [2, 3, 1]);
    assert_eq!(listeners(&mut known, 8), [0; 0]);
    // A client that has already subscribed does not get the message twice.
    assert_eq!(known.join(7, KEY, client(2)), Joined::Listens);
    assert_eq!(listeners(&mut known, 7), [3, 1, 2]);
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
    assert_eq!(known.joined().map(|who| who.client), Some(2));
    assert!(!known.stands(7, KEY));
    assert_eq!(listeners(&mut known, 7), [0; 0]);
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

#[test]
fn who_leaves_while_a_message_is_handed_out_does_not_receive_it_and_the_others_do() {
    let mut known = three();
    known.begin_message(7, KEY);
    assert_eq!(known.next_listener(), Some(1));
    assert!(!known.leave(7, KEY, 1));
    assert!(!known.leave(7, KEY, 2));
    known.join(7, KEY, client(1));
    assert_eq!(known.next_listener(), Some(3));
    assert_eq!(known.next_listener(), None, "client 1 joined after the message");
    assert_eq!(listeners(&mut known, 7), [1, 3]);
}

#[derive(Clone, Debug)]
enum Step {
    Join {
        connection: u32,
        key: u32,
        who: u32,
    },
    Leave {
        connection: u32,
        key: u32,
        who: u32,
    },
    Answer {
        connection: u32,
        stands: bool,
    },
    Close {
        connection: u32,
    },
    /// A message is begun, and handed out one listener a step.
    Message {
        connection: u32,
        key: u32,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = || (0_u32..2, 0_u32..2, 0_u32..5);
    let step = prop_oneof![
        6 => one().prop_map(|(connection, key, who)| Step::Join { connection, key, who }),
        4 => one().prop_map(|(connection, key, who)| Step::Leave { connection, key, who }),
        4 => (0_u32..2, any::<bool>()).prop_map(|(connection, stands)| Step::Answer { connection, stands }),
        1 => (0_u32..2).prop_map(|connection| Step::Close { connection }),
        3 => one().prop_map(|(connection, key, _)| Step::Message { connection, key }),
    ];
    prop::collection::vec(step, 0..120)
}

/// The listeners of each channel in a plain list, and who of them has yet to receive the message.
#[derive(Default)]
struct Model {
    channels: BTreeMap<(u32, Key), Vec<u32>>,
    message: Option<((u32, Key), Vec<u32>)>,
}

impl Model {
    fn leave(&mut self, channel: (u32, Key), client: u32) {
        if let Some(listeners) = self.channels.get_mut(&channel) {
            listeners.retain(|&listener| listener != client);
        }
        if let Some((_, waiting)) = self.message.as_mut().filter(|(about, _)| *about == channel) {
            waiting.retain(|&listener| listener != client);
        }
    }

    fn clear(&mut self, channel: (u32, Key)) -> Vec<u32> {
        let all = self.channels.get(&channel).cloned().unwrap_or_default();
        for &client in &all {
            self.leave(channel, client);
        }
        all
    }

    fn next_listener(&mut self) -> Option<u32> {
        let (channel, waiting) = self.message.as_mut()?;
        if waiting.is_empty() {
            if let Some(listeners) = self.channels.get_mut(channel).filter(|all| !all.is_empty()) {
                listeners.rotate_left(1);
            }
            self.message = None;
            return None;
        }
        Some(waiting.remove(0))
    }
}

proptest! {
    #[test]
    fn messages_reach_those_who_listen_in_the_order_of_a_plain_list(steps in steps()) {
        let (mut known, mut model) = (Subscriptions::default(), Model::default());
        for step in steps {
            match step {
                Step::Join { connection, key, who } => {
                    known.join(connection, Key(key), client(who));
                    let listeners = model.channels.entry((connection, Key(key))).or_default();
                    if !listeners.contains(&who) {
                        listeners.push(who);
                    }
                }
                Step::Leave { connection, key, who } => {
                    known.leave(connection, Key(key), who);
                    model.leave((connection, Key(key)), who);
                }
                Step::Answer { connection, stands } => {
                    let answered = known.answered(connection, stands);
                    let listeners = answered.map(|key| model.channels[&(connection, key)].clone());
                    while let Some(Caller { client, .. }) = known.joined() {
                        prop_assert!(listeners.iter().flatten().any(|&listener| listener == client));
                    }
                    if let Some(key) = answered.filter(|_| !stands) {
                        model.clear((connection, key));
                    }
                }
                Step::Close { connection } => {
                    let (mut disconnected, mut lost) = (Vec::new(), Vec::new());
                    known.close(connection, &mut disconnected, &mut lost);
                    let expected: Vec<u32> = (0..2).flat_map(|key| model.clear((connection, Key(key)))).collect();
                    prop_assert_eq!(&disconnected, &expected);
                    prop_assert!(lost.iter().all(|who| expected.contains(&who.client)));
                }
                Step::Message { connection, key } => {
                    while model.message.is_some() {
                        prop_assert_eq!(known.next_listener(), model.next_listener());
                    }
                    let channel = (connection, Key(key));
                    known.begin_message(connection, Key(key));
                    let waiting = model.channels.get(&channel).cloned();
                    model.message = waiting.map(|waiting| (channel, waiting));
                }
            }
            prop_assert_eq!(known.next_listener(), model.next_listener());
        }
    }
}

#[test]
fn a_reply_answers_only_who_has_listened_since_it_asked() {
    let mut known = Subscriptions::default();
    known.join(7, KEY, client(1));
    for who in [2, 3] {
        assert_eq!(known.join(7, KEY, client(who)), Joined::Waits);
        assert!(!known.leave(7, KEY, who));
    }
    let again = Caller {
        client: 2,
        call: CallId(21),
    };
    assert_eq!(known.join(7, KEY, again), Joined::Waits);
    assert_eq!(known.answered(7, true), Some(KEY));
    assert_eq!(known.joined(), Some(again));
    assert_eq!(known.joined(), None);
}

#[test]
fn a_connection_that_closes_while_clients_are_told_of_its_reply_is_lost_to_the_others() {
    let mut known = Subscriptions::default();
    for who in [1, 2, 3] {
        known.join(7, KEY, client(who));
    }
    assert_eq!(known.answered(7, true), Some(KEY));
    assert_eq!(known.joined(), Some(client(3)));
    let (mut disconnected, mut lost) = (Vec::new(), Vec::new());
    known.close(8, &mut disconnected, &mut lost);
    assert!(lost.is_empty(), "another connection");
    known.close(7, &mut disconnected, &mut lost);
    assert_eq!((disconnected, lost), (vec![1, 2, 3], vec![client(2)]));
    assert_eq!(known.joined(), None);
}
