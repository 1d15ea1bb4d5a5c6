#!/bin/sh
# What documents show is what happens: every transcript of README.md and of the man page is replayed.
# usage: tests/docs/run.sh [--bless] GPLAN; --bless writes what README.md shows anew.
# shellcheck source=tests/suite.sh
. "$(dirname "$0")/../suite.sh"
mkdir "$work/bin" "$work/new" && ln -s "$gplan" "$work/bin/gplan" || exit 1
export PATH="$work/bin:$PATH" ASAN_OPTIONS=detect_leaks=0

# Cuts a text into transcripts, FOLDER/NUMBER each: lines of ```console blocks, or those indented by
# INDENT. In a transcript `$ cat FILE` is followed by the file, and any other command by its output.
transcripts() { # FOLDER TEXT
    mkdir "$1" && awk -v folder="$1" '
        /^```/ { inside = $0 == "```console"; count += inside; next }
        inside { print >(folder "/" count) }' "$2"
}
indented() { # FOLDER TEXT: in the man page as it is read
    mkdir "$1" && awk -v folder="$1" '
        /^ +\$ cat / { count++; indent = index($0, "$") - 1; inside = 1 }
        /^$/ { inside = 0 }
        inside { print substr($0, indent + 1) >(folder "/" count) }' "$2"
}

# Runs a transcript in the folder at hand and prints it as it should be.
replay() { # TRANSCRIPT
    awk -v shell="sh" '
        function run() {
            if (command == "") return
            print "$ " command
            if (command ~ /^cat [^ ]+$/) {
                file = substr(command, 5)
                printf "%s", text >file
                close(file)
                printf "%s", text
            } else {
                line = "{ " command "; } 2>&1"
                while ((line | getline out) > 0) print out
                close(line)
            }
            text = ""
        }
        /^\$ / { run(); command = substr($0, 3); next }
        { text = text $0 "\n" }
        END { run() }' "$1"
}
same() { # TRANSCRIPT
    (cd "$work/new" && replay "$1") >"$1.now" && diff -u "$1" "$1.now"
}

transcripts "$work/readme" "$root/README.md"
for transcript in "$work"/readme/*; do
    name="README.md: $(sed -n 2p "$transcript" | cut -c 1-40)"
    check "$name" same "$transcript"
done
if [ -n "$bless" ]; then
    awk -v folder="$work/readme" '
        /^```/ { inside = $0 == "```console"; count += inside; print
            if (inside) { file = folder "/" count ".now"; while ((getline line <file) > 0) print line }
            next }
        !inside' "$root/README.md" >"$work/README.md" && cp "$work/README.md" "$root/README.md"
fi
check 'README.md has transcripts' [ -s "$work/readme/3" ]
check 'README.md is short' [ "$(wc -l <"$root/README.md")" -lt 200 ]

for command in params pack remat; do
    "$gplan" $command --help >"$work/$command"
    indented "$work/shown_$command" "$work/$command"
    for transcript in "$work/shown_$command"/*; do
        check "gplan $command --help: transcript $(basename "$transcript")" same "$transcript"
    done
done
man_page() { # the same lines, marked up
    "$gplan" --man | sed 's/\\-/-/g; s/\\\\/\\/g' >"$work/page" &&
        cat "$work"/shown_*/? >"$work/lines" && [ -s "$work/lines" ] && while read -r line; do grep -qxF -- "$line" "$work/page" || { echo "$line" && return 1; }; done <"$work/lines"
}
check 'the man page has the transcripts of --help' man_page

# Files and folders that documents name are there.
links() {
    for page in README.md frontend/*.md frontend/ops/*.md planner/*.md codegen/*.md tests/*.md; do
        grep -o '](\([^)#:]*\)' "$root/$page" | sed 's/](//' | while read -r link; do
            [ -e "$root/$(dirname "$page")/$link" ] || { echo "$page: $link" && return 1; }
        done || return 1
    done
}
cd "$root" || exit 1
check 'links lead somewhere' links
finish
