//! The first commands of a new connection.

use locks::Script;
use wire::{Frame, GreetingStep, Login, Protocol, greeting, parse_frame};

const PLAIN: Login<'_> = Login {
    protocol: Protocol::Resp2,
    username: None,
    password: None,
    db: 0,
    client_name: "",
    scripts: &[],
};

/// The commands of a greeting, each as its words, with its step.
fn answer(login: &Login<'_>) -> Vec<(GreetingStep, String)> {
    let mut out = Vec::new();
    let greeting = greeting(login, &mut out);
    let mut rest = &out[..];
    let mut answer = Vec::new();
    for index in 0..greeting.len() {
        let (frame, used) = parse_frame(rest).unwrap().expect("a command for each step");
        let Frame::Array(arguments) = frame else {
            panic!("{frame:?}")
        };
        let word = |argument| match argument {
            Frame::Bulk(word) => str::from_utf8(word).unwrap().to_owned(),
            other => panic!("{other:?}"),
        };
        answer.push((
            greeting.step(index),
            arguments.iter().map(word).collect::<Vec<_>>().join(" "),
        ));
        rest = &rest[used..];
    }
    assert!(rest.is_empty(), "a step for each command");
    assert_eq!(greeting.is_empty(), answer.is_empty());
    answer
}

fn step(step: GreetingStep, words: &str) -> (GreetingStep, String) {
    (step, words.to_owned())
}

#[test]
fn nothing_to_say_is_said_in_no_bytes() {
    assert_eq!(answer(&PLAIN), []);
}

#[test]
fn the_older_protocol_logs_in_and_names_itself_in_two_commands() {
    let login = Login {
        username: Some("ann"),
        password: Some("secret"),
        client_name: "pybench",
        ..PLAIN
    };
    let auth = step(GreetingStep::Auth, "AUTH ann secret");
    let name = step(GreetingStep::SetName, "CLIENT SETNAME pybench");
    assert_eq!(answer(&login), [auth, name.clone()]);
    // Servers before Redis 6 have no users.
    let login = Login {
        username: None,
        ..login
    };
    assert_eq!(answer(&login), [step(GreetingStep::Auth, "AUTH secret"), name]);
    let login = Login {
        username: Some(""),
        client_name: "",
        ..login
    };
    assert_eq!(answer(&login), [step(GreetingStep::Auth, "AUTH secret")]);
}

#[test]
fn the_newer_protocol_says_all_of_it_in_hello() {
    let login = Login {
        protocol: Protocol::Resp3,
        ..PLAIN
    };
    assert_eq!(answer(&login), [step(GreetingStep::Hello, "HELLO 3")]);
    let login = Login {
        client_name: "pybench",
        ..login
    };
    assert_eq!(answer(&login), [step(GreetingStep::Hello, "HELLO 3 SETNAME pybench")]);
    let login = Login {
        password: Some("secret"),
        ..login
    };
    assert_eq!(
        answer(&login),
        [step(GreetingStep::Hello, "HELLO 3 AUTH default secret SETNAME pybench")]
    );
    let login = Login {
        username: Some("ann"),
        ..login
    };
    assert_eq!(
        answer(&login),
        [step(GreetingStep::Hello, "HELLO 3 AUTH ann secret SETNAME pybench")]
    );
}

#[test]
fn a_user_without_a_password_gives_an_empty_one() {
    let login = Login {
        username: Some("ann"),
        ..PLAIN
    };
    assert_eq!(answer(&login), [step(GreetingStep::Auth, "AUTH ann ")]);
    let login = Login {
        protocol: Protocol::Resp3,
        ..login
    };
    assert_eq!(answer(&login), [step(GreetingStep::Hello, "HELLO 3 AUTH ann ")]);
}

#[test]
fn a_database_is_selected_and_scripts_are_loaded_last() {
    let login = Login {
        protocol: Protocol::Resp3,
        db: 15,
        scripts: &[Script::CompareAndDelete],
        ..PLAIN
    };
    let load = format!("SCRIPT LOAD {}", Script::CompareAndDelete.source());
    let hello = step(GreetingStep::Hello, "HELLO 3");
    assert_eq!(
        answer(&login),
        [
            hello,
            step(GreetingStep::Select, "SELECT 15"),
            step(GreetingStep::ScriptLoad, &load)
        ]
    );
}

#[test]
fn a_client_name_that_servers_refuse_is_made_fit() {
    let login = Login {
        client_name: "my run\n\u{e9}:1",
        ..PLAIN
    };
    assert_eq!(
        answer(&login),
        [step(GreetingStep::SetName, "CLIENT SETNAME my-run--:1")]
    );
}

#[test]
fn only_the_name_may_fail() {
    use GreetingStep::{Auth, Hello, ScriptLoad, Select, SetName};
    assert!([Auth, Hello, ScriptLoad, Select].iter().all(|step| step.is_required()));
    assert!(!SetName.is_required());
    assert_eq!(ScriptLoad.command(), "SCRIPT LOAD");
}

#[test]
fn a_password_is_never_shown() {
    let login = Login {
        username: Some("ann"),
        password: Some("secret"),
        ..PLAIN
    };
    let mut out = Vec::new();
    let greeting = greeting(&login, &mut out);
    for shown in [format!("{login:?}"), format!("{login:#?}"), format!("{greeting:?}")] {
        assert!(!shown.contains("secret"), "{shown}");
    }
    assert!(format!("{login:?}").contains("ann"));
}
