//! Channels of a thread: which subscription commands are sent to the server and which are answered here; which messages
//! were read and not handed out.

use locks::{Key, Nanos, Reply};

use super::subscriptions::{Joined, Subscriptions};
use crate::transport::{Caller, Confirmed};

/// A call that this thread answers without the server.
#[derive(Clone, Copy, Debug)]
struct Pending {
    who: Caller,
    /// The connection and the channel that was joined. If that subscription ends before the client is told, the
    /// confirmation is false.
    joined: Option<(u32, Key)>,
}

/// A message that was read from a channel.
#[derive(Clone, Copy, Debug)]
struct Message {
    connection: u32,
    key: Key,
    read: Nanos,
}

#[derive(Debug, Default)]
pub(crate) struct Channels {
    subscriptions: Subscriptions,
    confirmed: Vec<Pending>,
    messages: Vec<Message>,
    /// Messages that are being handed out, the last one first.
    handing_out: Vec<Message>,
    /// The reply to a `SUBSCRIBE` that other clients wait for, too.
    answering: Option<Reply>,
}

impl Channels {
    /// A client wants to join; true when a `SUBSCRIBE` must be sent for it.
    pub(crate) fn join(&mut self, connection: u32, key: Key, who: Caller) -> bool {
        match self.subscriptions.join(connection, key, who) {
            Joined::AsFirst => return true,
            Joined::Waits => {}
            Joined::Listens => self.confirmed.push(Pending {
                who,
                joined: Some((connection, key)),
            }),
        }
        false
    }

    /// A client wants to leave; true when an `UNSUBSCRIBE` must be sent for it.
    pub(crate) fn leave(&mut self, connection: u32, key: Key, who: Caller) -> bool {
        let is_last = self.subscriptions.leave(connection, key, who.client);
        if !is_last {
            self.confirmed.push(Pending { who, joined: None });
        }
        is_last
    }

    /// The oldest call of a connection was answered: if it was about a channel, `next_joined` yields the others that it
    /// answers.
    pub(crate) fn answered(&mut self, connection: u32, reply: Reply) {
        let key = self.subscriptions.answered(connection, reply == Reply::Ok);
        self.answering = key.map(|_| reply);
    }

    /// The next client that waited for the same reply.
    pub(crate) fn next_joined(&mut self) -> Option<(Caller, Reply)> {
        let reply = self.answering?;
        let who = self.subscriptions.joined();
        if who.is_none() {
            self.answering = None;
        }
        who.map(|who| (who, reply))
    }

    pub(crate) fn next_confirmed(&mut self) -> Option<Confirmed> {
        let Pending { who, joined } = self.confirmed.pop()?;
        let holds = joined.is_none_or(|(connection, key)| self.subscriptions.stands(connection, key));
        Some(Confirmed { who, holds })
    }

    pub(crate) fn has_confirmed(&self) -> bool {
        !self.confirmed.is_empty()
    }

    /// Stores a message that was read at `read`.
    pub(crate) fn published(&mut self, connection: u32, key: Key, read: Nanos) {
        self.messages.push(Message { connection, key, read });
    }

    /// Takes up the next message, in the order of arrival: when it was read. What comes while messages are handed out
    /// waits for all of them.
    pub(crate) fn next_message(&mut self) -> Option<Nanos> {
        if self.handing_out.is_empty() {
            std::mem::swap(&mut self.handing_out, &mut self.messages);
            self.handing_out.reverse();
        }
        let Message { connection, key, read } = self.handing_out.pop()?;
        self.subscriptions.begin_message(connection, key);
        Some(read)
    }

    /// The next client that receives it.
    pub(crate) fn next_listener(&mut self) -> Option<u32> {
        self.subscriptions.next_listener()
    }

    /// The client has crashed: nothing that it asked for is confirmed to it.
    pub(crate) fn forget(&mut self, client: u32) {
        self.confirmed.retain(|pending| pending.who.client != client);
        self.subscriptions.forget(client);
    }

    /// Handles a closed connection: see `Subscriptions::close`.
    pub(crate) fn close(&mut self, connection: u32, disconnected: &mut Vec<u32>, lost: &mut Vec<Caller>) {
        self.subscriptions.close(connection, disconnected, lost);
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
            call: CallId(client.into()),
        }
    }

    /// Client 1 has subscribed over connection 7, and the server has confirmed it.
    fn subscribed() -> Channels {
        let mut channels = Channels::default();
        assert!(channels.join(7, KEY, client(1)));
        channels.answered(7, Reply::Ok);
        channels
    }

    #[test]
    fn one_reply_of_the_server_answers_all_who_wait_for_it() {
        let mut channels = Channels::default();
        assert!(channels.join(7, KEY, client(1)));
        assert!(!channels.join(7, KEY, client(2)));
        assert!(channels.next_joined().is_none(), "not before the server has answered");
        channels.answered(7, Reply::Ok);
        assert_eq!(channels.next_joined(), Some((client(2), Reply::Ok)));
        assert_eq!(channels.next_joined(), None);
    }

    #[test]
    fn a_confirmation_is_false_once_its_subscription_has_ended() {
        let mut channels = subscribed();
        assert!(!channels.join(7, KEY, client(2)));
        assert!(!channels.join(7, KEY, client(3)));
        assert!(channels.next_confirmed().expect("it listens").holds);
        channels.close(7, &mut Vec::new(), &mut Vec::new());
        assert!(!channels.next_confirmed().expect("it must be told").holds);
        assert!(!channels.has_confirmed());
    }

    #[test]
    fn messages_are_handed_out_in_the_order_in_which_they_were_read() {
        let mut channels = subscribed();
        for ms in [1, 2, 3] {
            channels.published(7, KEY, Nanos::from_millis(ms));
        }
        let read = std::iter::from_fn(|| channels.next_message().map(|read| read.0 / 1_000_000));
        assert_eq!(read.collect::<Vec<_>>(), [1, 2, 3]);
    }
}
