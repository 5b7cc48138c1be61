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

mod listeners;
#[cfg(test)]
mod tests;

use listeners::{Listeners, NONE};

#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// The index in `channels`, by connection and key.
    places: BTreeMap<(u32, Key), usize>,
    channels: Vec<Channel>,
    listeners: Listeners,
    /// The subjects of the replies that a connection still owes, in order.
    asked: BTreeMap<u32, VecDeque<Asked>>,
    /// The clients that the last reply answers too, the last to be told first; and its connection.
    confirmed: Vec<Caller>,
    confirmed_over: u32,
    message: Option<Message>,
}

/// The message that is being handed out.
#[derive(Debug)]
struct Message {
    place: usize,
    /// The listener that receives it next, or `NONE`.
    next: u32,
    /// The highest number of a listener when the message came. A client that joins later does not receive it.
    newest: u64,
}

#[derive(Debug)]
struct Channel {
    state: State,
    /// `SUBSCRIBE`s without a reply; only the last one's reply is about the current subscription.
    unanswered: u32,
    /// The listener that receives the next message first, or `NONE`.
    first: u32,
    /// Clients that came while the `SUBSCRIBE` was under way, with the numbers of their listeners; its reply answers
    /// those that still listen then.
    joining: Vec<(Caller, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
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
        let place = *self.places.entry((connection, key)).or_insert_with(|| {
            self.channels.push(Channel {
                state: State::Forgotten,
                unanswered: 0,
                first: NONE,
                joining: Vec::new(),
            });
            self.channels.len() - 1
        });
        let channel = &mut self.channels[place];
        let listener = match self.listeners.find(who.client, place) {
            Some(listener) => listener,
            None => self.listeners.add(&mut channel.first, who.client, place),
        };
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
                channel.joining.push((who, self.listeners.number(listener)));
                Joined::Waits
            }
            State::Stands => Joined::Listens,
        }
    }

    /// Returns whether an `UNSUBSCRIBE` must be sent, because no subscriber is left.
    pub(crate) fn leave(&mut self, connection: u32, key: Key, client: u32) -> bool {
        let Some(&place) = self.places.get(&(connection, key)) else {
            return false;
        };
        let channel = &mut self.channels[place];
        if let Some(listener) = self.listeners.find(client, place) {
            if let Some(message) = &mut self.message
                && message.next == listener
            {
                message.next = self.listeners.following(channel.first, listener);
            }
            self.listeners.remove(&mut channel.first, listener);
        }
        let was_last = channel.first == NONE && channel.state != State::Forgotten;
        if was_last {
            channel.state = State::Forgotten;
            channel.joining.clear();
            self.asked.entry(connection).or_default().push_back(Asked::Unsubscribe);
        }
        was_last
    }

    /// Handles the reply to the oldest call of a connection. `joined` lists the other clients that it answers.
    pub(crate) fn answered(&mut self, connection: u32, stands: bool) -> Option<Key> {
        let Some(Asked::Subscribe(key)) = self.asked.get_mut(&connection)?.pop_front() else {
            return None;
        };
        let place = *self.places.get(&(connection, key))?;
        let channel = &mut self.channels[place];
        channel.unanswered -= 1;
        if channel.unanswered > 0 || channel.state != State::Asked {
            return None; // The channel was left meanwhile, and maybe subscribed to again.
        }
        let still_listens = |(who, number)| self.listeners.listens(who, place, number);
        self.confirmed_over = connection;
        self.confirmed
            .extend(channel.joining.drain(..).filter_map(still_listens));
        if stands {
            channel.state = State::Stands;
        } else {
            channel.state = State::Forgotten;
            self.clear(place);
        }
        Some(key)
    }

    /// The next client that waited for the reply that was last `answered`.
    pub(crate) fn joined(&mut self) -> Option<Caller> {
        self.confirmed.pop()
    }

    pub(crate) fn stands(&self, connection: u32, key: Key) -> bool {
        self.places
            .get(&(connection, key))
            .is_some_and(|&place| self.channels[place].state == State::Stands)
    }

    /// A message of a channel is to be handed out: `next_listener` lists who receives it.
    pub(crate) fn begin_message(&mut self, connection: u32, key: Key) {
        self.message = self.places.get(&(connection, key)).map(|&place| Message {
            place,
            next: self.channels[place].first,
            newest: self.listeners.newest(),
        });
    }

    /// The client that receives the message next. Clients may join and leave in between.
    ///
    /// After the last of them, another client comes first with the next message, because the first receiver has the
    /// best chance of getting the lock.
    pub(crate) fn next_listener(&mut self) -> Option<u32> {
        let message = self.message.as_mut()?;
        let first = &mut self.channels[message.place].first;
        // Who joined since stands at the end.
        if message.next == NONE || self.listeners.number(message.next) > message.newest {
            *first = self.listeners.after(*first);
            self.message = None;
            return None;
        }
        let listener = message.next;
        message.next = self.listeners.following(*first, listener);
        Some(self.listeners.client(listener))
    }

    /// A client has crashed: it waits for no confirmation any more. It stays a listener, as a wake-up that nobody needs
    /// does no harm, until it leaves the channel or its connection closes.
    pub(crate) fn forget(&mut self, client: u32) {
        self.confirmed.retain(|who| who.client != client);
        for channel in &mut self.channels {
            channel.joining.retain(|(who, _)| who.client != client);
        }
    }

    /// Handles a closed connection. Appends its subscribers to `disconnected`, and to `lost` the calls of clients that
    /// waited for another client's reply.
    pub(crate) fn close(&mut self, connection: u32, disconnected: &mut Vec<u32>, lost: &mut Vec<Caller>) {
        if let Some(asked) = self.asked.get_mut(&connection) {
            asked.clear();
        }
        if self.confirmed_over == connection {
            lost.append(&mut self.confirmed);
        }
        let all = (connection, Key(0))..=(connection, Key(u32::MAX));
        let places: Vec<usize> = self.places.range(all).map(|(_, &place)| place).collect();
        for place in places {
            let channel = &mut self.channels[place];
            channel.state = State::Forgotten;
            channel.unanswered = 0;
            let still_listens = |(who, number)| self.listeners.listens(who, place, number);
            lost.extend(channel.joining.drain(..).filter_map(still_listens));
            let mut listener = channel.first;
            while listener != NONE {
                disconnected.push(self.listeners.client(listener));
                listener = self.listeners.following(channel.first, listener);
            }
            self.clear(place);
        }
    }

    /// Nobody listens to the channel any more.
    fn clear(&mut self, place: usize) {
        let first = &mut self.channels[place].first;
        while *first != NONE {
            self.listeners.remove(first, *first);
        }
        if let Some(message) = &mut self.message
            && message.place == place
        {
            message.next = NONE;
        }
    }
}
