//! The arguments of a strategy, as in `semaphore(permits=4)`. Each is read by its name, with a default.

use crate::SpecError;

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgValue {
    Int(i64),
    Float(f64),
    Text(String),
    Bool(bool),
}

/// The given arguments of a strategy, and the names that were read so far.
pub(crate) struct Args<'a> {
    strategy: &'static str,
    given: &'a [(String, ArgValue)],
    known: Vec<&'static str>,
}

impl<'a> Args<'a> {
    pub(crate) const fn new(strategy: &'static str, given: &'a [(String, ArgValue)]) -> Self {
        Self {
            strategy,
            given,
            known: Vec::new(),
        }
    }

    /// A whole number from `lowest` to `highest`.
    pub(crate) fn count(
        &mut self,
        name: &'static str,
        default: u64,
        lowest: u64,
        highest: u64,
    ) -> Result<u64, SpecError> {
        match self.ask(name) {
            None => Ok(default),
            Some(ArgValue::Int(given)) if u64::try_from(*given).is_ok_and(|n| (lowest..=highest).contains(&n)) => {
                Ok(*given as u64)
            }
            Some(_) => Err(self.refused(name, format!("a whole number from {lowest} to {highest}"))),
        }
    }

    /// A number from `lowest` to `highest`.
    pub(crate) fn number(
        &mut self,
        name: &'static str,
        default: f64,
        lowest: f64,
        highest: f64,
    ) -> Result<f64, SpecError> {
        let given = match self.ask(name) {
            None => return Ok(default),
            Some(ArgValue::Int(given)) => Some(*given as f64),
            Some(ArgValue::Float(given)) => Some(*given),
            Some(ArgValue::Text(_) | ArgValue::Bool(_)) => None,
        };
        given
            .filter(|number| (lowest..=highest).contains(number))
            .ok_or_else(|| self.refused(name, format!("a number from {lowest} to {highest}")))
    }

    /// One of several words, each with its value. The first word is the default.
    pub(crate) fn choice<T: Copy>(&mut self, name: &'static str, words: &[(&'static str, T)]) -> Result<T, SpecError> {
        let found = match self.ask(name) {
            None => words.first(),
            Some(ArgValue::Text(given)) => words.iter().find(|(word, _)| word == given),
            Some(ArgValue::Int(_) | ArgValue::Float(_) | ArgValue::Bool(_)) => None,
        };
        found.map(|&(_, meant)| meant).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|&(word, _)| word).collect();
            self.refused(name, format!("one of {}", words.join(", ")))
        })
    }

    /// An error if an argument was given that the strategy never read.
    pub(crate) fn finish(self) -> Result<(), SpecError> {
        match self.given.iter().find(|(name, _)| !self.known.contains(&name.as_str())) {
            None => Ok(()),
            Some((argument, _)) => Err(SpecError::UnknownArgument {
                strategy: self.strategy,
                argument: argument.clone(),
                known: self.known,
            }),
        }
    }

    fn ask(&mut self, name: &'static str) -> Option<&'a ArgValue> {
        self.known.push(name);
        self.given
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value)
    }

    fn refused(&self, argument: &'static str, wanted: String) -> SpecError {
        SpecError::BadArgument {
            strategy: self.strategy,
            argument,
            wanted,
        }
    }
}
