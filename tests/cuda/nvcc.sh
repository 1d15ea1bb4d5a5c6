#!/bin/sh
# Emitted CUDA through nvcc: tests/cuda/nvcc.sh GPLAN all|some
# Compiles and links the examples without a warning, and without a register that is spilled. all:
# every example and a program for two ranks, for the oldest and the newest out of the architectures
# that architectures.sh knows, four of them for each, and some with a --precision after @. some:
# three, for the oldest. The programs are run too: on a machine
# without a GPU they must say so, with a code and in words. Without nvcc there is nothing to do, and
# that is said.
set -u
gplan=$1
which=$2
case $gplan in /*) ;; *) gplan=$PWD/$gplan ;; esac
here=$(cd "$(dirname "$0")" && pwd)
examples=$here/../../examples
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)

# The object has code for what was asked for, and nothing else.
is_made_for() { # FLAGS
    # shellcheck disable=SC2086
    printf '%s\n' $1 | sed -n 's/.*code=//p' | sort >wanted
    ../fatbin model.o | sort | diff wanted -
}

# One model in the folder at hand: its name, or gpt2@bf16.
if [ "$which" = one ]; then
    model=${3%@*}
    precision=model
    case $3 in *@*) precision=${3#*@} ;; esac
    capitals=$(echo "$model" | tr '[:lower:]' '[:upper:]')
    flags=$FEW
    case $3 in bert | lenet | mlp | unet | gpt2@bf16 | resnet50@f16) flags=$ALL ;; esac
    images=
    source=$examples/$model.g
    options=
    if [ "$model" = ranks ]; then # not an example: a program that NCCL connects
        source=$here/../ranks/dense.g
        options='--ranks 2 --shard gradients --prefix ranks'
        images='-lnccl -DFOR_RANKS'
    fi
    grep -q '= images(' "$source" && images='-ljpeg -lpng'
    # shellcheck disable=SC2086
    mkdir -p "$3" && cd "$3" &&
        "$gplan" "$source" $options --precision "$precision" --effort 1 --quiet -o "$model.cu" \
            >log 2>&1 &&
        "$nvcc" -Werror all-warnings -Xptxas -warn-spills -O1 $flags -c "$model.cu" -o model.o \
            >>log 2>&1 &&
        "$nvcc" -Werror all-warnings $flags "-DMODEL=$model" "-DCAPITALS=$capitals" \
            -include "$model.h" "$here/link.cu" model.o -lcublas $images -o program >>log 2>&1 &&
        is_made_for "$flags" >>log 2>&1 &&
        ./program >>log 2>&1 && echo "passed $3: $(tail -n 1 log)" && exit 0
    echo "failed $3:"
    head -n 20 log
    exit 0 # the others are tried too
fi

if [ ! -x "$nvcc" ]; then
    echo 'there is no nvcc: emitted CUDA was run on the CPU, but not compiled for a GPU'
    exit 0
fi
numbers=$("$here/architectures.sh" "$nvcc" numbers) || exit 1
oldest=$(echo "$numbers" | head -n 1)
newest=$(echo "$numbers" | tail -n 1)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" && g++ -O1 "$here/fatbin.cpp" -o fatbin || exit 1
if [ "$which" = some ]; then
    FEW=$("$here/architectures.sh" "$nvcc" flags "$oldest")
    ALL=$FEW
    examples_wanted='mlp fashion lenet@bf16'
else
    FEW=$("$here/architectures.sh" "$nvcc" flags "$oldest" "$newest")
    ALL=$("$here/architectures.sh" "$nvcc" flags)
    examples_wanted="$(basename -s .g "$examples"/*.g)
gpt2@bf16 resnet50@f16 unet@bf16 mobilenetv2@bf16 bert@f16"
fi
if echo '#include <nccl.h>' | "$nvcc" -x cu -E - -o nccl.i >nccl.log 2>&1; then
    examples_wanted="$examples_wanted ranks"
else
    echo 'there is no nccl.h: a program for several ranks was not compiled for a GPU'
fi
export FEW ALL
echo "nvcc: $(echo "$ALL" | tr "\n" " ")"
# shellcheck disable=SC2086
printf '%s\n' $examples_wanted | xargs -P 2 -n 1 "$here/nvcc.sh" "$gplan" one >results
cat results
! grep -q '^failed' results
