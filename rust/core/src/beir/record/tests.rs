use super::scan::{NESTING_LIMIT, parse_line, scan_lines};
use super::{Fault, Field, Record};
use crate::simd::{Kernel, Level, Simd};
use crate::text::is_space;
use proptest::prelude::*;
use serde_json::Value;

/// What a line holds at one level; texts are decoded, stripped and counted.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Absent,
    NotString,
    Text {
        whole: String,
        stripped: String,
        characters: usize,
    },
}

struct Parse<'a>(&'a [u8]);
impl<'a> Kernel for Parse<'a> {
    type Output = Vec<(u64, &'a [u8], Result<Record<'a>, Fault>)>;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let mut seen = Vec::new();
        scan_lines(simd, self.0, |number, line, outcome| {
            seen.push((number, line, outcome));
        });
        seen
    }
}

fn see(field: Field<'_>) -> Seen {
    match field {
        Field::Absent => Seen::Absent,
        Field::NotString => Seen::NotString,
        Field::Text(text) => Seen::Text {
            whole: text.decode().into_owned(),
            stripped: text.strip().decode().into_owned(),
            characters: text.strip().characters(),
        },
    }
}

fn expect(value: Option<&Value>) -> Seen {
    match value {
        None => Seen::Absent,
        Some(Value::String(whole)) => {
            let stripped = whole.trim_matches(is_space).to_owned();
            Seen::Text {
                characters: stripped.chars().count(),
                whole: whole.clone(),
                stripped,
            }
        }
        Some(_) => Seen::NotString,
    }
}

/// The outcome of one line at every level, alone and in front of other lines; all of them must agree.
fn outcome(line: &[u8]) -> Option<Result<[Seen; 3], Fault>> {
    let fields = |record: Record<'_>| [see(record.id), see(record.title), see(record.text)];
    let alone = parse_line(line).transpose().map(|outcome| outcome.map(fields));
    if line.contains(&b'\n') {
        return alone;
    }
    let more = [
        line,
        b"\n{\"_id\": \"x\", \"text\": \"a text that is longer than one block of bytes\"}\n",
    ]
    .concat();
    for level in Level::available() {
        let mut seen = level.run(Parse(&more));
        assert_eq!(seen.pop().map(|(number, ..)| number), Some(1));
        let first = seen.pop().map(|(_, _, outcome)| outcome.map(fields));
        assert_eq!(first, alone, "{level:?}");
    }
    alone
}

fn fault(line: &str) -> String {
    outcome(line.as_bytes()).unwrap().unwrap_err().to_string()
}

fn text(line: &str) -> String {
    parse_line(line.as_bytes())
        .unwrap()
        .unwrap()
        .document_text()
        .into_owned()
}

