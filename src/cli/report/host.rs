//! What the machine is and what its processors have done, from `/proc` and the process's clock. What cannot be found out is left out
//! or named `unknown`.

use super::record::Machine;
use std::num::NonZeroUsize;
use std::time::Duration;

/// This machine.
pub(crate) fn machine() -> Machine {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    Machine {
        system: format!("{} {} {}", std::env::consts::OS, kernel.trim(), std::env::consts::ARCH),
        processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or("unknown").to_owned(),
        cores: u64::try_from(std::thread::available_parallelism().map_or(1, NonZeroUsize::get)).unwrap_or(u64::MAX),
        memory_bytes: field(&read("/proc/meminfo"), "MemTotal").and_then(kib),
    }
}

/// The value after `name` and a colon (proc_cpuinfo(5), proc_meminfo(5)).
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':').map(str::trim))
}

fn kib(value: &str) -> Option<u64> {
    value.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// CPU time of all threads of this process so far, user and system (`CLOCK_PROCESS_CPUTIME_ID`, clock_gettime(2)).
pub(crate) fn process_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// What all processors have done since the machine started, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticks {
    busy: u64,
    all: u64,
}

impl Ticks {
    /// Now; `None` where there is no `/proc/stat`.
    pub(crate) fn read() -> Option<Ticks> {
        Ticks::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The line of all processors: user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already
    /// (proc_stat(5)).
    fn parse(text: &str) -> Option<Ticks> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line.split_whitespace().take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let all = ticks.iter().sum();
        Some(Ticks { busy: all - ticks.get(3)? - ticks.get(4)?, all })
    }

    /// Share of the time since then in which processors were busy, 0 to 1; `None` if no tick has passed.
    pub(crate) fn share_since(self, then: Ticks) -> Option<f64> {
        let all = self.all.checked_sub(then.all).filter(|all| *all > 0)?;
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        Some(self.busy.saturating_sub(then.busy) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_and_compared() {
        let then = Ticks::parse("cpu  100 0 50 800 50 0 0 0 7 0\ncpu0 1 2 3 4 5\n").unwrap();
        assert_eq!(then, Ticks { busy: 150, all: 1000 });
        let now = Ticks::parse("cpu  160 0 80 900 60 0 0 0 7 0\n").unwrap();
        assert_eq!(now.share_since(then), Some(0.45));
        assert_eq!(then.share_since(then), None);
        assert_eq!(Ticks::parse("intr 5"), None);
    }

    #[test]
    fn fields_of_proc_are_found() {
        let info = "processor\t: 0\nmodel name\t: A Processor\ncpu MHz : 1\n";
        assert_eq!(field(info, "model name"), Some("A Processor"));
        assert_eq!(field("MemTotal:       24000 kB\n", "MemTotal").and_then(kib), Some(24_576_000));
    }

    #[test]
    fn work_takes_processor_time() {
        let before = process_cpu();
        let mut x = 0u64;
        while process_cpu() <= before {
            x = std::hint::black_box(x.wrapping_add(1));
        }
        assert!(process_cpu() > before);
    }
}
