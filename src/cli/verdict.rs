//! What limited a run, judged from what was measured, and what to change. Pure: values in, words out.
//!
//! It names one limit only where the figures show it, and says how sure that is; where they do not it says so, and what would
//! tell. The order of the rules is that of what is known for certain: a cap that was asked for, a service that said it is too busy,
//! then what this machine shows of itself, and last what is left over.

use super::report::text::seconds;
use serde::Serialize;

/// What was measured of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    pub(crate) elapsed_s: f64,
    pub(crate) bytes: u64,
    pub(crate) objects: u64,
    pub(crate) requests: u64,
    /// Acknowledged bytes, decimal megabits a second.
    pub(crate) rate_mbps: f64,
    pub(crate) cores: u64,
    /// Share of all cores this process used, 0 to 1.
    pub(crate) cpu_share: f64,
    /// Share of all cores that all processes used.
    pub(crate) machine_cpu_share: Option<f64>,
    /// The service runs in this process, so that its work is in `cpu_share`.
    pub(crate) service_inside: bool,
    pub(crate) cap_mbps: Option<f64>,
    /// Requests the service refused because it was too busy.
    pub(crate) throttled: u64,
    /// Requests in flight on average, and how many there might have been.
    pub(crate) in_flight: f64,
    pub(crate) concurrency: f64,
    /// The number of requests was tuned while it ran.
    pub(crate) tuned: bool,
    /// Share of the requests' time in which one waited for memory before its data were read, 0 to 1.
    pub(crate) memory_wait_share: f64,
    /// Share of it in which one read its data.
    pub(crate) reading_share: f64,
    pub(crate) put_md5: bool,
    /// What one core hashes, where MD5 was asked for.
    pub(crate) md5_mbps: Option<f64>,
    pub(crate) latency_p50_ms: Option<f64>,
}

/// What limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Limit {
    RateCap,
    Service,
    Hash,
    Cpu,
    OtherPrograms,
    Memory,
    Disk,
    Concurrency,
    Network,
    Unknown,
}

/// How sure that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Certainty {
    Clear,
    Likely,
    NotSure,
}

/// The judgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) limit: Limit,
    pub(crate) certainty: Certainty,
    /// One sentence.
    pub(crate) text: String,
    /// The figures it rests on.
    pub(crate) evidence: Vec<String>,
    /// What to change.
    pub(crate) advice: Vec<String>,
}

/// Runs shorter than this, or with fewer requests, say more about starting than about moving.
const SHORT_S: f64 = 1.0;
const FEW_REQUESTS: u64 = 50;

/// From this share on a resource counts as used up, or as mostly so.
const FULL: f64 = 0.85;
const MOSTLY: f64 = 0.7;

/// Judges.
pub(crate) fn judge(m: &Measured) -> Verdict {
    let (limit, certainty, advice) = limit(m);
    let text = match certainty {
        Certainty::NotSure => sentence(limit).to_owned(),
        Certainty::Clear => format!("{} limited it", sentence(limit)),
        Certainty::Likely => format!("most likely {} limited it", lower(sentence(limit))),
    };
    Verdict { limit, certainty, text, evidence: evidence(m, limit), advice }
}

fn sentence(limit: Limit) -> &'static str {
    match limit {
        Limit::RateCap => "The cap on the rate",
        Limit::Service => "The service, which asked to slow down,",
        Limit::Hash => "MD5",
        Limit::Cpu => "This machine's processors",
        Limit::OtherPrograms => "Other programs on this machine's processors",
        Limit::Memory => "The memory allowed for data in flight",
        Limit::Disk => "Reading the source",
        Limit::Concurrency => "The number of requests in flight",
        Limit::Network => "The network or the service",
        Limit::Unknown => "Not sure what limited it",
    }
}