#[test]
fn title_and_text_are_stripped_as_python_does_and_joined() {
    assert_eq!(text(r#"{"title": " T\t", "text": "\u001c B\u00a0"}"#), "T\n\nB");
    assert_eq!(text(r#"{"title": "\u2028 \n", "text": "B"}"#), "B");
    assert_eq!(text(r#"{"title": "T"}"#), "T\n\n");
    assert_eq!(text(r#"{"text": "\ud83d\ude00\u2028\u2028"}"#), "😀");
    assert_eq!(text(r#"{"text": "\u200b\\n"}"#), "\u{200b}\\n");
    assert_eq!(
        text("{\"text\": \"\u{85}\u{3000}a\u{2028}b\u{feff}\u{a0}\"}"),
        "a\u{2028}b\u{feff}"
    );
}

#[test]
fn escapes_of_every_kind_are_decoded() {
    assert_eq!(
        text(r#"{"text": "-\"\\\/\b\f\n\r\t\u00e9\ud83d\uDE00-"}"#),
        "-\"\\/\u{8}\u{c}\n\r\té😀-"
    );
}

#[test]
fn a_key_spelled_with_escapes_is_that_key() {
    assert_eq!(text(r#"{"te\u0078t": "B"}"#), "B");
    assert!(fault(r#"{"_id": "a", "\u005fid": "a"}"#).contains("twice"));
}

#[test]
fn a_field_that_is_read_may_not_stand_twice() {
    for field in ["_id", "title", "text"] {
        let line = format!(r#"{{"{field}": null, "x": 1, "{field}": "b"}}"#);
        assert_eq!(fault(&line), format!("the field '{field}' stands twice in one object"));
    }
    assert!(
        outcome(br#"{"_id": "a", "m": {"_id": 1, "_id": 2}, "x": 1, "x": 2}"#)
            .unwrap()
            .is_ok()
    );
}

#[test]
fn a_lone_surrogate_is_refused_wherever_it_stands() {
    for line in [
        r#"{"text": "\ud800"}"#,
        r#"{"text": "\udc00\ud800"}"#,
        r#"{"text": "\ud800\ud800"}"#,
        r#"{"text": "\ud800\n"}"#,
        r#"{"m": ["\udfff"]}"#,
        r#"{"\ud800": 1}"#,
    ] {
        assert!(fault(line).contains("surrogate"), "{line}");
    }
}

#[test]
fn numbers_that_only_python_writes_are_accepted() {
    assert!(
        outcome(br#"{"m": [NaN, Infinity, -Infinity, {"x": NaN}], "n": NaN}"#)
            .unwrap()
            .is_ok()
    );
    assert!(outcome(br#"{"m": -NaN}"#).unwrap().is_err());
}

#[test]
fn nesting_is_refused_below_the_limit_only() {
    for (open, close) in [("[", "]"), ("{\"k\":", "}")] {
        let nested = |depth: usize| format!(r#"{{"m":{}1{}}}"#, open.repeat(depth - 1), close.repeat(depth - 1));
        assert!(outcome(nested(NESTING_LIMIT).as_bytes()).unwrap().is_ok());
        assert!(fault(&nested(NESTING_LIMIT + 1)).contains("500 levels"));
        assert!(fault(&nested(1_000_000)).contains("500 levels"));
    }
}

#[test]
fn bytes_that_are_not_utf8_come_before_every_other_fault() {
    for line in [
        &b"{\"text\": \"caf\xe9\"}"[..],
        b"{\"text\": \"a\", \"x\": [\"\xed\xa0\x80\"]}",
        b"{bad \xff",
        b"\xff",
        b"\xc2",
    ] {
        assert!(matches!(outcome(line), Some(Err(Fault::Utf8 { .. }))), "{line:?}");
    }
}

#[test]
fn a_line_of_white_space_is_no_record() {
    for line in ["", " ", "\t\r", "\u{2028}\u{85}\u{1c}"] {
        assert_eq!(outcome(line.as_bytes()), None);
    }
    assert!(matches!(outcome("\u{feff}".as_bytes()), Some(Err(_))));
}

#[test]
fn a_row_must_be_an_object() {
    for line in ["[1]", "\"a\"", "7", "null", " [ { } ] ", "NaN"] {
        assert_eq!(outcome(line.as_bytes()), Some(Err(Fault::NotAnObject)), "{line}");
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for line in [
        "{",
        "}",
        "{]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":+1}",
        "{\"a\":1e}",
        "{\"a\":-}",
        "{\"a\":tru}",
        "{\"a\":[1,]}",
        "{\"a\":[1 2]}",
        "{\"a\":[}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"\\",
        "{\"a\":\"",
        "{'a':1}",
        "{\"a\":1} {}",
        "{\"a\":1}\u{85}",
        "\u{b}{}",
        "{\"a\":{\"b\" 1}}",
        "{\"a\":{1:2}}",
        "{\"a\":nullx}",
        "{\"a\": \"b\"\"c\": 1}",
    ] {
        assert!(
            matches!(outcome(line.as_bytes()), Some(Err(Fault::Syntax { .. }))),
            "{line}"
        );
    }
}

/// A JSON string literal that spells its characters in every way that JSON has.
fn literal() -> impl Strategy<Value = String> {
    let unit = prop_oneof![
        5 => "[a-z ]{1,40}",
        2 => any::<char>().prop_filter_map("must be escaped", |character| {
            (character >= ' ' && !matches!(character, '"' | '\\')).then(|| character.to_string())
        }),
        2 => any::<char>().prop_map(|character| {
            let mut units = [0; 2];
            character.encode_utf16(&mut units).iter().fold(String::new(), |spelled, unit| spelled + &format!("\\u{unit:04x}"))
        }),
        2 => prop::sample::select(vec!["\\n", "\\t", "\\\"", "\\\\", "\\/", "\\b", "\\f", "\\r", "\\u001c", "\u{85}", "\u{3000}", "\u{a0}"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(unit, 0..12).prop_map(|units| format!("\"{}\"", units.concat()))
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        literal(),
        prop::sample::select(vec!["null", "true", "false", "0", "-1", "1.5e+3", "{}", "[]", " [ ] "])
            .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|values| format!("[{}]", values.join(" ,"))),
            prop::collection::vec((literal(), inner), 0..4).prop_map(|members| {
                let members: Vec<_> = members.iter().map(|(key, value)| format!("{key} :{value}")).collect();
                format!("{{{}}}", members.join(", "))
            }),
        ]
    })
}

fn row() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        4 => prop::sample::select(vec!["\"_id\"", "\"title\"", "\"text\"", "\"\\u005fid\""]).prop_map(str::to_owned),
        1 => literal(),
    ];
    prop::collection::vec((key, value()), 0..6).prop_map(|members| {
        let members: Vec<_> = members.iter().map(|(key, value)| format!("{key}: {value}")).collect();
        format!("{{{}}}", members.join(","))
    })
}

fn agrees_with_serde_json(line: &[u8]) -> Result<(), TestCaseError> {
    let ours = outcome(line);
    let theirs = serde_json::from_slice::<Value>(line);
    match (ours, theirs) {
        (Some(Ok(fields)), Ok(value)) => {
            let value = |name| expect(value.get(name));
            prop_assert_eq!(fields, [value("_id"), value("title"), value("text")]);
        }
        (Some(Err(Fault::NotAnObject)), Ok(value)) => prop_assert!(!value.is_object()),
        // Their map keeps the last of two equal keys.
        (Some(Err(Fault::Twice(_))), Ok(_)) | (None | Some(Err(_)), Err(_)) => {}
        (Some(Ok(_)), Err(error)) => {
            let text = String::from_utf8_lossy(line);
            let more = ["NaN", "Infinity"].iter().any(|word| text.contains(word));
            prop_assert!(
                more || error.to_string().contains("out of range"),
                "{}: {}",
                error,
                text
            );
        }
        (ours, theirs) => prop_assert!(false, "{:?} {:?}", ours, theirs),
    }
    Ok(())
}

proptest! {
    #[test]
    fn valid_rows_are_read_as_serde_json_reads_them(line in row()) {
        agrees_with_serde_json(line.as_bytes())?;
    }

    #[test]
    fn damaged_rows_are_refused_where_serde_json_refuses_them(
        line in row(),
        at in any::<prop::sample::Index>(),
        byte in prop_oneof![any::<u8>(), prop::sample::select(&b"\"\\{}[]:, 0-e\t\r"[..])],
        cut in any::<bool>(),
    ) {
        let mut line = line.into_bytes();
        let at = at.index(line.len());
        if cut {
            line.truncate(at);
        } else {
            line[at] = byte;
        }
        prop_assume!(!line.contains(&b'\n'));
        agrees_with_serde_json(&line)?;
    }
}
