//! Commands and replies as short texts, for a time line that people read.

use locks::{Command, Reply};

/// The command by its name, as `SET NX PX`; a script or a statement by what it does.
pub fn command_words(command: &Command) -> String {
    match command {
        Command::SetNxPx { lease_ms, .. } => format!("SET NX PX {lease_ms}"),
        Command::CompareAndDelete { .. } => "compare and delete".to_owned(),
        Command::SetNx { .. } => "SETNX".to_owned(),
        Command::Expire { seconds, .. } => format!("EXPIRE {seconds}"),
        Command::Del { .. } => "DEL".to_owned(),
        Command::Wait { replicas, timeout_ms } => format!("WAIT {replicas} {timeout_ms}"),
        Command::Run { script, .. } | Command::RunAll { script, .. } => apart(&format!("{script:?}")),
        Command::Sql { statement, .. } => apart(first_word(&format!("{statement:?}"))),
        other => apart(first_word(&format!("{other:?}"))),
    }
}

/// `None`: the command blocks.
pub fn reply_words(reply: Option<Reply>) -> String {
    match reply {
        None => "waits".to_owned(),
        Some(Reply::Ok) => "OK".to_owned(),
        Some(Reply::Nil) => "nil".to_owned(),
        Some(Reply::Int(number)) => number.to_string(),
        Some(Reply::Error(kind)) => format!("error {}", apart(first_word(&format!("{kind:?}")))),
        Some(other) => apart(first_word(&format!("{other:?}"))),
    }
}

fn first_word(text: &str) -> &str {
    text.split([' ', '(', '{']).next().unwrap_or(text)
}

/// `FencedTake` as `fenced take`.
fn apart(name: &str) -> String {
    let mut words = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(character.to_lowercase());
    }
    words
}
