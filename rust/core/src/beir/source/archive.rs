//! A zip archive of a dataset, read in place: its directory is checked as a whole, its members as they are decoded.
//!
//! References: PKWARE's APPNOTE.TXT 6.3.10, whose sections the comments name.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use rawzip::{CompressionMethod, ReaderAt, ZipArchive, ZipArchiveEntryWayfinder, ZipFileHeaderRecord, ZipLocator};

use super::decode::{Form, HEAD, Span, describe_head, explain, recognise, refuse};
use super::file::Source;
use crate::error::Error;
use crate::stop::Stop;
use crate::text::quote;

/// Most members that an archive may have: their names are kept in memory. BEIR's own archives have fewer than twenty.
const MEMBER_LIMIT: u64 = 100_000;

/// How many names a message lists.
const LISTED: usize = 5;

/// The part of a Unix mode that tells what kind of file it is.
const KIND_MASK: u32 = 0o170_000;
const KIND_DIRECTORY: u32 = 0o040_000;
const KIND_REGULAR: u32 = 0o100_000;

/// Flags that must agree: encryption, data descriptor, encoding of names; bits 1 and 2 only describe the compression
/// (section 4.4.4).
const BINDING: u16 = 1 | 1 << 3 | 1 << 6 | 1 << 11 | 1 << 13;

/// An archive whose directory has been checked.
#[derive(Debug)]
pub struct Archive {
    source: Arc<Source>,
    /// Where the dataset lies in the archive: empty or a name with a final slash.
    folder: String,
    /// The files of the dataset by their path in that folder.
    members: BTreeMap<String, Member>,
}

/// A file in the archive as the directory describes it.
#[derive(Clone, Debug)]
struct Member {
    path: Vec<u8>,
    flags: u16,
    method: CompressionMethod,
    crc: u32,
    place: ZipArchiveEntryWayfinder,
    has_descriptor: bool,
}

impl Archive {
    /// Open the archive at `path` and read its directory; `stop` ends every reading of it.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when it is no zip archive, is cut short, or holds what no dataset holds: encrypted
    /// members, links, names that are unsafe or equal, more than one dataset, or none.
    pub fn open(path: &Path, stop: &Stop) -> Result<Self, Error> {
        let name = path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let source = Source::open(parent.unwrap_or_else(|| Path::new(".")), &name)?.stopped_by(stop);
        let mut head = [0; HEAD];
        let size = source.identity().size;
        let head = &mut head[..usize::try_from(size).unwrap_or(HEAD).min(HEAD)];
        source.read_at(head, 0)?;
        if !head.starts_with(b"PK\x03\x04") {
            let but = recognise(head).map(|what| format!(" but {what}")).unwrap_or_default();
            return Err(refuse(
                &name,
                format!("it is no zip archive with members{but}: {}", describe_head(head)),
            ));
        }
        let source = Arc::new(source);
        let members = read_directory(&source)?;
        let folder = find_folder(&name, &members)?;
        let members = members
            .into_iter()
            .filter_map(|(path, member)| Some((path.strip_prefix(&folder)?.to_owned(), member)))
            .collect();
        Ok(Self {
            source,
            folder,
            members,
        })
    }

    /// The archive itself.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// How messages name the file `name` of the dataset.
    #[must_use]
    pub fn display(&self, name: &str) -> String {
        format!("{}:{}{name}", self.source.name(), self.folder)
    }

    /// The files of the dataset, such as `corpus.jsonl`, in ascending order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Bytes of the compressed data of `name`.
    #[must_use]
    pub fn packed_size(&self, name: &str) -> Option<u64> {
        self.members.get(name).map(|member| member.place.compressed_size_hint())
    }

