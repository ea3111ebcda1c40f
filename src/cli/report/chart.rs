//! Pictures for the page, as SVG that stretches with it and labels that do not. Pure: values in, markup out.
//!
//! The plots have a view box of 1000 by 100 and no aspect ratio of their own, so that they fill whatever width there is; their text
//! is HTML beside them, placed in percent, and stays readable on a narrow screen. A transparent bar over each value carries its
//! figures as a tooltip, without any script.

use super::text::Text;
use std::fmt::Write as _;

/// Width and height of a plot's own coordinates.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// One stretch of a plot over time.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) value: f64,
    /// A second value, drawn as a line.
    pub(crate) limit: Option<f64>,
    /// Its figures.
    pub(crate) tip: String,
    /// Something happened here: the class of its mark.
    pub(crate) mark: Option<&'static str>,
}

/// A plot over time.
pub(crate) struct Plot<'a> {
    pub(crate) title: &'a str,
    /// For those who cannot see it.
    pub(crate) description: String,
    /// Class of the filled curve.
    pub(crate) class: &'static str,
    pub(crate) columns: &'a [Column],
    /// A level worth a line of its own.
    pub(crate) level: Option<f64>,
    /// The axis reaches at least here.
    pub(crate) at_least: f64,
    /// A value of the y axis in words.
    pub(crate) y: &'a dyn Fn(f64) -> String,
    /// A value of the x axis in words.
    pub(crate) x: &'a dyn Fn(f64) -> String,
}

