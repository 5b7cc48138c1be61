use check::{ClientId, Event, Merge};
use locks::{Key, Mode, Nanos};

fn waits(client: ClientId) -> Event {
    Event::Waiting {
        client,
        key: Key(0),
        mode: Mode::Exclusive,
    }
}

fn granted(client: ClientId) -> Event {
    Event::Granted {
        client,
        until: Nanos(100),
        hold: Nanos(1),
        fence: None,
    }
}

fn released(client: ClientId) -> Event {
    Event::Released { client }
}

fn drained(merge: &mut Merge) -> Vec<(u64, Event)> {
    let mut delivered = Vec::new();
    merge.drain(|at, event| delivered.push((at.0, event)));
    delivered
}

#[test]
fn events_come_out_in_the_order_of_stamps() {
    let mut merge = Merge::new(2, 8);
    merge.push(0, Nanos(1), waits(0));
    merge.push(0, Nanos(4), granted(0));
    merge.push(1, Nanos(2), waits(1));
    merge.push(1, Nanos(3), granted(1));
    merge.finish(0);
    merge.finish(1);
    assert_eq!(
        drained(&mut merge),
        [(1, waits(0)), (2, waits(1)), (3, granted(1)), (4, granted(0))]
    );
}

#[test]
fn a_source_that_has_not_come_so_far_holds_the_others_back() {
    let mut merge = Merge::new(2, 8);
    merge.push(0, Nanos(5), waits(0));
    assert_eq!(drained(&mut merge), []);
    merge.watermark(1, Nanos(5)); // An event stamped 5 may still come, and belong before it.
    assert_eq!(drained(&mut merge), []);
    merge.watermark(1, Nanos(6));
    assert_eq!(drained(&mut merge), [], "source 0 may have more that is stamped 5");
    merge.watermark(0, Nanos(6));
    assert_eq!(drained(&mut merge), [(5, waits(0))]);
}

#[test]
fn a_finished_source_holds_nobody_back() {
    let mut merge = Merge::new(2, 8);
    merge.push(0, Nanos(5), waits(0));
    merge.push(1, Nanos(1), waits(1));
    merge.finish(1);
    merge.watermark(0, Nanos(9));
    assert_eq!(drained(&mut merge), [(1, waits(1)), (5, waits(0))]);
}

#[test]
fn at_equal_stamps_a_release_comes_before_a_grant() {
    let mut merge = Merge::new(2, 8);
    merge.push(0, Nanos(5), granted(0));
    merge.push(1, Nanos(5), released(1));
    merge.finish(0);
    merge.finish(1);
    assert_eq!(drained(&mut merge), [(5, released(1)), (5, granted(0))]);
}

#[test]
fn at_equal_stamps_a_release_comes_before_a_grant_of_its_own_source_and_of_others() {
    let mut merge = Merge::new(2, 8);
    merge.push(0, Nanos(5), granted(0));
    merge.push(1, Nanos(5), granted(1));
    merge.push(1, Nanos(5), released(2));
    merge.finish(0);
    merge.finish(1);
    assert_eq!(
        drained(&mut merge),
        [(5, released(2)), (5, granted(0)), (5, granted(1))]
    );
}

#[test]
fn a_client_that_holds_for_no_time_keeps_its_order() {
    let mut merge = Merge::new(2, 8);
    merge.push(0, Nanos(5), granted(0));
    merge.push(0, Nanos(5), released(0));
    merge.push(1, Nanos(5), granted(1));
    merge.finish(0);
    merge.finish(1);
    assert_eq!(
        drained(&mut merge),
        [(5, granted(0)), (5, released(0)), (5, granted(1))]
    );
}

#[test]
fn at_equal_stamps_a_release_comes_before_a_renewal_and_a_place_in_the_queue() {
    let renewed = Event::Renewed {
        client: 0,
        until: Nanos(9),
    };
    let queued = Event::Queued { client: 1 };
    let mut merge = Merge::new(2, 8);
    merge.push(0, Nanos(5), renewed);
    merge.push(1, Nanos(5), queued);
    merge.push(1, Nanos(5), released(2));
    merge.finish(0);
    merge.finish(1);
    assert_eq!(drained(&mut merge), [(5, released(2)), (5, renewed), (5, queued)]);
}

#[test]
fn a_client_that_renews_and_releases_in_one_instant_keeps_its_order() {
    let renewed = Event::Renewed {
        client: 0,
        until: Nanos(9),
    };
    let mut merge = Merge::new(1, 8);
    merge.push(0, Nanos(5), renewed);
    merge.push(0, Nanos(5), waits(1));
    merge.push(0, Nanos(5), released(0));
    merge.finish(0);
    assert_eq!(drained(&mut merge), [(5, renewed), (5, released(0)), (5, waits(1))]);
}

#[test]
fn an_old_watermark_is_no_news() {
    let mut merge = Merge::new(1, 8);
    merge.push(0, Nanos(5), waits(0));
    merge.watermark(0, Nanos(6));
    merge.watermark(0, Nanos(3));
    assert_eq!(drained(&mut merge), [(5, waits(0))]);
}
