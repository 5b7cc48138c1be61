//! The connections to a database: its sessions, and how they end on both sides.

use locks::{Command, Nanos};

use crate::database::{Backend, DatabaseEffect};
use crate::network::{Asker, Happening, Inbound, Link, Network};

impl Network {
    pub(crate) fn arrives_at_database(&mut self, from: Asker, command: Command) {
        let backend = if from.is_own {
            Backend::Own(from.link)
        } else {
            Backend::Shared
        };
        if from.is_own && self.strikes(self.faults.terminate_percent) {
            let at = self.time.now().after(self.up_to(self.faults.hold));
            self.later(at, Happening::Terminates { backend });
        }
        self.database.arrives(self.time.now(), backend, from, command);
        self.follow_database();
    }

    /// An administrator, or a time limit, ends a session; its client learns it later.
    pub(crate) fn terminate(&mut self, backend: Backend) {
        let Backend::Own(over) = backend else {
            return;
        };
        if self.database.has_ended(backend) {
            return;
        }
        self.count("terminated");
        self.end_backend(backend);
        let at = self.time.now().after(self.up_to(self.faults.delay));
        let what = Inbound::Closed;
        self.later(at, Happening::Comes { over, what });
    }

    /// The server notices that a client has gone.
    pub(crate) fn end_backend(&mut self, backend: Backend) {
        self.database.end(self.time.now(), backend);
        self.follow_database();
    }

    pub(crate) fn time_out(&mut self, backend: Backend, ticket: u64) {
        self.database.time_out(self.time.now(), backend, ticket);
        self.follow_database();
    }

    fn follow_database(&mut self) {
        for effect in std::mem::take(&mut self.database.effects) {
            match effect {
                DatabaseEffect::Replies(to, reply, command) => {
                    self.note(to, command, Some(reply));
                    self.reply(to, reply);
                }
                DatabaseEffect::Waits(backend, ticket) => {
                    self.count("queued in the database");
                    let at = self.time.now().after(self.lock_timeout);
                    self.later(at, Happening::TimesOut { backend, ticket });
                }
            }
        }
    }

    /// What was sent before the end of a connection arrives; the server notices the end after it, or, if busy, later.
    pub(crate) fn leave_backend(&mut self, link: Link, last_arrival: Nanos) {
        let backend = Backend::Own(link);
        let busy = self.up_to(Nanos::from_millis(5));
        let at = self.time.now().max(last_arrival).after(busy);
        self.later(at, Happening::Ends { backend });
    }
}
