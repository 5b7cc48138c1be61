//! One history while it is read: its events, and the numbers of its clients and keys.

use std::collections::{BTreeMap, BTreeSet};

use check::{ClientId, Event};
use locks::{Fence, Key, Mode, Nanos};

use crate::header::Header;
use crate::line::{HeldMode, Kind, Line, Until};

/// An event with its time and its line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamped {
    pub(crate) at: Nanos,
    pub(crate) line: u32,
    pub(crate) event: Event,
}

/// What one writer has written: events in the order of the file.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) events: Vec<Stamped>,
    clients: BTreeMap<String, Vec<Part>>,
    latest: u64,
    pub(crate) window_began: Option<Nanos>,
    pub(crate) window_ended: Option<Nanos>,
    pub(crate) ended: Option<Nanos>,
}

/// A client, or the part of a client that takes one of several keys at once.
#[derive(Debug)]
struct Part {
    number: u32,
    id: ClientId,
    key: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientName {
    /// The number of the source.
    source: usize,
    name: String,
    part: u32,
}

/// The files that are judged together.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) header: Header,
    pub(crate) sources: Vec<Source>,
    /// The names of the clients and keys by their numbers.
    pub(crate) clients: Vec<ClientName>,
    pub(crate) keys: Vec<String>,
    key_numbers: BTreeMap<String, u32>,
    pub(crate) counts: BTreeMap<String, u64>,
    pub(crate) torn: Vec<(String, u32)>,
}

impl Section {
    pub(crate) fn new(header: Header) -> Self {
        Self {
            header,
            sources: Vec::new(),
            clients: Vec::new(),
            keys: Vec::new(),
            key_numbers: BTreeMap::new(),
            counts: BTreeMap::new(),
            torn: Vec::new(),
        }
    }

    /// The lines that follow come from another writer.
    pub(crate) fn begin_source(&mut self, file: &str) {
        self.sources.push(Source {
            file: file.to_owned(),
            events: Vec::new(),
            clients: BTreeMap::new(),
            latest: 0,
            window_began: None,
            window_ended: None,
            ended: None,
        });
    }

    /// Numbers the clients in the order of their names, as a trial does: where several violations are found at once,
    /// they are reported in the order of the numbers.
    pub(crate) fn number_by_name(&mut self) {
        let mut order: Vec<usize> = (0..self.clients.len()).collect();
        order.sort_by_key(|&id| {
            let ClientName { source, name, part } = &self.clients[id];
            (*source, name.len(), name.clone(), *part)
        });
        let mut numbers = vec![0; order.len()];
        for (number, &id) in order.iter().enumerate() {
            numbers[id] = number as ClientId;
        }
        for stamped in self.sources.iter_mut().flat_map(|source| &mut source.events) {
            let client = stamped.event.client_mut();
            *client = numbers[*client as usize];
        }
        self.clients = order.iter().map(|&id| self.clients[id].clone()).collect();
    }

    /// The names of the clients by their numbers. A name that several files use gets the name of its file, too.
    pub(crate) fn client_names(&self) -> Vec<String> {
        let mut users: BTreeMap<&str, usize> = BTreeMap::new();
        let several: BTreeSet<&str> = self
            .clients
            .iter()
            .filter(|client| *users.entry(&client.name).or_insert(client.source) != client.source)
            .map(|client| client.name.as_str())
            .collect();
        let shown = |client: &ClientName| {
            if several.contains(client.name.as_str()) {
                let file = &self.sources[client.source].file;
                let file = file.rsplit('/').next().unwrap_or(file);
                format!("{} of {file}", client.name)
            } else {
                client.name.clone()
            }
        };
        self.clients.iter().map(shown).collect()
    }

    /// Takes one line of the latest source. The error is a sentence without the place.
    pub(crate) fn take(&mut self, line: Line<'_>, number: u32) -> Result<(), String> {
        let source = self
            .sources
            .last()
            .expect("a section has a source as soon as its header was read");
        if source.ended.is_some() {
            return Err("an event follows after `ended`".to_owned());
        }
        if line.t < source.latest {
            return Err(format!("`t` is {}, but the line before has {}", line.t, source.latest));
        }
        let event = self.event(&line)?;
        let source = self.sources.last_mut().expect("as above");
        source.latest = line.t;
        let at = Nanos(line.t);
        match line.event {
            Kind::WindowBegins if source.window_began.is_none() => source.window_began = Some(at),
            Kind::WindowEnds if source.window_began.is_some() && source.window_ended.is_none() => {
                source.window_ended = Some(at);
            }
            Kind::WindowBegins | Kind::WindowEnds => {
                return Err("a history has one window, which begins before it ends".to_owned());
            }
            Kind::Ended => {
                source.ended = Some(at);
                self.add_counts(line.counts.unwrap_or_default())?;
            }
            _ => source.events.extend(event.map(|event| Stamped {
                at,
                line: number,
                event,
            })),
        }
        Ok(())
    }

