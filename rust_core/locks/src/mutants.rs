//! Mistakes that are put into the locks on purpose, to see that `pybench run` and `pybench fuzz` find them. Only in a
//! build with the feature `mutants`; `tests/mutants/` runs them, and `docs/mutants.md` lists what found each.
//!
//! At most one mistake is made in a process: the one that `choose` names. Where the mistake is in what a lock sends or
//! believes, `machine.rs` changes the actions and the replies of the honest machine; where it is in a script or a
//! statement, `texts.rs` changes the text. So the honest code says nothing about mistakes. The exception is what shows
//! in neither: `mistake!` asks for it where the honest code decides.

use std::sync::OnceLock;

mod machine;
mod texts;

pub(crate) use machine::Mutated;
pub(crate) use texts::{script, statement};

macro_rules! mutants {
    ($($name:ident = $text:literal;)*) => {
        /// A known mistake.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Mutant { $($name),* }

        impl Mutant {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name, as `choose` takes it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }
        }
    };
}

mutants! {
    // What a lock sends.
    ReleaseUnchecked = "release without owner check";
    SameToken = "all clients have one token";
    LongTtl = "ttl a thousand times too long";
    HalfTtl = "half the ttl on the server";
    NoMinorityRelease = "no release after a minority";
    RenewalAfterRelease = "renewal after the release";
    RenewalRecreates = "renewal creates a lost key again";
    ExtraPermit = "one permit more than allowed";
    NoWait = "no WAIT for replicas";
    NoAttemptAfterSubscribing = "no attempt after subscribing";
    SharedAdvisoryLock = "shared in place of exclusive advisory lock";
    EarlyCommit = "transaction ends with the grant";
    // What it makes of replies and times.
    RefusalIgnored = "refusal taken for a grant";
    LeaseFromReply = "lease counted from the reply";
    LeaseForEver = "lease without end";
    RenewalLossIgnored = "refused renewal taken for success";
    ReusedCallIds = "call ids start anew with each request";
    FenceStartsAnew = "fence starts anew";
    SessionEndIgnored = "end of the session not noticed";
    FewerThanQuorum = "quorum of n/2";
    // Texts.
    ScriptReleaseUnchecked = "script that releases without owner check";
    PartOfTheSet = "set taken but for its last key";
    FirstOfTheSet = "set released but for its first key";
    NobodyWoken = "release wakes nobody";
    LastServedFirst = "queue served from its end";
    LeaveReleasesAll = "first leave releases all entries";
    ReaderIgnoresWriter = "reader ignores the writer";
    WriterIgnoresReaders = "writer ignores the readers";
    NoForUpdate = "no FOR UPDATE";
    VersionNotCompared = "version not compared";
    ExpiryNotChecked = "row lease taken before it ends";
    RowOwnerNotChecked = "row lease released without owner check";
    FenceNotChecked = "write without fence check";
}

static CHOSEN: OnceLock<Mutant> = OnceLock::new();

/// Makes this process make the mistake of this name, from its first lock on.
///
/// # Errors
/// When no mistake has the name, or another one was chosen.
pub fn choose(name: &str) -> Result<(), String> {
    let known = Mutant::ALL.iter().find(|mutant| mutant.name() == name);
    let mutant = *known.ok_or_else(|| format!("no mutant is called {name:?}"))?;
    texts::check();
    if *CHOSEN.get_or_init(|| mutant) == mutant {
        Ok(())
    } else {
        Err(format!("another mutant was chosen than {name:?}"))
    }
}

/// Whether this process makes this mistake.
#[inline]
pub fn makes(mutant: Mutant) -> bool {
    chosen() == Some(mutant)
}

fn chosen() -> Option<Mutant> {
    CHOSEN.get().copied()
}
