//! Student's t distribution with a whole number of degrees of freedom.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

/// The probability that a number of the distribution is between `-√ν tan θ` and `√ν tan θ`, for ν degrees of freedom: a
/// finite sum of powers of the cosine.
fn within(theta: f64, degrees: u64) -> f64 {
    let (sine, cosine) = theta.sin_cos();
    let is_odd = degrees % 2 == 1;
    // The terms are those of the powers 1, 3, … or 0, 2, …; each is the one before times cos² (k - 1) / k.
    let (mut term, mut sum) = (if is_odd { cosine } else { 1.0 }, 0.0);
    for k in (if is_odd { 3 } else { 2 }..=degrees).step_by(2) {
        sum += term;
        term *= cosine * cosine * (k - 1) as f64 / k as f64;
    }
    if is_odd { FRAC_2_PI * (theta + sine * sum) } else { sine * sum }
}

/// The t below which the given share of the distribution is, for a share above one half.
pub(super) fn quantile(share: f64, degrees: u64) -> f64 {
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    // Each step halves the interval: as many as an `f64` has digits.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if within(middle, degrees) < 2.0 * share - 1.0 { low = middle } else { high = middle }
    }
    (degrees as f64).sqrt() * low.tan()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (degrees, expected) in [
            (1, 12.706_204_736),
            (2, 4.302_652_730),
            (3, 3.182_446_305),
            (10, 2.228_138_852),
            (31, 2.039_513_446),
            (120, 1.979_930_405),
            (1000, 1.962_339_081),
        ] {
            let found = quantile(0.975, degrees);
            assert!((found - expected).abs() < 1e-8, "{degrees}: {found}");
        }
    }
}
