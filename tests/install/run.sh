#!/bin/sh
# What `make install` leaves, in the hands of a stranger: tests/install/run.sh path/to/gplan
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
without_bless
prefix=$work/prefix
cc=${CC:-gcc}

# As a fresh shell would: without the flags of a make that runs this.
check 'installs' env -u MAKEFLAGS -u MAKELEVEL make -C "$root" CC="$cc" PREFIX="$prefix" install
check 'compiled without a warning' \
    sh -c "! grep -i 'warning:' '$log'"
export PATH="$prefix/bin:$PATH" PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
check 'the command runs' gplan --version
check 'the command plans' gplan "$root/examples/mlp.g" -o "$work/mlp.c"

flags=$(pkg-config --cflags --libs gplan)
# shellcheck disable=SC2086
check 'pkg-config says how to link' "$cc" -Wall -Werror "$here/pack.c" $flags -o "$work/pack"
check 'the library packs' "$work/pack"

page=$prefix/share/man/man1/gplan.1
check 'the man page has every option of --help' sh -c \
    "gplan --help | grep -o -- '--[a-z][a-z-]*' | sort -u | while read -r option; do
         sed 's/\\\\//g' '$page' | grep -qF -- \"\$option\" || { echo \"\$option\"; exit 1; }; done"
if command -v man >/dev/null; then
    check 'the man page renders' sh -c "[ -z \"\$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 \
        man --warnings -E UTF-8 -l -Tutf8 -Z '$page' 2>&1 >/dev/null)\" ]"
fi

completes() { # EXPECTED WORDS...: as the last of them
    expected=$1
    shift
    bash -c ". '$prefix/share/bash-completion/completions/gplan'
        COMP_WORDS=(gplan \"\$@\") COMP_CWORD=\$#
        _gplan gplan \"\${COMP_WORDS[COMP_CWORD]}\" \"\${COMP_WORDS[COMP_CWORD - 1]}\"
        printf '%s\n' \"\${COMPREPLY[@]}\" | grep -qx -- '$expected'" bash "$@"
}
check 'bash completes an option' completes --budget --budg
check 'bash completes a command' completes remat rem
check 'bash completes a word after its option' completes external model.g --io ext
check 'bash completes an option of a command' completes --capacity pack problem.csv --cap
check 'bash completes a word after an option of a command' completes svg pack --emit s
not_completes() { ! completes "$@"; }
check 'bash completes no option of another command' not_completes --infer pack problem.csv --inf
cp "$root/examples/mlp.g" "$work" && cd "$work" || exit 1
check 'bash completes the name of a model' completes mlp.g ml
check 'bash completes any file after a command' completes log verify lo

# What documents say of the program is what it says itself.
table=$work/ops
gplan --ops >"$table"
check 'the reference has the table of ops' sh -c \
    "sed -n '/<!-- ops:begin -->/,/<!-- ops:end -->/p' '$root/frontend/LANGUAGE.md' |
     sed '1d;\$d' | cmp - '$table'"

finish
