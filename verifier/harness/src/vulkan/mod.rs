//! A second oracle: programs that run on a device of Vulkan and in the interpreter of nir.
//!
//! The specification decides what is compared: the interpreter runs with the modes of the device, and whatever the
//! specification leaves open is undefined there, bit by bit ([`oracle`], [`words`]). A program with a race is no program
//! to compare ([`races`]). [`campaign`] compares generated programs, [`reduction`] makes those that differ smaller, and
//! a [`second`] device runs them. [`dependence`] shows which operations a comparison depends on, and [`coverage`] keeps
//! them in a file. [`mistakes`] are planted in the interpreter. [`known`] has the
//! bugs of devices that are known, and [`times`] where CPU time goes.

pub mod campaign;
pub mod coverage;
pub mod dependence;
pub mod known;
pub mod mistakes;
pub mod oracle;
pub mod races;
pub mod reduction;
pub mod second;
pub mod times;
pub mod words;
