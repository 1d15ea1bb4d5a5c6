#!/bin/sh
# Emitted CUDA through nvcc: tests/cuda/nvcc.sh GPLAN all|some
# Compiles and links the examples without a warning: all of them for the architectures that this
# toolkit has out of sm_75, sm_80 and sm_90, or some for one. The programs are run too: on a
# machine without a GPU they must say so, with a code and in words. Without nvcc there is nothing
# to do, and that is said.
set -u
gplan=$1
which=$2
case $gplan in /*) ;; *) gplan=$PWD/$gplan ;; esac
here=$(cd "$(dirname "$0")" && pwd)
examples=$here/../../examples
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)

# One model in the folder at hand: its name, its options.
if [ "$which" = one ]; then
    model=$3
    shift 3
    capitals=$(echo "$model" | tr '[:lower:]' '[:upper:]')
    # shellcheck disable=SC2086
    mkdir -p "$model" && cd "$model" &&
        "$gplan" "$examples/$model.g" --effort 1 --quiet "$@" -o "$model.cu" >log 2>&1 &&
        "$nvcc" -Werror all-warnings -O1 $ARCHITECTURES -c "$model.cu" -o model.o >>log 2>&1 &&
        "$nvcc" -Werror all-warnings $ARCHITECTURES "-DMODEL=$model" "-DCAPITALS=$capitals" \
            -include "$model.h" "$here/link.cu" model.o -lcublas -o program >>log 2>&1 &&
        ./program >>log 2>&1 && echo "passed $model: $(tail -n 1 log)" && exit 0
    echo "failed $model:"
    head -n 20 log
    exit 0 # the others are tried too
fi

if [ ! -x "$nvcc" ]; then
    echo 'there is no nvcc: emitted CUDA was run on the CPU, but not compiled for a GPU'
    exit 0
fi
ARCHITECTURES=
for number in 75 80 90; do
    "$nvcc" --list-gpu-code | grep -qx "sm_$number" || continue
    [ "$which" = some ] && [ -n "$ARCHITECTURES" ] && break
    ARCHITECTURES="$ARCHITECTURES -gencode arch=compute_$number,code=sm_$number"
done
export ARCHITECTURES
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
echo "nvcc:$ARCHITECTURES"
if [ "$which" = some ]; then
    printf '%s\n' mlp lenet
else
    basename -s .g "$examples"/*.g
fi | xargs -P 2 -n 1 "$here/nvcc.sh" "$gplan" one >results
cat results
! grep -q '^failed' results
