//! Block lists: what Get Block List answers and what Put Block List takes.
//! Sources: "Get Block List", "Put Block List", Azure Storage REST reference.

use super::xml::{BOM, DECLARATION, Node, XmlError, push_element};
use quick_xml::events::Event;
use quick_xml::reader::Reader;

/// Which blocks Get Block List tells of (`blocklisttype`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockListType {
    /// Blocks of the blob as it is.
    Committed,
    /// Blocks staged and not yet committed.
    Uncommitted,
    /// Both.
    All,
}

impl BlockListType {
    /// The parameter's value.
    pub fn as_str(self) -> &'static str {
        match self {
            BlockListType::Committed => "committed",
            BlockListType::Uncommitted => "uncommitted",
            BlockListType::All => "all",
        }
    }
}

/// A block as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedBlock {
    /// Id, base64 as it was given.
    pub id: String,
    /// Length in bytes.
    pub size: u64,
}

/// Answer to Get Block List. A list that was not asked for is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockList {
    /// Committed blocks, in blob order.
    pub committed: Vec<ListedBlock>,
    /// Uncommitted blocks, in the order of their ids.
    pub uncommitted: Vec<ListedBlock>,
}

impl BlockList {
    /// Reads the answer.
    ///
    /// # Errors
    /// Where it is not a block list, or a size is no number.
    pub fn parse(document: &[u8]) -> Result<BlockList, XmlError> {
        let mut list = BlockList::default();
        each_block(document, |state, id, size| {
            let blocks = match state {
                BlockState::Committed => &mut list.committed,
                BlockState::Uncommitted => &mut list.uncommitted,
            };
            blocks.push(ListedBlock { id: id.to_owned(), size });
        })?;
        Ok(list)
    }

    /// Writes the answer as the service does: only the lists asked for, an empty one as an empty element.
    pub fn to_xml(&self, which: BlockListType) -> String {
        let mut out = format!("{BOM}{DECLARATION}<BlockList>");
        let mut write = |name: &str, blocks: &[ListedBlock]| {
            if blocks.is_empty() {
                return push_element(&mut out, name, "");
            }
            out.push_str(&format!("<{name}>"));
            for block in blocks {
                out.push_str("<Block>");
                push_element(&mut out, "Name", &block.id);
                push_element(&mut out, "Size", &block.size.to_string());
                out.push_str("</Block>");
            }
            out.push_str(&format!("</{name}>"));
        };
        if which != BlockListType::Uncommitted {
            write("CommittedBlocks", &self.committed);
        }
        if which != BlockListType::Committed {
            write("UncommittedBlocks", &self.uncommitted);
        }
        out.push_str("</BlockList>");
        out
    }
}

/// Which of the two lists a block stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockState {
    /// Part of the blob as it is.
    Committed,
    /// Staged, and not part of it.
    Uncommitted,
}

/// Reads an answer to Get Block List and calls `each` with every block's list, id and length, in the order they stand in. There
/// may be 150,000 of them: nothing is allocated for one.
///
/// # Errors
/// As [`BlockList::parse`]; `each` may have been called before.
pub fn each_block(document: &[u8], mut each: impl FnMut(BlockState, &str, u64)) -> Result<(), XmlError> {
    let text = std::str::from_utf8(document).map_err(|_| XmlError::NotUtf8)?;
    let mut reader = Reader::from_str(text.strip_prefix(BOM).unwrap_or(text));
    let (mut depth, mut state, mut field) = (0usize, None, Field::Other);
    let (mut id, mut size) = (String::new(), String::new());
    loop {
        match reader.read_event()? {
            Event::Start(start) => {
                depth += 1;
                let name = start.name();
                match (depth, name.as_ref()) {
                    (1, "BlockList") => {}
                    (1, other) => return Err(XmlError::Unexpected(format!("the root is {other} and not BlockList"))),
                    (2, "CommittedBlocks") => state = Some(BlockState::Committed),
                    (2, "UncommittedBlocks") => state = Some(BlockState::Uncommitted),
                    (2, _) => state = None,
                    (3, "Block") => {
                        id.clear();
                        size.clear();
                    }
                    (4, "Name") => field = Field::Name,
                    (4, "Size") => field = Field::Size,
                    _ => {}
                }
            }
            Event::Empty(start) if depth == 0 => {
                return match start.name().as_ref() {
                    "BlockList" => Ok(()),
                    other => Err(XmlError::Unexpected(format!("the root is {other} and not BlockList"))),
                };
            }
            Event::End(end) => {
                if let (3, "Block", Some(state)) = (depth, end.name().as_ref(), state) {
                    let wrong = |what: &str| XmlError::Unexpected(format!("a block has no {what}"));
                    if id.is_empty() {
                        return Err(wrong("Name"));
                    }
                    if !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)) {
                        return Err(XmlError::Unexpected("a block's name is no base64".to_owned()));
                    }
                    each(state, &id, size.trim().parse().map_err(|_| wrong("Size that is a number"))?);
                }
                field = Field::Other;
                depth -= 1;
                if depth == 0 {
                    return Ok(());
                }
            }
            // Neither base64 nor a number has anything in it that is written as a reference.
            Event::Text(text) => match field {
                Field::Name => id.push_str(&text.xml10_content()),
                Field::Size => size.push_str(&text.xml10_content()),
                Field::Other => {}
            },
            Event::GeneralRef(_) | Event::CData(_) if field != Field::Other => {
                return Err(XmlError::Unexpected("a block's name or size is no plain text".to_owned()));
            }
            Event::Eof => return Err(XmlError::Unexpected("it has no root, or the root is not closed".to_owned())),
            _ => {}
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Size,
    Other,
}

