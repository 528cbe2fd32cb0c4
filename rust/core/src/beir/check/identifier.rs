//! Which identifiers may become a file name, a query id or a judgment id.

/// Longest file name that common filesystems take, in bytes.
pub const FILENAME_LIMIT: usize = 255;

/// What follows an identifier in a document's file name.
pub const DOCUMENT_SUFFIX: &str = ".txt";

const LETTER_OR_DIGIT: u8 = 1;
const INNER: u8 = 2;

const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() {
            class[byte as usize] = LETTER_OR_DIGIT | INNER;
        } else if matches!(byte, b'.' | b'_' | b'-') {
            class[byte as usize] = INNER;
        }
        byte += 1;
    }
    class
};

/// Tell whether `identifier` matches `[A-Za-z0-9][A-Za-z0-9._-]*` as a whole.
#[must_use]
#[inline]
pub fn is_safe(identifier: &[u8]) -> bool {
    identifier
        .first()
        .is_some_and(|&first| CLASS[usize::from(first)] & LETTER_OR_DIGIT != 0)
        && identifier
            .iter()
            .fold(INNER, |all, &byte| all & CLASS[usize::from(byte)])
            != 0
}

/// Tell whether `identifier` matches the judgment pattern `[a-z0-9]+(-[a-z0-9]+)*` as a whole.
#[must_use]
pub fn is_judgment_id(identifier: &[u8]) -> bool {
    !identifier.is_empty()
        && identifier.split(|&byte| byte == b'-').all(|part| {
            !part.is_empty()
                && part
                    .iter()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
}

/// Tell whether the part before the first dot names a device on Windows, in any case.
///
/// See "Naming Files, Paths, and Namespaces" in the Windows documentation; the other device names there
/// (`CONIN$`, superscript digits) hold characters that no safe identifier has.
#[must_use]
pub fn is_device_name(identifier: &[u8]) -> bool {
    let stem = identifier.split(|&byte| byte == b'.').next().unwrap_or_default();
    match stem {
        [name @ .., digit] if name.len() == 3 && digit.is_ascii_digit() => {
            name.eq_ignore_ascii_case(b"com") || name.eq_ignore_ascii_case(b"lpt")
        }
        name => [b"con", b"prn", b"aux", b"nul"]
            .iter()
            .any(|device| name.eq_ignore_ascii_case(*device)),
    }
}

/// Why an identifier cannot name a document's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inadmissible {
    /// Outside the safe class.
    Unsafe,
    /// `<id>.txt` is longer than [`FILENAME_LIMIT`].
    TooLong,
    /// A Windows device name.
    Device,
}

/// Check an identifier that becomes a file name.
///
/// # Errors
/// The first rule that it breaks.
#[inline]
pub fn check_document_id(identifier: &[u8]) -> Result<(), Inadmissible> {
    if !is_safe(identifier) {
        return Err(Inadmissible::Unsafe);
    }
    if identifier.len() > FILENAME_LIMIT - DOCUMENT_SUFFIX.len() {
        return Err(Inadmissible::TooLong);
    }
    // Every device name starts with one of these letters.
    if matches!(identifier[0] | 0x20, b'c' | b'p' | b'a' | b'n' | b'l') && is_device_name(identifier) {
        return Err(Inadmissible::Device);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_safe_identifier_starts_with_a_letter_or_digit_and_holds_only_the_class() {
        for safe in ["a", "0", "Z9._-", "a.", "doc..1"] {
            assert!(is_safe(safe.as_bytes()), "{safe}");
        }
        for unsafe_ in ["", ".a", "-a", "_a", "a/b", "a b", "a\n", "é", "a\0", "x:1", "a\\b"] {
            assert!(!is_safe(unsafe_.as_bytes()), "{unsafe_:?}");
        }
    }

    #[test]
    fn a_judgment_id_is_kebab_case() {
        for id in ["a", "0", "a-b", "q1-2-c"] {
            assert!(is_judgment_id(id.as_bytes()), "{id}");
        }
        for id in ["", "-a", "a-", "a--b", "A", "a_b", "a.b", "é"] {
            assert!(!is_judgment_id(id.as_bytes()), "{id}");
        }
    }

    #[test]
    fn a_device_name_counts_in_any_case_and_with_any_extension() {
        for id in ["nul", "NUL", "con.x", "Aux", "prn.", "com0", "LPT9.tar.gz", "COM1"] {
            assert_eq!(check_document_id(id.as_bytes()), Err(Inadmissible::Device), "{id}");
        }
        for id in ["null", "com", "com10", "xcon", "con-1", "lpt", "a.nul"] {
            assert_eq!(check_document_id(id.as_bytes()), Ok(()), "{id}");
        }
    }

    #[test]
    fn the_file_name_limit_includes_the_suffix() {
        assert_eq!(check_document_id(&[b'a'; 251]), Ok(()));
        assert_eq!(check_document_id(&[b'a'; 252]), Err(Inadmissible::TooLong));
    }
}
