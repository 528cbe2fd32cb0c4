//! Decoding the files of a dataset: plain bytes, gzip and zstd, with every checksum confirmed and nothing left over.
//!
//! All of it streams: memory stays the same however much a file expands.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use super::file::Source;
use crate::error::Error;

/// Bytes of compressed input read at once; after each, the reading can be ended, whatever comes out of them.
const INPUT_BUFFER: usize = 1 << 16;

/// Bytes at the start of a file that tell what it is.
pub const HEAD: usize = 64;

/// How the bytes of a file are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    Plain,
    /// Members of RFC 1952, one after another.
    Gzip,
    /// Frames of RFC 8878, one after another.
    Zstd,
}

impl Form {
    /// Every form, the plain one first.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Gzip, Self::Zstd];

    /// What the name of a file in this form ends with, after `.jsonl` or `.tsv`.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }

    /// Unpack `input`, which holds `file` in this form.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when the decoder cannot be made. The reader's own errors carry an [`Error`].
    pub fn decode(self, file: &str, input: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>, Error> {
        if self == Self::Plain {
            return Ok(input);
        }
        let input = BufReader::with_capacity(INPUT_BUFFER, input);
        if self == Self::Gzip {
            return Ok(Box::new(Checked {
                inner: flate2::bufread::MultiGzDecoder::new(input),
                file: file.into(),
                damage: "damaged or cut short gzip data, whose CRC-32 checksum cannot be confirmed",
            }));
        }
        Ok(Box::new(Checked {
            inner: zstd::stream::read::Decoder::with_buffer(input).map_err(|error| Error::unreadable(file, &error))?,
            file: file.into(),
            damage: "damaged or cut short zstd data, whose content checksum (XXH64) cannot be confirmed",
        }))
    }
}

/// Tell what a file is by its first bytes, where these are no text that a dataset could hold.
///
/// ```
/// use groundkit_core::beir::source::decode::recognise;
/// assert_eq!(recognise(b"\x1f\x8b\x08\0"), Some("gzip data"));
/// assert_eq!(recognise(b"\n<!DOCTYPE html>"), Some("an HTML page"));
/// assert_eq!(recognise(b"{\"_id\": \"d1\"}"), None);
/// ```
#[must_use]
pub fn recognise(head: &[u8]) -> Option<&'static str> {
    const SIGNATURES: [(&[u8], &str); 9] = [
        (b"\x1f\x8b", "gzip data"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b"PK\x03\x04", "a zip archive"),
        (b"PK\x05\x06", "an empty zip archive"),
        (b"BZh", "bzip2 data"),
        (b"\xfd7zXZ\0", "xz data"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"PAR1", "a Parquet file"),
        (b"version https://git-lfs", "a Git LFS pointer"),
    ];
    let found = SIGNATURES.iter().find(|(signature, _)| head.starts_with(signature));
    let text = head.trim_ascii_start().to_ascii_lowercase();
    let page = [&b"<!doctype"[..], b"<html", b"<head", b"<?xml", b"<!--"];
    found.map(|&(_, what)| what).or_else(|| {
        page.iter()
            .any(|start| text.starts_with(start))
            .then_some("an HTML page")
    })
}

/// Say what stands at the start of a file, for a message.
#[must_use]
pub fn describe_head(head: &[u8]) -> String {
    if head.is_empty() {
        return "it is empty".to_owned();
    }
    let shown = &head[..head.len().min(32)];
    format!("it begins with \"{}\"", shown.escape_ascii())
}

/// Refuse a file whose first bytes are not those of its form.
///
/// # Errors
/// [`Error::Unreadable`], quoting the first bytes.
pub fn check_head(form: Form, file: &str, head: &[u8]) -> Result<(), Error> {
    let what = recognise(head);
    let expected = match form {
        Form::Plain => {
            return what.map_or(Ok(()), |what| {
                Err(refuse(
                    file,
                    format!("it holds {what}, not text: {}", describe_head(head)),
                ))
            });
        }
        Form::Gzip => "gzip data",
        Form::Zstd => "zstd data",
    };
    // A zstd file may open with a skippable frame, whose magic number is 0x184D2A5?.
    let skippable = form == Form::Zstd && head.len() >= 4 && head[0] & 0xf0 == 0x50 && head[1..4] == *b"\x2a\x4d\x18";
    if what == Some(expected) || skippable {
        return Ok(());
    }
    let but = what.map(|what| format!(" but {what}")).unwrap_or_default();
    Err(refuse(
        file,
        format!("it is no {expected}{but}: {}", describe_head(head)),
    ))
}

/// A part of a source, read from its start to its end.
#[derive(Clone, Debug)]
pub struct Span {
    source: Arc<Source>,
    position: u64,
    end: u64,
}

impl Span {
    /// The bytes of `source` from `start` up to `end`.
    #[must_use]
    pub fn new(source: Arc<Source>, start: u64, end: u64) -> Self {
        Self {
            source,
            position: start,
            end,
        }
    }

    /// Put a buffer between this part and a decoder.
    #[must_use]
    pub fn buffered(self) -> BufReader<Self> {
        BufReader::with_capacity(INPUT_BUFFER, self)
    }
}

impl Read for Span {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
        let length = left.min(buffer.len());
        self.source
            .read_at(&mut buffer[..length], self.position)
            .map_err(io::Error::other)?;
        self.position += length as u64;
        Ok(length)
    }
}

/// The content of one file, in order.
pub struct Decoder {
    file: Arc<str>,
    input: Box<dyn Read + Send>,
}