    fn add_counts(&mut self, counts: BTreeMap<String, u64>) -> Result<(), String> {
        for (name, count) in counts {
            let sum = self.counts.entry(name).or_default();
            *sum = sum.checked_add(count).ok_or("a count is out of range")?;
        }
        Ok(())
    }

    /// The event of `line` for the checker; `None` for a line that is about no client.
    fn event(&mut self, line: &Line<'_>) -> Result<Option<Event>, String> {
        let Some(name) = &line.client else { return Ok(None) };
        let key = match &line.key {
            Some(key) => Some(self.key_number(key)?),
            None => None,
        };
        let part = line.part.unwrap_or(0);
        let mode = line.mode.map_or(Mode::Exclusive, HeldMode::into);
        let held_by_several = self.header.promises.permits > 1;
        if mode == Mode::Shared && held_by_several {
            return Err("a lock with several `permits` is not taken in the mode `shared`".to_owned());
        }
        let place = self.part(name, part)?;
        let of = &mut self.sources.last_mut().expect("a line has a source").clients;
        let of = &mut of.get_mut(name.as_ref()).expect("`part` has added it")[place];
        match key {
            Some(key) if line.event == Kind::Acquire => of.key = Some(key),
            Some(key) if of.key != Some(key) => {
                return Err(format!("client \"{name}\" has not sent an acquire of this key last"));
            }
            None if of.key.is_none() && !matches!(line.event, Kind::Died | Kind::DriverStalled) => {
                return Err(format!("client \"{name}\" has not sent an acquire before"));
            }
            _ => {}
        }
        let client = of.id;
        let until = match line.until {
            Until::At(until) => Nanos(until),
            Until::Missing | Until::Never => Nanos::NEVER,
        };
        Ok(Some(match line.event {
            Kind::Acquire => Event::Waiting {
                client,
                key: Key(key.expect("`Line::parse` has seen it")),
                mode,
            },
            Kind::Queued => Event::Queued { client },
            Kind::GaveUp => Event::GaveUp { client },
            Kind::CutOff => Event::CutOff {
                client,
                placed: line.placed.unwrap_or(false),
            },
            Kind::Granted => Event::Granted {
                client,
                until,
                hold: Nanos(line.hold.unwrap_or(0)),
                fence: line.fence.and_then(std::num::NonZeroU64::new).map(Fence),
            },
            Kind::Renewed => Event::Renewed { client, until },
            Kind::Lost => Event::LeaseLost { client },
            Kind::HungUp => Event::HungUp { client },
            Kind::Stopped => Event::Stopped { client },
            Kind::Died => Event::Died { client },
            Kind::Released => Event::Released { client },
            Kind::Denied => Event::DeniedRelease { client },
            Kind::DriverStalled => Event::DriverStalled { client },
            Kind::WindowBegins | Kind::WindowEnds | Kind::Ended => unreachable!("these lines have no client"),
        }))
    }

    fn key_number(&mut self, key: &str) -> Result<u32, String> {
        if let Some(number) = self.key_numbers.get(key) {
            return Ok(*number);
        }
        let number = u32::try_from(self.keys.len()).map_err(|_| "too many keys")?;
        self.keys.push(key.to_owned());
        self.key_numbers.insert(key.to_owned(), number);
        Ok(number)
    }

    /// The place of this part of the client in the list of the client's parts.
    fn part(&mut self, name: &str, part: u32) -> Result<usize, String> {
        let last = self.sources.len() - 1;
        let source = &mut self.sources[last];
        if let Some(parts) = source.clients.get(name)
            && let Some(place) = parts.iter().position(|known| known.number == part)
        {
            return Ok(place);
        }
        let id = ClientId::try_from(self.clients.len())
            .ok()
            .filter(|id| *id < ClientId::MAX - 1)
            .ok_or("too many clients")?;
        self.clients.push(ClientName {
            source: last,
            name: name.to_owned(),
            part,
        });
        let parts = source.clients.entry(name.to_owned()).or_default();
        parts.push(Part {
            number: part,
            id,
            key: None,
        });
        Ok(parts.len() - 1)
    }
}
