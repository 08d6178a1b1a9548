//! Generated programs are valid, and parse back to the same program.

use ir3_compiler::nir;
use ir3_programs::generator::{Features, Profile, from_bytes, from_seed};
use proptest::prelude::*;

#[test]
fn programs_are_valid_and_round_trip() {
    for profile in Profile::ALL {
        for seed in 0..40 {
            let shader = from_seed(seed, profile, Features::ALL).shader;
            let text = nir::text::write(&shader);
            if let Err(errors) = nir::validate(&shader) {
                panic!("{profile} {seed}: {errors:?}\n{text}");
            }
            let again = nir::text::read(&text).unwrap_or_else(|e| panic!("{profile} {seed}: {e}\n{text}"));
            assert_eq!(text, nir::text::write(&again), "{profile} {seed}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_make_a_valid_program(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let shader = from_bytes(&bytes, None, Features::ALL).shader;
        prop_assert!(nir::validate(&shader).is_ok());
    }
}
