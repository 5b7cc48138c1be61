//! A model of Redis for `fair`: a stream of tickets, and a group that hands each to one reader.

use locks::{EntryId, ErrorKind, Key, Reply};

use crate::network::Asker;
use crate::redis::{Redis, RedisEffect};

/// The stream of one key. Neither it nor its group is ever deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    added: u64,
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
        if self.streams.contains_key(&key) {
            return Reply::Error(ErrorKind::BusyGroup);
        }
        self.streams.insert(key, Stream::default());
        Reply::Ok
    }

    pub(crate) fn add_ticket(&mut self, key: Key) -> Reply {
        let stream = self.streams.get_mut(&key).expect("made before the first ticket");
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
        let stream = self.streams.get_mut(&key).expect("made before the first read");
        if stream.fresh.is_empty() {
            stream.readers.push(from);
            return None;
        }
        Some(Reply::Entry(stream.fresh.remove(0)))
    }

    pub(crate) fn drop_ticket(&mut self, key: Key, entry: EntryId) -> Reply {
        let stream = self.streams.get_mut(&key).expect("made before the first ticket");
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
