//! One line of `corpus.jsonl` or `queries.jsonl`: strict JSON, of which three strings are read and the rest is checked.
//!
//! The grammar is RFC 8259, plus `NaN`, `Infinity` and `-Infinity`, which Python writers emit. A lone surrogate escape
//! is refused wherever it stands in the row, also in fields that are not read.

pub mod classify;

use std::borrow::Cow;

use memchr::memchr;

use crate::text::is_space;
use classify::{Block, Lanes, WIDTH, best_level};

use crate::simd::{Kernel, Simd};

/// Deepest nesting of objects and arrays, the row itself included.
pub const NESTING_LIMIT: usize = 500;

/// What stands between title and text.
pub const TITLE_SEPARATOR: &str = "\n\n";

/// A JSON string as it stands in the line, checked, with its length in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawString<'a> {
    raw: &'a [u8],
    /// Whether `raw` holds an escape.
    escaped: bool,
    /// How many bytes of `raw` are not counted as a character.
    uncounted: usize,
}

/// The value of a field that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Field<'a> {
    /// The object has no such key.
    #[default]
    Absent,
    /// A value that is not a string.
    NotString,
    /// A string.
    Text(RawString<'a>),
}

/// The fields that are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record<'a> {
    /// `_id`
    pub id: Field<'a>,
    /// `title`
    pub title: Field<'a>,
    /// `text`
    pub text: Field<'a>,
}

/// Why a line is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The line is not UTF-8.
    #[error("not valid UTF-8 (byte {at} of the line)")]
    Utf8 {
        /// Byte of the line, from 1.
        at: usize,
    },
    /// The line is not JSON.
    #[error("{what} (byte {at} of the line)")]
    Syntax {
        /// What is wrong.
        what: &'static str,
        /// Byte of the line, from 1.
        at: usize,
    },
    /// The line is JSON, but no object.
    #[error("each line must be a JSON object")]
    NotAnObject,
    /// A field that is read stands twice in the object.
    #[error("the field '{0}' stands twice in one object")]
    Twice(&'static str),
    /// An escape stands for half of a surrogate pair.
    #[error("an escaped lone surrogate, which no UTF-8 text can hold (byte {at} of the line)")]
    Surrogate {
        /// Byte of the line, from 1.
        at: usize,
    },
}

impl<'a> RawString<'a> {
    /// Length in characters (code points).
    #[must_use]
    #[inline]
    pub fn characters(self) -> usize {
        self.raw.len() - self.uncounted
    }

    /// A lower bound of the length in bytes: exact without escapes, else one byte a character.
    #[must_use]
    #[inline]
    pub fn least_bytes(self) -> usize {
        if self.escaped {
            self.characters()
        } else {
            self.raw.len()
        }
    }

    /// Whether the string has no character.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// Remove white space as Python's `str.strip` does.
    #[must_use]
    #[inline]
    pub fn strip(self) -> Self {
        if !self.escaped && is_plain(self.raw.first()) && is_plain(self.raw.last()) {
            return self;
        }
        self.strip_slowly()
    }

    fn strip_slowly(mut self) -> Self {
        if !self.escaped {
            // Unescaped, the space is the only white space in ASCII.
            while let [b' ', rest @ ..] = self.raw {
                self.raw = rest;
            }
            while let [rest @ .., b' '] = self.raw {
                self.raw = rest;
            }
            if is_plain(self.raw.first()) && is_plain(self.raw.last()) {
                return self;
            }
        }
        while let Some((character, length)) = first_unit(self.raw)
            && is_space(character)
        {
            self.uncounted -= length - 1;
            self.raw = &self.raw[length..];
        }
        while let Some((character, length)) = last_unit(self.raw)
            && is_space(character)
        {
            self.uncounted -= length - 1;
            self.raw = &self.raw[..self.raw.len() - length];
        }
        self
    }

