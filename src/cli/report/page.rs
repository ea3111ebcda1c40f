//! The report as a page: one HTML file with its style, its pictures and its data in it, and nothing from anywhere else.
//!
//! Pure: a record in, text out. No script runs; a policy in the page forbids it to load or run anything, so that a name in it
//! could not either. Everything that is not ours goes through [`Text`].

use super::super::json::{Cause, LeftOut};
use super::super::verdict::Certainty;
use super::chart::{Bar, Bars};
use super::history::{self, real};
use super::record::{Origin, RunRecord};
use super::text::{Text, bytes, count, in_script, rate, seconds, three};
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");

/// The page.
pub(crate) fn html(record: &RunRecord) -> String {
    let summary = &record.summary;
    let mut body = header(record);
    body += &tiles(record);
    body += &verdict(record);
    body += &failures(&summary.failures, summary.failed);
    body += &history::section(record);
    body += &format!(r#"<div class="halves">{}{}</div>"#, sizes(record), latency(record));
    body += &slowest(record);
    body += &left_out(&summary.left_out);
    body += &settings(record);
    // Serialising these types cannot fail: no map with other keys than strings, no fallible `Serialize`.
    let data = in_script(&serde_json::to_string(record).unwrap_or_default());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\
         <footer>Written by blobjet {version}. The data behind this page are in it, as JSON in the element \
         <code>blobjet-report</code>.</footer>\n</main>\n\
         <script type=\"application/json\" id=\"blobjet-report\">{data}</script>\n</body>\n</html>\n",
        title = Text(&format!("{} - blobjet run {}", status(record).1, record.started)),
        version = Text(&record.version),
    )
}

/// Class and words of how it ended.
fn status(record: &RunRecord) -> (&'static str, &'static str) {
    match record.summary.status {
        "Completed" => ("good", "Completed"),
        "CompletedWithSkipped" => ("good", "Completed, some skipped"),
        "CompletedWithErrors" => ("warn", "Completed with errors"),
        "CompletedWithErrorsAndSkipped" => ("warn", "Completed with errors, some skipped"),
        "Cancelled" => ("warn", "Stopped"),
        _ => ("bad", "Failed"),
    }
}

fn header(record: &RunRecord) -> String {
    let (class, words) = status(record);
    format!(
        "<header><h1>blobjet run <span class=\"pill {class}\">{words}</span></h1>\
         <p class=\"route\"><code>{}</code> to <code>{}</code></p>\
         <p class=\"soft\">{} to {} (UTC), job {}</p></header>\n",
        Text(&record.source),
        Text(&record.destination),
        Text(&clock(&record.started)),
        Text(&clock(&record.ended)),
        Text(&record.summary.job_id),
    )
}

/// `2026-01-02 03:04:05` of a time in RFC 3339.
fn clock(time: &str) -> String {
    time.split('.').next().unwrap_or(time).trim_end_matches('Z').replace('T', " ")
}

fn tiles(record: &RunRecord) -> String {
    let s = &record.summary;
    let retries: u64 = s.retries.values().sum();
    let by_cause: Vec<String> = s.retries.iter().map(|(cause, n)| format!("{} {cause}", count(*n))).collect();
    let mut objects = vec![format!("of {}", count(s.total))];
    if s.failed > 0 {
        objects.push(format!("{} failed", count(s.failed)));
    }
    if s.skipped > 0 {
        objects.push(format!("{} skipped", count(s.skipped)));
    }
    let latency = match (s.latency_p50_ms, s.latency_p99_ms) {
        (Some(p50), Some(p99)) => (seconds(p50 / 1000.0), format!("half within this; 99 % within {}", seconds(p99 / 1000.0))),
        _ => ("none".to_owned(), "no request was answered".to_owned()),
    };
    let mib = s.throughput_mbps / 8.0 * 1e6 / f64::from(1u32 << 20);
    let tiles = [
        ("Throughput", rate(s.throughput_mbps), format!("{} MiB/s", three(mib))),
        ("Transferred", bytes(s.bytes_done), format!("in {}", seconds(s.elapsed_s))),
        ("Objects done", count(s.done), objects.join(", ")),
        ("Requests", count(s.requests), format!("{} in flight on average", three(record.usage.in_flight))),
        ("Sent again", count(retries), if by_cause.is_empty() { "nothing".to_owned() } else { by_cause.join(", ") }),
        ("Latency", latency.0, latency.1),
        (
            "Processors",
            format!("{:.0} %", record.usage.cpu_share * 100.0),
            format!("of {} cores, {} of work", record.machine.cores, seconds(record.usage.cpu_s)),
        ),
        ("Memory", s.peak_memory_bytes.map_or("unknown".to_owned(), bytes), "at its peak".to_owned()),
    ];
    let tiles = tiles.iter().fold(String::new(), |mut out, (name, figure, more)| {
        let _ = write!(
            out,
            r#"<div><dt>{name}</dt><dd><span class="figure">{}</span><small>{}</small></dd></div>"#,
            Text(figure),
            Text(more)
        );
        out
    });
    format!(
        "<section aria-label=\"Figures\" class=\"tiles-frame\" style=\"padding:0;overflow:hidden\"><dl class=\"tiles\">{tiles}</dl></section>\n"
    )
}

