//! The paired bootstrap: `CPython`'s index stream, exact sums and the summary of the bootstrap means.