    /// The characters themselves; borrowed where the string has no escape.
    ///
    /// # Panics
    /// Never: the string was checked when it was parsed.
    #[must_use]
    pub fn decode(self) -> Cow<'a, str> {
        match self.bytes() {
            Cow::Borrowed(raw) => Cow::Borrowed(checked(raw)),
            Cow::Owned(decoded) => Cow::Owned(checked_string(decoded)),
        }
    }

    /// The characters as UTF-8; borrowed where the string has no escape.
    #[must_use]
    #[inline]
    pub fn bytes(self) -> Cow<'a, [u8]> {
        if !self.escaped {
            return Cow::Borrowed(self.raw);
        }
        let mut decoded = Vec::with_capacity(self.raw.len());
        self.decode_into(&mut decoded);
        Cow::Owned(decoded)
    }

    /// Append the characters to `decoded`, as UTF-8.
    fn decode_into(self, decoded: &mut Vec<u8>) {
        let mut rest = self.raw;
        while self.escaped
            && let Some(plain) = memchr(b'\\', rest)
        {
            decoded.extend_from_slice(&rest[..plain]);
            let (character, length) = escaped_unit(&rest[plain..]);
            decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            rest = &rest[plain + length..];
        }
        decoded.extend_from_slice(rest);
    }
}

/// Whether a byte is neither white space nor part of a character or escape that could be.
fn is_plain(byte: Option<&u8>) -> bool {
    byte.is_none_or(|&byte| byte > b' ' && byte < 0x7f && byte != b'\\')
}

fn checked(raw: &[u8]) -> &str {
    simdutf8::basic::from_utf8(raw).expect("checked when it was parsed")
}

fn checked_string(decoded: Vec<u8>) -> String {
    String::from_utf8(decoded).expect("checked when it was parsed")
}

/// The first character of a checked raw string, and how many bytes spell it.
fn first_unit(raw: &[u8]) -> Option<(char, usize)> {
    match *raw.first()? {
        b'\\' => Some(escaped_unit(raw)),
        first => {
            let length = match first {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            let character = checked(&raw[..length]).chars().next()?;
            Some((character, length))
        }
    }
}

/// The last character of a checked raw string, and how many bytes spell it.
fn last_unit(raw: &[u8]) -> Option<(char, usize)> {
    let end = raw.len();
    // An escape is `\x`, `\uXXXX` or two of the latter; its backslash is not itself escaped.
    for length in [12, 6, 2] {
        let Some(start) = end.checked_sub(length) else {
            continue;
        };
        if raw[start] == b'\\' && backslashes_before(raw, start).is_multiple_of(2) {
            let (character, spelled) = escaped_unit(&raw[start..]);
            if spelled == length {
                return Some((character, length));
            }
        }
    }
    let length = raw
        .iter()
        .rev()
        .take_while(|&&byte| (0x80..0xc0).contains(&byte))
        .count()
        + 1;
    let character = checked(&raw[end.checked_sub(length)?..]).chars().next()?;
    Some((character, length))
}

fn backslashes_before(raw: &[u8], position: usize) -> usize {
    raw[..position].iter().rev().take_while(|&&byte| byte == b'\\').count()
}

/// The character of the checked escape at the start of `raw`, and its length.
fn escaped_unit(raw: &[u8]) -> (char, usize) {
    match raw[1] {
        b'n' => ('\n', 2),
        b't' => ('\t', 2),
        b'r' => ('\r', 2),
        b'b' => ('\u{8}', 2),
        b'f' => ('\u{c}', 2),
        b'u' => {
            let unit = hexadecimal(&raw[2..]).unwrap_or(0);
            // The second half of a pair is no unit of its own, but `last_unit` may ask.
            if !(0xd800..0xdc00).contains(&unit) {
                return (char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER), 6);
            }
            let low = raw.get(8..).and_then(hexadecimal).unwrap_or(0);
            let code = 0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        other => (char::from(other), 2),
    }
}

const NO_DIGIT: u8 = 0xff;

const HEXADECIMAL: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0_u8;
    while value < 16 {
        let spelled = b"0123456789abcdef"[value as usize];
        digits[spelled as usize] = value;
        digits[spelled.to_ascii_uppercase() as usize] = value;
        value += 1;
    }
    digits
};

