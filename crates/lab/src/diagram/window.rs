//! A stretch of time out of a picture.

use quorate_core::Time;

use super::{Fate, Picture, What};

/// What happened between two times. Messages that cross an end of it stay whole: the drawing cuts
/// them off there.
pub(super) fn between(mut picture: Picture, from: Option<Time>, to: Option<Time>) -> Picture {
    let start = from.unwrap_or(picture.start).max(picture.start);
    let end = to.unwrap_or(picture.end).min(picture.end).max(start);
    let (whole_start, whole_end) = (picture.start, picture.end);
    if (start, end) == (whole_start, whole_end) {
        return picture;
    }
    (picture.start, picture.end) = (start, end);
    let within = |at: Time| start <= at && at <= end;
    let overlaps = |from: Time, until: Time| from <= end && until >= start;

    let is_seen = |arrow: &super::Arrow| {
        let until = match arrow.fate {
            Fate::Received(at) | Fate::Lost(at) => at,
            Fate::InFlight => whole_end,
        };
        overlaps(arrow.sent.unwrap_or(whole_start), until)
    };
    let mut places: Vec<Option<usize>> = Vec::with_capacity(picture.arrows.len());
    let mut count = 0;
    for arrow in &picture.arrows {
        let place = is_seen(arrow).then_some(count);
        count += usize::from(place.is_some());
        places.push(place);
    }
    let mut seen = places.iter().map(Option::is_some);
    picture.arrows.retain(|_| seen.next() == Some(true));
    for arrow in &mut picture.arrows {
        arrow.copy_of = arrow.copy_of.and_then(|original| places[original]);
    }
    picture.events.retain_mut(|event| {
        match &mut event.what {
            What::Send(arrows) => *arrows = arrows.iter().filter_map(|&i| places[i]).collect(),
            What::Receive(arrow) | What::Lose(arrow) => match places[*arrow] {
                Some(place) => *arrow = place,
                None => return false,
            },
            What::Mark(..) => {}
        }
        within(event.at)
    });

    picture.bars.retain(|bar| overlaps(bar.from, bar.until));
    for bar in &mut picture.bars {
        bar.is_open |= bar.until > end;
        bar.from = bar.from.max(start);
        bar.until = bar.until.min(end);
    }
    picture.outages.retain(|outage| overlaps(outage.from, outage.until.unwrap_or(whole_end)));
    for outage in &mut picture.outages {
        outage.from = outage.from.max(start);
        outage.until = outage.until.filter(|until| *until <= end);
    }
    picture.suspicions.retain(|one| overlaps(one.from, one.until.unwrap_or(whole_end)));
    for one in &mut picture.suspicions {
        one.from = one.from.max(start);
        one.until = one.until.filter(|until| *until <= end);
    }
    picture.entries.retain(|entry| within(entry.at));
    picture.guilty.retain(|(at, _)| within(*at));
    picture.setting.splits.retain(|split| overlaps(split.from, split.until.unwrap_or(whole_end)));
    picture
}