fn verdict(record: &RunRecord) -> String {
    let Some(verdict) = &record.summary.verdict else { return String::new() };
    let sure = match verdict.certainty {
        Certainty::Clear => "the figures are clear",
        Certainty::Likely => "likely, not certain",
        Certainty::NotSure => "the figures do not tell",
    };
    format!(
        "<section class=\"verdict\"><div class=\"head\"><h2>{}</h2><span class=\"soft\">{sure}</span></div>\
         <div class=\"two\"><div><h3>What was seen</h3>{}</div><div><h3>What to change</h3>{}</div></div></section>\n",
        Text(&capital(&verdict.text)),
        list(&verdict.evidence),
        list(&verdict.advice),
    )
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn list(items: &[String]) -> String {
    let items = items.iter().fold(String::new(), |mut out, item| {
        let _ = write!(out, "<li>{}</li>", Text(item));
        out
    });
    format!("<ul>{items}</ul>")
}

fn sizes(record: &RunRecord) -> String {
    let bars: Vec<Bar> = record
        .sizes
        .iter()
        .map(|bucket| {
            let label = if bucket.up_to == 0 { "empty".to_owned() } else { format!("≤ {}", bytes(bucket.up_to)) };
            let tip = format!("{label}: {} objects, {}", count(bucket.count), bytes(bucket.bytes));
            Bar { label, value: real(bucket.count), tip }
        })
        .collect();
    let picture = if bars.is_empty() {
        "<p class=\"soft\">No object was done.</p>".to_owned()
    } else {
        let largest = record.sizes.iter().max_by_key(|bucket| bucket.count);
        let description =
            largest.map(|b| format!("most, {}, have at most {}", count(b.count), bytes(b.up_to))).unwrap_or_default();
        Bars { title: "Object sizes", description, class: "size", bars: &bars, y: &whole }.draw()
    };
    format!(
        "<section class=\"middle\"><div class=\"head\"><h2>Object sizes</h2><div class=\"key\">objects done</div></div>{picture}</section>"
    )
}

/// A count on an axis; nothing where it is none.
fn whole(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an axis of counts, which are not negative")]
    if value.fract() == 0.0 { count(value as u64) } else { String::new() }
}

fn latency(record: &RunRecord) -> String {
    let buckets = &record.latency.buckets;
    let bars: Vec<Bar> = buckets
        .iter()
        .map(|bucket| {
            let label = seconds(bucket.up_to_ms / 1000.0);
            Bar { tip: format!("up to {label}: {} requests", count(bucket.count)), label, value: real(bucket.count) }
        })
        .collect();
    let picture = if bars.is_empty() {
        "<p class=\"soft\">No request was answered.</p>".to_owned()
    } else {
        let heads = record.latency.percentiles.iter().fold(String::new(), |mut out, p| {
            let _ = write!(out, "<th>{} %</th>", three(p.percent));
            out
        });
        let values = record.latency.percentiles.iter().fold(String::new(), |mut out, p| {
            let _ = write!(out, "<td>{}</td>", Text(&seconds(p.ms / 1000.0)));
            out
        });
        let description = "requests by the time until their answer".to_owned();
        let drawn = Bars { title: "Latency", description, class: "time", bars: &bars, y: &whole }.draw();
        format!("{drawn}<div class=\"wide\"><table class=\"percentiles\"><tr>{heads}</tr><tr>{values}</tr></table></div>")
    };
    format!(
        "<section class=\"middle\"><div class=\"head\"><h2>Latency</h2><div class=\"key\">requests answered within this time</div></div>{picture}</section>\n"
    )
}

fn slowest(record: &RunRecord) -> String {
    let Some(longest) = record.slowest.first() else { return String::new() };
    let rows = record.slowest.iter().fold(String::new(), |mut out, slow| {
        let mbps = real(slow.bytes) * 8.0 / 1e6 / slow.seconds.max(1e-6);
        let _ = write!(
            out,
            "<tr><td class=\"name\"><code>{}</code>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>\
             <td class=\"share\"><i style=\"width:{:.1}%\"></i></td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
            Text(&slow.object),
            if slow.failed { " <span class=\"bad\">failed</span>" } else { "" },
            bytes(slow.bytes),
            seconds(slow.seconds),
            slow.seconds / longest.seconds.max(1e-9) * 100.0,
            if slow.failed { "-".to_owned() } else { rate(mbps) },
            count(u64::from(slow.retries)),
        );
        out
    });
    format!(
        "<section><h2>Slowest objects</h2><div class=\"wide\"><table><thead><tr><th>Object</th><th class=\"number\">Size</th>\
         <th class=\"number\">Time</th><th class=\"share\"></th><th class=\"number\">Rate</th><th class=\"number\">Sent again</th></tr></thead>\
         <tbody>{rows}</tbody></table></div></section>\n"
    )
}

fn failures(causes: &[Cause], failed: u64) -> String {
    if failed == 0 {
        return String::new();
    }
    let told: u64 = causes.iter().map(|cause| cause.count).sum();
    let mut out = causes.iter().fold(String::new(), |mut out, cause| {
        let error = &cause.error;
        let _ = write!(out, "<div class=\"cause\"><h3>{} × {}</h3>", count(cause.count), Text(&error.one_line()));
        if let Some(meaning) = &error.meaning {
            let _ = write!(out, "<p>{}</p>", Text(&capital(meaning)));
        }
        if let Some(hint) = &error.hint {
            let _ = write!(out, "<p class=\"todo\">What to do: {}</p>", Text(hint));
        }
        out + &names(&cause.objects, cause.count) + "</div>"
    });
    if failed > told {
        let _ = write!(out, "<p class=\"soft\">{} more were given up when the job ended early.</p>", count(failed - told));
    }
    format!("<section><h2>Failures by cause</h2>{out}</section>\n")
}

fn left_out(groups: &[LeftOut]) -> String {
    if groups.is_empty() {
        return String::new();
    }
    let groups = groups.iter().fold(String::new(), |mut out, group| {
        let _ = write!(out, "<div class=\"left\"><h3>{} × {}</h3>", count(group.count), Text(&group.reason));
        out + &names(&group.objects, group.count) + "</div>"
    });
    format!("<section><h2>Skipped by reason</h2>{groups}</section>\n")
}

fn names(objects: &[String], all: u64) -> String {
    if objects.is_empty() {
        return String::new();
    }
    let items = objects.iter().fold(String::new(), |mut out, name| {
        let _ = write!(out, "<li><code>{}</code></li>", Text(name));
        out
    });
    let shown = u64::try_from(objects.len()).unwrap_or(u64::MAX);
    let more = if all > shown { format!("<p class=\"soft\">and {} more</p>", count(all - shown)) } else { String::new() };
    let open = if shown <= 5 { " open" } else { "" };
    format!("<details{open}><summary>which</summary><ul class=\"names\">{items}</ul>{more}</details>")
}

fn settings(record: &RunRecord) -> String {
    let rows = record.settings.iter().fold(String::new(), |mut out, setting| {
        let origin = match setting.origin {
            Origin::Flag => "asked for",
            Origin::Default => "default",
        };
        let _ = write!(
            out,
            "<tr><td>{}</td><td class=\"name\">{}</td><td class=\"soft\">{origin}</td></tr>",
            Text(setting.name),
            Text(&setting.value)
        );
        out
    });
    let m = &record.machine;
    let machine = [
        ("processor", m.processor.clone()),
        ("cores", count(m.cores)),
        ("memory", m.memory_bytes.map_or("unknown".to_owned(), bytes)),
        ("system", m.system.clone()),
        ("program", format!("blobjet {}", record.version)),
    ];
    let machine = machine.iter().fold(String::new(), |mut out, (name, value)| {
        let _ = write!(out, "<tr><td>{name}</td><td class=\"name\">{}</td></tr>", Text(value));
        out
    });
    format!(
        "<div class=\"halves\"><section><h2>Settings</h2><table><tbody>{rows}</tbody></table></section>\
         <section><h2>Machine</h2><table><tbody>{machine}</tbody></table></section></div>\
         <section><h2>Command</h2><pre>{}</pre></section>\n",
        Text(&record.command)
    )
}

#[cfg(test)]
mod tests {
    use super::super::example::record;
    use super::*;

    /// The text of the first element that begins with this, tags taken out.
    fn after<'a>(page: &'a str, start: &str) -> &'a str {
        let at = page.find(start).unwrap_or_else(|| panic!("no {start}")) + start.len();
        page[at..].split('<').next().unwrap()
    }

    #[test]
    fn figures_stand_where_they_belong() {
        let page = html(&record());
        for (label, figure) in [
            ("Throughput", "8.59 Gb/s"),
            ("Transferred", "1.5 GiB"),
            ("Objects done", "1,234,500"),
            ("Requests", "45,678"),
            ("Sent again", "13"),
            ("Latency", "6.73 ms"),
            ("Processors", "81 %"),
            ("Memory", "139 MiB"),
        ] {
            let start = format!(r#"<dt>{label}</dt><dd><span class="figure">"#);
            assert_eq!(after(&page, &start), figure, "{label}");
        }
        for words in [
            "of 1,234,567, 41 failed, 26 skipped",
            "9 throttled",
            "Completed with errors, some skipped",
            "2026-01-02 03:04:05 to 2026-01-02 03:04:07 (UTC)",
            "Most likely this machine&#39;s processors limited it",
            "<li>use a machine with more cores</li>",
            "40 × cannot put https://acc.blob.core.windows.net/box/a: 503 ServerBusy; after 7 requests in 301 s",
            "1 more were given up when the job ended early",
            "What to do: run it again later",
            "26 × symbolic link",
            "<th>99.9 %</th></tr><tr><td>6.73 ms</td><td>45.3 ms</td>",
            "Example &lt;CPU&gt;",
        ] {
            assert!(page.contains(words), "{words}");
        }
        // 700 MB in half a second are 11.2 Gb/s, and there the service throttled.
        assert!(page.contains(r#"class="mark throttled" x="333.3" y="0" width="333.3""#));
        assert!(page.contains("500 ms to 1 s: 11.2 Gb/s on the wire, 668 MiB acknowledged"));
        assert!(page.contains(r#"class="mark retried" x="666.7""#));
    }

    #[test]
    fn nothing_comes_from_elsewhere_and_nothing_runs() {
        let page = html(&record());
        let markup = page.split("<script type=\"application/json\"").next().unwrap();
        for tag in ["<script", "<iframe", "<object", "<img", " onerror=", " onload=", "javascript:", "@import", "url("] {
            assert!(!markup.contains(tag) || tag == " onerror=" && markup.matches(tag).count() == 1, "{tag}");
        }
        // Addresses occur as text only, never where a browser would fetch them.
        for (at, _) in page.match_indices("http") {
            let before = &page[..at];
            assert!(
                !before.ends_with("src=\"") && !before.ends_with("href=\"") && !before.ends_with('('),
                "{}",
                &page[at..at + 20]
            );
        }
        assert_eq!(page.matches("<script").count(), 1);
        assert_eq!(page.matches("</script").count(), 1);
        assert!(page.contains("default-src 'none'"));
    }

    #[test]
    fn names_are_escaped_everywhere() {
        let page = html(&record());
        assert!(
            page.contains("./&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("./&lt;img src=x onerror=alert(1)&gt;")
        );
        assert!(page.contains("./it&#39;s &lt;b&gt;") && page.contains("./a&amp;b"));
        let markup = page.split("<script type=\"application/json\"").next().unwrap();
        assert!(markup.contains("\\u{202e}txt.exe") && !markup.contains('\u{202e}'));
    }

    #[test]
    fn the_data_in_the_page_are_the_record() {
        let page = html(&record());
        let data = page.split(r#"id="blobjet-report">"#).nth(1).unwrap().split("</script>").next().unwrap();
        let inside: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(inside, serde_json::to_value(record()).unwrap());
        assert_eq!(inside["timeline"]["slots"][1]["retries"]["throttled"], 9);
        assert_eq!(inside["slowest"][0]["object"], "./<img src=x onerror=alert(1)>");
    }

    #[test]
    fn a_run_of_nothing_is_a_page_too() {
        let mut nothing = record();
        nothing.timeline.slots.clear();
        nothing.sizes.clear();
        nothing.slowest.clear();
        nothing.latency = Default::default();
        nothing.summary.failures.clear();
        nothing.summary.left_out.clear();
        (nothing.summary.failed, nothing.summary.skipped, nothing.summary.verdict) = (0, 0, None);
        (nothing.summary.latency_p50_ms, nothing.summary.status) = (None, "Completed");
        let page = html(&nothing);
        for words in ["Nothing was sent", "No object was done", "No request was answered"] {
            assert!(page.contains(words), "{words}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}