impl Plot<'_> {
    /// Draws it.
    pub(crate) fn draw(&self) -> String {
        let end = self.columns.last().map_or(1.0, |column| column.to).max(f64::MIN_POSITIVE);
        let highest = self.columns.iter().map(|column| column.value.max(column.limit.unwrap_or(0.0))).fold(0.0, f64::max);
        let (top, step) = ceiling(highest.max(self.at_least).max(self.level.unwrap_or(0.0)));
        let x = |value: f64| value / end * WIDTH;
        let y = |value: f64| HEIGHT - (value / top * HEIGHT).min(HEIGHT);
        let mut svg = grid(top, step);
        for column in self.columns {
            if let Some(mark) = column.mark {
                let (from, width) = (x(column.from), (x(column.to) - x(column.from)).max(2.0));
                let _ = write!(svg, r#"<rect class="mark {mark}" x="{from:.1}" y="0" width="{width:.1}" height="{HEIGHT}"/>"#);
            }
        }
        let outline = steps(self.columns, |column| (x(column.from), x(column.to), y(column.value)));
        let _ = write!(svg, r#"<path class="area {class}" d="M0 {HEIGHT}{outline} L{WIDTH} {HEIGHT}Z"/>"#, class = self.class);
        let _ =
            write!(svg, r#"<path class="line {class}" d="{line}"/>"#, class = self.class, line = outline.replacen('L', "M", 1));
        if self.columns.iter().any(|column| column.limit.is_some()) {
            let limit = steps(self.columns, |column| (x(column.from), x(column.to), y(column.limit.unwrap_or(0.0))));
            let _ = write!(svg, r#"<path class="limit" d="{}"/>"#, limit.replacen('L', "M", 1));
        }
        if let Some(level) = self.level {
            let _ = write!(svg, r#"<path class="limit" d="M0 {0:.2}L{WIDTH} {0:.2}"/>"#, y(level));
        }
        for column in self.columns {
            svg.push_str(&tip(x(column.from), x(column.to) - x(column.from), &column.tip));
        }
        let (_, x_step) = ceiling_of(end, 6.0);
        let mut x_labels = String::new();
        for at in every(x_step, end) {
            label(&mut x_labels, "left", at / end, &(self.x)(at));
        }
        frame(self.title, &self.description, &svg, &y_labels(top, step, self.y), &x_labels)
    }
}

/// One bar of a histogram.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    /// Under it.
    pub(crate) label: String,
    pub(crate) value: f64,
    pub(crate) tip: String,
}

/// A histogram.
pub(crate) struct Bars<'a> {
    pub(crate) title: &'a str,
    pub(crate) description: String,
    pub(crate) class: &'static str,
    pub(crate) bars: &'a [Bar],
    pub(crate) y: &'a dyn Fn(f64) -> String,
}

impl Bars<'_> {
    /// Draws it.
    pub(crate) fn draw(&self) -> String {
        let count = index(self.bars.len().max(1));
        let each = WIDTH / count;
        let highest = self.bars.iter().map(|bar| bar.value).fold(1.0, f64::max);
        let (top, step) = ceiling(highest);
        let mut svg = grid(top, step);
        // A bar is no wider than a finger where there are few of them.
        let width = (each * 0.8).min(120.0);
        // On a narrow page every label needs about a tenth of it.
        let seldom = (count / 8.0).ceil().max(1.0);
        let mut x_labels = String::new();
        for (i, bar) in self.bars.iter().enumerate() {
            let middle = (index(i) + 0.5) * each;
            let height = if bar.value > 0.0 { (bar.value / top * HEIGHT).max(1.0) } else { 0.0 };
            let _ = write!(
                svg,
                r#"<rect class="bar {class}" x="{x:.1}" y="{y:.2}" width="{width:.1}" height="{height:.2}"/>"#,
                class = self.class,
                x = middle - width / 2.0,
                y = HEIGHT - height,
            );
            svg.push_str(&tip(middle - each / 2.0, each, &bar.tip));
            if index(i) % seldom == 0.0 {
                label(&mut x_labels, "left", middle / WIDTH, &bar.label);
            }
        }
        frame(self.title, &self.description, &svg, &y_labels(top, step, self.y), &x_labels)
    }
}

fn frame(title: &str, description: &str, svg: &str, y_labels: &str, x_labels: &str) -> String {
    format!(
        r#"<div class="plot"><div class="y" aria-hidden="true">{y_labels}</div><svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{label}">{svg}</svg><div class="x" aria-hidden="true">{x_labels}</div></div>"#,
        label = Text(&format!("{title}. {description}")),
    )
}

fn grid(top: f64, step: f64) -> String {
    every(step, top).fold(String::new(), |mut svg, at| {
        let _ = write!(svg, r#"<path class="grid" d="M0 {0:.2}L{WIDTH} {0:.2}"/>"#, HEIGHT - at / top * HEIGHT);
        svg
    })
}

fn y_labels(top: f64, step: f64, words: &dyn Fn(f64) -> String) -> String {
    every(step, top).fold(String::new(), |mut out, at| {
        label(&mut out, "bottom", at / top, &words(at));
        out
    })
}

fn label(out: &mut String, side: &str, share: f64, words: &str) {
    // The last one ends where the plot does, rather than beyond it.
    let end = if share > 0.94 { r#" class="end""# } else { "" };
    let _ = write!(out, r#"<span{end} style="{side}:{:.2}%">{}</span>"#, share * 100.0, Text(words));
}

fn tip(x: f64, width: f64, words: &str) -> String {
    format!(r#"<rect class="tip" x="{x:.1}" y="0" width="{width:.1}" height="{HEIGHT}"><title>{}</title></rect>"#, Text(words))
}

/// A staircase through the columns, each corner as `Lx y`.
fn steps(columns: &[Column], place: impl Fn(&Column) -> (f64, f64, f64)) -> String {
    columns.iter().map(place).fold(String::new(), |mut out, (from, to, y)| {
        let _ = write!(out, "L{from:.1} {y:.2}L{to:.1} {y:.2}");
        out
    })
}

/// Where an axis ends that has to hold `highest`, and how far its lines are apart: one, two or five of a power of ten.
fn ceiling(highest: f64) -> (f64, f64) {
    ceiling_of(highest, 4.0)
}

fn ceiling_of(highest: f64, lines: f64) -> (f64, f64) {
    let rough = highest.max(f64::MIN_POSITIVE) / lines;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].into_iter().map(|n| n * power).find(|step| *step >= rough * (1.0 - 1e-9)).unwrap_or(10.0 * power);
    ((highest / step * (1.0 - 1e-9)).ceil().max(1.0) * step, step)
}

/// 0, `step`, twice that, up to `end`.
fn every(step: f64, end: f64) -> impl Iterator<Item = f64> {
    (0u32..).map(move |n| f64::from(n) * step).take_while(move |at| *at <= end * (1.0 + 1e-9)).take(50)
}

fn index(i: usize) -> f64 {
    u32::try_from(i).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_figures() {
        for (highest, top, step) in [(1.0, 1.0, 0.5), (930.0, 1000.0, 500.0), (24_000.0, 30_000.0, 10_000.0), (16.0, 20.0, 5.0)] {
            let (got_top, got_step) = ceiling(highest);
            assert!((got_top - top).abs() < 1e-6 && (got_step - step).abs() < 1e-6, "{highest}: {got_top} {got_step}");
        }
        assert!(ceiling(0.0).0 > 0.0);
        assert_eq!(every(2.0, 6.0).collect::<Vec<_>>(), [0.0, 2.0, 4.0, 6.0]);
    }

    #[test]
    fn a_value_is_as_high_as_it_is_large() {
        let column = |from, to, value, mark| Column { from, to, value, limit: None, tip: format!("<{value}>"), mark };
        let columns = [column(0.0, 1.0, 5.0, None), column(1.0, 2.0, 10.0, Some("throttled"))];
        let plot = Plot {
            title: "T",
            description: "d".into(),
            class: "rate",
            columns: &columns,
            level: None,
            at_least: 0.0,
            y: &|v| format!("{v} y"),
            x: &|v| format!("{v} x"),
        };
        let drawn = plot.draw();
        assert!(drawn.contains(r#"d="M0.0 50.00L500.0 50.00L500.0 0.00L1000.0 0.00""#), "{drawn}");
        assert!(drawn.contains(r#"class="mark throttled" x="500.0" y="0" width="500.0""#), "{drawn}");
        assert!(drawn.contains("<title>&lt;5&gt;</title>") && drawn.contains("10 y") && drawn.contains("2 x"), "{drawn}");
    }

    #[test]
    fn bars_stand_on_the_ground() {
        let bars = [4.0, 0.0, 8.0].map(|value| Bar { label: format!("{value}"), value, tip: String::new() });
        let drawn = Bars { title: "T", description: String::new(), class: "size", bars: &bars, y: &|v| v.to_string() }.draw();
        assert!(drawn.contains(r#"x="106.7" y="50.00" width="120.0" height="50.00""#), "{drawn}");
        assert!(drawn.contains(r#"height="0.00""#), "{drawn}");
    }
}
