//! `-`: standard input as a source of one object.
//!
//! A regular file on standard input has a length and is read like any file, from where it stands. Anything else is a pipe: read
//! in order, in pieces of at most 1 MiB, on a thread of its own, because a read that waits for a silent pipe cannot be stopped.

use crate::chunks::Chunks;
use crate::endpoint::file::FileReader;
use crate::endpoint::patience::unreadable_as;
use crate::endpoint::{Facts, Found, Item, Listing, Reader, Same, Source, Task};
use crate::error::{Error, Result};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;

/// Most bytes in one piece of a block: memory comes as the bytes do, and not a block at a time.
const PIECE: u64 = 1024 * 1024;

/// Standard input.
#[derive(Debug)]
pub struct StdinSource {
    target: String,
}

impl StdinSource {
    /// Standard input, landing as `target`.
    pub fn new(target: impl Into<String>) -> Self {
        StdinSource { target: target.into() }
    }
}

impl Source for StdinSource {
    fn list<'a>(&'a self, out: Listing) -> Task<'a, Result<()>> {
        Box::pin(async move {
            let item = Item::new("-", self.target.clone());
            let _ = out.send(vec![Found::Item(item)]).await;
            Ok(())
        })
    }

    fn open<'a>(&'a self, _: &'a Item) -> Task<'a, Result<Box<dyn Reader>>> {
        Box::pin(async {
            // A descriptor of our own: the standard library's buffer would only copy.
            let own = io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(failed)?;
            reader(own)
        })
    }

    fn describe(&self) -> String {
        "standard input".to_owned()
    }
}

/// A reader for whatever standard input is.
fn reader(mut input: File) -> Result<Box<dyn Reader>> {
    if input.metadata().map_err(failed)?.is_file() {
        let position = input.stream_position().map_err(failed)?;
        if let Some(file) = FileReader::rest_of("standard input", input.try_clone().map_err(failed)?, position)? {
            return Ok(Box::new(file));
        }
    }
    Ok(Box::new(Pipe::new(Waiting(input))?))
}

fn failed(error: io::Error) -> Error {
    unreadable_as("cannot read standard input", error)
}

/// Waits for what is not there yet also where the descriptor says not to: whoever shares the pipe may have set that
/// (`O_NONBLOCK` is a property of the pipe's end and not of a process).
struct Waiting(File);

impl Read for Waiting {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None) {
                        Ok(_) | Err(Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                read => return read,
            }
        }
    }
}

/// So many bytes are wanted, and where they go.
type Wish = (u64, oneshot::Sender<io::Result<Vec<Bytes>>>);

/// Something of unknown length.
struct Pipe(Mutex<Sender<Wish>>);

impl Pipe {
    /// Reads ahead of nothing: the thread waits for a wish, fulfils it, and ends with the pipe's owner. It is not joined, since
    /// it may be waiting for bytes that never come; it holds nothing that needs an end.
    fn new(mut input: impl Read + Send + 'static) -> Result<Self> {
        let (wishes, wished) = channel::<Wish>();
        let thread = std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            for (len, answer) in wished {
                let _ = answer.send(pieces(&mut input, len));
            }
        });
        thread.map_err(failed)?;
        Ok(Pipe(Mutex::new(wishes)))
    }
}

/// Reads `len` bytes, or up to the end.
fn pieces(input: &mut impl Read, len: u64) -> io::Result<Vec<Bytes>> {
    let mut pieces = Vec::new();
    let mut left = len;
    while left > 0 {
        let wanted = left.min(PIECE);
        let mut piece = Vec::with_capacity(usize::try_from(wanted).map_err(io::Error::other)?);
        let read = input.by_ref().take(wanted).read_to_end(&mut piece)? as u64;
        if read > 0 {
            pieces.push(Bytes::from(piece));
        }
        left -= read;
        if read < wanted {
            break;
        }
    }
    Ok(pieces)
}

impl Reader for Pipe {
    fn facts(&self) -> Facts {
        Facts { len: None, modified: None }
    }

    fn read<'a>(&'a self, _: u64, len: u64) -> Task<'a, Result<Chunks>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let gone = |_| failed(io::Error::other("the reading thread has ended"));
            self.0.lock().unwrap_or_else(PoisonError::into_inner).send((len, answer)).map_err(|_| gone(()))?;
            let pieces = answered.await.map_err(|_| gone(()))?.map_err(failed)?;
            let mut chunks = Chunks::default();
            pieces.into_iter().for_each(|piece| chunks.push(piece));
            Ok(chunks)
        })
    }

    fn check_unchanged(&self, _: Same) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use std::io::Write;

    async fn all(reader: &dyn Reader, step: u64) -> Vec<u8> {
        let mut out = Vec::new();
        loop {
            let data = reader.read(out.len() as u64, step).await.unwrap();
            assert!(data.iter().all(|piece| piece.len() as u64 <= PIECE));
            out.extend(data.iter().flat_map(|b| b.to_vec()));
            if data.len() < step {
                return out;
            }
        }
    }

    /// Hands out one byte a read: a slow dribble.
    struct Dribble(Vec<u8>);

    impl Read for Dribble {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            match (self.0.pop(), buf.first_mut()) {
                (Some(byte), Some(place)) => {
                    *place = byte;
                    Ok(1)
                }
                _ => Ok(0),
            }
        }
    }

    #[tokio::test]
    async fn fewer_bytes_than_asked_for_mean_the_end_and_nothing_else() {
        for len in [0u32, 1, 99, 100, 101, 250] {
            let data: Vec<u8> = (0..len).map(|i| u8::try_from(i).unwrap()).collect();
            let pipe = Pipe::new(Dribble(data.iter().rev().copied().collect())).unwrap();
            assert_eq!(all(&pipe, 100).await, data);
        }
        let large: Vec<u8> = (0..3_000_000u32).map(|i| i.to_le_bytes()[1]).collect();
        let pipe = Pipe::new(io::Cursor::new(large.clone())).unwrap();
        assert_eq!(all(&pipe, 2_500_000).await, large);
    }

    #[tokio::test]
    async fn a_regular_file_has_its_length_from_where_it_stands() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        for (position, expected) in [(0, "0123456789"), (4, "456789"), (10, ""), (99, "")] {
            let mut own = file.try_clone().unwrap();
            own.seek(io::SeekFrom::Start(position)).unwrap();
            let reader = reader(own).unwrap();
            let len = reader.facts().len.unwrap();
            assert_eq!(len, expected.len() as u64);
            let data: Vec<u8> = reader.read(0, len).await.unwrap().iter().flat_map(|b| b.to_vec()).collect();
            assert_eq!(data, expected.as_bytes());
            reader.check_unchanged(Same::Whole).unwrap();
        }
    }

    #[tokio::test]
    async fn a_pipe_that_does_not_wait_is_waited_for() {
        let (mut stream, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let reader = reader(File::from(std::os::fd::OwnedFd::from(theirs))).unwrap();
        let reading = reader.read(0, 3);
        tokio::pin!(reading);
        // Asked for before there is anything.
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(reading.as_mut().poll(cx).is_pending())).await);
        stream.write_all(b"abcd").unwrap();
        assert_eq!(reading.await.unwrap().len(), 3);
        drop(stream);
        assert_eq!(reader.read(3, 3).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn what_cannot_be_read_says_so() {
        let folder = File::open("/").unwrap();
        let pipe = reader(folder).unwrap();
        assert_eq!(pipe.read(0, 10).await.unwrap_err().kind(), Kind::SourceUnreadable);
    }
}
