//! Columns that cross to and from Python through Arrow's `PyCapsule` interface, without a copy.

use std::ffi::CStr;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

const STREAM: &CStr = c"arrow_array_stream";

/// A table for any reader of the interface, such as `polars.DataFrame`.
#[pyclass(frozen, module = "groundkit._native")]
#[derive(Clone)]
pub struct Columns(RecordBatch);

impl Columns {
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, arrow_array::ArrayRef)>) -> PyResult<Self> {
        let columns = columns.into_iter().map(|(name, column)| (name, column, false));
        RecordBatch::try_from_iter_with_nullable(columns)
            .map(Self)
            .map_err(|error| to_python(&error))
    }
}

#[pymethods]
impl Columns {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }
}

/// Read all batches of an object that exports an Arrow stream.
pub fn import(table: &Bound<'_, PyAny>) -> PyResult<Vec<RecordBatch>> {
    let capsule = table.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast();
    // SAFETY: a capsule of this name holds a valid stream, which is moved out and left released.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    reader.and_then(Iterator::collect).map_err(|error| to_python(&error))
}

/// Find a column by its name.
pub fn column<'a>(batch: &'a RecordBatch, name: &str) -> PyResult<&'a dyn Array> {
    batch
        .column_by_name(name)
        .map(AsRef::as_ref)
        .ok_or_else(|| PyValueError::new_err(format!("no column {name}")))
}

/// The strings of a column of any string type.
pub fn strings(column: &dyn Array) -> PyResult<Box<dyn Iterator<Item = &str> + '_>> {
    Ok(match column.data_type() {
        DataType::Utf8View => Box::new(column.as_string_view().iter().flatten()),
        DataType::LargeUtf8 => Box::new(column.as_string::<i64>().iter().flatten()),
        DataType::Utf8 => Box::new(column.as_string::<i32>().iter().flatten()),
        other => {
            return Err(PyTypeError::new_err(format!(
                "expected a column of strings, got {other}"
            )));
        }
    })
}

fn to_python(error: &ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
