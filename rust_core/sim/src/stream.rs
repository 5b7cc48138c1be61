//! A model of Redis for `fair`: a stream of tickets, and a group that hands each to one reader.

use locks::{EntryId, ErrorKind, Key, Reply};

use crate::network::Asker;
use crate::redis::{Redis, RedisEffect};

/// The stream of one key. Only a server that forgets deletes it or its group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    added: u64,
    has_group: bool,
    /// The tickets that are not handed out, in order of arrival.
    fresh: Vec<EntryId>,
    /// The clients that are blocked in a read, also over connections that the server does not know to be closed.
    readers: Vec<Asker>,
}

impl Stream {
    pub(crate) fn forget_readers(&mut self) {
        self.readers.clear();
    }
}

impl Redis {
    pub(crate) fn create_queue(&mut self, key: Key) -> Reply {
        let stream = self.streams.entry(key).or_default();
        if std::mem::replace(&mut stream.has_group, true) {
            return Reply::Error(ErrorKind::BusyGroup);
        }
        Reply::Ok
    }

    pub(crate) fn add_ticket(&mut self, key: Key) -> Reply {
        let stream = self.streams.entry(key).or_default();
        stream.added += 1;
        let entry = EntryId {
            ms: stream.added,
            seq: 0,
        };
        if stream.readers.is_empty() {
            stream.fresh.push(entry);
        } else {
            let reader = stream.readers.remove(0);
            self.effects.push(RedisEffect::Replies(reader, Reply::Entry(entry)));
        }
        Reply::Entry(entry)
    }

    /// The reply, or `None` when the read blocks.
    pub(crate) fn read_ticket(&mut self, key: Key, from: Asker) -> Option<Reply> {
        let stream = self.streams.get_mut(&key).filter(|stream| stream.has_group);
        let Some(stream) = stream else {
            return Some(Reply::Error(ErrorKind::Other));
        };
        if stream.fresh.is_empty() {
            stream.readers.push(from);
            return None;
        }
        Some(Reply::Entry(stream.fresh.remove(0)))
    }

    pub(crate) fn drop_ticket(&mut self, key: Key, entry: EntryId) -> Reply {
        let stream = self.streams.entry(key).or_default();
        let before = stream.fresh.len();
        stream.fresh.retain(|&fresh| fresh != entry);
        Reply::Int(i64::from(stream.fresh.len() < before))
    }

    /// Whether `from` was still blocked in a read.
    pub(crate) fn stop_reading(&mut self, from: Asker) -> bool {
        let mut readers = self.streams.values_mut().map(|stream| &mut stream.readers);
        readers.any(|readers| {
            let before = readers.len();
            readers.retain(|&reader| reader != from);
            readers.len() < before
        })
    }
}
