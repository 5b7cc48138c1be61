//! `fair`: the paths of its tickets, and that it never hangs.

use locks::{
    Command, ConnectionKind, EntryId, ErrorKind, Outcome, Refusal, Reply, ScriptForm, ServerId, Spec, Strategy,
};

use crate::words::{BELIEF_MS, KEY, LEASE_MS, REPLY_TIMEOUT_MS, Script, every_10_ms, lease, one_attempt};

const OWN: EntryId = EntryId { ms: 5, seq: 1 };
const READ: EntryId = EntryId { ms: 4, seq: 0 };
const OPEN: Command = Command::CreateQueue { key: KEY };
const BUSYGROUP: Reply = Reply::Error(ErrorKind::BusyGroup);

fn script(spec: Spec) -> Script {
    crate::words::script(Strategy::Fair, spec)
}

impl Script {
    fn expect_add(self, label: &'static str) -> Self {
        let seen = self.tokens();
        let (script, command) = self.expect_send(label);
        let Command::AddTicket { key: KEY, token } = command else {
            panic!("{label} adds no ticket: {command:?}")
        };
        assert!(!seen.contains(&token), "{token:?} is used twice");
        script.expect_guard()
    }

    /// A read that blocks for up to this long, and is awaited for one reply timeout more.
    fn expect_read(self, label: &'static str, blocks_ms: u64) -> Self {
        let (script, command) = self.expect_send_to(label, ServerId(0), ConnectionKind::Own);
        let Command::ReadTicket {
            key: KEY, timeout_ms, ..
        } = command
        else {
            panic!("{label} reads no ticket: {command:?}")
        };
        assert_eq!(timeout_ms, blocks_ms);
        script.expect_wake_in(blocks_ms + REPLY_TIMEOUT_MS..=blocks_ms + REPLY_TIMEOUT_MS)
    }

    fn expect_drop(self, label: &'static str, entry: EntryId) -> Self {
        self.expect_unguarded(label, Command::DropTicket { key: KEY, entry })
    }

    /// `labels`: of the acknowledgement and of the deletion.
    fn expect_hand_in(self, labels: [&'static str; 2]) -> Self {
        let entry = READ;
        self.expect_unguarded(labels[0], Command::AckTicket { key: KEY, entry })
            .expect_drop(labels[1], entry)
    }

    fn expect_release_and_hand_in(self, of: &str) -> Self {
        let trim = Command::TrimQueue {
            key: KEY,
            length: 100_000,
        };
        self.expect_release("back", of, ScriptForm::Sha)
            .expect_hand_in(["ack", "del"])
            .expect_unguarded("trim", trim)
    }
}

fn adding() -> Script {
    script(every_10_ms())
        .at(0)
        .acquire()
        .expect_command("open", OPEN)
        .reply("open", Reply::Ok)
        .expect_add("add")
}

fn reading() -> Script {
    adding()
        .reply("add", Reply::Entry(OWN))
        .expect_queued()
        .expect_read("read", 1_000)
}

fn asking() -> Script {
    reading().at(2).reply("read", Reply::Entry(READ)).expect_set("set")
}

fn held() -> Script {
    asking().at(5).reply("set", Reply::Ok).expect_held_until(2 + BELIEF_MS)
}

#[test]
fn any_ticket_will_do_and_the_one_that_was_read_is_handed_in() {
    held()
        .expect_attempts(1)
        .release()
        .expect_release_and_hand_in("set")
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released)
        .reply("ack", Reply::Int(1))
        .lose("del")
        .expect_nothing()
        // The group is known now.
        .acquire()
        .expect_add("next");
}

#[test]
fn a_group_that_exists_is_as_good() {
    script(every_10_ms())
        .acquire()
        .expect_command("open", OPEN)
        .reply("open", BUSYGROUP)
        .expect_add("add");
}