/// The number that the first four bytes spell.
#[inline(always)]
fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let digits = digits.first_chunk::<4>()?.map(|digit| HEXADECIMAL[usize::from(digit)]);
    let number = digits.iter().fold(0, |number, &digit| number << 4 | u32::from(digit));
    digits.iter().all(|&digit| digit != NO_DIGIT).then_some(number)
}

impl<'a> Field<'a> {
    /// The string, or none.
    #[must_use]
    #[inline]
    pub fn text(self) -> Option<RawString<'a>> {
        match self {
            Field::Text(text) => Some(text),
            Field::Absent | Field::NotString => None,
        }
    }
}

impl Record<'_> {
    /// Length in characters of the document's text, zero where it has none, and a lower bound of its length in bytes.
    #[must_use]
    #[inline]
    pub fn document_length(&self) -> (usize, usize) {
        let length = |field: &Field<'_>| {
            field.text().map_or((0, 0), |text| {
                let text = text.strip();
                (text.characters(), text.least_bytes())
            })
        };
        let (title, text) = (length(&self.title), length(&self.text));
        if title.0 == 0 {
            text
        } else {
            (
                title.0 + TITLE_SEPARATOR.len() + text.0,
                title.1 + TITLE_SEPARATOR.len() + text.1,
            )
        }
    }

    /// The document's text: the stripped title, a blank line and the stripped text, or the stripped text alone.
    ///
    /// Borrowed where there is neither a title nor an escape.
    ///
    /// ```
    /// use groundkit_core::beir::record::parse_line;
    /// let record = parse_line(br#"{"_id": "d1", "title": " T ", "text": "a\u00e9\n"}"#).unwrap().unwrap();
    /// assert_eq!(record.document_text(), "T\n\na\u{e9}");
    /// ```
    #[must_use]
    pub fn document_text(&self) -> Cow<'_, str> {
        match (self.title.text().map(RawString::strip), self.text.text()) {
            (None, Some(text)) => text.strip().decode(),
            (Some(title), Some(text)) if title.is_empty() => text.strip().decode(),
            (title, text) => {
                let mut document = Vec::new();
                if let Some(title) = title.filter(|title| !title.is_empty()) {
                    title.decode_into(&mut document);
                    document.extend_from_slice(TITLE_SEPARATOR.as_bytes());
                }
                if let Some(text) = text {
                    document.reserve(text.raw.len());
                    text.strip().decode_into(&mut document);
                }
                Cow::Owned(checked_string(document))
            }
        }
    }
}

/// Parse one line, without its line feed; `None` where it holds white space only.
///
/// # Errors
/// The first fault, where bytes that are not UTF-8 anywhere in the line come before any other.
pub fn parse_line(line: &[u8]) -> Result<Option<Record<'_>>, Fault> {
    struct Line<'a>(&'a [u8]);
    impl<'a> Kernel for Line<'a> {
        type Output = Result<Option<Record<'a>>, Fault>;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            match parse(simd, self.0) {
                Ok((record, _)) => Ok(Some(record)),
                Err(_) => diagnose(simd, self.0),
            }
        }
    }
    best_level().run(Line(line))
}

/// Visit every line of `input` that does not hold white space only: the number of the line from 0, its bytes with its
/// line end, and what it holds. Returns the number of lines.
#[inline(always)]
pub fn each<'a, L: Lanes>(
    lanes: L,
    input: &'a [u8],
    mut visit: impl FnMut(u64, &'a [u8], Result<Record<'a>, Fault>),
) -> u64 {
    let mut number = 0;
    let mut start = 0;
    while let Some(rest) = input.get(start..).filter(|rest| !rest.is_empty()) {
        let length = if let Ok((record, length)) = parse(lanes, rest) {
            visit(number, &rest[..length], Ok(record));
            length
        } else {
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let length = rest.len().min(end + 1);
            match diagnose(lanes, &rest[..end]).transpose() {
                None => {}
                Some(outcome) => visit(number, &rest[..length], outcome),
            }
            length
        };
        start += length;
        number += 1;
    }
    number
}

