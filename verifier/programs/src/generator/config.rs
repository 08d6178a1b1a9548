//! The probabilities of the generator's decisions, in 1/256.
//!
//! The frequencies of operations are those of a profile ([`profile`](super::profile)), the shape of a program is its
//! style ([`style`](super::style)), and a decision without a preference is
//! [`Choices::even`](super::choices::Choices::even). All others are here: how often a program, or an operation of one,
//! has a property that is rare in programs of random operations.

/// Declares the struct and its values together.
macro_rules! config {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)*) => {
        /// The probabilities of the generator's decisions, in 1/256.
        #[derive(Clone, Copy, Debug)]
        pub(super) struct Config {
            $($(#[$doc])* pub $name: u32,)*
        }

        /// The values of all generated programs: a change of one changes the programs of all seeds.
        pub(super) const CONFIG: Config = Config { $($name: $value,)* };
    };
}

config! {
    // Programs (`mod.rs`).
    /// A program of the profile `pressure` has the operations of another profile.
    pressure_of_others = 150,
    /// A program of the profile `pressure` has a crowd of vectors and scalars at its start.
    pressure_crowd = 100,
    /// A program of operations has many equal or related values at its start (`hoard`).
    hoard = 30,
    /// A program of operations declares rounding to nearest even, for each width.
    rounds_to_even = 50,
    /// A program of operations with 64 lanes has a workgroup of variable size.
    variable_workgroup = 20,
    /// The values that live until the outputs fill a quarter of the register file.
    many_long_lived = 24,
    /// They do so in a program of operations.
    many_long_lived_of_operations = 128,
    /// A value that lives until the outputs is a float of 32 bits.
    long_lived_float = 180,
    /// A value is added to the witness.
    witnessed = 48,
    /// A phi is added to the witness: it carries the result of an arm or a loop.
    witnessed_phi = 128,

    // Conditions and control flow (`conditions.rs`, `kept.rs`, `control.rs`).
    /// A condition is a bit of the number of the lane.
    condition_of_lane = 80,
    /// A tree of conditions is replaced by a subgroup vote on it.
    vote = 24,
    /// A vote is negated.
    negated_vote = 80,
    /// The root of a tree gets further readers.
    tree_with_readers = 50,
    /// A subtree of a condition is negated.
    negated_tree = 72,
    /// A comparison in a tree gets further readers.
    leaf_with_readers = 40,
    /// More conditions are kept although there are some.
    more_kept = 70,
    /// Conditions are kept before a loop.
    kept_before_loop = 220,
    /// A kept condition is used by a vote.
    vote_of_kept = 60,
    /// A branch is on a kept condition and a comparison.
    kept_with_other = 40,
    /// A condition is a tree of kept conditions.
    kept_condition = 64,
    /// A tree of kept conditions ends early.
    kept_leaf = 24,
    /// A comparison that may differ between lanes is of a constant that is read relative to an address.
    relative_comparison = 24,
    /// Such a comparison is of two computed values.
    comparison_of_values = 50,
    /// A source of a phi is a uniform value.
    uniform_phi_source = 60,
    /// A phi has 8 bits.
    phi_of_8_bits = 10,
    /// A branch has a constant condition.
    constant_branch = 8,
    /// A branch keeps the lanes of a quad together.
    quad_branch = 30,
    /// A branch has a phi of vectors.
    vector_phi = 16,
    /// The second arm of a branch has code of its own.
    other_arm = 170,
    /// A source of a phi is undefined.
    undefined_phi_source = 4,
    /// An arm in a loop ends with a jump.
    jump_of_arm = 90,
    /// A jump at the end of an arm leaves the loop.
    break_of_arm = 150,
    /// A loop carries the counter of a loop in it.
    inner_counter_carried = 100,
    /// A loop carries a component of a vector.
    carried_component = 60,
    /// A loop carries comparisons of uniform values, which branches after it use.
    carried_query = 40,
    /// A continue construct changes the values that it carries.
    changed_by_construct = 170,
    /// Code is before a further exit of a loop.
    region_before_exit = 100,
    /// A further exit of a loop is a `continue`.
    continue_instead = 60,
    /// Lanes iterate a loop differently often.
    divergent_limit = 90,
    /// The phis of a loop begin with constants.
    constant_start = 64,
    /// A loop has a continue construct.
    continue_construct = 40,
    /// Lanes that end in a loop do so at the end of the iteration, not in its middle.
    ends_with_iteration = 100,
    /// A loop has a further exit.
    loop_exit = 60,
    /// The last block of a loop leaves it.
    last_block_leaves = 30,
    /// The phis of a loop get readers after it.
    readers_of_header = 80,
    /// A loop is followed by operations on the values that it carries.
    after_loop = 60,

    // Expressions (`expression.rs`, `pool.rs`, `chains.rs`, `uniform.rs`).
    /// An operand is a constant.
    constant_operand = 36,
    /// A constant is near the limit of immediates.
    constant_beyond_immediates = 150,
    /// An operation on floats is transcendental.
    transcendental = 30,
    /// An operation on halves is one on integers.
    half_integer = 110,
    /// A comparison is of floats.
    float_comparison = 100,
    /// A vector operand has the components of one vector.
    vector_source = 200,
    /// A scalar operand is a component of a vector.
    component_source = 50,
    /// The components of a vector source are in another order.
    shuffled_source = 100,
    /// In a program of operations, a chain has operations of all kinds.
    chain_of_kinds = 190,
    /// A step of a narrow chain may change the width.
    converting_chain = 100,
    /// A chain is of scalars.
    scalar_chain = 220,
    /// The next operation of a chain reads a value with the base type that it has.
    chain_as_itself = 220,
    /// An inner value of a chain has another reader.
    chain_with_reader = 16,
    /// The next operation of a chain is drawn from all, and taken if it reads such a value.
    chain_of_any = 70,
    /// A uniform region has a copy of a uniform value.
    uniform_copy = 100,

    // Effects and inputs (`effects.rs`, `driver.rs`, `overwrites.rs`, `hoard.rs`).
    /// The number of an element is a constant.
    constant_element = 100,
    /// Stored data is a vector of the pool.
    vector_data = 120,
    /// Stored data is a vector of new components.
    built_data = 80,
    /// A store of a vector leaves out components.
    partial_mask = 60,
    /// An atomic operation of a buffer is a compare-and-exchange.
    compare_exchange_word = 160,
    /// All elements of an array are written again.
    filled_again = 60,
    /// A load from an array is after a store at a computed index.
    array_store = 100,
    /// A local array has the width of the program's style.
    array_of_style = 170,
    /// A sample has a comparator.
    sample_compare = 40,
    /// A fragment shader has a derivative after a sample.
    derivative = 120,
    /// A ballot is counted.
    census = 40,
    /// A kill demotes lanes to helper lanes.
    demote = 100,
    /// A vertex shader reads its instance.
    instance_id = 80,
    /// A fragment shader of operations with a preamble has prefetches.
    prefetched_after_preamble = 150,
    /// Another fragment shader of operations has prefetches.
    prefetched = 40,
    /// A fragment shader has flat inputs.
    flat_inputs = 50,
    /// A fragment shader reads its coordinates.
    frag_coord = 100,
    /// A compute shader reads the number of workgroups.
    workgroups = 80,
    /// A value at the start of a fragment shader for a driver is a derivative.
    driver_derivative = 100,
    /// A word gets a third value.
    overwrite_again = 60,
    /// The stored values are in another order.
    overwrite_swapped = 60,
    /// A word of shared memory is overwritten.
    overwrite_shared = 100,
    /// A word is read between two stores.
    overwrite_read = 30,
    /// An atomic operation is between two stores.
    overwrite_atomic = 50,
    /// The result of the atomic operation is used.
    overwrite_result = 100,
    /// Hoarded loads have 16 bits.
    hoard_halves = 60,
    /// Hoarded values are loaded from a buffer.
    hoard_buffer = 150,
    /// A part of a hoarded vector is changed.
    hoard_changed = 60,

    // Shapes and kernels (`shapes.rs`, `kernel.rs`, `copies.rs`).
    /// A nest of branches has hardly any code.
    quiet_nest = 90,
    /// A narrow value is undefined in some lanes, instead of being one of a chain.
    partly_known = 90,
    /// A part of a vector in a crowd is a known value.
    crowd_of_known = 100,
    /// A crowd has a texel fetch.
    crowd_with_texel = 80,
    /// A vector of a crowd is read while the crowd is made.
    crowd_read = 200,
    /// A vector of a crowd is read at its end.
    crowd_read_at_end = 220,
    /// The values of a nest are combined after it.
    mixed_after_nest = 100,
    /// Both arms of a quiet nest contain further branches.
    deeper_quiet_nest = 90,
    /// An arm leaves the loop at its end.
    arm_leaves = 170,
    /// A fragment shader has votes at its end.
    last_votes_of_fragment = 60,
    /// Another program has votes at its end.
    last_votes = 10,
    /// A vote at the end of a program has no branch.
    last_vote_alone = 60,
    /// A branch at the end is on a vote.
    branch_on_last_vote = 100,
    /// The second arm of such a branch has a vote.
    vote_in_last_arm = 170,
    /// The guard of a kernel has two dimensions.
    kernel_of_two_dimensions = 100,
    /// A kernel loads an element through a bindless descriptor.
    kernel_bindless = 170,
    /// A copy to general registers is from shared ones.
    copy_from_shared = 24,

    // Operations: operands (`operations/mod.rs`, `operations/operands.rs`, `operations/swarm.rs`).
    /// An operation is one of those that the program favours.
    favoured_operation = 190,
    /// An operation that ends lanes is a kill in fragment shaders, otherwise a halt.
    kill_of_fragment = 200,
    /// The condition of a kill is computed directly before it.
    late_kill_condition = 100,
    /// A read of the first lane is before a kill.
    first_lane_before_kill = 60,
    /// A kill has no condition.
    unconditional_kill = 80,
    /// A kill demotes lanes.
    kill_demotes = 100,
    /// A query of the lanes is before a kill, and decides a branch after it.
    query_before_kill = 180,
    /// Lanes that end store before.
    store_before_halt = 100,
    /// A probe is two equal operations.
    twins = 24,
    /// An operation is one on parts of values.
    part_operation = 6,
    /// An operation is repeated on the components of a vector.
    operations_in_order = 40,
    /// An operation is repeated on its own result.
    operations_in_a_row = 16,
    /// An operation is scalar, in programs that prefer those.
    scalar_operation = 200,
    /// A vector operand is one of the pool.
    vector_of_pool = 100,
    /// A small number may differ between lanes.
    number_of_lane = 64,
    /// A uniform number is a constant.
    constant_number = 170,
    /// An offset in the constant file begins inside a vec4 and ends after it.
    straddling_base = 60,
    /// A constant number times a power of two is a constant.
    folded_shift = 200,
    /// An access states no alignment.
    unknown_alignment = 16,
    /// An access at a known address states an alignment of that.
    known_alignment = 200,
    /// An access states a smaller alignment than that of its element.
    smaller_alignment = 64,
    /// A descriptor has a large number.
    far_descriptor = 40,
    /// In a program for a driver, a descriptor is one of an array.
    shared_descriptor = 40,
    /// The number of a descriptor is computed.
    computed_descriptor = 60,
    /// An access is coherent.
    coherent = 60,
    /// An access is volatile.
    volatile = 30,
    /// An access is not temporal.
    non_temporal = 20,
    /// An access has a flag that selection ignores, for each of them.
    unused_access_flag = 10,
    /// A value of 64 bits has a constant half.
    half_known = 24,
    /// The components of a constant vector are equal.
    equal_constants = 80,
    /// A constant is a component of a constant vector.
    component_of_constant = 30,
    /// The vector of such a constant is of floats.
    float_constants = 80,
    /// A constant of another type has the bits of a float.
    float_bits = 16,
    /// A float constant is a special or a small number.
    float_of_interest = 230,
    /// Such a constant is a special number.
    special_float = 180,
    /// An operation is exact.
    exact = 16,

    // Operations: lanes, memory, arrays (`operations/lanes.rs`, `operations/memory.rs`, `operations/arrays.rs`).
    /// An operation across lanes is a row of queries before a branch.
    queries_before_branch = 30,
    /// An operation across lanes is a scan in an arm.
    scan_in_arm = 20,
    /// If all lanes of a quad are active, an operation across lanes is one that needs them.
    quad_operation = 100,
    /// A vote on equality has a value that only one lane has differently.
    almost_equal_vote = 100,
    /// A ballot of an operation is counted.
    lanes_census = 40,
    /// A query of the lanes is about a comparison of a uniform value.
    uniform_query = 80,
    /// A scan is in an arm of a uniform branch.
    uniform_arm = 100,
    /// A reduction in an arm is clustered.
    clustered_scan = 170,
    /// A ballot has a constant condition.
    constant_ballot = 60,
    /// A read of one lane has a constant condition.
    always_elected = 40,
    /// A reduction multiplies.
    product_reduction = 40,
    /// An access has the width that the program prefers.
    usual_width = 180,
    /// An access has five components or more.
    long_vector = 30,
    /// An access to a buffer is a row of stores to one word.
    overwritten_buffer = 16,
    /// A query of a buffer's size may be reordered.
    reorderable_buffer = 30,
    /// An element is less than a known one.
    less_than_known = 30,
    /// An atomic operation has 64 bits.
    wide_atomic = 40,
    /// An atomic operation compares.
    compare_exchange = 80,
    /// An access to shared memory is atomic.
    shared_atomic = 80,
    /// An access by address is atomic.
    global_atomic = 70,
    /// An access by address reads memory that is never written.
    only_read_address = 30,
    /// An access by address has a constant address.
    known_address = 24,
    /// An access by address is marked as not uniform.
    non_uniform = 16,
    /// An access by address has a constant offset.
    constant_address_offset = 80,
    /// A load from a uniform buffer has 64 bits.
    wide_uniform_buffer = 50,
    /// A load from a uniform buffer may be reordered.
    reorderable_uniform_buffer = 60,
    /// A program reads the last words of the constant file.
    last_constants = 8,
    /// A program has a preamble.
    preamble = 50,
    /// A preamble copies push constants.
    copied_push_constants = 60,
    /// A preamble stores a constant vector.
    constants_in_preamble = 30,
    /// A preamble stores words that it computes from others.
    computed_in_preamble = 150,
    /// The first buffer that a preamble loads from has a uniform number.
    preamble_buffer = 60,
    /// Words that a preamble replaces are read with a modifier.
    modified_old_words = 100,
    /// A preamble has a branch.
    branch_in_preamble = 60,
    /// A barrier is in a branch on a uniform number.
    barrier_in_branch = 80,
    /// A barrier orders memory by address.
    orders_global = 90,
    /// A barrier orders images.
    orders_images = 60,
    /// A barrier orders another memory, which has no effect.
    orders_another = 60,
    /// A crowd, not a chain, is between two accesses at one computed index.
    crowd_before_relative = 60,
    /// An array is stored to and loaded from at one computed index.
    relative_array = 50,
    /// An access to an array has a computed index.
    indirect_access = 140,
    /// An access to an array is a store.
    array_of_table_store = 100,
    /// A uniform value is stored to an array.
    uniform_element = 80,
    /// An access to an array has a saturation, an absolute value or a negation, each of them.
    array_modifier = 50,
    /// A loaded element is combined with another value.
    element_with_other = 60,

    // Operations: inputs, images, textures (`operations/inputs.rs`, `operations/images.rs`, `operations/textures.rs`).
    /// A fragment shader reads the place of a sample.
    sample_input = 40,
    /// A fragment shader reads the size or the offset of fragments of a view.
    view_input = 30,
    /// A compute shader reads an input of a kernel.
    kernel_input = 60,
    /// An input is replaced by an operation without an effect.
    without_effect = 20,
    /// A store of an output leaves out components.
    partial_output = 40,
    /// An output has a large number.
    far_output = 30,
    /// A constant is stored to an output of its own.
    constant_output = 24,
    /// That output is one of a view.
    constant_output_of_view = 100,
    /// A vertex shader stores an output of a view.
    output_of_view = 60,
    /// An attribute has a large number.
    far_attribute = 16,
    /// A sample at interpolated coordinates is a prefetch.
    prefetch = 200,
    /// Barycentric coordinates are smooth.
    smooth = 100,
    /// The number of a varying is computed.
    computed_varying = 60,
    /// A varying is flat.
    flat_varying = 90,
    /// A varying has a large number.
    far_varying = 12,
    /// A varying is interpolated at computed coordinates.
    computed_coordinates = 40,
    /// An image is only read.
    only_read_image = 90,
    /// In a program for a driver, an image is one of an array.
    shared_image = 30,
    /// The number of an image is computed.
    computed_image = 40,
    /// An image that is only read is bindless.
    bindless_only_read = 190,
    /// Another image is bindless.
    bindless_image = 100,
    /// The coordinates of a texel are constants.
    constant_texel = 30,
    /// A texel is of 16 bits.
    half_texel = 60,
    /// An image has one of the common formats.
    common_format = 100,
    /// A query of the level has 16 bits.
    half_level = 60,
    /// A sample has a level although its operation needs none.
    needless_level = 60,
    /// A bindless number may differ between lanes.
    handle_of_lane = 60,
    /// Texture and sampler are in one descriptor set.
    same_set = 160,
    /// In a program for a driver, a handle is loaded.
    loaded_handle = 100,
    /// A sampler has an offset.
    computed_sampler = 140,
    /// A texture has an offset although its sampler has one.
    computed_texture = 150,
    /// A constant number is marked as not uniform.
    constant_may_vary = 60,
    /// A query of a texture has 16 bits.
    half_texture_query = 60,
    /// A query of a size has a level.
    size_of_level = 160,
    /// A gather or a fetch of samples has two dimensions.
    two_dimensions = 200,
    /// A texture has layers, if it is not for a driver.
    layered = 60,
    /// Coordinates have 16 bits.
    half_coordinates = 40,
    /// A texel fetch has a level that need not be 0.
    level_of_fetch = 160,
    /// A sample of the table has a comparator.
    comparator = 50,
    /// A sample has a projector.
    projector = 40,
    /// A sample has an offset in texels.
    texel_offset = 60,
    /// A sample has fewer than four components.
    fewer_components = 60,
    /// A prefetch is at the centroid.
    prefetch_at_centroid = 30,
    /// A prefetch has another interpolation than the smooth one.
    prefetch_not_smooth = 60,
    /// A prefetch is at the second varying.
    second_varying = 80,
    /// The second coordinate of a prefetch is any component.
    swizzled_prefetch = 100,
    /// A prefetch has another number of coordinates.
    other_coordinates = 50,

    // Operations: patterns, probes, sweeps (`operations/patterns.rs`, `operations/probe.rs`, `operations/sweep.rs`).
    /// A program begins with a row of patterns of rewrite rules.
    row_of_patterns = 80,
    /// A pattern is of scalars.
    scalar_pattern = 220,
    /// A condition that a pattern computes has a branch.
    branch_on_pattern = 170,
    /// If another operand replaces a repeated variable, it is the next component of that.
    next_component = 170,
    /// An inner value of a pattern has another reader.
    pattern_with_reader = 24,
    /// A program of operations loads words that differ between lanes.
    raw_inputs = 220,
    /// A program begins with a row of probes.
    row_of_probes = 64,
    /// A probe is of an operation on parts of values.
    probe_of_parts = 8,
    /// An operand of a probe is a component of the first operand's vector.
    component_of_same_vector = 16,
    /// An operand of a probe is any value.
    any_operand = 40,
    /// The only reader of a probed value is an operation with one operand.
    read_alone = 50,
    /// An operand of a probe is a part of a longer vector.
    longer_vector = 80,
    /// One half of a value of 64 bits is a special constant.
    known_half = 40,
    /// A value of 64 bits is packed from a pair of words.
    packed_pair = 200,
    /// A program of operations is a sweep: each value is stored to a place of its own.
    sweep = 140,
    /// A sweep has operations across lanes, for each of its families.
    lanes_in_sweep = 40,
    /// A step of a sweep ends lanes.
    kill_in_sweep = 8,

    // Gen7: sums of 64 bits (`additions.rs`) and vec4 (`vec4.rs`).
    /// A word is a constant.
    constant_word = 40,
    /// A value of 64 bits is a new sum.
    new_wide = 60,
    /// A bool is a new comparison.
    new_comparison = 160,
    /// An operand is one of the last values.
    recent_value = 150,
    /// The operands of a sum in halves are exchanged.
    swapped_halves = 60,
    /// A statement is between the halves of a sum.
    statement_between_halves = 60,
    /// An access at a computed address is a load.
    load_of_sum = 170,
    /// An operand of vec4 is a constant.
    vec4_constant = 40,
    /// An operand of vec4 is one of the last values.
    vec4_recent = 160,
    /// The components of a constant of vec4 are equal.
    vec4_equal_constants = 160,
    /// A comparison of vec4 is of floats.
    vec4_float_comparison = 150,
    /// A comparison is added before a condition of vec4 is chosen.
    vec4_new_condition = 170,
    /// A loop of vec4 has a second exit.
    vec4_second_exit = 100,
}