/// One entry of a Put Block List body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitEntry {
    /// The uncommitted block of this id, or else the committed one.
    Latest(String),
    /// The uncommitted block only.
    Uncommitted(String),
    /// The committed block only.
    Committed(String),
}

/// The body that commits these ids, each as `Latest`: sent again after a lost answer it finds them committed and succeeds.
pub fn block_list_xml(ids: impl IntoIterator<Item: AsRef<str>>) -> String {
    let ids = ids.into_iter();
    let mut out = String::with_capacity(80 + ids.size_hint().0.saturating_mul(64));
    out.push_str(DECLARATION);
    out.push_str("<BlockList>");
    for id in ids {
        push_element(&mut out, "Latest", id.as_ref());
    }
    out.push_str("</BlockList>");
    out
}

/// The body that commits these committed blocks once more.
pub(crate) fn committed_list_xml<'a>(ids: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = format!("{DECLARATION}<BlockList>");
    ids.into_iter().for_each(|id| push_element(&mut out, "Committed", id));
    out.push_str("</BlockList>");
    out
}

/// Reads a Put Block List body.
///
/// # Errors
/// Where it is not one, or has an element that does not belong there.
pub fn parse_block_list_body(document: &[u8]) -> Result<Vec<CommitEntry>, XmlError> {
    let root = Node::parse(document, "BlockList")?;
    root.children
        .into_iter()
        .map(|node| {
            let id = node.text.trim().to_owned();
            match &*node.name {
                "Latest" => Ok(CommitEntry::Latest(id)),
                "Uncommitted" => Ok(CommitEntry::Uncommitted(id)),
                "Committed" => Ok(CommitEntry::Committed(id)),
                other => Err(XmlError::Unexpected(format!("{other} in a block list"))),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(id: &str, size: u64) -> ListedBlock {
        ListedBlock { id: id.to_owned(), size }
    }

    #[test]
    fn listed_blocks_are_written_and_read_as_the_service_does() {
        let list = BlockList { committed: Vec::new(), uncommitted: vec![block("YWJjZA==", 100)] };
        let all = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList><CommittedBlocks /><UncommittedBlocks><Block><Name>YWJjZA==</Name><Size>100</Size></Block></UncommittedBlocks></BlockList>";
        assert_eq!(list.to_xml(BlockListType::All), all);
        assert_eq!(BlockList::parse(all.as_bytes()).unwrap(), list);
        let list = BlockList { committed: vec![block("MQ==", 3), block("Mg==", 4)], uncommitted: Vec::new() };
        let committed = list.to_xml(BlockListType::Committed);
        assert!(!committed.contains("Uncommitted"));
        assert_eq!(BlockList::parse(committed.as_bytes()).unwrap(), list);
        assert!(list.to_xml(BlockListType::Uncommitted).ends_with("<BlockList><UncommittedBlocks /></BlockList>"));
    }

    #[test]
    fn commit_body_names_every_block_as_latest() {
        let xml = block_list_xml(["AAA=", "A+/="]);
        assert_eq!(
            xml,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList><Latest>AAA=</Latest><Latest>A+/=</Latest></BlockList>"
        );
        let entries = parse_block_list_body(xml.as_bytes()).unwrap();
        assert_eq!(entries, [CommitEntry::Latest("AAA=".into()), CommitEntry::Latest("A+/=".into())]);
        assert!(parse_block_list_body(block_list_xml([""; 0]).as_bytes()).unwrap().is_empty());
    }

    #[test]
    fn commit_body_of_others_is_read() {
        let body = "<?xml version='1.0' encoding='utf-8'?>\n<BlockList>\n  <Committed>MQ==</Committed>\r\n<Uncommitted> Mg== </Uncommitted></BlockList>";
        let entries = parse_block_list_body(body.as_bytes()).unwrap();
        assert_eq!(entries, [CommitEntry::Committed("MQ==".into()), CommitEntry::Uncommitted("Mg==".into())]);
        assert!(parse_block_list_body(b"<BlockList><Newest>MQ==</Newest></BlockList>").is_err());
        assert!(parse_block_list_body(b"<BlockList><Latest>").is_err());
    }

    #[test]
    fn broken_lists_are_errors() {
        for text in [
            "<BlockList><CommittedBlocks><Block><Name>a</Name></Block></CommittedBlocks></BlockList>",
            "<BlockList><CommittedBlocks><Block><Size>1</Size></Block></CommittedBlocks></BlockList>",
            "<BlockList><CommittedBlocks><Block><Name>a</Name><Size>-1</Size></Block></CommittedBlocks></BlockList>",
            "<BlockList><CommittedBlocks><Block><Name>a</Name><Size>1</Size></Block></CommittedBlocks>",
            "<BlockList><CommittedBlocks><Block><Name>a&amp;</Name><Size>1</Size></Block></CommittedBlocks></BlockList>",
            "<BlockList></CommittedBlocks>",
            "</BlockList>",
            "<Error/>",
            "<Error></Error>",
            "",
        ] {
            assert!(BlockList::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn what_else_stands_in_a_list_is_passed_over() {
        let text = "<?xml version='1.0'?>\r\n<BlockList>\n <Other><Block><Name>x</Name></Block></Other><UncommittedBlocks>\n<Block> <Name>a</Name><New>1</New><Size> 7 </Size></Block></UncommittedBlocks></BlockList>\n";
        let list = BlockList::parse(text.as_bytes()).unwrap();
        assert_eq!(list, BlockList { committed: Vec::new(), uncommitted: vec![block("a", 7)] });
        assert_eq!(BlockList::parse(b"<BlockList />").unwrap(), BlockList::default());
    }
}