/// Say what is wrong with a line that did not parse.
#[cold]
#[inline(never)]
fn diagnose<L: Lanes>(lanes: L, line: &[u8]) -> Result<Option<Record<'_>>, Fault> {
    match std::str::from_utf8(line) {
        Err(error) => Err(Fault::Utf8 {
            at: error.valid_up_to() + 1,
        }),
        Ok(text) if text.chars().all(is_space) => Ok(None),
        Ok(_) => parse(lanes, line).map(|(record, _)| Some(record)),
    }
}

const fn syntax<T>(what: &'static str, position: usize) -> Result<T, Fault> {
    Err(Fault::Syntax { what, at: position + 1 })
}

/// Parse the record at the start of `input`, which may go on with further lines. Returns the length of the line.
#[inline(always)]
fn parse<L: Lanes>(lanes: L, input: &[u8]) -> Result<(Record<'_>, usize), Fault> {
    let mut record = Record::default();
    let mut position = skip_space(input, 0);
    if input.get(position) != Some(&b'{') {
        position = skip_value(lanes, input, position, 0)?;
        end_of_line(input, position)?;
        return Err(Fault::NotAnObject);
    }
    position = skip_space(input, position + 1);
    if input.get(position) == Some(&b'}') {
        return Ok((record, end_of_line(input, position + 1)?));
    }
    loop {
        // The usual spellings of the fields that are read need no scan.
        let rest = &input[position.min(input.len())..];
        let usual = if rest.starts_with(b"\"_id\"") {
            Some((b"_id".as_slice(), 5))
        } else if rest.starts_with(b"\"text\"") {
            Some((b"text".as_slice(), 6))
        } else if rest.starts_with(b"\"title\"") {
            Some((b"title".as_slice(), 7))
        } else {
            None
        };
        let (key, after) = if let Some((key, length)) = usual {
            (Cow::Borrowed(key), position + length)
        } else {
            if input.get(position) != Some(&b'"') {
                return syntax("expected a key in quotation marks", position);
            }
            let (key, after) = string::<L, false>(lanes, input, position + 1)?;
            (key.bytes(), after)
        };
        position = skip_space(input, after);
        if input.get(position) != Some(&b':') {
            return syntax("expected ':' after a key", position);
        }
        position = skip_space(input, position + 1);
        let field = field_of(&mut record, &key);
        match field {
            Some((name, field)) => {
                if *field != Field::Absent {
                    return Err(Fault::Twice(name));
                }
                if input.get(position) == Some(&b'"') {
                    let (value, after) = string::<L, true>(lanes, input, position + 1)?;
                    *field = Field::Text(value);
                    position = after;
                } else {
                    position = skip_value(lanes, input, position, 1)?;
                    *field = Field::NotString;
                }
            }
            None => position = skip_value(lanes, input, position, 1)?,
        }
        position = skip_space(input, position);
        match input.get(position) {
            Some(b',') => position = skip_space(input, position + 1),
            Some(b'}') => return Ok((record, end_of_line(input, position + 1)?)),
            _ => return syntax("expected ',' or '}' after a value", position),
        }
    }
}

#[inline(always)]
fn field_of<'r, 'a>(record: &'r mut Record<'a>, key: &[u8]) -> Option<(&'static str, &'r mut Field<'a>)> {
    match key {
        b"_id" => Some(("_id", &mut record.id)),
        b"text" => Some(("text", &mut record.text)),
        b"title" => Some(("title", &mut record.title)),
        _ => None,
    }
}

/// Skip JSON's white space, of which a line feed ends the line.
#[inline(always)]
fn skip_space(input: &[u8], mut position: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r') = input.get(position) {
        position += 1;
    }
    position
}

/// Expect nothing but white space up to the end of the line; returns the length of the line with its line feed.
#[inline(always)]
fn end_of_line(input: &[u8], position: usize) -> Result<usize, Fault> {
    let position = skip_space(input, position);
    match input.get(position) {
        None => Ok(position),
        Some(b'\n') => Ok(position + 1),
        Some(_) => syntax("expected the end of the line after the value", position),
    }
}