fn lower(text: &str) -> String {
    if text.starts_with("MD5") {
        return text.to_owned();
    }
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

fn limit(m: &Measured) -> (Limit, Certainty, Vec<String>) {
    use Certainty::{Clear, Likely, NotSure};
    let lanes = m.in_flight / m.concurrency.max(1.0);
    if m.elapsed_s < SHORT_S || m.requests < FEW_REQUESTS {
        let advice = "run it longer: more files or larger ones";
        return (Limit::Unknown, NotSure, vec![advice.to_owned()]);
    }
    if let Some(cap) = m.cap_mbps.filter(|cap| m.rate_mbps >= cap * 0.93) {
        return (Limit::RateCap, Clear, vec![format!("raise --cap-mbps {cap}, or leave it out")]);
    }
    if m.throttled >= 3 && m.throttled.saturating_mul(100) >= m.requests {
        let sure = if m.throttled.saturating_mul(20) >= m.requests { Clear } else { Likely };
        return (Limit::Service, sure, vec![
            "the account's or the blob's limit is reached: spread the load over more accounts, or ask Azure for higher limits".to_owned(),
            format!("a steady rate just below the limit wastes less: --cap-mbps {:.0}", (m.rate_mbps * 0.95).max(1.0)),
        ]);
    }
    if let Some(sure) = hash_limits(m) {
        return (
            Limit::Hash,
            sure,
            vec![
                "leave out --put-md5: every request carries a checksum the service checks anyway".to_owned(),
                "or send several files at a time: one file's MD5 can only be computed on one core".to_owned(),
            ],
        );
    }
    if m.cpu_share >= MOSTLY {
        let sure = if m.cpu_share >= FULL { Clear } else { Likely };
        return (Limit::Cpu, sure, cpu_advice(m));
    }
    if m.machine_cpu_share.is_some_and(|share| share >= 0.95) && m.cpu_share < 0.6 {
        return (Limit::OtherPrograms, Likely, vec!["stop what else runs on this machine, and measure again".to_owned()]);
    }
    if m.memory_wait_share >= 0.25 {
        let sure = if m.memory_wait_share >= 0.5 { Clear } else { Likely };
        return (
            Limit::Memory,
            sure,
            vec!["raise --memory, or lower --block-size-mb so that more blocks fit into it".to_owned()],
        );
    }
    if m.reading_share >= 0.3 && m.reading_share > lanes {
        let sure = if m.reading_share >= 0.5 { Clear } else { Likely };
        return (
            Limit::Disk,
            sure,
            vec![
                "read from a faster disk, or from several".to_owned(),
                "a second run reads from the page cache where the files fit into memory: if that is faster, it was the disk"
                    .to_owned(),
            ],
        );
    }
    if lanes >= 0.8 && m.cpu_share < 0.6 {
        if m.tuned {
            return (Limit::Network, Likely, vec![
                "more requests at a time were tried and brought nothing: use a machine with a wider line, or one nearer to the account".to_owned(),
                "compare with what the line is said to carry, and with 'blobjet bench' without a destination, which leaves the network out".to_owned(),
            ]);
        }
        let twice = (m.concurrency * 2.0).min(4096.0);
        return (
            Limit::Concurrency,
            Likely,
            vec![
                format!("try --concurrency {twice:.0}, or --concurrency auto"),
                "if that is no faster, it is the network or the service".to_owned(),
            ],
        );
    }
    let advice = "run it longer, with more files or larger ones, and with nothing else running on this machine";
    (Limit::Unknown, NotSure, vec![advice.to_owned()])
}

/// One file's hash is one core's work; of many files hashing is just a large part of the processors' time.
fn hash_limits(m: &Measured) -> Option<Certainty> {
    let hash = m.md5_mbps.filter(|rate| m.put_md5 && *rate > 0.0)?;
    if m.objects <= 1 {
        return (m.rate_mbps >= hash * 0.75).then_some(Certainty::Clear);
    }
    #[expect(clippy::cast_precision_loss, reason = "cores")]
    let of_cores = m.rate_mbps / hash / (m.cores.max(1) as f64);
    (m.cpu_share >= MOSTLY && of_cores >= m.cpu_share * 0.4).then_some(Certainty::Likely)
}

fn cpu_advice(m: &Measured) -> Vec<String> {
    let mut advice = vec!["use a machine with more cores, or faster ones".to_owned()];
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    let each = m.bytes as f64 / (m.objects.max(1) as f64);
    if each < 256.0 * 1024.0 {
        advice.push("each file costs the same however small it is: fewer, larger ones (an archive) cost less".to_owned());
    }
    if m.put_md5 {
        advice.push("leave out --put-md5, if nobody needs the stored hash".to_owned());
    }
    if m.service_inside {
        advice.push("the service ran within this process and took its part: a real one does not".to_owned());
    }
    advice
}

fn evidence(m: &Measured, limit: Limit) -> Vec<String> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut out = Vec::new();
    if let (Limit::RateCap, Some(cap)) = (limit, m.cap_mbps) {
        out.push(format!("{:.1} Mb/s of {cap} Mb/s allowed by --cap-mbps", m.rate_mbps));
    }
    if m.elapsed_s < SHORT_S || m.requests < FEW_REQUESTS {
        out.push(format!("it took {:.2} s and {} requests, which is too little to tell", m.elapsed_s, m.requests));
    }
    let inside = if m.service_inside { ", the embedded service's part included" } else { "" };
    out.push(format!("processors: {} of all {} cores were used by blobjet{inside}", percent(m.cpu_share), m.cores));
    if let Some(share) = m.machine_cpu_share {
        out.push(format!("processors: {} were busy in all, other programs included", percent(share)));
    }
    out.push(format!("requests: {:.1} in flight on average, of {:.0} possible", m.in_flight, m.concurrency));
    out.push(match m.throttled {
        0 => "service: it never asked to slow down".to_owned(),
        n => format!("service: it asked to slow down {n} times in {} requests", m.requests),
    });
    if m.memory_wait_share >= 0.05 {
        out.push(format!("memory: waited for during {} of the time", percent(m.memory_wait_share)));
    }
    if m.reading_share >= 0.05 {
        out.push(format!("source: read during {} of the time", percent(m.reading_share)));
    }
    if let Some(hash) = m.md5_mbps.filter(|_| m.put_md5) {
        out.push(format!("MD5: one core hashes {hash:.0} Mb/s here; {:.0} Mb/s were sent", m.rate_mbps));
    }
    if let Some(ms) = m.latency_p50_ms {
        out.push(format!("latency: half of the requests were answered within {}", seconds(ms / 1000.0)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of ten seconds that nothing in particular limits.
    const IDLE: Measured = Measured {
        elapsed_s: 10.0,
        bytes: 10 << 30,
        objects: 40,
        requests: 1320,
        rate_mbps: 8590.0,
        cores: 4,
        cpu_share: 0.3,
        machine_cpu_share: Some(0.35),
        service_inside: false,
        cap_mbps: None,
        throttled: 0,
        in_flight: 8.0,
        concurrency: 16.0,
        tuned: false,
        memory_wait_share: 0.0,
        reading_share: 0.1,
        put_md5: false,
        md5_mbps: None,
        latency_p50_ms: Some(31.0),
    };

    #[test]
    fn each_limit_is_told_from_the_others() {
        use Certainty::{Clear, Likely, NotSure};
        for (what, m, limit, certainty) in [
            ("nothing stands out", IDLE, Limit::Unknown, NotSure),
            ("over in a moment", Measured { elapsed_s: 0.4, cpu_share: 1.0, ..IDLE }, Limit::Unknown, NotSure),
            ("a handful of requests", Measured { requests: 12, cpu_share: 1.0, ..IDLE }, Limit::Unknown, NotSure),
            ("at the cap", Measured { cap_mbps: Some(8600.0), cpu_share: 0.99, ..IDLE }, Limit::RateCap, Clear),
            ("far below a cap", Measured { cap_mbps: Some(20_000.0), cpu_share: 0.99, ..IDLE }, Limit::Cpu, Clear),
            ("throttled often", Measured { throttled: 200, in_flight: 16.0, ..IDLE }, Limit::Service, Clear),
            ("throttled now and then", Measured { throttled: 20, ..IDLE }, Limit::Service, Likely),
            ("throttled once", Measured { throttled: 1, cpu_share: 0.9, ..IDLE }, Limit::Cpu, Clear),
            ("cores full", Measured { cpu_share: 0.93, in_flight: 15.9, ..IDLE }, Limit::Cpu, Clear),
            ("cores nearly full", Measured { cpu_share: 0.75, ..IDLE }, Limit::Cpu, Likely),
            (
                "cores full of something else",
                Measured { machine_cpu_share: Some(0.99), in_flight: 15.9, ..IDLE },
                Limit::OtherPrograms,
                Likely,
            ),
            (
                "one file, as fast as MD5",
                Measured { objects: 1, put_md5: true, md5_mbps: Some(5000.0), rate_mbps: 4900.0, ..IDLE },
                Limit::Hash,
                Clear,
            ),
            (
                "one file, far from MD5",
                Measured { objects: 1, put_md5: true, md5_mbps: Some(5000.0), rate_mbps: 900.0, in_flight: 16.0, ..IDLE },
                Limit::Concurrency,
                Likely,
            ),
            (
                "many files, cores full of MD5",
                Measured { put_md5: true, md5_mbps: Some(5000.0), rate_mbps: 9000.0, cpu_share: 0.95, ..IDLE },
                Limit::Hash,
                Likely,
            ),
            (
                "many files, cores full of other things than MD5",
                Measured { put_md5: true, md5_mbps: Some(5000.0), rate_mbps: 2000.0, cpu_share: 0.95, ..IDLE },
                Limit::Cpu,
                Clear,
            ),
            ("memory", Measured { memory_wait_share: 0.6, in_flight: 4.0, ..IDLE }, Limit::Memory, Clear),
            ("a slow disk", Measured { reading_share: 0.7, in_flight: 3.0, ..IDLE }, Limit::Disk, Clear),
            (
                "a disk that is not the worst",
                Measured { reading_share: 0.3, in_flight: 14.0, ..IDLE },
                Limit::Concurrency,
                Likely,
            ),
            ("all requests wait", Measured { in_flight: 15.8, ..IDLE }, Limit::Concurrency, Likely),
            ("all requests wait, tuned", Measured { in_flight: 15.8, tuned: true, ..IDLE }, Limit::Network, Likely),
        ] {
            let verdict = judge(&m);
            assert_eq!((verdict.limit, verdict.certainty), (limit, certainty), "{what}: {verdict:?}");
            assert!(!verdict.evidence.is_empty() && !verdict.advice.is_empty(), "{what}");
        }
    }

    #[test]
    fn advice_names_a_value() {
        let verdict = judge(&Measured { in_flight: 15.8, ..IDLE });
        assert_eq!(verdict.advice[0], "try --concurrency 32, or --concurrency auto");
        assert_eq!(verdict.text, "most likely the number of requests in flight limited it");
        assert_eq!(judge(&IDLE).text, "Not sure what limited it");
        assert_eq!(judge(&Measured { cpu_share: 0.93, ..IDLE }).text, "This machine's processors limited it");
    }
}
