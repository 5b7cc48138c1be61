//! The names of keys.

use locks::Key;
use wire::{CompareAndDelete, Encoder, KeyNames};

#[test]
fn a_name_is_the_prefix_and_the_index_in_braces() {
    let names = KeyNames::new(b"pybench:3f9a:t7:", 10);
    assert_eq!(names.name(Key(0)), b"pybench:3f9a:t7:{0}");
    assert_eq!(names.name(Key(9)), b"pybench:3f9a:t7:{9}");
}

#[test]
fn all_names_of_a_set_have_one_length() {
    for (count, last) in [
        (1, "{0}"),
        (2, "{1}"),
        (10, "{9}"),
        (11, "{10}"),
        (100, "{99}"),
        (101, "{100}"),
    ] {
        let names = KeyNames::new(b"", count);
        assert_eq!(names.name(Key(count - 1)), last.as_bytes());
        for index in 0..count {
            let width = last.len() - 2;
            assert_eq!(names.name(Key(index)), format!("{{{index:0width$}}}").as_bytes());
        }
    }
}

#[test]
fn a_million_names_are_no_more_work_than_one() {
    let names = KeyNames::new(b"p:", 1_000_000);
    assert_eq!(names.name(Key(999_999)), b"p:{999999}");
    assert_eq!(names.name(Key(17)), b"p:{000017}");
    assert_eq!(KeyNames::new(b"", u32::MAX).name(Key(u32::MAX - 1)), b"{4294967294}");
}

#[test]
fn a_prefix_may_hold_any_bytes_up_to_its_longest() {
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    for prefix in [
        &b""[..],
        b" ",
        b"a b:c\r\n\0",
        &every_byte,
        &[b'x'; KeyNames::MAX_PREFIX],
    ] {
        let names = KeyNames::new(prefix, 20);
        assert_eq!(names.name(Key(7)), [prefix, b"{07}"].concat());
    }
}

#[test]
#[should_panic(expected = "a prefix of 513 bytes")]
fn a_longer_prefix_is_a_mistake_of_the_caller() {
    KeyNames::new(&[b'x'; KeyNames::MAX_PREFIX + 1], 1);
}

#[test]
#[should_panic(expected = "key 10 of 10")]
fn a_key_beyond_the_last_is_a_mistake_of_the_caller() {
    KeyNames::new(b"p", 10).name(Key(10));
}

#[test]
fn a_set_is_shown_by_its_first_name() {
    assert_eq!(
        format!("{:?}", KeyNames::new(b"p\n:", 1_000)),
        "KeyNames(1000 from p\\n:{000})"
    );
}

#[test]
fn the_lock_of_a_channel_is_read_from_its_name() {
    let names = KeyNames::new(b"{p}7:", 1_000);
    let encoder = Encoder::new(&names, CompareAndDelete::Script);
    for key in [0, 7, 70, 999].map(Key) {
        let channel = [&names.name(key)[..], b":channel"].concat();
        assert_eq!(encoder.key_of(&channel), Some(key));
    }
    for other in [&b""[..], b"{p}7:{12", b"{p}7:{+12}:channel", b"{p}7:{1 2}:channel"] {
        assert_eq!(encoder.key_of(other), None, "{}", other.escape_ascii());
    }
    let fewer = Encoder::new(&KeyNames::new(b"{p}7:", 900), CompareAndDelete::Script);
    assert_eq!(fewer.key_of(b"{p}7:{900}:channel"), None);
}
