//! How much of what was written to a socket the kernel still holds. On a slow line it takes a whole block at once and then sends
//! it for minutes, during which nothing moves that this process could see: no standstill, and no reason to send it again.
//!
//! Read from the kernel's table of connections (proc(5): `tx_queue` counts what the other side has not acknowledged). That costs
//! as much as there are connections on the machine, so it is asked only when nothing has moved for seconds. Elsewhere than on
//! Linux nothing is known.

use std::fs;
use std::os::fd::RawFd;

/// Bytes written to this socket and not yet acknowledged by the other side's kernel.
pub(crate) fn unacknowledged(socket: RawFd) -> Option<u64> {
    let link = fs::read_link(format!("/proc/self/fd/{socket}")).ok()?;
    let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned();
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"].into_iter().find_map(|table| in_table(&fs::read_to_string(table).ok()?, &inode))
}

/// The send queue in the row of the table that has this inode.
fn in_table(table: &str, inode: &str) -> Option<u64> {
    let row = table.lines().find(|row| row.split_ascii_whitespace().nth(9) == Some(inode))?;
    let (sending, _) = row.split_ascii_whitespace().nth(4)?.split_once(':')?;
    u64::from_str_radix(sending, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_is_found_by_its_inode() {
        // A capture of /proc/net/tcp.
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:2710 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 41003 1 0 100 0 0 10 0\n   \
            1: 0100007F:9C4C 0100007F:2710 01 0002A2F0:00000000 04:0000001E 00000000  1000        0 41410 2 0 21 4 30 10 -1\n";
        assert_eq!(in_table(table, "41410"), Some(0x2A2F0));
        assert_eq!(in_table(table, "41003"), Some(0));
        assert_eq!(in_table(table, "4141"), None);
        assert_eq!(in_table("", "1"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_nobody_reads_stays_in_the_queue() {
        use std::io::Write as _;
        use std::os::fd::AsRawFd as _;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_receiver, _) = listener.accept().unwrap();
        assert_eq!(unacknowledged(sender.as_raw_fd()), Some(0));
        sender.set_nonblocking(true).unwrap();
        while sender.write(&[0; 65536]).is_ok() {}
        assert!(unacknowledged(sender.as_raw_fd()).unwrap() > 0);
    }
}