/// Read the string whose opening quotation mark stands before `start`; returns it and the position after it.
#[inline(always)]
fn string<L: Lanes, const COUNTED: bool>(
    lanes: L,
    input: &[u8],
    start: usize,
) -> Result<(RawString<'_>, usize), Fault> {
    let mut position = start;
    let mut escaped = false;
    let mut uncounted = 0;
    // The bytes beyond ASCII that are still to be checked: those of blocks in a row, from the first such byte to after
    // the last, and where a next block would have to start.
    let mut unchecked = 0..0;
    let mut next = 0;
    loop {
        let padded;
        let block = if let Some(block) = input[position..].first_chunk() {
            block
        } else {
            padded = pad(&input[position..]);
            &padded
        };
        let masks = lanes.masks(block);
        let mut special = masks.special;
        let mut length = WIDTH;
        let end = loop {
            if special == 0 {
                break None;
            }
            let at = special.trailing_zeros() as usize;
            match block[at] {
                b'"' => break Some(at),
                b'\\' => {
                    let spelled = escape(input, position + at)?;
                    escaped = true;
                    uncounted += spelled - 1;
                    length = WIDTH.max(at + spelled);
                    special &= bits_from(at + spelled);
                }
                b'\n' => return syntax("the line ends inside a string", position + at),
                _ => return syntax("a control character must be escaped in a string", position + at),
            }
        };
        let within = !bits_from(end.unwrap_or(WIDTH));
        if COUNTED {
            uncounted += (masks.continuation & within).count_ones() as usize;
        }
        let non_ascii = masks.non_ascii & within;
        if non_ascii != 0 {
            if position != next {
                check_utf8(input, unchecked, start)?;
                unchecked = position + non_ascii.trailing_zeros() as usize..0;
            }
            unchecked.end = position + WIDTH - non_ascii.leading_zeros() as usize;
            next = position + length;
        }
        if let Some(end) = end {
            check_utf8(input, unchecked, start)?;
            let string = RawString {
                raw: &input[start..position + end],
                escaped,
                uncounted,
            };
            return Ok((string, position + end + 1));
        }
        position += length;
        // A short string ends in the first block; a long one is mostly plain.
        while let Some(block) = input[position..].first_chunk()
            && lanes.is_plain(block)
        {
            position += WIDTH;
        }
    }
}

/// The bits of a mask from bit `first` on.
#[inline(always)]
fn bits_from(first: usize) -> u64 {
    if first < WIDTH { u64::MAX << first } else { 0 }
}

/// A block of what is left of the input and line feeds, which end any string.
#[cold]
fn pad(rest: &[u8]) -> Block {
    let mut block = [b'\n'; WIDTH];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// Check a part of the string that starts at `start`; whatever stands before and after it is ASCII.
#[inline(always)]
fn check_utf8(input: &[u8], part: std::ops::Range<usize>, start: usize) -> Result<(), Fault> {
    if part.is_empty() || simdutf8::basic::from_utf8(&input[part]).is_ok() {
        Ok(())
    } else {
        Err(Fault::Utf8 { at: start + 1 })
    }
}

/// Check the escape at `position` and return its length.
#[inline(always)]
fn escape(input: &[u8], position: usize) -> Result<usize, Fault> {
    match input.get(position + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') => match input.get(position + 2..).and_then(hexadecimal) {
            Some(0xd800..0xe000) => surrogates(input, position),
            Some(_) => Ok(6),
            None => syntax("expected four hexadecimal digits after '\\u'", position),
        },
        _ => syntax("an unknown escape in a string", position),
    }
}

/// Check the escape of half a surrogate pair at `position` and return the length of the pair.
#[cold]
fn surrogates(input: &[u8], position: usize) -> Result<usize, Fault> {
    let unit = |at: usize| input.get(at..).and_then(hexadecimal);
    match (
        unit(position + 2),
        input.get(position + 6..position + 8),
        unit(position + 8),
    ) {
        (Some(0xd800..0xdc00), Some(b"\\u"), Some(0xdc00..0xe000)) => Ok(12),
        _ => Err(Fault::Surrogate { at: position + 1 }),
    }
}

