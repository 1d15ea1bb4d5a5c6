# What fuzzers begin with. Sourced; needs gplan (a program) and root.
# shellcheck shell=sh disable=SC2154

# Copies what is kept for a door, and what the tests and examples have, to a folder.
seeds() { # DOOR FOLDER
    mkdir -p "$2"
    cp "$root/tests/fuzz/corpus/$1"/* "$2" 2>/dev/null
    case $1 in
    language)
        cp "$root"/tests/fuzz/*.g "$root"/tests/language/*.g "$root"/tests/train/[d-z]*.g "$2"
        # Small enough to plan in a moment: what matters is the text.
        for model in mlp lenet gpt2; do
            sed '/^model/s/= *[0-9][0-9]*/= 4/g' "$root/examples/$model.g" >"$2/$model.g"
        done
        ;;
    onnx)
        for model in "$root"/tests/onnx/own/node/*/model.onnx; do
            name=${model%/model.onnx}
            cp "$model" "$2/${name##*/}"
        done
        ;;
    verify)
        "$gplan" "$root/tests/fuzz/every.g" --infer --quiet --effort 1 -o "$2/every.json"
        "$gplan" "$root/tests/fuzz/loader.g" --quiet --effort 1 -o "$2/loader.json"
        "$gplan" "$root/tests/fuzz/small.g" --quiet --effort 1 -o "$2/small.json"
        "$gplan" "$root/tests/fuzz/small.g" --quiet --effort 1 --accumulate 2 -o "$2/micro.json"
        "$gplan" "$root/tests/fuzz/small.g" --quiet --infer --target cuda -o "$2/cuda.json"
        ;;
    esac
    :
}
