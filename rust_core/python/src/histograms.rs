//! Encodes histograms, and decodes them to columns.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// The bytes of `histogram` in version 2 of its format, deflated.
pub(crate) fn encode(histogram: &Histogram<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoded = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    encoded.expect("memory takes what is written to it, and counts stay below 2^63");
    bytes
}

fn decode(bytes: &[u8]) -> PyResult<Histogram<u64>> {
    Deserializer::new()
        .deserialize(&mut &*bytes)
        .map_err(|error| PyValueError::new_err(format!("not an HdrHistogram V2: {error}")))
}

/// The columns of an encoded histogram: highest equivalent value, count.
type Columns<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

#[pyfunction]
pub(crate) fn histogram_buckets<'py>(py: Python<'py>, hdr: &[u8]) -> PyResult<Columns<'py>> {
    let histogram = decode(hdr)?;
    let (values, counts): (Vec<u64>, Vec<u64>) = histogram
        .iter_recorded()
        .map(|step| (step.value_iterated_to(), step.count_at_value()))
        .unzip();
    Ok((values.into_pyarray(py), counts.into_pyarray(py)))
}

#[pyfunction]
pub(crate) fn merge_histograms(parts: Vec<PyBackedBytes>) -> PyResult<Vec<u8>> {
    let mut parts = parts.into_iter().map(|part| decode(&part));
    let mut sum = parts
        .next()
        .ok_or_else(|| PyValueError::new_err("nothing to merge"))??;
    for part in parts {
        sum.add(&part?)
            .map_err(|error| PyValueError::new_err(format!("the bounds differ: {error:?}")))?;
    }
    Ok(encode(&sum))
}
