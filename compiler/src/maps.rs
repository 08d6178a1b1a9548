//! Maps from entities.

use cranelift_entity::{EntityRef, SecondaryMap};

/// A map that has the default value for the first `len` entities, so that it does not grow step by step while these are
/// written.
pub fn map_of<K: EntityRef, V: Clone + Default>(len: usize) -> SecondaryMap<K, V> {
    let mut map = SecondaryMap::new();
    map.resize(len);
    map
}
