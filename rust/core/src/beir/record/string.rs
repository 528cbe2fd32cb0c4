//! A JSON string as it stands in the line: stripped and counted without being decoded.

use std::borrow::Cow;

use memchr::memchr;

use crate::text::is_space;

/// A JSON string as it stands in the line, checked, with its length in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawString<'a> {
    pub(super) raw: &'a [u8],
    /// Whether `raw` holds an escape.
    pub(super) escaped: bool,
    /// How many bytes of `raw` are not counted as a character.
    pub(super) uncounted: usize,
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
    pub(super) fn decode_into(self, decoded: &mut Vec<u8>) {
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

pub(super) fn checked_string(decoded: Vec<u8>) -> String {
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
pub(super) fn hexadecimal(digits: &[u8]) -> Option<u32> {
    let digits = digits.first_chunk::<4>()?.map(|digit| HEXADECIMAL[usize::from(digit)]);
    let number = digits.iter().fold(0, |number, &digit| number << 4 | u32::from(digit));
    digits.iter().all(|&digit| digit != NO_DIGIT).then_some(number)
}
