//! What this machine gives the process: cores, file descriptors, memory. Read, never changed; what cannot be found out is taken
//! to be little.

use crate::units::MIB;
use std::num::NonZeroUsize;

/// What there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine {
    /// Cores the process may use.
    pub(crate) cores: NonZeroUsize,
    /// File descriptors it may have open.
    pub(crate) descriptors: usize,
    /// Bytes of memory it may use: what is available, or less where its control group says so.
    pub(crate) memory: u64,
}

impl Machine {
    /// This one.
    pub(crate) fn this() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let group = read("/proc/self/cgroup").and_then(|text| group_limit(&text, &read));
        let available = read("/proc/meminfo").and_then(|text| available(&text)).unwrap_or(1024 * MIB);
        Machine {
            cores: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            descriptors: read("/proc/self/limits").and_then(|text| descriptors(&text)).unwrap_or(256),
            memory: group.map_or(available, |limit| limit.min(available)),
        }
    }

    /// Requests that can be in flight at a time as to descriptors: each has a connection and an open file, and some are for the
    /// rest of the program.
    pub(crate) fn most_requests(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.descriptors.saturating_sub(64) / 2).unwrap_or(NonZeroUsize::MIN)
    }
}

/// The soft limit of open files in `/proc/self/limits` (proc_pid_limits(5)).
fn descriptors(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(usize::MAX),
        number => number.parse().ok(),
    }
}

/// `MemAvailable` in `/proc/meminfo` (proc_meminfo(5)), bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The least limit of memory of the control group and those above it (cgroups(7); both versions may be there).
fn group_limit(own: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let mut least = None;
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (mount, file) = match controllers {
            "" => ("", "memory.max"),
            some if some.split(',').any(|name| name == "memory") => ("/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            let limit = read(&format!("/sys/fs/cgroup{mount}{path}/{file}")).and_then(|text| text.trim().parse::<u64>().ok());
            least = [least, limit].into_iter().flatten().min();
            let Some((above, _)) = path.rsplit_once('/') else { break };
            path = above;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_understood() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max processes             95744                95744                processes \n\
                      Max open files            1024                 524288               files     \n";
        assert_eq!(descriptors(limits), Some(1024));
        assert_eq!(descriptors(""), None);
        assert_eq!(available("MemTotal:       24616992 kB\nMemFree: 1 kB\nMemAvailable:   23400000 kB\n"), Some(23_961_600_000));
        let read = |path: &str| {
            Some(match path {
                "/sys/fs/cgroup/a/b/memory.max" => "max\n".to_owned(),
                "/sys/fs/cgroup/a/memory.max" => "268435456\n".to_owned(),
                "/sys/fs/cgroup/memory.max" => "536870912\n".to_owned(),
                "/sys/fs/cgroup/memory/x/memory.limit_in_bytes" => "9223372036854771712\n".to_owned(),
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "134217728\n".to_owned(),
                _ => return None,
            })
        };
        for (own, limit) in [
            ("0::/a/b\n", Some(256 << 20)),
            ("0::/\n", Some(512 << 20)),
            ("4:memory:/x\n0::/\n", Some(128 << 20)),
            ("1:cpu:/x\n", None),
        ] {
            assert_eq!(group_limit(own, &read), limit, "{own}");
        }
    }

    #[test]
    fn each_request_takes_two_descriptors() {
        let machine = |descriptors| Machine { cores: NonZeroUsize::MIN, descriptors, memory: 0 };
        assert_eq!(machine(1024).most_requests().get(), 480);
        assert_eq!(machine(10).most_requests().get(), 1);
    }
}
