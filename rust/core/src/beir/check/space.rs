//! The space that an output needs.

/// Bytes of a block of the file systems whose files take whole blocks.
pub const BLOCK: u64 = 4096;

/// What the documents of a corpus take at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// How many there are.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their blocks of 4096 bytes.
    pub blocks: u64,
    /// Bytes of the longest identifier.
    pub longest: usize,
}

impl Space {
    /// Add a document.
    #[inline]
    pub fn add(&mut self, bytes: usize, identifier: usize) {
        self.files += 1;
        self.bytes += bytes as u64;
        self.blocks += (bytes as u64).div_ceil(BLOCK);
        self.longest = self.longest.max(identifier);
    }

    /// Add the documents of another part.
    pub fn append(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.blocks += other.blocks;
        self.longest = self.longest.max(other.longest);
    }
}
