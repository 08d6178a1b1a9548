//! Programs in text, with few shared registers.
