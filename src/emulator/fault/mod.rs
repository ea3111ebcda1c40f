//! Faults on purpose: rules that disturb the requests they fit, so that a client can be seen to get over it.
//!
//! A rule ([`Fault`]) says which requests it is for, which of those it hits, and what happens to them; its text form is
//! `rule`'s. Here rules are kept, requests are held against them, and hits are counted, so that rules can come and go while
//! the emulator runs. What a hit means on the connection is `effects`'. Without a rule a request costs one relaxed load.

mod effects;
mod rule;

pub(crate) use effects::{Interference, Lowered, Silence};
pub use rule::Fault;

use super::http::Head;
use super::route::Op;
use super::service::Address;
use super::state::lock;
use effects::Effects;
use rule::{Select, When};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// A rule in force at an emulator. Dropping the handle leaves the rule in force.
#[derive(Clone)]
pub struct Armed(Arc<Rule>);

impl fmt::Debug for Armed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Armed").field("fault", &self.0.fault).field("hits", &self.hits()).finish_non_exhaustive()
    }
}

impl Armed {
    /// The rule.
    pub fn fault(&self) -> &Fault {
        &self.0.fault
    }

    /// How many requests it has disturbed.
    pub fn hits(&self) -> u64 {
        self.0.hits.load(Relaxed)
    }

    /// Takes the rule out of force; requests that it has hit already end as they were to.
    pub fn remove(&self) {
        self.0.removed.store(true, Relaxed);
    }
}

/// A rule with its counters.
struct Rule {
    fault: Fault,
    /// Requests it was for, so far.
    met: AtomicU64,
    hits: AtomicU64,
    removed: AtomicBool,
    /// For each listing (path and prefix) the markers in the order they first came: a page's number is its place here.
    pages: Mutex<HashMap<String, Vec<String>>>,
}

/// The rules of an emulator.
#[derive(Default)]
pub(crate) struct Faults {
    /// Whether there ever was a rule: spares the lock where there was none.
    any: AtomicBool,
    rules: Mutex<Vec<Arc<Rule>>>,
    in_flight: Arc<AtomicU64>,
}

impl Faults {
    pub(crate) fn arm(&self, fault: Fault) -> Armed {
        let rule = Arc::new(Rule {
            fault,
            met: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            removed: AtomicBool::new(false),
            pages: Mutex::default(),
        });
        lock(&self.rules).push(Arc::clone(&rule));
        self.any.store(true, Relaxed);
        Armed(rule)
    }

    /// What is to happen to this request. Rules are asked in the order they were given; where two that hit say something of the
    /// same point, the first one counts.
    pub(crate) fn meet(&self, head: &Head) -> Option<Box<Interference>> {
        if !self.any.load(Relaxed) {
            return None;
        }
        let in_flight = InFlight::enter(&self.in_flight);
        let mut rules = lock(&self.rules);
        rules.retain(|rule| !rule.removed.load(Relaxed));
        let request = Request::of(head, in_flight.now);
        let effects: Vec<&Effects> = rules.iter().filter(|rule| rule.hits(&request)).map(|rule| &rule.fault.effects).collect();
        let effects = effects.into_iter().fold(Effects::default(), |sum, more| sum.or(more));
        Some(Box::new(Interference::new(effects, head.body_len(), in_flight)))
    }
}

/// Counts a request in flight for as long as it lives.
pub(crate) struct InFlight {
    count: Arc<AtomicU64>,
    /// How many there are, this one included, when it came.
    now: u64,
}

impl InFlight {
    fn enter(count: &Arc<AtomicU64>) -> InFlight {
        InFlight { now: count.fetch_add(1, Relaxed) + 1, count: Arc::clone(count) }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Relaxed);
    }
}

/// What rules look at.
struct Request<'a> {
    head: &'a Head,
    op: Option<Op>,
    /// `container/blob`, decoded.
    path: String,
    in_flight: u64,
}

impl<'a> Request<'a> {
    fn of(head: &'a Head, in_flight: u64) -> Request<'a> {
        let address = Address::of(&head.path).ok();
        let op = address.as_ref().and_then(|address| Op::of(head, address.level).ok());
        let path = address
            .map_or(String::new(), |a| if a.blob.is_empty() { a.container } else { format!("{}/{}", a.container, a.blob) });
        Request { head, op, path, in_flight }
    }
}

impl Rule {
    fn hits(&self, request: &Request<'_>) -> bool {
        let hit = self.is_for(request) && self.fault.when.hits(self.met.fetch_add(1, Relaxed) + 1);
        if hit {
            self.hits.fetch_add(1, Relaxed);
        }
        hit
    }

    fn is_for(&self, request: &Request<'_>) -> bool {
        let Select { method, ops, path, page, above } = &self.fault.select;
        method.as_ref().is_none_or(|method| *method == request.head.method)
            && (ops.is_empty() || request.op.is_some_and(|op| ops.contains(&op)))
            && path.as_ref().is_none_or(|pattern| glob(pattern, &request.path))
            && above.is_none_or(|above| request.in_flight > above)
            && page.is_none_or(|page| self.page(request) == page)
    }

