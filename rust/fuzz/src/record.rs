//! The record scanner accepts exactly what another JSON parser accepts, and reads the same strings.

use std::borrow::Cow;
use std::fmt;

use groundkit_core::beir::record::scan::{NESTING_LIMIT, parse_line, scan_lines};
use groundkit_core::beir::record::{Field, Record};
use groundkit_core::simd::{Kernel, Level, Simd};
use groundkit_core::text::is_space;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The value of a field: absent, no string, or a string.
type Value = Option<Option<String>>;

/// `_id`, `title` and `text` of a row; nothing for a blank line.
type Row = Option<[Value; 3]>;

/// Take `data` as lines of a file.
///
/// # Panics
/// When the scanner and the other parser disagree, or two ways to call the scanner do.
pub fn check(data: &[u8]) {
    let mut expected = Vec::new();
    for (number, line) in (0..).zip(data.split_inclusive(|&byte| byte == b'\n')) {
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let row = read_with_serde(content);
        let found = parse_line(content).map(|record| record.map(|record| values(&record)));
        assert_eq!(
            found.as_ref().ok(),
            row.as_ref(),
            "{found:?} in {:?}",
            String::from_utf8_lossy(content)
        );
        if row != Some(None) {
            expected.push((number, line.to_vec(), row.flatten()));
        }
    }
    for level in Level::available() {
        assert_eq!(level.run(Each(data)), expected, "{level:?}");
    }
}

fn values(record: &Record<'_>) -> [Value; 3] {
    [record.id, record.title, record.text].map(|field| match field {
        Field::Absent => None,
        Field::NotString => Some(None),
        Field::Text(text) => {
            let decoded = text.decode();
            let stripped = text.strip();
            assert_eq!(text.characters(), decoded.chars().count());
            assert_eq!(stripped.decode(), decoded.trim_matches(is_space));
            assert_eq!(stripped.characters(), stripped.decode().chars().count());
            Some(Some(decoded.into_owned()))
        }
    })
}

struct Each<'a>(&'a [u8]);

impl Kernel for Each<'_> {
    type Output = Vec<(u64, Vec<u8>, Option<[Value; 3]>)>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let mut found = Vec::new();
        scan_lines(simd, self.0, |number, line, outcome| {
            found.push((number, line.to_vec(), outcome.ok().map(|record| values(&record))));
        });
        found
    }
}

/// Read one line by the rules, with `serde_json`; nothing where it is refused.
fn read_with_serde(line: &[u8]) -> Option<Row> {
    let line = std::str::from_utf8(line).ok()?;
    if line.chars().all(is_space) {
        return Some(None);
    }
    let standard = standardise(line)?;
    let mut parser = serde_json::Deserializer::from_str(&standard);
    let row = parser.deserialize_map(Fields).ok()?;
    parser.end().ok()?;
    Some(Some(row))
}

/// Replace what Python's writers add to JSON, and refuse lone surrogates and deep nesting, which `serde_json` passes over.
fn standardise(line: &str) -> Option<String> {
    let mut standard = String::with_capacity(line.len());
    let mut rest = line;
    let (mut depth, mut deepest) = (0_usize, 0);
    while let Some(character) = rest.chars().next() {
        let constant = ["-Infinity", "Infinity", "NaN"]
            .into_iter()
            .find(|constant| rest.starts_with(constant));
        let length = match (character, constant) {
            ('"', _) => {
                let length = string_length(rest);
                has_whole_pairs(&rest[..length]).then_some(())?;
                length
            }
            (_, Some(constant)) => {
                standard.push_str("null");
                rest = &rest[constant.len()..];
                continue;
            }
            _ => {
                match character {
                    '{' | '[' => depth += 1,
                    '}' | ']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                deepest = deepest.max(depth);
                character.len_utf8()
            }
        };
        standard.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    (deepest <= NESTING_LIMIT).then_some(standard)
}

/// Bytes of the string literal at the start of `text`, or of all of it where it does not end.
fn string_length(text: &str) -> usize {
    let mut escaped = true; // the opening mark
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return position + 1,
            _ => {}
        }
    }
    text.len()
}

fn has_whole_pairs(literal: &str) -> bool {
    let mut rest = literal;
    while let Some(position) = rest.find('\\') {
        rest = &rest[position + 1..];
        let unit = |text: &str| {
            text.strip_prefix('u')
                .and_then(|digits| u32::from_str_radix(digits.get(..4)?, 16).ok())
        };
        match unit(rest) {
            Some(0xd800..0xdc00) => {
                let low = rest.get(5..).and_then(|after| after.strip_prefix('\\')).and_then(unit);
                if !low.is_some_and(|low| (0xdc00..0xe000).contains(&low)) {
                    return false;
                }
                rest = &rest[11..];
            }
            Some(0xdc00..0xe000) => return false,
            _ => {
                let length = rest.chars().next().map_or(0, char::len_utf8);
                rest = &rest[length..];
            }
        }
    }
    true
}

/// Reads the three fields, each at most once.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = [Value; 3];

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = [const { None }; 3];
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let raw = map.next_value::<&RawValue>()?.get();
            let Some(position) = ["_id", "title", "text"].iter().position(|name| *name == key) else {
                continue;
            };
            let string = raw.starts_with('"').then(|| serde_json::from_str(raw)).transpose();
            let string = string.map_err(serde::de::Error::custom)?;
            if fields[position].replace(string).is_some() {
                return Err(serde::de::Error::custom("twice"));
            }
        }
        Ok(fields)
    }
}
