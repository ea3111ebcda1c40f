//! The small expression language over blob index tags, in `x-ms-if-tags` and Find Blobs by Tags: comparisons of a quoted or
//! bare name with a `'value'`, joined by AND and OR ("Find Blobs by Tags").

/// A parsed expression: alternatives of conjunctions (AND binds tighter).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Filter(Vec<Vec<Comparison>>);

#[derive(Debug, PartialEq, Eq)]
struct Comparison {
    name: String,
    operator: Operator,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Filter {
    /// Reads an expression; `None` if it is none.
    pub(crate) fn parse(text: &str) -> Option<Filter> {
        let mut rest = text.trim();
        let mut alternatives = vec![Vec::new()];
        loop {
            let (name, after) = name(rest)?;
            let (operator, after) = operator(after.trim_start())?;
            let (value, after) = quoted(after.trim_start(), '\'')?;
            alternatives.last_mut()?.push(Comparison { name, operator, value });
            rest = after.trim_start();
            if rest.is_empty() {
                return Some(Filter(alternatives));
            }
            let (word, after) = rest.split_once(' ')?;
            match word.to_ascii_uppercase().as_str() {
                "AND" => {}
                "OR" => alternatives.push(Vec::new()),
                _ => return None,
            }
            rest = after.trim_start();
        }
    }

    /// Whether tags fulfil the expression; an absent tag fulfils only `<>`.
    pub(crate) fn matches(&self, tags: &[(String, String)]) -> bool {
        self.0.iter().any(|all| all.iter().all(|comparison| comparison.holds(tags)))
    }

    /// The container named by `@container = 'x'`, if the expression has that in its first conjunction.
    pub(crate) fn container(&self) -> Option<&str> {
        self.0.first()?.iter().find(|c| c.name == "@container").map(|c| c.value.as_str())
    }

    /// The names the expression speaks of, `@container` aside: the tags that a find returns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().map(|c| c.name.as_str()).filter(|name| *name != "@container")
    }
}

impl Comparison {
    fn holds(&self, tags: &[(String, String)]) -> bool {
        if self.name == "@container" {
            return true;
        }
        let Some((_, value)) = tags.iter().find(|(name, _)| *name == self.name) else {
            return self.operator == Operator::NotEqual;
        };
        match self.operator {
            Operator::Equal => *value == self.value,
            Operator::NotEqual => *value != self.value,
            Operator::Less => *value < self.value,
            Operator::LessOrEqual => *value <= self.value,
            Operator::Greater => *value > self.value,
            Operator::GreaterOrEqual => *value >= self.value,
        }
    }
}

fn name(text: &str) -> Option<(String, &str)> {
    if text.starts_with('"') {
        return quoted(text, '"');
    }
    let end = text.find(|c: char| c.is_whitespace() || "=<>'\"".contains(c)).unwrap_or(text.len());
    (end > 0).then(|| (text[..end].to_owned(), &text[end..]))
}

fn operator(text: &str) -> Option<(Operator, &str)> {
    let table = [
        ("<>", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("=", Operator::Equal),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    table.into_iter().find_map(|(sign, operator)| text.strip_prefix(sign).map(|rest| (operator, rest)))
}

fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let (inner, rest) = text.strip_prefix(quote)?.split_once(quote)?;
    Some((inner.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_match_as_they_read() {
        let tags = [("a".to_owned(), "1".to_owned()), ("b c".to_owned(), "x".to_owned())];
        for (text, want) in [
            ("a = '1'", true),
            ("a='2'", false),
            ("\"b c\" = 'x' AND a = '1'", true),
            ("\"b c\" = 'x' and a = '2'", false),
            ("a = '2' OR \"b c\" >= 'w'", true),
            ("a <> '2'", true),
            ("none <> '1'", true),
            ("none = ''", false),
            ("@container = 'c' AND a > '0' AND a < '2'", true),
        ] {
            assert_eq!(Filter::parse(text).map(|f| f.matches(&tags)), Some(want), "{text}");
        }
        for bad in ["", "a", "a =", "a = 1", "a = '1' b = '2'", "= '1'", "a = '1' AND"] {
            assert_eq!(Filter::parse(bad), None, "{bad}");
        }
    }
}
