//! The buckets of histograms over octaves: small values have a bucket each; above them each octave, from a power of two
//! to the next, has the same number of buckets. `B` is the number of leading bits that a bucket keeps of its values:
//! those below 2^B are exact, and a bucket is at most 2^(1-B) of its least value wide.

/// The bucket of a value: the octave's number, then the value's leading `B` bits.
#[inline]
pub(super) const fn bucket<const B: u32>(value: u64) -> usize {
    let octave = (value | ((1 << B) - 1)).ilog2() + 1 - B;
    ((octave as usize) << (B - 1)) + (value >> octave) as usize
}

/// The octave of a bucket: its values are so many bits longer than exact ones.
const fn octave<const B: u32>(bucket: usize) -> u32 {
    (bucket >> (B - 1)).saturating_sub(1) as u32
}

/// The least value of a bucket.
pub(super) const fn lowest<const B: u32>(bucket: usize) -> u64 {
    let octave = octave::<B>(bucket);
    ((bucket - ((octave as usize) << (B - 1))) as u64) << octave
}

/// The value in the middle of a bucket, which differs from each of its values by at most 2^-B of that.
pub(super) const fn middle<const B: u32>(bucket: usize) -> u64 {
    lowest::<B>(bucket) + (1 << octave::<B>(bucket)) / 2
}

/// The middle of the bucket of this quantile among `count` values; zero without a value.
pub(super) fn quantile<const B: u32>(buckets: &[u32], count: u64, quantile: f64) -> u64 {
    let rank = (count as f64 * quantile).ceil() as u64;
    let mut seen = 0;
    for (index, &filled) in buckets.iter().enumerate() {
        seen += u64::from(filled);
        if filled > 0 && seen >= rank {
            return middle::<B>(index);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn errs_at_most_by_its_bits<const B: u32>(value: u64) -> Result<(), TestCaseError> {
        let bucket = bucket::<B>(value);
        prop_assert!(lowest::<B>(bucket) <= value && value < lowest::<B>(bucket + 1));
        let error = value.abs_diff(middle::<B>(bucket)) as f64;
        prop_assert!(
            error <= value as f64 / f64::from(1 << B),
            "{value} was read as {}",
            middle::<B>(bucket)
        );
        Ok(())
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_values_within_the_error_that_it_promises(value in (0_u32..62).prop_flat_map(|bits| 0..2_u64 << bits)) {
            errs_at_most_by_its_bits::<4>(value)?;
            errs_at_most_by_its_bits::<6>(value)?;
            errs_at_most_by_its_bits::<11>(value)?;
        }
    }
}
