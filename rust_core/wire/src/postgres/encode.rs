//! Encodes a `locks::Command::Sql`.

use std::io;
use std::sync::Arc;

use locks::{Key, Parameter, Statement, Token};

use super::block::Template;
use super::{BlockKind, Hashes, SessionSpec};

/// When the server gets the texts of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prepare {
    /// Once in each session, at the log-in.
    Named,
    /// With every call, because a pooler may carry out each in another session.
    Unnamed,
}

/// Encodes blocks about the keys of one set of names.
#[derive(Debug)]
pub struct Encoder {
    /// Indexed by statement; `None` for statements that the strategy does not send.
    templates: Box<[Option<Template>]>,
    hashes: Arc<Hashes>,
}

impl Encoder {
    /// Makes the templates for the statements of such a session.
    ///
    /// # Errors
    /// When the table's name has a zero byte.
    pub fn new(spec: &SessionSpec<'_>, hashes: Arc<Hashes>) -> io::Result<Self> {
        let template = |&statement: &Statement| {
            let is_sent = spec.statements.contains(&statement);
            is_sent
                .then(|| Template::new(statement, spec.prepare, spec.table))
                .transpose()
        };
        let templates = Statement::ALL.iter().map(template).collect::<io::Result<_>>()?;
        Ok(Self { templates, hashes })
    }

    /// Appends the block of a statement, and returns what is needed to read its reply. Allocates nothing but the growth
    /// of `out`. Only the lower 63 bits of `numbers` can be sent.
    ///
    /// # Panics
    /// When it was made without this statement, or the key has no name.
    #[inline]
    pub fn encode(
        &self,
        statement: Statement,
        key: Key,
        token: Token,
        numbers: [u64; 2],
        out: &mut Vec<u8>,
    ) -> BlockKind {
        let template = self.templates[statement as usize]
            .as_ref()
            .unwrap_or_else(|| panic!("{statement:?} is not one of the strategy's statements"));
        template.push(out, |parameter, room| match parameter {
            Parameter::Hash => room.copy_from_slice(&self.hashes.of(key).to_be_bytes()),
            Parameter::Row => room.copy_from_slice(&self.hashes.row(key).to_be_bytes()),
            Parameter::Token => {
                room[..8].copy_from_slice(&token.high.to_be_bytes());
                room[8..].copy_from_slice(&token.low.to_be_bytes());
            }
            Parameter::First => room.copy_from_slice(&numbers[0].to_be_bytes()),
            Parameter::Second => room.copy_from_slice(&numbers[1].to_be_bytes()),
        });
        BlockKind::of(statement)
    }
}
