//! Reading, checking and publishing BEIR datasets.
