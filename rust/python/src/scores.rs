//! Scores by query id, brought into one order.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyString};

/// Reads dictionaries whose keys are the same queries in the same order, which is what most evaluations write.
///
/// Comparing a key with the one at its place is several times faster than looking it up.
#[pyclass(frozen, module = "groundkit._native")]
pub struct ScoreReader {
    /// The identifiers, one after the other, and where each ends.
    ids: String,
    ends: Vec<usize>,
    /// Place of each among the sorted ones.
    places: Vec<usize>,
    sorted: Vec<usize>,
}

impl ScoreReader {
    fn id(&self, number: usize) -> &str {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.ids[start..self.ends[number]]
    }
}

#[pymethods]
impl ScoreReader {
    /// A reader of dictionaries that have the keys of `scores` in the same order; none where not all keys are strings.
    #[staticmethod]
    fn like(scores: &Bound<'_, PyDict>) -> Option<Self> {
        let mut reader = Self {
            ids: String::new(),
            ends: Vec::with_capacity(scores.len()),
            places: vec![0; scores.len()],
            sorted: (0..scores.len()).collect(),
        };
        for key in scores.keys() {
            reader.ids.push_str(exact_str(&key)?.to_str().ok()?);
            reader.ends.push(reader.ids.len());
        }
        let mut sorted = std::mem::take(&mut reader.sorted);
        sorted.sort_unstable_by_key(|&number| reader.id(number));
        for (place, &number) in sorted.iter().enumerate() {
            reader.places[number] = place;
        }
        Some(Self { sorted, ..reader })
    }

    /// The identifiers in code point order.
    #[getter]
    fn query_ids(&self) -> Vec<&str> {
        self.sorted.iter().map(|&number| self.id(number)).collect()
    }

    /// The scores in the order of `query_ids`, as native doubles; none where keys are others or elsewhere, or where a
    /// value is no plain finite number.
    fn read<'py>(&self, py: Python<'py>, scores: &Bound<'py, PyDict>) -> Option<Bound<'py, PyBytes>> {
        if scores.len() != self.ends.len() {
            return None;
        }
        let mut row = vec![0; 8 * self.ends.len()];
        let (row_places, _) = row.as_chunks_mut::<8>();
        let mut start = 0;
        // Nothing in the loop runs code of Python's, so that the dictionary cannot change meanwhile.
        for ((key, value), (&end, &place)) in scores.iter().zip(self.ends.iter().zip(&self.places)) {
            if exact_str(&key)?.to_str().ok()? != &self.ids[start..end] {
                return None;
            }
            start = end;
            row_places[place] = number(&value)?.to_ne_bytes();
        }
        Some(PyBytes::new(py, &row))
    }
}

/// A string, but none of a class of its own.
fn exact_str<'a, 'py>(key: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PyString>> {
    key.cast_exact::<PyString>().ok()
}

/// A finite float or integer, but none of a class of its own.
fn number(value: &Bound<'_, PyAny>) -> Option<f64> {
    let number = match value.cast_exact::<PyFloat>() {
        Ok(float) => float.value(),
        Err(_) => value.cast_exact::<PyInt>().ok()?.extract().ok()?,
    };
    number.is_finite().then_some(number)
}