    /// The number of the page a listing asks for, from 1. A page asked for again keeps its number.
    fn page(&self, request: &Request<'_>) -> u64 {
        let parameter = |name| request.head.parameter(name).unwrap_or("");
        let mut pages = lock(&self.pages);
        let markers = pages.entry(format!("{}?{}", request.path, parameter("prefix"))).or_default();
        let marker = parameter("marker");
        let at = markers.iter().position(|known| known == marker).unwrap_or_else(|| {
            markers.push(marker.to_owned());
            markers.len() - 1
        });
        at as u64 + 1
    }
}

impl When {
    /// Whether the `number`th request, from 1, that the rule is for is hit.
    fn hits(&self, number: u64) -> bool {
        let Some(number) = number.checked_sub(self.after).filter(|n| *n > 0) else { return false };
        self.nth.is_none_or(|nth| number == nth)
            && self.every.is_none_or(|every| number.is_multiple_of(every))
            && self.first.is_none_or(|first| number <= first)
            && self.share_of_2_pow_32.is_none_or(|share| scrambled(self.seed, number) < share)
    }
}

/// 32 bits that look random and are the same in every run (the finaliser of SplitMix64).
fn scrambled(seed: u64, number: u64) -> u64 {
    let mut x = (seed.rotate_left(32) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x ^ (x >> 31)) >> 32
}

/// Whether `text` fits `pattern`: `*` is any run of characters, `/` among them, `?` any one.
fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to go on after a `*` took one character more.
    let mut back = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                back = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match back {
                Some((after, at)) => {
                    back = Some((after, at + 1));
                    (p, t) = (after, at + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn hit(faults: &Faults, rule: &Armed, line: &str) -> bool {
        let before = rule.hits();
        let text = format!("{line} HTTP/1.1\r\n\r\n");
        let (head, _) = Head::parse(text.as_bytes(), IpAddr::V4(Ipv4Addr::LOCALHOST), None).unwrap().unwrap();
        faults.meet(&head);
        rule.hits() > before
    }

    #[test]
    fn globs() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("c/*.txt", "c/d/a.txt", true),
            ("c/*.txt", "c/a.txt.gz", false),
            ("c/?", "c/ä", true),
            ("c/?", "c/", false),
            ("*a*b", "xaab", true),
            ("c", "c/a", false),
            ("c/**", "c/", true),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn a_rule_is_for_some_requests_only() {
        let block = "PUT /a/c/d/%41.bin?comp=block&blockid=AA";
        for (rule, line, fits) in [
            ("hang", block, true),
            ("op=PutBlock,hang", block, true),
            ("op=PutBlob|putblock,hang", block, true),
            ("op=PutBlob,hang", block, false),
            ("method=put,hang", block, true),
            ("method=GET,hang", block, false),
            ("path=c/d/A.*,hang", block, true),
            ("path=c,hang", block, false),
            ("op=ListBlobs,path=c,hang", "GET /a/c?restype=container&comp=list", true),
            ("above=1,hang", block, false),
            ("above=0,hang", block, true),
            ("op=PutBlock,hang", "GET /a/c?comp=nonsense", false),
        ] {
            let faults = Faults::default();
            let rule = faults.arm(rule.parse().unwrap());
            assert_eq!(hit(&faults, &rule, line), fits, "{rule:?}");
        }
    }

    #[test]
    fn hits_are_counted_among_the_requests_the_rule_is_for() {
        for (when, numbers) in [
            ("nth=3", vec![3]),
            ("every=3", vec![3, 6, 9]),
            ("first=2", vec![1, 2]),
            ("after=8", vec![9, 10]),
            ("after=4,first=2", vec![5, 6]),
            ("share=0%", vec![]),
            ("share=100%", (1..=10).collect()),
        ] {
            let faults = Faults::default();
            let rule = faults.arm(format!("op=PutBlob,{when},hang").parse().unwrap());
            let mut hits = Vec::new();
            for number in 1..=10 {
                hit(&faults, &rule, "GET /a/c/x");
                if hit(&faults, &rule, "PUT /a/c/x") {
                    hits.push(number);
                }
            }
            assert_eq!(hits, numbers, "{when}");
        }
    }

    #[test]
    fn a_share_is_near_what_it_says_and_the_same_in_every_run() {
        let chosen = |rule: &str| -> Vec<u64> {
            let when = rule.parse::<Fault>().unwrap().when;
            (1..=10_000).filter(|n| when.hits(*n)).collect()
        };
        let first = chosen("share=10%,hang");
        assert!((900..1100).contains(&first.len()), "{}", first.len());
        assert_eq!(first, chosen("share=0.1,hang"));
        assert_ne!(first, chosen("share=10%,seed=2,hang"));
    }

    #[test]
    fn a_page_keeps_its_number_when_it_is_asked_for_again() {
        let faults = Faults::default();
        let rule = faults.arm("op=ListBlobs,page=2,hang".parse().unwrap());
        let list = "GET /a/c?restype=container&comp=list";
        for (more, fits) in [("", false), ("&marker=m1", true), ("&marker=m1", true), ("&marker=m2", false), ("&prefix=x", false)]
        {
            assert_eq!(hit(&faults, &rule, &format!("{list}{more}")), fits, "{more}");
        }
    }

    #[test]
    fn a_removed_rule_hits_no_more() {
        let faults = Faults::default();
        let rule = faults.arm("hang".parse().unwrap());
        assert!(hit(&faults, &rule, "GET /a/c/x"));
        rule.remove();
        assert!(!hit(&faults, &rule, "GET /a/c/x"));
        assert_eq!(rule.hits(), 1);
    }
}