#[test]
fn a_group_that_is_missing_is_made_again_once() {
    reading()
        .reply("read", Reply::Error(ErrorKind::Other))
        .expect_drop("drop", OWN)
        .expect_command("open again", OPEN)
        .reply("open again", Reply::Ok)
        .expect_add("add again")
        .reply("add again", Reply::Entry(OWN))
        .expect_queued()
        .expect_read("read again", 1_000)
        .reply("read again", Reply::Error(ErrorKind::Other))
        .expect_drop("drop again", OWN)
        .expect(Outcome::Failed(ErrorKind::Other));
}

#[test]
fn with_a_ticket_it_tries_as_the_policy_says_until_the_lease_of_a_dead_holder_ends() {
    asking()
        .reply("set", Reply::Nil)
        .expect_pause(0..=10)
        .at(20)
        .wake()
        .expect_set("second")
        .reply("second", Reply::Nil)
        .expect_pause(10..=10)
        .at(30)
        .wake()
        .expect_set("third")
        .reply("third", Reply::Ok)
        .expect_held_until(30 + BELIEF_MS)
        .expect_attempts(3);
}

#[test]
fn who_gives_up_drops_the_ticket_that_it_read() {
    asking()
        .at(5_000)
        .reply("set", Reply::Nil)
        .expect_hand_in(["ack", "del"])
        .expect(Outcome::Refused(Refusal::TimedOut));
    script(one_attempt())
        .acquire()
        .expect_command("open", OPEN)
        .reply("open", Reply::Ok)
        .expect_add("add")
        .reply("add", Reply::Entry(OWN))
        .expect_queued()
        .expect_read("read", 1)
        .reply("read", Reply::Entry(READ))
        .expect_set("set")
        .reply("set", Reply::Nil)
        .expect_hand_in(["ack", "del"])
        .expect(Outcome::Refused(Refusal::Busy));
}

#[test]
fn a_ticket_that_is_missing_is_replaced_and_the_longest_wait_ends_it() {
    reading()
        .at(1_000)
        .reply("read", Reply::Nil)
        .expect_add("another")
        .reply("another", Reply::Entry(READ))
        .expect_queued()
        .expect_read("second", 1_000)
        .at(4_800)
        .reply("second", Reply::Nil)
        .expect_add("third add")
        .reply("third add", Reply::Entry(READ))
        .expect_queued()
        .expect_read("third", 200)
        .at(5_000)
        .reply("third", Reply::Nil)
        .expect_drop("drop", READ)
        .expect(Outcome::Refused(Refusal::TimedOut));
}

#[test]
fn a_reply_that_never_comes_is_unknown_and_what_there_is_is_dropped() {
    let opening = || script(every_10_ms()).acquire().expect_command("open", OPEN);
    opening().lose("open").expect(Outcome::Unknown);
    opening().sleep().expect(Outcome::Unknown);
    adding().lose("add").expect(Outcome::Unknown);
    adding().sleep().expect(Outcome::Unknown);
    reading().lose("read").expect_drop("drop", OWN).expect(Outcome::Unknown);
    reading()
        .sleep()
        .expect_hang_up()
        .expect_drop("drop", OWN)
        .expect(Outcome::Unknown)
        .lose("read")
        .expect_nothing();
    asking()
        .lose("set")
        .expect_unawaited_release("word", "set")
        .expect_hand_in(["ack", "del"])
        .expect(Outcome::Unknown);
    asking()
        .sleep()
        .expect_unawaited_release("word", "set")
        .expect_hand_in(["ack", "del"])
        .expect(Outcome::Unknown);
    held()
        .release()
        .expect_release_and_hand_in("set")
        .lose("back")
        .expect(Outcome::Unknown);
}

