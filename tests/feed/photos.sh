# Images in folders; sourced by run.sh. The same bits with 0, 1 and 2 workers, which the budget
# chooses; damaged files and wrong folders are named.
# shellcheck shell=sh disable=SC2154,SC2034
photos=$work/data/photos
mkdir "$photos"
$cc -O1 -I"$root" "$here/pictures.c" "$root/tests/data/images.c" -o "$work/pictures" \
    -ljpeg -lpng -lcriterion -lm && "$work/pictures" "$photos" || exit 1

# picture NAME WORKERS OPTIONS...: a program of photos.g whose plan has so many of them.
picture() {
    name=$1
    workers=$2
    shift 2
    build "$name" --threads 8 "$@" && sed -n '/^"data"/p' "$work/net.json" >"$log" &&
        grep -q "\"workers\":$workers\b" "$log"
    count "photos with $workers workers" $?
}

more='-ljpeg -lpng'
sed 's/flip = true,/& corrupt = skip,/' "$here/photos.g" >"$work/net.g"
picture photos0 0 --budget "$(least_budget "$work/net.g" --threads 8 --accumulate 1)" --accumulate 1
picture photos2 2 --budget 20M --accumulate 1
picture photos_micro 1 --budget 12M --accumulate 4
# Of the ops of a model one resizes images too.
sed 's|x / 255.0|resize(x / 255.0, size = [16, 16])|' "$here/photos.g" >"$work/net.g"
"$gplan" "$work/net.g" -o "$work/net.c" 2>"$log" && $cc -std=c11 -fsyntax-only "$work/net.c" 2>>"$log"
count 'photos that are resized by the model' $?
cp "$here/photos.g" "$work/net.g"
whole=$flags
flags='-std=c11 -O1 -DMEMORY' # its memory is that of the program alone
picture photos1 1 --budget 12M --accumulate 1
flags=$whole
more=''

(cd "$work/data" && "$work/photos1" 20 2>"$work/memory" >"$work/photos.out")
check 'photos train' sh -c "grep -q 'step 20 ' '$work/photos.out' && grep -q '^eval 9 ' '$work/photos.out'"
cp "$work/memory" "$log"
awk '$1 == "memory" && $4 > 4096 && $2 <= $4 + 4096 { fits = 1 } END { exit !fits }' "$log"
count 'the process takes at most 4 MiB more than was planned' $?
run photos0 20 >"$work/photos0.out"
check 'photos without workers have the same bits' cmp "$work/photos.out" "$work/photos0.out"
run photos2 20 >"$work/photos2.out"
check 'photos with two workers have the same bits' cmp "$work/photos.out" "$work/photos2.out"
run photos_micro 20 >"$work/photos_micro.out"
paste -d ' ' "$work/photos.out" "$work/photos_micro.out" >"$log"
awk '/^eval/ { n++; d = $3 - $7; if (d * d > 1e-6 * $3 ^ 2) bad = 1 } END { exit bad || n != 1 }' "$log"
count 'micro-batches of photos learn the same' $?

head -c 300 "$photos/b/03.jpg" >"$work/cut" && cp "$work/cut" "$photos/b/03.jpg"
head -c 300 "$photos/c/04.png" >"$work/cut" && cp "$work/cut" "$photos/c/04.png"
run photos1 20 >"$work/damaged.out"
check 'a damaged photo stops the run and is named' \
    grep -q '^error 12: .*photos/\(b/03.jpg\|c/04.png\): ' "$work/damaged.out"
run photos0 20 >"$work/skip0.out"
run photos2 20 >"$work/skip2.out"
check 'damaged photos are skipped' grep -q 'step 20 ' "$work/skip0.out"
check 'and counted' grep -q 'skipped some' "$work/skip0.out"
check 'by others of the same choice, whoever reads them' \
    sh -c "grep -v skipped '$work/skip0.out' >'$work/a'; grep -v skipped '$work/skip2.out' | cmp '$work/a' -"

mv "$photos/c" "$work/c"
run photos1 1 >"$work/fewer.out"
check 'a class without a folder' grep -q '^error 12: .*photos.* 2 classes, .* has 3' "$work/fewer.out"
mv "$work/c" "$photos/c"
cp -r "$photos/a" "$photos/d"
run photos1 1 >"$work/more.out"
check 'more folders than classes' grep -q '^error 12: .*photos.* 4 classes, .* has 3' "$work/more.out"
