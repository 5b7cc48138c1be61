//! `none`, the control.

use locks::{Lasts, Outcome, Strategy};

use crate::words::{Script, one_attempt};

fn script() -> Script {
    crate::words::script(Strategy::None, one_attempt())
}

#[test]
fn it_is_held_at_once_and_for_ever_without_a_word_to_the_server() {
    script()
        .at(5)
        .acquire()
        .expect(Outcome::Held {
            lasts: Lasts::Unbounded,
            fence: None,
        })
        .expect_attempts(1)
        .at(6)
        .release()
        .expect(Outcome::Released);
}

#[test]
fn a_cancel_releases_it() {
    script()
        .acquire()
        .expect(Outcome::Held {
            lasts: Lasts::Unbounded,
            fence: None,
        })
        .cancel()
        .expect(Outcome::Released)
        .cancel()
        .expect(Outcome::Released);
}
