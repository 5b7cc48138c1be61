//! Templates for the calls of all scripts, made from what `Script` says about each.

use locks::{Key, KeyList, Script, ScriptForm, Token};

use crate::names::Index;
use crate::request::{push_bulk, push_head, push_number};
use crate::template::{Part, Template};

// Scripts are looked up by their index.
const _: () = {
    let mut place = 0;
    while place < Script::ALL.len() {
        assert!(
            Script::ALL[place] as usize == place,
            "Script::ALL has the order of the variants"
        );
        place += 1;
    }
};

#[derive(Debug)]
pub(crate) struct Scripts {
    by_sha: Box<[Call]>,
    by_source: Box<[Call]>,
    /// The arguments of calls about several locks: one name, and the token.
    name: Template,
    token: Template,
}

/// A script in one form.
#[derive(Debug)]
struct Call {
    /// `EVALSHA sha` or `EVAL source`: what follows the head of every call.
    opening: Box<[u8]>,
    /// The call about one lock, without its numbers.
    about_one: Template,
}

impl Scripts {
    pub(crate) fn new(name: &[u8]) -> Self {
        let by_sha = |script: Script| {
            let sha = sha1_smol::Sha1::from(script.source()).digest().to_string();
            Call::new(["EVALSHA", &sha], script, name)
        };
        let by_source = |script: Script| Call::new(["EVAL", script.source()], script, name);
        Self {
            by_sha: Script::ALL.iter().copied().map(by_sha).collect(),
            by_source: Script::ALL.iter().copied().map(by_source).collect(),
            name: Template::fragment(&[Part::Key], name),
            token: Template::fragment(&[Part::Token], name),
        }
    }

    /// Appends a call about one lock; the caller appends its numbers.
    pub(crate) fn push(
        &self,
        out: &mut Vec<u8>,
        index: Index,
        (script, form): (Script, ScriptForm),
        key: Key,
        token: Token,
    ) {
        self.call(script, form)
            .about_one
            .push_companions(out, index, key, token);
    }

    /// Appends a call about several locks; the caller appends its lease.
    pub(crate) fn push_all(
        &self,
        out: &mut Vec<u8>,
        index: Index,
        (script, form): (Script, ScriptForm),
        keys: &KeyList,
        token: Token,
    ) {
        let keys = keys.as_slice();
        // The two arguments of the opening, the number of keys, the keys, the token and the lease.
        push_head(out, 2 + 1 + keys.len() + 2);
        out.extend_from_slice(&self.call(script, form).opening);
        push_number(out, keys.len() as u64);
        for &key in keys {
            self.name.push(out, index, key);
        }
        self.token.push_keyless(out, token);
    }

    fn call(&self, script: Script, form: ScriptForm) -> &Call {
        let calls = match form {
            ScriptForm::Sha => &self.by_sha,
            ScriptForm::Source => &self.by_source,
        };
        &calls[script as usize]
    }
}

impl Call {
    fn new(opening: [&str; 2], script: Script, name: &[u8]) -> Self {
        let keys = (1 + script.companions().len()).to_string();
        let mut parts: Vec<_> = opening.map(Part::Text).into();
        parts.extend([Part::Text(&keys), Part::Key]);
        parts.extend(script.companions().iter().copied().map(Part::Companion));
        parts.push(Part::Token);
        parts.extend((0..script.numbers()).map(|_| Part::Number));

        let mut opening_bytes = Vec::new();
        for argument in opening {
            push_bulk(&mut opening_bytes, argument.as_bytes());
        }
        Self {
            opening: opening_bytes.into_boxed_slice(),
            about_one: Template::new(&parts, name),
        }
    }
}
