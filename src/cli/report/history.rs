//! The run over time as plots of one section: what was on the wire, in flight and on the processors, drawn as coarse as can be seen.
//! Pure.

use super::chart::{Column, Plot};
use super::record::{RunRecord, Slot};
use super::text::{bytes, count, rate, seconds, three};
use super::timeline::joined;
use std::fmt::Write as _;

/// Columns of a plot over time at most: finer ones show how acknowledgements bunch, and hide the run.
const COLUMNS: usize = 120;

/// Throughput, requests in flight and processors over time, each a plot.
pub(super) fn section(record: &RunRecord) -> String {
    let slots = coarse(&record.timeline.slots);
    let none = Slot::default();
    let end = slots.last().unwrap_or(&none).to_s;
    if slots.iter().all(|slot| slot.requests == 0 && slot.bytes_on_wire == 0) {
        return "<section><h2>Over time</h2><p class=\"soft\">Nothing was sent.</p></section>\n".to_owned();
    }
    let marked = |class: &str| slots.iter().any(|slot| mark(slot) == Some(class));
    let mut key =
        r#"<span><i class="rate"></i>bytes on the wire</span><span><i class="dash"></i>average, acknowledged</span>"#.to_owned();
    if marked("throttled") {
        key += r#"<span><i class="throttled"></i>the service asked to slow down</span>"#;
    }
    if marked("retried") {
        key += r#"<span><i class="retried"></i>requests sent again</span>"#;
    }
    let x = |at: f64| axis_time(at, end);
    let throughput = Plot {
        title: "Throughput over time",
        description: format!(
            "{} on average over {}, {} at most",
            rate(record.summary.throughput_mbps),
            seconds(end),
            rate(slots.iter().map(wire_mbps).fold(0.0, f64::max))
        ),
        class: "rate",
        columns: &columns(&slots, wire_mbps, |_| None, true),
        level: Some(record.summary.throughput_mbps),
        at_least: 0.0,
        y: &|value| if value == 0.0 { "0".to_owned() } else { rate(value) },
        x: &x,
    };
    let flight = Plot {
        title: "Requests in flight over time",
        description: format!("{} on average", three(record.usage.in_flight)),
        class: "flight",
        columns: &columns(&slots, |slot| slot.in_flight, |slot| Some(real(slot.concurrency)), false),
        level: None,
        at_least: 1.0,
        y: &three,
        x: &x,
    };
    let cores = real(record.machine.cores.max(1));
    let cpu = Plot {
        title: "Processor use over time",
        description: format!("{:.0} percent of all cores on average", record.usage.cpu_share * 100.0),
        class: "cpu",
        columns: &columns(&slots, |slot| (slot.cpu_s / long(slot) / cores * 100.0).min(100.0), |_| None, false),
        level: None,
        at_least: 100.0,
        y: &|value| format!("{value:.0} %"),
        x: &x,
    };
    format!(
        "<section><div class=\"chart\"><div class=\"head\"><h2>Throughput</h2><div class=\"key\">{key}</div></div>{}</div>\
         <div class=\"chart middle\"><div class=\"head\"><h2>Requests in flight</h2><div class=\"key\">\
         <span><i class=\"flight\"></i>in flight</span><span><i class=\"dash\"></i>possible</span></div></div>{}</div>\
         <div class=\"chart low\"><div class=\"head\"><h2>Processors</h2><div class=\"key\"><span><i class=\"cpu\"></i>share of all {} \
         cores</span></div></div>{}</div></section>\n",
        throughput.draw(),
        flight.draw(),
        record.machine.cores,
        cpu.draw(),
    )
}

/// Neighbours joined until there are few enough to be seen.
fn coarse(slots: &[Slot]) -> Vec<Slot> {
    let group = slots.len().div_ceil(COLUMNS).max(1);
    let together = |group: &[Slot]| group[1..].iter().fold(group[0].clone(), |a, b| joined(&a, b));
    let mut out: Vec<Slot> = slots.chunks(group).map(together).collect();
    // A short rest at the end would show a rate it was too short to have.
    if let [.., before, last] = out.as_slice()
        && long(last) * 2.0 < long(before)
    {
        let whole = joined(before, last);
        out.truncate(out.len() - 2);
        out.push(whole);
    }
    out
}

fn columns(slots: &[Slot], value: impl Fn(&Slot) -> f64, limit: impl Fn(&Slot) -> Option<f64>, marks: bool) -> Vec<Column> {
    let column = |slot: &Slot| Column {
        from: slot.from_s,
        to: slot.to_s,
        value: value(slot),
        limit: limit(slot),
        tip: tip(slot),
        mark: mark(slot).filter(|_| marks),
    };
    slots.iter().map(column).collect()
}

fn mark(slot: &Slot) -> Option<&'static str> {
    match slot.retries.contains_key("throttled") {
        true => Some("throttled"),
        false if slot.retries.is_empty() => None,
        false => Some("retried"),
    }
}

fn tip(slot: &Slot) -> String {
    let mut out = format!(
        "{} to {}: {} on the wire, {} acknowledged, {} requests answered, {} objects done, {} requests in flight of {}",
        seconds(slot.from_s),
        seconds(slot.to_s),
        rate(wire_mbps(slot)),
        bytes(slot.bytes),
        count(slot.requests),
        count(slot.done),
        three(slot.in_flight),
        slot.concurrency,
    );
    if slot.failed > 0 {
        let _ = write!(out, ", {} objects failed", count(slot.failed));
    }
    for (cause, n) in &slot.retries {
        let _ = write!(out, ", sent again: {} ({cause})", count(*n));
    }
    out
}

fn wire_mbps(slot: &Slot) -> f64 {
    real(slot.bytes_on_wire) * 8.0 / 1e6 / long(slot)
}

fn long(slot: &Slot) -> f64 {
    (slot.to_s - slot.from_s).max(1e-6)
}

#[expect(clippy::cast_precision_loss, reason = "figures for a picture")]
pub(super) fn real(value: u64) -> f64 {
    value as f64
}

/// A time on an axis that ends at `end`: in its unit, so that all labels are short.
fn axis_time(at: f64, end: f64) -> String {
    let (unit, name) = match end {
        end if end < 1.0 => (0.001, "ms"),
        end if end < 180.0 => (1.0, "s"),
        end if end < 10_800.0 => (60.0, "min"),
        end if end < 259_200.0 => (3600.0, "h"),
        _ => (86_400.0, "d"),
    };
    format!("{} {name}", three(at / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_histories_are_drawn_coarser() {
        let slot = |i: u32| Slot { from_s: f64::from(i), to_s: f64::from(i) + 1.0, bytes: 1, ..Slot::default() };
        let slots: Vec<Slot> = (0..359).map(slot).collect();
        let drawn = coarse(&slots);
        assert_eq!((drawn.len(), drawn.iter().map(|slot| slot.bytes).sum::<u64>()), (120, 359));
        let mut rest = slots[..3].to_vec();
        rest.push(Slot { from_s: 3.0, to_s: 3.1, bytes: 1, ..Slot::default() });
        assert_eq!(coarse(&rest).len(), 3, "a short rest has no column of its own");
    }
}