    /// Decompress the file `name`, comparing all that the archive says of it more than once.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when there is no such member, its method is unknown, or its local header or data
    /// descriptor disagrees with the directory. The reader's own errors carry an [`Error`].
    pub fn read(&self, name: &str) -> Result<Box<dyn Read + Send>, Error> {
        let file: Arc<str> = self.display(name).into();
        let Some(member) = self.members.get(name) else {
            return Err(refuse(&file, "the archive has no such member".to_owned()));
        };
        let archive = locate(&self.source)?;
        let entry = archive.get_entry(member.place).map_err(|error| damaged(&file, error))?;
        let (start, end) = entry.compressed_data_range();
        if end > archive.directory_offset() {
            return Err(refuse(
                &file,
                "it is cut short: its data run into the directory of the archive".to_owned(),
            ));
        }
        compare_local_header(&file, member, &entry)?;
        if member.has_descriptor {
            self.compare_descriptor(&file, member, end)?;
        }
        let span = Span::new(Arc::clone(&self.source), start, end);
        let body = match member.method {
            CompressionMethod::STORE => Body::Stored(span),
            CompressionMethod::DEFLATE => Body::Deflated(flate2::bufread::DeflateDecoder::new(span.buffered())),
            CompressionMethod::ZSTD | CompressionMethod::ZSTD_DEPRECATED => Body::Zstd(
                zstd::stream::read::Decoder::with_buffer(span.buffered())
                    .map_err(|error| Error::unreadable(&file, &error))?,
            ),
            method => {
                let known = method.name().map(|name| format!(" ({name})")).unwrap_or_default();
                return Err(refuse(
                    &file,
                    format!(
                        "it is compressed with method {}{known}; stored, deflated and zstd members can be read",
                        method.as_u16()
                    ),
                ));
            }
        };
        Ok(Box::new(Verified {
            file,
            body,
            size: member.place.uncompressed_size_hint(),
            crc: member.crc,
            read: 0,
            hasher: crc32fast::Hasher::new(),
        }))
    }

    /// Compare what stands after the data of a member (section 4.3.9): the signature may be absent and the sizes may
    /// have four or eight bytes, whatever the directory needed.
    fn compare_descriptor(&self, file: &str, member: &Member, end: u64) -> Result<(), Error> {
        let sizes = [
            member.place.compressed_size_hint(),
            member.place.uncompressed_size_hint(),
        ];
        let crc = member.crc.to_le_bytes().to_vec();
        let long = sizes
            .iter()
            .fold(crc.clone(), |bytes, size| [bytes, size.to_le_bytes().to_vec()].concat());
        let short = sizes.iter().try_fold(crc, |bytes, &size| {
            u32::try_from(size)
                .ok()
                .map(|size| [bytes, size.to_le_bytes().to_vec()].concat())
        });
        let mut found = [0; 24];
        let left = usize::try_from(self.source.identity().size - end).unwrap_or(usize::MAX);
        let found = &mut found[..left.min(24)];
        self.source.read_at(found, end)?;
        let agrees =
            |bytes: &[u8]| bytes.starts_with(&long) || short.as_ref().is_some_and(|short| bytes.starts_with(short));
        if agrees(found) || found.strip_prefix(b"PK\x07\x08").is_some_and(agrees) {
            return Ok(());
        }
        Err(disagrees(file, "its data descriptor"))
    }
}

/// Lets the zip library read a source.
struct Bytes(Arc<Source>);

impl ReaderAt for Bytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.0.identity().size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        self.0
            .read_at(&mut buffer[..length], offset)
            .map_err(io::Error::other)?;
        Ok(length)
    }
}

fn locate(source: &Arc<Source>) -> Result<ZipArchive<Bytes>, Error> {
    let mut buffer = vec![0; rawzip::RECOMMENDED_BUFFER_SIZE];
    let size = source.identity().size;
    ZipLocator::new()
        .locate_in_reader(Bytes(Arc::clone(source)), &mut buffer, size)
        .map_err(|(_, error)| match error.into_kind() {
            rawzip::ErrorKind::MissingEndOfCentralDirectory => refuse(
                source.name(),
                "it is cut short: the directory at the end of the archive is missing".to_owned(),
            ),
            kind => damaged(source.name(), kind.into()),
        })
}

/// Blame the archive for what the zip library says, unless it only passes on what the source said.
fn damaged(file: &str, error: rawzip::Error) -> Error {
    let reason = format!("the archive is damaged or cut short ({error})");
    match error.into_kind() {
        rawzip::ErrorKind::IO(error) => error.downcast().unwrap_or_else(|_| refuse(file, reason)),
        _ => refuse(file, reason),
    }
}

fn disagrees(file: &str, what: &str) -> Error {
    refuse(
        file,
        format!("the archive contradicts itself: {what} disagrees with the directory of the archive"),
    )
}

