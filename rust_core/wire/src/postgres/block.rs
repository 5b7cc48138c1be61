//! Blocks of the extended protocol as templates: writing one copies its bytes and patches its parameters in.

use std::io;

use bytes::{BufMut, BytesMut};
use locks::{Opens, Parameter, Statement};
use postgres_protocol::message::frontend;
use postgres_protocol::{IsNull, Oid};

use super::Prepare;

/// One statement of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Begin,
    BeginSerializable,
    Main(Statement),
    Commit,
}

const BINARY: i16 = 1;

impl Part {
    /// The parts of a statement's block, in order.
    pub(crate) fn all_of(statement: Statement) -> impl Iterator<Item = Self> {
        let opens = match statement.opens() {
            Opens::Nothing => None,
            Opens::Transaction => Some(Self::Begin),
            Opens::Serializable => Some(Self::BeginSerializable),
        };
        let main = (!statement.sql().is_empty()).then_some(Self::Main(statement));
        let commit = statement.commits().then_some(Self::Commit);
        opens.into_iter().chain(main).chain(commit)
    }

    /// The parts of the blocks of these statements, each part once.
    pub(crate) fn all_of_these(statements: &[Statement]) -> Vec<Self> {
        let mut parts: Vec<Self> = statements
            .iter()
            .flat_map(|statement| Self::all_of(*statement))
            .collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    pub(crate) fn sql(self, table: &str) -> String {
        match self {
            Self::Begin => "BEGIN".to_owned(),
            Self::BeginSerializable => "BEGIN ISOLATION LEVEL SERIALIZABLE".to_owned(),
            Self::Main(statement) => statement.sql().replace("{locks}", table),
            Self::Commit => "COMMIT".to_owned(),
        }
    }

    fn parameters(self) -> &'static [Parameter] {
        match self {
            Self::Begin | Self::BeginSerializable | Self::Commit => &[],
            Self::Main(statement) => statement.parameters(),
        }
    }

    /// The name of the prepared statement: one character, because it is sent with every call.
    fn name(self, prepare: Prepare) -> String {
        let number = match self {
            Self::Begin => 0,
            Self::BeginSerializable => 1,
            Self::Commit => 2,
            Self::Main(statement) => 3 + statement as u8,
        };
        match prepare {
            Prepare::Named => char::from(b'0' + number).to_string(),
            Prepare::Unnamed => String::new(),
        }
    }

    /// Appends the message that prepares the part. Fails when the table's name has a zero byte.
    pub(crate) fn prepare(self, prepare: Prepare, table: &str, out: &mut BytesMut) -> io::Result<()> {
        let types = self.parameters().iter().map(|parameter| oid(*parameter));
        frontend::parse(&self.name(prepare), &self.sql(table), types, out)
    }

    /// Appends the messages that execute the part, with room for its parameters, and records where that room is.
    fn execute(self, prepare: Prepare, out: &mut BytesMut, holes: &mut Vec<Hole>) {
        let parameters = self.parameters().iter();
        let answers_rows = matches!(self, Self::Main(statement) if statement != Statement::Rollback);
        let bound = frontend::bind(
            "",
            &self.name(prepare),
            (!self.parameters().is_empty()).then_some(BINARY),
            parameters,
            |&parameter, out| {
                holes.push(Hole {
                    at: out.len(),
                    parameter,
                });
                out.put_bytes(0, size(parameter));
                Ok(IsNull::No)
            },
            answers_rows.then_some(BINARY),
            out,
        );
        assert!(bound.is_ok(), "three parameters of 16 bytes at most fit into a message");
        frontend::execute("", 0, out).expect("an empty name has no zero byte");
    }
}

/// The type of a parameter, by the server's number.
const fn oid(parameter: Parameter) -> Oid {
    const INT4: Oid = 23;
    const INT8: Oid = 20;
    const UUID: Oid = 2950;
    match parameter {
        Parameter::Hash | Parameter::First | Parameter::Second => INT8,
        Parameter::Row => INT4,
        Parameter::Token => UUID,
    }
}

const fn size(parameter: Parameter) -> usize {
    match parameter {
        Parameter::Hash | Parameter::First | Parameter::Second => 8,
        Parameter::Row => 4,
        Parameter::Token => 16,
    }
}

/// The place of a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    pub(crate) at: usize,
    pub(crate) parameter: Parameter,
}

/// The bytes of a block, with zeros for its parameters.
#[derive(Debug)]
pub(crate) struct Template {
    bytes: Box<[u8]>,
    holes: Box<[Hole]>,
}

impl Template {
    /// Fails when the table's name has a zero byte.
    pub(crate) fn new(statement: Statement, prepare: Prepare, table: &str) -> io::Result<Self> {
        let mut bytes = BytesMut::new();
        let mut holes = Vec::new();
        for part in Part::all_of(statement) {
            if prepare == Prepare::Unnamed {
                part.prepare(prepare, table, &mut bytes)?;
            }
            part.execute(prepare, &mut bytes, &mut holes);
        }
        frontend::sync(&mut bytes);
        Ok(Self {
            bytes: bytes.to_vec().into_boxed_slice(),
            holes: holes.into_boxed_slice(),
        })
    }

    /// Appends the block; `value` writes each parameter into its room.
    #[inline]
    pub(crate) fn push(&self, out: &mut Vec<u8>, mut value: impl FnMut(Parameter, &mut [u8])) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let block = &mut out[start..];
        for hole in &self.holes {
            value(hole.parameter, &mut block[hole.at..][..size(hole.parameter)]);
        }
    }
}
