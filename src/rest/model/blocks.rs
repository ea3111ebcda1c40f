//! Block lists: what Get Block List answers and what Put Block List takes.
//! Sources: "Get Block List", "Put Block List", Azure Storage REST reference.

use super::xml::{BOM, DECLARATION, Node, XmlError, push_element};

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
        let root = Node::parse(document, "BlockList")?;
        let read = |name: &str| -> Result<Vec<ListedBlock>, XmlError> {
            let Some(list) = root.child(name) else { return Ok(Vec::new()) };
            list.children.iter().filter(|c| c.name == "Block").map(read_block).collect()
        };
        Ok(BlockList { committed: read("CommittedBlocks")?, uncommitted: read("UncommittedBlocks")? })
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

fn read_block(node: &Node<'_>) -> Result<ListedBlock, XmlError> {
    let wrong = |what: &str| XmlError::Unexpected(format!("a block has no {what}"));
    let id = node.child_text("Name").ok_or_else(|| wrong("Name"))?.to_owned();
    let size = node.child_text("Size").and_then(|s| s.parse().ok()).ok_or_else(|| wrong("Size that is a number"))?;
    Ok(ListedBlock { id, size })
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
        for text in ["<BlockList><CommittedBlocks><Block><Name>a</Name></Block></CommittedBlocks></BlockList>", "<Error/>", ""] {
            assert!(BlockList::parse(text.as_bytes()).is_err());
        }
    }
}