/// Read the directory and refuse whatever must not be in it; hidden files and `__MACOSX` are left out.
fn read_directory(source: &Arc<Source>) -> Result<BTreeMap<String, Member>, Error> {
    let name = source.name();
    let archive = locate(source)?;
    let after = source.identity().size.saturating_sub(archive.end_offset());
    if after > 0 {
        return Err(refuse(name, format!("{after} bytes follow the end of the archive")));
    }
    let mut members = BTreeMap::new();
    let mut folded = BTreeMap::new();
    let mut count = 0_u64;
    // One record may have three parts of 64 KiB.
    let mut buffer = vec![0; rawzip::MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
    let mut entries = archive.entries(&mut buffer);
    while let Some(entry) = entries.next_entry().map_err(|error| damaged(name, error))? {
        count += 1;
        if count > MEMBER_LIMIT {
            return Err(refuse(
                name,
                format!("it has more than {MEMBER_LIMIT} members, as no dataset has; name the directory it unpacks to"),
            ));
        }
        let path = decode_name(entry.file_path().as_bytes());
        check_name(name, &path)?;
        if is_ignored(&path) {
            continue;
        }
        check_kind(name, &path, &entry)?;
        if path.ends_with('/') {
            continue;
        }
        if let Some(other) = folded.insert(fold(&path), path.clone()) {
            let what = if other == path {
                "twice"
            } else {
                "under names that are equal when case is folded"
            };
            return Err(refuse(
                name,
                format!("it has one member {what}: {} and {}", quote(&other), quote(&path)),
            ));
        }
        let member = Member {
            path: entry.file_path().as_bytes().to_vec(),
            flags: entry.flags().bits(),
            method: entry.compression_method(),
            crc: entry.crc32(),
            place: entry.wayfinder(),
            has_descriptor: entry.flags().has_data_descriptor(),
        };
        members.insert(path, member);
    }
    // The count has 16 bits where there is no zip64 record (section 4.4.22).
    if count != archive.entries_hint() && count % (1 << 16) != archive.entries_hint() {
        return Err(refuse(
            name,
            format!(
                "the archive is damaged: its directory has {count} entries and says that it has {}",
                archive.entries_hint()
            ),
        ));
    }
    Ok(members)
}

/// Names are UTF-8 or in some old code page; the latter are only shown and compared, byte by byte.
fn decode_name(bytes: &[u8]) -> String {
    str::from_utf8(bytes).map_or_else(|_| bytes.iter().map(|&byte| char::from(byte)).collect(), str::to_owned)
}

fn fold(path: &str) -> String {
    // Upper case first, so that letters with two lower-case forms (final sigma, long s) become equal.
    path.to_uppercase().to_lowercase()
}

fn check_name(archive: &str, path: &str) -> Result<(), Error> {
    let unsafe_because = |why| Err(refuse(archive, format!("unsafe member name {}: {why}", quote(path))));
    let mut start = path.chars();
    let drive = start.next().is_some_and(|letter| letter.is_ascii_alphabetic()) && start.next() == Some(':');
    if path.starts_with('/') || drive {
        return unsafe_because("it is absolute");
    }
    if path.contains('\\') {
        return unsafe_because("it has a backslash");
    }
    if path.chars().any(char::is_control) {
        return unsafe_because("it has a control character");
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.split('/').any(|part| part == "..") {
        return unsafe_because("it climbs with '..'");
    }
    if path.split('/').any(|part| part.is_empty() || part == ".") {
        return unsafe_because("it has an empty part or '.'");
    }
    Ok(())
}

fn is_ignored(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.') || part == "__MACOSX")
}

fn check_kind(archive: &str, path: &str, entry: &ZipFileHeaderRecord<'_>) -> Result<(), Error> {
    let flags = entry.flags();
    if flags.is_encrypted() || flags.has_strong_encryption() || flags.is_masked() {
        return Err(refuse(archive, format!("its member {} is encrypted", quote(path))));
    }
    if entry.mode().is_symlink() {
        return Err(refuse(
            archive,
            format!("its member {} is a symbolic link", quote(path)),
        ));
    }
    if !matches!(entry.mode().value() & KIND_MASK, 0 | KIND_DIRECTORY | KIND_REGULAR) {
        return Err(refuse(
            archive,
            format!("its member {} is no regular file", quote(path)),
        ));
    }
    Ok(())
}

/// Find the one place in the archive that has files of a dataset: its root, or one folder in it.
fn find_folder(archive: &str, members: &BTreeMap<String, Member>) -> Result<String, Error> {
    let is_dataset_file = |name: &str| {
        let stem = Form::ALL
            .iter()
            .rev()
            .find_map(|form| name.strip_suffix(form.suffix()))
            .unwrap_or(name);
        matches!(stem, "corpus.jsonl" | "queries.jsonl")
    };
    let folders: BTreeSet<&str> = members
        .keys()
        .filter_map(|path| {
            let start = path.rfind('/').map_or(0, |slash| slash + 1);
            let (folder, name) = path.split_at(start);
            (folder.matches('/').count() <= 1 && is_dataset_file(name)).then_some(folder)
        })
        .collect();
    let mut found = folders.iter();
    match (found.next(), found.next()) {
        (Some(folder), None) => Ok((*folder).to_owned()),
        (Some(_), Some(_)) => Err(refuse(
            archive,
            format!(
                "it has files of more than one dataset, in {}",
                list(folders.iter().copied())
            ),
        )),
        (None, _) => Err(refuse(
            archive,
            format!(
                "it has no corpus.jsonl or queries.jsonl, neither at its top nor in a folder there; its members are {}",
                list(members.keys().map(String::as_str))
            ),
        )),
    }
}

fn list<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = names.len();
    let shown: Vec<_> = names.take(LISTED).map(quote).collect();
    match count {
        0 => "none".to_owned(),
        _ if count > LISTED => format!("{}, ... ({count})", shown.join(", ")),
        _ => shown.join(", "),
    }
}

fn compare_local_header(file: &str, member: &Member, entry: &rawzip::ZipEntry<'_, Bytes>) -> Result<(), Error> {
    let mut buffer = vec![0; 2 << 16];
    let local = entry.local_header(&mut buffer).map_err(|error| damaged(file, error))?;
    if local.file_path().as_bytes() != member.path {
        return Err(disagrees(file, "the name in its local header"));
    }
    if local.compression_method() != member.method {
        return Err(disagrees(file, "the method in its local header"));
    }
    if local.flags().bits() & BINDING != member.flags & BINDING {
        return Err(disagrees(file, "the flags in its local header"));
    }
    let said = [
        u64::from(local.crc32()),
        local.compressed_size_hint(),
        local.uncompressed_size_hint(),
    ];
    let known = [
        u64::from(member.crc),
        member.place.compressed_size_hint(),
        member.place.uncompressed_size_hint(),
    ];
    // With a descriptor they may be zero here (section 4.4.4, bit 3).
    let agrees = said
        .iter()
        .zip(known)
        .all(|(&said, known)| said == known || (member.has_descriptor && said == 0));
    if agrees {
        Ok(())
    } else {
        Err(disagrees(file, "the size or CRC-32 checksum in its local header"))
    }
}

/// The data of a member behind their decoder.
enum Body {
    Stored(Span),
    Deflated(flate2::bufread::DeflateDecoder<BufReader<Span>>),
    Zstd(zstd::stream::read::Decoder<'static, BufReader<Span>>),
}

impl Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Stored(reader) => reader.read(buffer),
            Self::Deflated(reader) => reader.read(buffer),
            Self::Zstd(reader) => reader.read(buffer),
        }
    }

    /// Tell whether the decoder needed all of the data.
    fn is_used_up(&mut self) -> io::Result<bool> {
        Ok(match self {
            Self::Stored(reader) => reader.read(&mut [0])? == 0,
            Self::Deflated(reader) => reader.get_mut().fill_buf()?.is_empty(),
            Self::Zstd(reader) => reader.get_mut().fill_buf()?.is_empty(),
        })
    }
}