#[test]
fn a_cancel_drops_what_there_is() {
    script(every_10_ms())
        .acquire()
        .expect_command("open", OPEN)
        .cancel()
        .expect(Outcome::Released)
        .reply("open", Reply::Ok)
        .expect_nothing();
    let withdrawing = || adding().cancel().expect_nothing();
    withdrawing()
        .cancel()
        .reply("add", Reply::Entry(OWN))
        .expect_drop("drop", OWN)
        .expect(Outcome::Released);
    withdrawing().reply("add", Reply::Nil).expect(Outcome::Released);
    withdrawing().lose("add").expect(Outcome::Unknown);
    reading()
        .cancel()
        .expect_hang_up()
        .expect_drop("drop", OWN)
        .expect(Outcome::Released)
        .lose("read")
        .expect_nothing();
    asking()
        .cancel()
        .expect_release_and_hand_in("set")
        .reply("set", Reply::Ok)
        .expect_nothing()
        .reply("back", Reply::Int(1))
        .expect(Outcome::Released);
    asking()
        .reply("set", Reply::Nil)
        .expect_pause(0..=10)
        .cancel()
        .expect_hand_in(["ack", "del"])
        .expect(Outcome::Released);
    held()
        .cancel()
        .expect_release_and_hand_in("set")
        .reply("back", Reply::Int(0))
        .expect(Outcome::Expired);
}

#[test]
fn an_error_is_an_outcome() {
    use ErrorKind::{Loading, Other, ReadOnly, Unexpected, WrongType};
    for kind in [ReadOnly, Loading, WrongType] {
        let error = Reply::Error(kind);
        let opening = script(every_10_ms()).acquire().expect_command("open", OPEN);
        opening.reply("open", error).expect(Outcome::Failed(kind));
        adding().reply("add", error).expect(Outcome::Failed(kind));
        reading()
            .reply("read", error)
            .expect_drop("drop", OWN)
            .expect(Outcome::Failed(kind));
        asking()
            .reply("set", error)
            .expect_hand_in(["ack", "del"])
            .expect(Outcome::Failed(kind));
        held()
            .release()
            .expect_release_and_hand_in("set")
            .reply("back", error)
            .expect(Outcome::Failed(kind));
    }
    for (reply, kind) in [(Reply::Error(Other), Other), (Reply::Int(1), Unexpected)] {
        asking()
            .reply("set", reply)
            .expect_unawaited_release("word", "set")
            .expect_hand_in(["ack", "del"])
            .expect(Outcome::Failed(kind));
    }
    adding().reply("add", Reply::Int(1)).expect(Outcome::Failed(Unexpected));
}

#[test]
fn a_script_that_the_server_does_not_know_is_sent_again_as_source() {
    held()
        .release()
        .expect_release_and_hand_in("set")
        .reply("back", Reply::Error(ErrorKind::NoScript))
        .expect_release("again", "set", ScriptForm::Source)
        .reply("again", Reply::Int(1))
        .expect(Outcome::Released);
}

#[test]
fn a_grant_that_came_too_late_keeps_its_ticket_for_the_next_attempt() {
    let late = || {
        script(Spec {
            lease: lease(100),
            ..every_10_ms()
        })
        .acquire()
        .expect_command("open", OPEN)
        .reply("open", Reply::Ok)
        .expect_add("add")
        .reply("add", Reply::Entry(OWN))
        .expect_queued()
        .expect_read("read", 1_000)
        .reply("read", Reply::Entry(READ))
        .expect_set("set")
        .at(LEASE_MS / 100)
        .reply("set", Reply::Ok)
        .expect_release("back", "set", ScriptForm::Sha)
    };
    late()
        .reply("back", Reply::Int(1))
        .expect_pause(0..=10)
        .sleep()
        .expect_set("second")
        .expect_attempts(2);
    late()
        .cancel()
        .expect_hand_in(["ack", "del"])
        .reply("back", Reply::Int(0))
        .expect(Outcome::Released);
    late()
        .lose("back")
        .expect_hand_in(["ack", "del"])
        .expect(Outcome::Unknown);
    late()
        .reply("back", Reply::Error(ErrorKind::Other))
        .expect_hand_in(["ack", "del"])
        .expect(Outcome::Failed(ErrorKind::Other));
}
