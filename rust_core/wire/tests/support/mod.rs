//! Frames as owned trees: a test invents them, writes them with its own writer, and compares them.

use proptest::prelude::*;
use wire::{Elements, Frame};

/// A `Frame` that owns its bytes. `Noted` is a frame with an attribute before it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Double(f64),
    Boolean(bool),
    BigNumber(String),
    BulkError(Vec<u8>),
    Verbatim([u8; 3], Vec<u8>),
    Array(Vec<Self>),
    Map(Vec<Self>),
    Set(Vec<Self>),
    Push(Vec<Self>),
    Noted(Vec<Self>, Box<Self>),
}

impl Tree {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Simple(text) => line(out, '+', text),
            Self::Error(text) => line(out, '-', text),
            Self::Integer(number) => line(out, ':', number.to_string().as_bytes()),
            Self::Bulk(body) => blob(out, '$', body),
            Self::Null => line(out, '_', b""),
            Self::Double(number) => line(out, ',', number.to_string().as_bytes()),
            Self::Boolean(value) => line(out, '#', if *value { b"t" } else { b"f" }),
            Self::BigNumber(digits) => line(out, '(', digits.as_bytes()),
            Self::BulkError(body) => blob(out, '!', body),
            Self::Verbatim(format, text) => blob(out, '=', &[format, &b":"[..], text].concat()),
            Self::Array(children) => aggregate(out, '*', children.len(), children),
            Self::Map(children) => aggregate(out, '%', children.len() / 2, children),
            Self::Set(children) => aggregate(out, '~', children.len(), children),
            Self::Push(children) => aggregate(out, '>', children.len(), children),
            Self::Noted(notes, frame) => {
                aggregate(out, '|', notes.len() / 2, notes);
                frame.write(out);
            }
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// The frame as a parser must return it: without attributes.
    pub(crate) fn seen(&self) -> Self {
        let all = |children: &[Self]| children.iter().map(Self::seen).collect();
        match self {
            Self::Array(children) => Self::Array(all(children)),
            Self::Map(children) => Self::Map(all(children)),
            Self::Set(children) => Self::Set(all(children)),
            Self::Push(children) => Self::Push(all(children)),
            Self::Noted(_, frame) => frame.seen(),
            leaf => leaf.clone(),
        }
    }

    pub(crate) fn of(frame: &Frame<'_>) -> Self {
        let all = |children: &Elements<'_>| -> Vec<Self> {
            assert_eq!(children.iter().len(), children.len());
            children.iter().map(|child| Self::of(&child)).collect()
        };
        match frame {
            Frame::Simple(text) => Self::Simple(text.to_vec()),
            Frame::Error(text) => Self::Error(text.to_vec()),
            Frame::Integer(number) => Self::Integer(*number),
            Frame::Bulk(body) => Self::Bulk(body.to_vec()),
            Frame::Null => Self::Null,
            Frame::Double(number) => Self::Double(*number),
            Frame::Boolean(value) => Self::Boolean(*value),
            Frame::BigNumber(digits) => Self::BigNumber(String::from_utf8(digits.to_vec()).unwrap()),
            Frame::BulkError(body) => Self::BulkError(body.to_vec()),
            Frame::Verbatim { format, text } => Self::Verbatim(*format, text.to_vec()),
            Frame::Array(children) => Self::Array(all(children)),
            Frame::Map(children) => Self::Map(all(children)),
            Frame::Set(children) => Self::Set(all(children)),
            Frame::Push(children) => Self::Push(all(children)),
        }
    }
}

fn line(out: &mut Vec<u8>, kind: char, text: &[u8]) {
    out.extend([&[kind as u8], text, b"\r\n"].concat());
}

fn blob(out: &mut Vec<u8>, kind: char, body: &[u8]) {
    line(out, kind, body.len().to_string().as_bytes());
    out.extend([body, b"\r\n"].concat());
}

fn aggregate(out: &mut Vec<u8>, kind: char, count: usize, children: &[Tree]) {
    line(out, kind, count.to_string().as_bytes());
    for child in children {
        child.write(out);
    }
}

/// Any frame, with up to five nested levels.
pub(crate) fn trees() -> impl Strategy<Value = Tree> {
    leaves().prop_recursive(5, 40, 6, |inner| {
        let some = || prop::collection::vec(inner.clone(), 0..6);
        let pairs = || {
            some().prop_map(|mut children| {
                children.truncate(children.len() / 2 * 2);
                children
            })
        };
        prop_oneof![
            some().prop_map(Tree::Array),
            pairs().prop_map(Tree::Map),
            some().prop_map(Tree::Set),
            some().prop_map(Tree::Push),
            (pairs(), inner.clone()).prop_map(|(notes, frame)| Tree::Noted(notes, Box::new(frame))),
        ]
    })
}

fn leaves() -> impl Strategy<Value = Tree> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    let text = || {
        bytes().prop_map(|mut text| {
            text.retain(|byte| !b"\r\n".contains(byte));
            text
        })
    };
    let doubles = prop_oneof![
        any::<f64>().prop_filter("NaN equals nothing", |number| !number.is_nan()),
        Just(0.5)
    ];
    prop_oneof![
        text().prop_map(Tree::Simple),
        text().prop_map(Tree::Error),
        any::<i64>().prop_map(Tree::Integer),
        bytes().prop_map(Tree::Bulk),
        Just(Tree::Null),
        doubles.prop_map(Tree::Double),
        any::<bool>().prop_map(Tree::Boolean),
        "[+-]?[0-9]{1,60}".prop_map(Tree::BigNumber),
        bytes().prop_map(Tree::BulkError),
        (any::<[u8; 3]>(), bytes()).prop_map(|(format, text)| Tree::Verbatim(format, text)),
    ]
}
