//! Admissible names for identifiers that are not: a readable slug and a hash of the raw identifier.

use unicode_normalization::UnicodeNormalization;

/// Longest slug, in bytes: long enough to recognise a title by, short enough for any file name limit.
const SLUG_LIMIT: usize = 48;

/// Bytes of the BLAKE3 hash that a mapped name carries. With 80 bits, two of 10^7 identifiers share a
/// name with a probability below 10^-10 (birthday bound n^2 / 2^81).
const HASH_BYTES: usize = 10;

/// Longest name that is given, in bytes.
pub const NAME_LIMIT: usize = SLUG_LIMIT + 1 + 2 * HASH_BYTES;

/// Name `raw` so that it is admissible as a document and as a query identifier.
///
/// The name depends on `raw` alone, so one identifier has one name in every run and every subset of a dataset.
/// It is lower-case ASCII (equal to its own case folding and to its own NFC form), matches the judgment pattern
/// `[a-z0-9]+(-[a-z0-9]+)*` and is never a Windows device name, because it always ends in a hash.
///
/// ```
/// use groundkit_core::beir::check::mapping::adapted_id;
/// assert_eq!(adapted_id("<dbpedia:9/11_(film)>"), "dbpedia-9-11-film-c00894e4699669c38310");
/// ```
#[must_use]
pub fn adapted_id(raw: &str) -> String {
    let mut name = String::with_capacity(NAME_LIMIT);
    // NFKD takes an accented letter apart, so that its base letter stays readable.
    for character in raw.nfkd() {
        if name.len() == SLUG_LIMIT {
            break;
        }
        if character.is_ascii_alphanumeric() {
            name.push(character.to_ascii_lowercase());
        } else if !unicode_normalization::char::is_combining_mark(character) && !name.is_empty() && !name.ends_with('-')
        {
            name.push('-');
        }
    }
    if name.is_empty() {
        name.push_str("id");
    }
    if !name.ends_with('-') {
        name.push('-');
    }
    for byte in &blake3::hash(raw.as_bytes()).as_bytes()[..HASH_BYTES] {
        for digit in [byte >> 4, byte & 15] {
            name.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    name
}

/// Tell whether an identifier could be the name of another one, in any case.
#[must_use]
pub fn looks_adapted(id: &[u8]) -> bool {
    id.rsplit(|&byte| byte == b'-').next().is_some_and(|hash| {
        hash.len() == 2 * HASH_BYTES && hash.len() < id.len() && hash.iter().all(u8::is_ascii_hexdigit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_readable() {
        assert!(adapted_id("MED-10").starts_with("med-10-"));
        assert!(adapted_id("2_Hearts_(Kylie_Minogue_song)").starts_with("2-hearts-kylie-minogue-song-"));
        assert!(adapted_id("Besançon").starts_with("besancon-"));
        assert!(adapted_id("東京").starts_with("id-"));
        assert!(adapted_id("").starts_with("id-"));
    }

    #[test]
    fn identifiers_that_share_a_slug_differ_in_the_hash() {
        assert_ne!(adapted_id("Abc"), adapted_id("abC"));
        assert_ne!(adapted_id("e\u{301}"), adapted_id("\u{e9}"));
    }

    proptest! {
        #[test]
        fn every_name_matches_the_judgment_pattern(raw in any::<String>()) {
            let name = adapted_id(&raw);
            prop_assert!(name.len() <= NAME_LIMIT);
            prop_assert!(looks_adapted(name.as_bytes()));
            for part in name.split('-') {
                prop_assert!(!part.is_empty());
                prop_assert!(part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
            }
        }
    }
}
