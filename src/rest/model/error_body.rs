//! The body of an error answer. Source: "Status and error codes", Azure Storage REST reference.

use super::xml::{BOM, DECLARATION, Node, push_element};

/// `<Error>`: code, message and whatever else the service says about this kind of error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorBody {
    /// Error code.
    pub code: String,
    /// The whole message; request id and time stand on lines of their own after the first.
    pub message: String,
    /// Every other element by name, in order, e.g. `AuthenticationErrorDetail` or `HeaderName`.
    pub details: Vec<(String, String)>,
}

/// The service writes a line feed after the XML declaration for some operations and none for others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spelling {
    /// `…?><Error>`.
    #[default]
    Joined,
    /// `…?>` line feed `<Error>`: some reads, tags, undelete, parts of a batch.
    Broken,
}

impl ErrorBody {
    /// Reads a body; `None` where it is empty or not an error document (a gateway's HTML, for example).
    pub fn parse(body: &[u8]) -> Option<ErrorBody> {
        let node = Node::parse(body, "Error").ok()?;
        let mut error = ErrorBody::default();
        for child in &node.children {
            match &*child.name {
                "Code" => error.code = child.text.clone().into_owned(),
                "Message" => error.message = child.text.clone().into_owned(),
                name => error.details.push((name.to_owned(), child.text.clone().into_owned())),
            }
        }
        Some(error)
    }

    /// First line of the message: what it says, without request id and time.
    pub fn first_line(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// Writes the body as the service does, byte order mark included.
    pub fn to_xml(&self, spelling: Spelling) -> String {
        let mut out = String::with_capacity(256);
        out.push_str(BOM);
        out.push_str(DECLARATION);
        if spelling == Spelling::Broken {
            out.push('\n');
        }
        out.push_str("<Error>");
        push_element(&mut out, "Code", &self.code);
        push_element(&mut out, "Message", &self.message);
        for (name, value) in &self.details {
            push_element(&mut out, name, value);
        }
        out.push_str("</Error>");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>InvalidHeaderValue</Code><Message>The value for one of the HTTP headers is not in the correct format.\nRequestId:0\nTime:T</Message><HeaderName>Content-Length</HeaderName><HeaderValue>0</HeaderValue></Error>";

    fn expected() -> ErrorBody {
        ErrorBody {
            code: "InvalidHeaderValue".into(),
            message: "The value for one of the HTTP headers is not in the correct format.\nRequestId:0\nTime:T".into(),
            details: vec![("HeaderName".into(), "Content-Length".into()), ("HeaderValue".into(), "0".into())],
        }
    }

    #[test]
    fn every_spelling_is_read() {
        for body in [
            PLAIN.to_owned(),
            PLAIN.replace("?><Error>", "?>\n<Error>"),
            PLAIN.trim_start_matches(BOM).to_owned(),
            PLAIN.replace(BOM, "").replace(DECLARATION, "<?xml version='1.0' standalone='yes'?>\r\n"),
        ] {
            let error = ErrorBody::parse(body.as_bytes()).unwrap();
            assert_eq!(error, expected());
            assert_eq!(error.first_line(), "The value for one of the HTTP headers is not in the correct format.");
        }
    }

    #[test]
    fn it_is_written_as_the_service_does() {
        assert_eq!(expected().to_xml(Spelling::Joined), PLAIN);
        assert_eq!(expected().to_xml(Spelling::Broken), PLAIN.replace("?><Error>", "?>\n<Error>"));
        let reasonless = ErrorBody { details: vec![("Reason".into(), String::new())], ..ErrorBody::default() };
        assert!(reasonless.to_xml(Spelling::Joined).ends_with("<Reason /></Error>"));
    }

    #[test]
    fn other_bodies_are_none() {
        for body in ["", "<html><body>502 Bad Gateway</body></html>", "{\"odata.error\":{}}", "<Error><Code>X</Co", "\u{feff}"] {
            assert_eq!(ErrorBody::parse(body.as_bytes()), None, "{body}");
        }
        assert_eq!(ErrorBody::parse(b"\xff\xfe<\0"), None);
    }
}