/// Check the value at `position`, inside `depth` containers, and return the position after it. No recursion.
#[inline(always)]
fn skip_value<L: Lanes>(lanes: L, input: &[u8], position: usize, depth: usize) -> Result<usize, Fault> {
    match input.get(position) {
        Some(b'"') => Ok(string::<L, false>(lanes, input, position + 1)?.1),
        Some(b'{') if input.get(position + 1) == Some(&b'}') && depth < NESTING_LIMIT => Ok(position + 2),
        Some(b'{' | b'[') => skip_container(lanes, input, position, depth),
        _ => skip_scalar(input, position),
    }
}

#[inline(never)]
fn skip_container<L: Lanes>(lanes: L, input: &[u8], start: usize, depth: usize) -> Result<usize, Fault> {
    let base = depth;
    let mut depth = depth;
    let mut position = start;
    // Bit `d` tells whether the container at depth `d` is an object.
    let mut objects = [0_u64; NESTING_LIMIT / 64 + 1];
    loop {
        match input.get(position) {
            Some(&open @ (b'{' | b'[')) => {
                depth += 1;
                if depth > NESTING_LIMIT {
                    return syntax("nested deeper than 500 levels", position);
                }
                let bit = 1 << (depth % 64);
                position = skip_space(input, position + 1);
                if open == b'{' {
                    objects[depth / 64] |= bit;
                    if input.get(position) != Some(&b'}') {
                        position = skip_key(lanes, input, position)?;
                        continue;
                    }
                } else {
                    objects[depth / 64] &= !bit;
                    if input.get(position) != Some(&b']') {
                        continue;
                    }
                }
            }
            Some(b'"') => position = string::<L, false>(lanes, input, position + 1)?.1,
            _ => position = skip_scalar(input, position)?,
        }
        // After a value, or at the end of an empty container.
        loop {
            position = skip_space(input, position);
            let in_object = objects[depth / 64] >> (depth % 64) & 1 == 1;
            match (input.get(position), in_object) {
                (Some(b','), false) => {
                    position = skip_space(input, position + 1);
                    break;
                }
                (Some(b','), true) => {
                    position = skip_key(lanes, input, skip_space(input, position + 1))?;
                    break;
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    position += 1;
                    depth -= 1;
                    if depth == base {
                        return Ok(position);
                    }
                }
                (_, true) => return syntax("expected ',' or '}' after a value", position),
                (_, false) => return syntax("expected ',' or ']' after a value", position),
            }
        }
    }
}

#[inline(always)]
fn skip_key<L: Lanes>(lanes: L, input: &[u8], position: usize) -> Result<usize, Fault> {
    if input.get(position) != Some(&b'"') {
        return syntax("expected a key in quotation marks", position);
    }
    let after = string::<L, false>(lanes, input, position + 1)?.1;
    let colon = skip_space(input, after);
    if input.get(colon) != Some(&b':') {
        return syntax("expected ':' after a key", colon);
    }
    Ok(skip_space(input, colon + 1))
}

fn skip_scalar(input: &[u8], position: usize) -> Result<usize, Fault> {
    let rest = input.get(position..).unwrap_or_default();
    for word in ["null", "true", "false", "NaN", "Infinity", "-Infinity"] {
        if rest.starts_with(word.as_bytes()) {
            return Ok(position + word.len());
        }
    }
    let digits = |start: usize| {
        rest.get(start..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let mut length = usize::from(rest.first() == Some(&b'-'));
    let whole = digits(length);
    if whole == 0 {
        return syntax("expected a value", position);
    }
    if whole > 1 && rest[length] == b'0' {
        return syntax("a number must not start with a zero", position);
    }
    length += whole;
    if rest.get(length) == Some(&b'.') {
        let fraction = digits(length + 1);
        if fraction == 0 {
            return syntax("expected a digit after the decimal point", position + length + 1);
        }
        length += 1 + fraction;
    }
    if let Some(b'e' | b'E') = rest.get(length) {
        length += 1;
        length += usize::from(matches!(rest.get(length), Some(b'+' | b'-')));
        let exponent = digits(length);
        if exponent == 0 {
            return syntax("expected a digit in the exponent", position + length);
        }
        length += exponent;
    }
    Ok(position + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;
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
            each(simd, self.0, |number, line, outcome| {
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
}
