//! A sink that drops what it is given, for measuring the way there: `null:`, and `/dev/null` where it is what it should be.

use crate::endpoint::{BlockId, Facts, Finish, Limits, Payload, Pour, Receipt, Sink, Span, Task};
use crate::error::Result;
use crate::units::MIB;

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullSink;

/// Drops what comes.
struct Dropping;

impl Pour for Dropping {
    fn restart(&mut self) -> Result<()> {
        Ok(())
    }

    fn piece(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

const DONE: Receipt = Receipt { attempts: 1 };

impl Sink for NullSink {
    fn limits(&self) -> Limits {
        Limits { whole: u64::MAX, block: u64::MAX, blocks: u32::MAX }
    }

    fn check_name(&self, _: &str) -> Result<()> {
        Ok(())
    }

    fn put<'a>(&'a self, _: &'a str, _: Payload, _: Finish<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async { Ok(DONE) })
    }

    fn put_block<'a>(&'a self, _: &'a str, _: BlockId, _: Payload) -> Task<'a, Result<Receipt>> {
        Box::pin(async { Ok(DONE) })
    }

    fn draws(&self) -> bool {
        true
    }

    fn holds(&self, len: u64) -> u64 {
        len.min(MIB)
    }

    fn draw<'a>(&'a self, _: &'a str, span: Span<'a>, _: Finish<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async move { span.reader.pour(span.offset, span.len, &mut Dropping).await })
    }

    fn draw_block<'a>(&'a self, _: &'a str, _: BlockId, span: Span<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async move { span.reader.pour(span.offset, span.len, &mut Dropping).await })
    }

    fn commit<'a>(&'a self, _: &'a str, _: &'a [BlockId], _: Finish<'a>) -> Task<'a, Result<Receipt>> {
        Box::pin(async { Ok(DONE) })
    }

    fn look<'a>(&'a self, _: &'a str) -> Task<'a, Result<Option<Facts>>> {
        Box::pin(async { Ok(None) })
    }

    fn describe(&self, target: &str) -> String {
        format!("null:{target}")
    }
}
