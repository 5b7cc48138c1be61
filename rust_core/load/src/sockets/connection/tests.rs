//! What a connection keeps between two reads, and between two writes.

use std::io::Read;
use std::os::unix::net::UnixStream;

use super::*;

#[test]
fn bytes_after_the_reply_that_made_a_lock_close_its_connection_do_not_start_the_next_one() {
    let mut connection = Connection::new(0, 1);
    connection.state = State::Ready;
    connection.keep(Vec::new(), b"+OK\r\n$5\r\nhel", 5);
    assert_eq!(connection.partial, b"$5\r\nhel");
    let kept = connection.take_kept(b"lo");
    assert_eq!(kept, b"$5\r\nhello");
    connection.hang_up(Nanos::ZERO);
    connection.keep(kept, b"lo", 0);
    assert!(connection.partial.is_empty());
    connection.keep(Vec::new(), b"$5\r\nhel", 0);
    assert!(connection.partial.is_empty());
}

#[test]
fn a_reply_in_many_pieces_stays_where_it_is_until_it_is_whole() {
    let mut connection = Connection::new(0, 1);
    connection.state = State::Ready;
    connection.keep(Vec::with_capacity(64), b"$9\r\n", 0);
    let place = connection.partial.as_ptr();
    for piece in [b"abc", b"def", b"ghi"] {
        let kept = connection.take_kept(piece);
        assert_eq!(kept.as_ptr(), place);
        connection.keep(kept, piece, 0);
    }
    let kept = connection.take_kept(b"\r\n:1");
    assert_eq!(kept, b"$9\r\nabcdefghi\r\n:1");
    connection.keep(kept, b"\r\n:1", 15);
    assert_eq!(connection.partial, b":1");
}

/// The peer always reads something, and never catches up.
#[test]
fn what_the_socket_has_taken_does_not_stay_in_memory() {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets can be made");
    for socket in [&ours, &theirs] {
        socket
            .set_nonblocking(true)
            .expect("a socket can be read without waiting");
    }
    let poller = Poller::new().expect("sockets can be waited for");
    let mut connection = Connection::new(0, 1);
    connection
        .attach(ours.into(), false, &poller, 0)
        .expect("a socket can be waited for");
    let mut buffer = vec![0; 1 << 18];
    let (mut queued, mut read) = (1 << 20, 0);
    connection.out.resize(queued, b'x');
    while queued < 1 << 26 {
        connection.write(&poller, 0).expect("the peer is there");
        let count = theirs.read(&mut buffer).expect("there is always something to read");
        read += count;
        connection.out.resize(connection.out.len() + count, b'x');
        queued += count;
    }
    let left = queued - read;
    assert!(
        connection.out.len() <= 2 * left,
        "{} bytes are kept of {left} that the peer has not read",
        connection.out.len()
    );
}

#[test]
fn an_awaited_call_takes_16_bytes() {
    assert_eq!(size_of::<Awaited>(), 16);
}