/// Decompresses a member no further than its size and confirms its checksum before it reports the end.
struct Verified {
    file: Arc<str>,
    body: Body,
    size: u64,
    crc: u32,
    read: u64,
    hasher: crc32fast::Hasher,
}

impl Verified {
    fn confirm(&mut self) -> io::Result<()> {
        let found = self.hasher.clone().finalize();
        let reason = if self.read != self.size {
            format!(
                "it is cut short or damaged: {} bytes instead of {}",
                self.read, self.size
            )
        } else if found != self.crc {
            format!(
                "it is damaged: its CRC-32 checksum is {found:08x}, the archive says {:08x}",
                self.crc
            )
        } else if !self.body.is_used_up()? {
            "it is damaged: bytes follow its compressed data".to_owned()
        } else {
            return Ok(());
        };
        Err(io::Error::other(refuse(&self.file, reason)))
    }
}

impl Read for Verified {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let damage = "damaged or cut short data, whose CRC-32 checksum cannot be confirmed";
        let length = self
            .body
            .read(buffer)
            .map_err(|error| explain(&self.file, damage, error))?;
        self.hasher.update(&buffer[..length]);
        self.read += length as u64;
        if self.read > self.size {
            let reason = format!(
                "it expands beyond the {} bytes that the archive gives as its size",
                self.size
            );
            return Err(io::Error::other(refuse(&self.file, reason)));
        }
        if length == 0 && !buffer.is_empty() {
            self.confirm()?;
        }
        Ok(length)
    }
}
