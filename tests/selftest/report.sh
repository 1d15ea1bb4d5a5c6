#!/bin/sh
# What each kernel takes of a GPU: tests/selftest/report.sh NVCC TABLE [ARCHITECTURE...]
# Registers of a thread, bytes of shared memory of a block, and bytes that are spilled from
# registers into memory. Elementwise rows, each a kernel of the table, are one line with the most
# that one of them takes. A kernel that spills is an error. Without nvcc there is nothing to do.
set -u
nvcc=$1
table=$2
shift 2
if [ ! -x "$nvcc" ]; then
    echo 'there is no nvcc: nothing to report'
    exit 0
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
"$(dirname "$0")/../cuda/architectures.sh" "$nvcc" numbers "$@" >"$work/architectures" || exit 1

# ptxas says of each kernel: its name, then spills, then registers and shared memory.
resources() { # ARCHITECTURE
    "$nvcc" -std=c++17 -Werror all-warnings -I. "-I$(dirname "$table")" -Xptxas -v \
        -gencode "arch=compute_$1,code=sm_$1" -x cu -c "$table" -o "$work/$1.o" \
        >"$work/log.$1" 2>&1 || {
        cat "$work/log.$1" >&2
        return 1
    }
    awk -v arch="$1" '
        /Compiling entry function/ { split($0, part, "\047"); name = part[2] }
        /bytes spill stores/ { spill = $5 + $9 }
        / Used [0-9]+ registers/ {
            shared = 0
            for (i = 2; i <= NF; i++) if ($i ~ /^smem/) shared = $(i - 2)
            for (i = 2; i <= NF; i++) if ($i == "registers,") registers = $(i - 1)
            print name, arch, registers, shared, spill
        }' "$work/log.$1" | c++filt
}

while read -r number; do
    resources "$number" || exit 1
done <"$work/architectures" >"$work/all"
awk '
    {
        spill = $NF; shared = $(NF - 1); registers = $(NF - 2); arch = $(NF - 3)
        name = $0
        sub(/ [0-9]+ [0-9]+ [0-9]+ [0-9]+$/, "", name)
        sub(/^void /, "", name)
        if (name ~ /^each_loop</) name = "elementwise rows"
        gsub(/\([a-z_]+\)/, "", name) # of an argument that is an enum
        sub(/\(.*/, "", name)
        if (!(name in seen)) { seen[name] = 1; order[++names] = name }
        if (!(arch in column)) { column[arch] = ++columns; title[columns] = arch }
        key = name SUBSEP arch
        if (registers > most[key]) most[key] = registers
        if (shared > bytes[key]) bytes[key] = shared
        if (spill > spills[key]) spills[key] = spill
        if (spill > 0) spilling[name] = 1
    }
    END {
        printf "%-40s", "registers / shared bytes / spilled bytes"
        for (i = 1; i <= columns; i++) printf " %17s", "sm_" title[i]
        print ""
        for (i = 1; i <= names; i++) {
            printf "%-40s", order[i]
            for (k = 1; k <= columns; k++) {
                key = order[i] SUBSEP title[k]
                printf " %17s", most[key] + 0 " / " bytes[key] + 0 " / " spills[key] + 0
            }
            print ""
        }
        for (name in spilling) { print name " spills"; bad = 1 }
        exit bad
    }' "$work/all"