impl Decoder {
    /// Read `input`, the unpacked content of `file`.
    #[must_use]
    pub fn new(file: &str, input: Box<dyn Read + Send>) -> Self {
        Self {
            file: file.into(),
            input,
        }
    }

    /// Fill `buffer` as far as the file goes: fewer bytes come only at its end, once all of it is known to be sound.
    ///
    /// # Errors
    /// [`Error::Unreadable`] for damaged data and failing reads, [`Error::Changed`] when the source shrank.
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(error) => return Err(unwrap(&self.file, error)),
            }
        }
        Ok(filled)
    }
}

/// Says in its errors which checksum stands against the data.
struct Checked<R> {
    inner: R,
    file: Arc<str>,
    damage: &'static str,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner
            .read(buffer)
            .map_err(|error| explain(&self.file, self.damage, error))
    }
}

/// Blame the data for what a decoder says, unless it only passes on what the source said.
pub(super) fn explain(file: &str, damage: &str, error: io::Error) -> io::Error {
    match error.downcast::<Error>() {
        Ok(error) => io::Error::other(error),
        Err(error) => io::Error::other(refuse(file, format!("{damage} ({error})"))),
    }
}

pub(super) fn refuse(file: &str, reason: String) -> Error {
    Error::Unreadable {
        file: file.to_owned(),
        reason,
    }
}

fn unwrap(file: &str, error: io::Error) -> Error {
    error
        .downcast::<Error>()
        .unwrap_or_else(|error| Error::unreadable(file, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(content: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn decode(form: Form, bytes: &[u8], block: usize) -> Result<Vec<u8>, Error> {
        let file = format!("corpus.jsonl{}", form.suffix());
        let mut decoder = Decoder::new(&file, form.decode(&file, Box::new(io::Cursor::new(bytes.to_vec())))?);
        let mut content = Vec::new();
        let mut buffer = vec![0; block];
        loop {
            let length = decoder.fill(&mut buffer)?;
            content.extend_from_slice(&buffer[..length]);
            if length < block {
                return Ok(content);
            }
        }
    }

    type Pack = fn(&[u8]) -> Vec<u8>;

    /// Each packed form, a writer of it, and the name of its checksum.
    fn packings() -> [(Form, Pack, &'static str); 2] {
        [(Form::Gzip, gzip, "CRC-32"), (Form::Zstd, zstd, "XXH64")]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn members_and_frames_one_after_another_are_read_through(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5_000), 1..5),
            block in 1_usize..9_000,
        ) {
            for (form, pack, _) in packings() {
                let packed: Vec<u8> = parts.iter().flat_map(|part| pack(part)).collect();
                prop_assert!(decode(form, &packed, block).unwrap() == parts.concat());
            }
        }

        #[test]
        fn a_file_cut_anywhere_is_refused_and_names_its_checksum(
            content in prop::collection::vec(any::<u8>(), 0..2_000), cut in any::<prop::sample::Index>(),
        ) {
            for (form, pack, checksum) in packings() {
                let packed = pack(&content);
                let cut = 1 + cut.index(packed.len() - 1);
                let message = decode(form, &packed[..cut], 512).unwrap_err().to_string();
                prop_assert!(message.contains(checksum), "{message}");
            }
        }

        #[test]
        fn a_changed_byte_never_yields_other_content(
            content in prop::collection::vec(any::<u8>(), 0..500), at in any::<prop::sample::Index>(), flip in 1_u8..,
        ) {
            for (form, pack, _) in packings() {
                let mut packed = pack(&content);
                let at = at.index(packed.len());
                packed[at] ^= flip;
                if let Ok(decoded) = decode(form, &packed, 512) {
                    prop_assert!(decoded == content);
                }
            }
        }
    }

    #[test]
    fn bytes_after_the_last_member_are_refused() {
        for (form, pack, checksum) in packings() {
            for garbage in [&b"x"[..], b"\0\0\0\0", b"{\"_id\": \"d2\"}\n", b"\x1f\x8b"] {
                let packed = [pack(b"{}\n"), garbage.to_vec()].concat();
                let message = decode(form, &packed, 512).unwrap_err().to_string();
                assert!(message.contains(checksum), "{message}");
            }
        }
    }

    #[test]
    fn a_file_that_is_not_what_its_name_says_is_refused_quoting_its_first_bytes() {
        let page = b"<!DOCTYPE html>\n<title>404</title>";
        let message = |form, name, head: &[u8]| check_head(form, name, head).unwrap_err().to_string();
        assert_eq!(
            message(Form::Gzip, "corpus.jsonl.gz", page),
            "cannot read BEIR file corpus.jsonl.gz: it is no gzip data but an HTML page: it begins with \
             \"<!DOCTYPE html>\\n<title>404</titl\""
        );
        assert_eq!(
            message(Form::Zstd, "corpus.jsonl.zst", b""),
            "cannot read BEIR file corpus.jsonl.zst: it is no zstd data: it is empty"
        );
        assert_eq!(
            message(Form::Plain, "corpus.jsonl", b"\x1f\x8b\x08"),
            "cannot read BEIR file corpus.jsonl: it holds gzip data, not text: it begins with \"\\x1f\\x8b\\x08\""
        );
        assert!(check_head(Form::Plain, "corpus.jsonl", b"{").is_ok());
        assert!(check_head(Form::Zstd, "corpus.jsonl.zst", b"\x5a\x2a\x4d\x18").is_ok());
    }
}
