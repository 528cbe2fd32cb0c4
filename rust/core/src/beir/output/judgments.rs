//! The lines of `judgments.jsonl`, as Python's `json.dumps(row, ensure_ascii=False)` writes them.

use std::io::{self, Write};

/// Start a line: everything before the first gold quote.
///
/// # Errors
/// What `output` returns.
pub fn start(output: &mut impl Write, query_id: &str, query: &str) -> io::Result<()> {
    output.write_all(b"{\"query_id\": ")?;
    string(output, query_id)?;
    output.write_all(b", \"query\": ")?;
    string(output, query)?;
    output.write_all(b", \"category\": \"normal\", \"gold\": [")
}

/// Write one gold quote; `is_first` tells whether no other precedes it on the line.
///
/// # Errors
/// What `output` returns.
pub fn gold(output: &mut impl Write, is_first: bool, document: &str, quote: &str) -> io::Result<()> {
    output.write_all(if is_first { b"{\"doc\": " } else { b", {\"doc\": " })?;
    string(output, document)?;
    output.write_all(b", \"quote\": ")?;
    string(output, quote)?;
    output.write_all(b"}")
}

/// End the line.
///
/// # Errors
/// What `output` returns.
pub fn end(output: &mut impl Write) -> io::Result<()> {
    output.write_all(b"]}\n")
}

fn string(output: &mut impl Write, text: &str) -> io::Result<()> {
    output.write_all(b"\"")?;
    let mut rest = text.as_bytes();
    while let Some(position) = rest
        .iter()
        .position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
    {
        output.write_all(&rest[..position])?;
        match rest[position] {
            b'"' => output.write_all(b"\\\"")?,
            b'\\' => output.write_all(b"\\\\")?,
            b'\n' => output.write_all(b"\\n")?,
            b'\r' => output.write_all(b"\\r")?,
            b'\t' => output.write_all(b"\\t")?,
            0x08 => output.write_all(b"\\b")?,
            0x0c => output.write_all(b"\\f")?,
            control => write!(output, "\\u{control:04x}")?,
        }
        rest = &rest[position + 1..];
    }
    output.write_all(rest)?;
    output.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_what_python_writes() {
        let mut line = Vec::new();
        start(&mut line, "q1", "what \"is\"\u{7f}\u{1f}?").unwrap();
        gold(&mut line, true, "d1.txt", "a\\b\n\r\t\u{8}\u{c}\u{2028}é").unwrap();
        gold(&mut line, false, "d2.txt", "").unwrap();
        end(&mut line).unwrap();
        // Printed by json.dumps(row, ensure_ascii=False) of CPython 3.11.
        let expected = concat!(
            r#"{"query_id": "q1", "query": "what \"is\""#,
            "\u{7f}",
            r#"\u001f?", "category": "normal", "gold": [{"doc": "d1.txt", "quote": "a\\b\n\r\t\b\f"#,
            "\u{2028}é",
            r#""}, {"doc": "d2.txt", "quote": ""}]}"#,
            "\n"
        );
        assert_eq!(String::from_utf8(line).unwrap(), expected);
    }

    proptest! {
        #[test]
        fn a_parser_reads_back_what_was_written(text in any::<String>()) {
            let mut written = Vec::new();
            string(&mut written, &text).unwrap();
            prop_assert_eq!(serde_json::from_slice::<String>(&written).unwrap(), text);
        }
    }
}
