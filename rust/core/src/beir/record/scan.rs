//! The grammar of a line: RFC 8259, plus `NaN`, `Infinity` and `-Infinity`, which Python writers emit. A lone surrogate
//! escape is refused wherever it stands in the row, also in fields that are not read.

use std::borrow::Cow;

use memchr::memchr;

use super::classify::{Block, Lanes, WIDTH, best_level};
use super::string::{RawString, hexadecimal};
use super::{Fault, Field, Record};
use crate::simd::{Kernel, Simd};
use crate::text::is_space;

/// Deepest nesting of objects and arrays, the row itself included.
pub const NESTING_LIMIT: usize = 500;

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
pub fn scan_lines<'a, L: Lanes>(
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
