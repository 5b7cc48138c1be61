//! What the commands of these locks take, and the replies that let them succeed.

use locks::{Command, Reply, Script, ScriptForm, Statement};

pub(crate) fn form(command: Command) -> Option<ScriptForm> {
    match command {
        Command::Run { form, .. } | Command::CompareAndDelete { form, .. } => Some(form),
        _ => None,
    }
}

pub(crate) fn takes(command: Command) -> bool {
    match command {
        Command::SetNxPx { .. } => true,
        Command::Run { script, .. } => matches!(
            script,
            Script::FencedTake
                | Script::NotifyAcquire
                | Script::ReadTake
                | Script::ReentrantTake
                | Script::SemaphoreTake
                | Script::WriteTake
        ),
        Command::Sql { statement, .. } => statement == Statement::LeaseTake,
        _ => false,
    }
}

pub(crate) fn good(command: Command) -> Reply {
    match command {
        Command::SetNxPx { .. } | Command::Subscribe { .. } | Command::Unsubscribe { .. } => Reply::Ok,
        Command::Wait { replicas, .. } => Reply::Int(replicas.cast_signed()),
        Command::Run {
            script: Script::ReentrantEnter,
            ..
        } => Reply::Int(2),
        Command::Run {
            script: Script::NotifyAcquire,
            ..
        } => Reply::Int(0),
        Command::Run { .. } | Command::CompareAndDelete { .. } | Command::Sql { .. } => Reply::Int(1),
        other => panic!("no such lock sends {other:?}"),
    }
}

pub(crate) fn grants(command: Command, reply: Reply) -> bool {
    match (command, reply) {
        (Command::SetNxPx { .. }, reply) => reply == Reply::Ok,
        (Command::Wait { replicas, .. }, Reply::Int(had)) => had >= replicas.cast_signed(),
        (Command::Run { script, .. }, Reply::Int(number)) => match script {
            Script::ReentrantEnter => number >= 2,
            Script::FencedTake => number >= 1,
            Script::NotifyAcquire => number == 0,
            _ => number == 1 && takes(command),
        },
        (Command::Sql { .. }, Reply::Int(number)) => number >= 1 && takes(command),
        _ => false,
    }
}
