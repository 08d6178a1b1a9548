//! Integer and float arithmetic, in one vocabulary for machine integers and terms.
//!
//! [`domain`] has the primitive operations on bit vectors and floats; [`integer`], [`float`] and [`convert`] define
//! results in that vocabulary, generic over the domain. [`concrete`] is the domain of machine integers,
//! [`Terms`](crate::terms::Terms) the domain of terms. [`rows`] has the values of all lanes of a wave.

pub mod concrete;
pub mod convert;
pub mod domain;
pub mod float;
pub mod integer;
pub mod rounding;
pub mod rows;
