//! Python's white space, and names quoted for messages.

use std::fmt::Write;

/// Longest piece of foreign text in a message, in characters.
const QUOTED_LIMIT: usize = 80;

/// Tell whether Python's `str.isspace` holds for `character`.
///
/// It is Unicode's `White_Space` and the four information separators U+001C to U+001F.
///
/// ```
/// use groundkit_core::text::is_space;
/// assert!(is_space('\u{85}') && is_space('\u{1c}') && is_space('\u{3000}'));
/// assert!(!is_space('\u{200b}') && !is_space('\u{feff}'));
/// ```
#[must_use]
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// Quote foreign text as Python's `repr` would, shortened: no control or format character reaches a terminal.
///
/// ```
/// use groundkit_core::text::quote;
/// assert_eq!(quote("it's\n\u{1b}[31m"), r"'it\'s\n\u{1b}[31m'");
/// ```
#[must_use]
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("'");
    for (position, character) in text.chars().enumerate() {
        if position == QUOTED_LIMIT {
            quoted.push_str("'...");
            let _ = write!(quoted, " ({} characters)", text.chars().count());
            return quoted;
        }
        if character == '"' {
            quoted.push('"');
        } else {
            quoted.extend(character.escape_debug());
        }
    }
    quoted.push('\'');
    quoted
}
