//! What an error reply means to a lock, and how it is shown to people.

use locks::ErrorKind;

use crate::Frame;

/// The most characters of an error that are shown.
const MAX_TEXT: usize = 200;
/// The most characters of a code.
const MAX_CODE: usize = 32;

/// What servers before Redis 7 write before the error of a command that a script called.
const IN_SCRIPT: &[u8] = b"ERR Error running script";

/// The reply to a `RENAME` of a missing key: it has no code of its own.
const NO_SUCH_KEY: &[u8] = b"ERR no such key";

/// The kind of an error, from its line, which starts with a code word such as `NOSCRIPT`.
pub fn error_kind(line: &[u8]) -> ErrorKind {
    if line == NO_SUCH_KEY {
        return ErrorKind::NoSuchKey;
    }
    let mut words = line.split(|&byte| byte == b' ');
    if line.starts_with(IN_SCRIPT) {
        // `ERR Error running script (call to f_<sha>): @user_script:2: @user_script: 2: -READONLY You can't ...`
        let inner = words.find_map(|word| kind_of_code(word.strip_prefix(b"-").unwrap_or(word)));
        return inner.unwrap_or(ErrorKind::Other);
    }
    words.next().and_then(kind_of_code).unwrap_or(ErrorKind::Other)
}

fn kind_of_code(code: &[u8]) -> Option<ErrorKind> {
    Some(match code {
        b"NOSCRIPT" => ErrorKind::NoScript,
        b"READONLY" => ErrorKind::ReadOnly,
        b"LOADING" => ErrorKind::Loading,
        b"MOVED" => ErrorKind::Moved,
        b"OOM" => ErrorKind::OutOfMemory,
        b"WRONGTYPE" => ErrorKind::WrongType,
        b"BUSYGROUP" => ErrorKind::BusyGroup,
        b"NOAUTH" | b"WRONGPASS" | b"NOPERM" => ErrorKind::NoAuth,
        _ => return None,
    })
}

/// The code of an error reply: its first word, or, for an error inside a script, the code of that error. At most 32
/// characters. `None` when the frame is not an error.
pub fn error_code(frame: &Frame<'_>) -> Option<String> {
    let (Frame::Error(line) | Frame::BulkError(line)) = frame else {
        return None;
    };
    let mut words = line.split(|&byte| byte == b' ');
    let known = |word: &&[u8]| kind_of_code(word).is_some();
    let inner = || {
        let bare = line
            .split(|&byte| byte == b' ')
            .map(|word| word.strip_prefix(b"-").unwrap_or(word));
        bare.into_iter().find(known)
    };
    let code = line
        .starts_with(IN_SCRIPT)
        .then(inner)
        .flatten()
        .or_else(|| words.next())?;
    Some(printable(code).chars().take(MAX_CODE).collect())
}

/// The text of an error reply, for people: at most 200 characters, control characters escaped, broken UTF-8 replaced.
/// `None` when the frame is not an error.
pub fn error_text(frame: &Frame<'_>) -> Option<String> {
    let (Frame::Error(line) | Frame::BulkError(line)) = frame else {
        return None;
    };
    Some(printable(line))
}

/// At most 200 characters of a text, control characters escaped, broken UTF-8 replaced.
pub(crate) fn printable(text: &[u8]) -> String {
    // A character has at most four bytes, so the rest of a long error is never read.
    let text = &text[..text.len().min(MAX_TEXT * 4)];
    let mut shown = String::new();
    let mut length = 0;
    for char in String::from_utf8_lossy(text).chars() {
        // The length counts whole escapes, so none is cut in two.
        length += if char.is_control() {
            char.escape_default().count()
        } else {
            1
        };
        if length > MAX_TEXT {
            break;
        }
        if char.is_control() {
            shown.extend(char.escape_default());
        } else {
            shown.push(char);
        }
    }
    shown
}
