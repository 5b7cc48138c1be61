//! One line of a history after its header: an event of a client, a border of the window, or the end.

use std::borrow::Cow;
use std::collections::BTreeMap;

use locks::Mode;
use serde::{Deserialize, Deserializer};

/// The latest time and the longest length that a history may hold, so that sums of them stay in range: 146 years.
pub(crate) const MOST_NS: u64 = 1 << 62;

/// What a line says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Acquire,
    Queued,
    GaveUp,
    CutOff,
    Granted,
    Renewed,
    Lost,
    HungUp,
    Stopped,
    Died,
    Released,
    Denied,
    DriverStalled,
    WindowBegins,
    WindowEnds,
    Ended,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Queued => "queued",
            Self::GaveUp => "gave-up",
            Self::CutOff => "cut-off",
            Self::Granted => "granted",
            Self::Renewed => "renewed",
            Self::Lost => "lost",
            Self::HungUp => "hung-up",
            Self::Stopped => "stopped",
            Self::Died => "died",
            Self::Released => "released",
            Self::Denied => "denied",
            Self::DriverStalled => "driver-stalled",
            Self::WindowBegins => "window-begins",
            Self::WindowEnds => "window-ends",
            Self::Ended => "ended",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line<'a> {
    pub(crate) t: u64,
    pub(crate) event: Kind,
    #[serde(borrow, default)]
    pub(crate) client: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(crate) part: Option<u32>,
    #[serde(borrow, default)]
    pub(crate) key: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(crate) mode: Option<HeldMode>,
    #[serde(default)]
    pub(crate) until: Until,
    #[serde(default)]
    pub(crate) hold: Option<u64>,
    #[serde(default)]
    pub(crate) fence: Option<u64>,
    #[serde(default)]
    pub(crate) placed: Option<bool>,
    #[serde(default)]
    pub(crate) counts: Option<BTreeMap<String, u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HeldMode {
    Exclusive,
    Shared,
}

impl From<HeldMode> for Mode {
    fn from(mode: HeldMode) -> Self {
        match mode {
            HeldMode::Exclusive => Self::Exclusive,
            HeldMode::Shared => Self::Shared,
        }
    }
}

/// The end of a lease, as a line gives it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Until {
    #[default]
    Missing,
    /// `null`: nothing ends the lease.
    Never,
    At(u64),
}

impl<'de> Deserialize<'de> for Until {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Never, Self::At))
    }
}

impl<'a> Line<'a> {
    /// Parses a line, and checks that it has the fields of its event and no others.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let line: Self = object(bytes)?;
        let name = line.event.name();
        let fields = [
            ("client", line.client.is_some(), line.event.needs_client()),
            ("key", line.key.is_some(), line.event.needs_key()),
            ("until", line.until != Until::Missing, line.event.needs_until()),
            ("part", line.part.is_some(), line.event.needs_client().at_most_may()),
            ("mode", line.mode.is_some(), only(line.event, Kind::Acquire)),
            ("hold", line.hold.is_some(), only(line.event, Kind::Granted)),
            ("fence", line.fence.is_some(), only(line.event, Kind::Granted)),
            ("placed", line.placed.is_some(), only(line.event, Kind::CutOff)),
            ("counts", line.counts.is_some(), only(line.event, Kind::Ended)),
        ];
        for (field, given, expected) in fields {
            match (given, expected) {
                (false, Needs) => return Err(format!("event `{name}` needs the field `{field}`")),
                (true, Not) => return Err(format!("event `{name}` has no field `{field}`")),
                _ => {}
            }
        }
        let until = match line.until {
            Until::At(until) => until,
            Until::Missing | Until::Never => 0,
        };
        let times = [Some(line.t), Some(until), line.hold];
        if times.into_iter().flatten().any(|time| time > MOST_NS) {
            return Err("a time is out of range: the most is 2^62 ns".to_owned());
        }
        if line.fence == Some(0) {
            return Err("`fence` must be at least 1".to_owned());
        }
        Ok(line)
    }
}

/// Whether an event has a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Needs,
    May,
    Not,
}
use Presence::{May, Needs, Not};

impl Presence {
    fn at_most_may(self) -> Self {
        if self == Needs { May } else { self }
    }
}

fn only(event: Kind, one: Kind) -> Presence {
    if event == one { May } else { Not }
}

impl Kind {
    fn needs_client(self) -> Presence {
        match self {
            Self::WindowBegins | Self::WindowEnds | Self::Ended => Not,
            _ => Needs,
        }
    }

    fn needs_key(self) -> Presence {
        match self {
            Self::Acquire => Needs,
            other => other.needs_client().at_most_may(),
        }
    }

    fn needs_until(self) -> Presence {
        match self {
            Self::Granted | Self::Renewed => Needs,
            _ => Not,
        }
    }
}

/// Parses the JSON object in `bytes`.
pub(crate) fn object<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    // For serde a list of values in the right order would be an object, too.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err("the line is no JSON object".to_owned());
    }
    serde_json::from_slice(bytes).map_err(|error| without_place(&error))
}

/// The text of a JSON error without its line, which is always 1 here.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(place) => format!("{}, at column {}", &text[..place], error.column()),
        None => text,
    }
}
