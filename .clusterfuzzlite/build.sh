#!/usr/bin/env bash
# Builds the fuzz targets for a fuzzing engine, as ClusterFuzzLite and OSS-Fuzz call it:
#
#   OUT=/tmp/out SRC=$PWD/.. SANITIZER=address .clusterfuzzlite/build.sh
#
#   $OUT                  gets each target, its seed corpus (TARGET_seed_corpus.zip) and its options (TARGET.options)
#   $SRC                  the folder in which this repository is, as ir3-equiv; it may have another name outside of the image
#   $SANITIZER            address, or none (coverage builds of the image take it for their own flags)
#   $LIB_FUZZING_ENGINE   the library of the engine; libFuzzer of libfuzzer-sys unless it is a file
#   $FUZZ_TARGETS         the targets; all unless given
#
# It needs a nightly toolchain, and no Docker.
set -euo pipefail
: "${OUT:?where the targets go}" "${SRC:?where the sources are}"
root=$SRC/ir3-equiv
[[ -d $root/fuzz ]] || root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
folder=${CARGO_TARGET_DIR:-$root/fuzz/target}/cluster-${SANITIZER:-address}

# The counters of an engine that reads SanitizerCoverage, as cargo-fuzz sets them.
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags+=" -Cllvm-args=-sanitizer-coverage-pc-table -Ccodegen-units=16"
case ${SANITIZER:-address} in
    address) flags+=" -Zsanitizer=address -Cdebug-assertions" ;;
    none | coverage | introspector) ;;
    *)
        echo "build.sh: found sanitizer $SANITIZER, expected address or none" >&2
        exit 2
        ;;
esac
if [[ -n ${LIB_FUZZING_ENGINE:-} && -f $LIB_FUZZING_ENGINE ]]; then
    # libfuzzer-sys links this one instead of its own.
    export CUSTOM_LIBFUZZER_PATH=$LIB_FUZZING_ENGINE
fi
read -ra targets <<<"${FUZZ_TARGETS:-$(cd fuzz/fuzz_targets && echo *.rs | sed 's/\.rs//g')}"
bins=()
for target in "${targets[@]}"; do
    bins+=(--bin "$target")
done
RUSTFLAGS="${RUSTFLAGS:-} $flags" cargo +nightly build --release --manifest-path fuzz/Cargo.toml --target "$host" --target-dir "$folder" "${bins[@]}"

mkdir -p "$OUT"
for target in "${targets[@]}"; do
    cp "$folder/$host/release/$target" "$OUT/"
    # A compiler that does not terminate, or takes too much memory, is a failure. (ci/fuzz says what the others do.)
    printf '[libfuzzer]\nlen_control = 0\nuse_counters = 0\nentropic = 0\nmax_len = %s\ntimeout = 10\nrss_limit_mb = 2048\n' \
        "$([[ $target == readers ]] && echo 16384 || echo 600)" >"$OUT/$target.options"
    if [[ $target == readers ]]; then
        cp fuzz/dictionaries/readers.dict "$OUT/readers.dict"
        if command -v zip >/dev/null; then
            find corpus -name '*.nir' -not -path '*/regressions/*' -not -path '*/file/*' | zip --quiet --junk-paths -@ "$OUT/readers_seed_corpus.zip"
        fi
    fi
done
echo "${#targets[@]} targets in $OUT"
