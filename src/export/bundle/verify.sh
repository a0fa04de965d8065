#!/bin/sh
# Checks a bundle with sha256sum, openssl and a POSIX shell alone: its files, the tree over all entries, the checkpoint, and the
# signature of each entry shown by a key that an entry before it adds. Rules are not checked, nor whether a key had ended:
# `python3 verify.py` or `clover verify` do that. A thousand entries take about half a minute.
set -u
LC_ALL=C; export LC_ALL
cd "$(dirname "$0")" || exit 4
work=$(mktemp -d) || exit 4
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED  $*"; exit 3; }

# Files and folders alone, each file listed once, and no other there.
odd=$(find . ! -type f ! -type d) || fail "a folder cannot be read"
[ -z "$odd" ] || fail "a link, a pipe or a device is among the files"
[ -f SHA256SUMS ] && [ -f bundle.json ] && [ -f checkpoint ] || fail "SHA256SUMS, bundle.json or checkpoint is missing"
grep -q -v -E '^[0-9a-f]{64}  [^ ]' SHA256SUMS && fail "a line of SHA256SUMS is no digest and name"
cut -c 67- SHA256SUMS > "$work/listed"
sort -c -u "$work/listed" 2> /dev/null || fail "SHA256SUMS names a file twice, or out of order"
find . -type f ! -path ./SHA256SUMS | sed 's|^\./||' | sort > "$work/there"
cmp -s "$work/listed" "$work/there" || fail "the files are not those that SHA256SUMS names"
sha256sum --check --quiet SHA256SUMS > /dev/null 2>&1 || fail "a file is not the one that SHA256SUMS names"
lines=ledger.jsonl; [ -f entries.jsonl ] && lines=entries.jsonl
[ -f entries.jsonl ] && [ -f ledger.jsonl ] && fail "both ledger.jsonl and entries.jsonl are there"
[ -f $lines ] || fail "neither ledger.jsonl nor entries.jsonl is there"
grep -q -E '[[:cntrl:]]|\\' "$work/listed" && fail "a name holds a control character or a backslash"
place='README\.md|__main__\.py|bundle\.json|checkpoint|checkpoints\.jsonl|(entries|ledger)\.jsonl|verify\.(py|sh)'
place="$place|blobs/[0-9a-f]{64}|keys/[^/]+\.pem|reports/[^/]+\.(html|json)|schema/[^/]+\.md|verify/.+\.py"
grep -q -v -x -E "($place)" "$work/listed" && fail "a file is there for which a bundle has no place"
for name in $lines checkpoint bundle.json; do
    [ "$(tail -c 1 $name | wc -l)" -eq 1 ] || fail "$name has no newline at its end"
done

# bundle.json has each field once, in order; its lists of reports and blobs are those of the folders.
fields=$(sed -n 's|^  "\([a-z]*\)": .*|\1|p' bundle.json | tr '\n' ' ')
[ "$fields" = "blobs bundle experiment origin redacted reports root size without withheld " ] || fail "bundle.json has other fields"
value='[0-9]+|null|".*"|\[\]'
grep -q -v -x -E "[{}]|  \"[a-z]+\": ($value),?|  \"[a-z]+\": \[|    \".*\",?|  \],?" bundle.json && fail "bundle.json has another form"
grep -q -x -F '  "bundle": 1,' bundle.json || fail "bundle.json is not of form 1"
items() { sed -n '/^  "'"$1"'": \[$/,/^  \]/p' bundle.json | sed -n 's|^    "\(.*\)",\{0,1\}$|\1|p'; }
items reports | sort > "$work/reports"
sed -n 's|^reports/||p' "$work/listed" | sort | cmp -s - "$work/reports" || fail "reports/ has other reports than bundle.json names"
grep -q -x -F "  \"blobs\": $(grep -c '^blobs/' "$work/listed")," bundle.json || fail "blobs/ has another number of blobs than bundle.json says"
cut=no; grep -q -x -F '  "experiment": null,' bundle.json || cut=yes
items redacted | grep -q -v -x blobs && cut=yes
case $cut:$lines in
yes:ledger.jsonl | no:entries.jsonl) fail "bundle.json says of $lines that it is whole or a part, and it is the other" ;;
esac

# The checkpoint: its text up to the empty line, then the signature after the four bytes of the key's hash.
sed '/^$/,$d' checkpoint > "$work/text"
origin=$(sed -n 1p checkpoint); size=$(sed -n 2p checkpoint); root=$(sed -n 3p checkpoint)
verified=no
sed '1,/^$/d' checkpoint | grep -q -v -E '^— [^ ]+ [A-Za-z0-9+/=]+$' && fail "checkpoint has other lines than its text and signatures"
for line in $(sed -n "s|^— $origin ||p" checkpoint); do
    printf %s "$line" | openssl base64 -d -A | tail -c +5 > "$work/sig"
    if openssl pkeyutl -verify -pubin -inkey keys/log.pem -rawin -in "$work/text" -sigfile "$work/sig" > /dev/null 2>&1
    then verified=yes; fi
done
[ $verified = yes ] || fail "the checkpoint is not signed by keys/log.pem"
for said in "\"origin\": \"$origin\"" "\"root\": \"$root\"" "\"size\": $size"; do
    grep -q -x -F "  $said," bundle.json || fail "bundle.json does not say $said, as the checkpoint does"
done

# Keys are named by the SHA-256 of their DER.
for key in keys/*.pem; do
    name=$(basename "$key" .pem)
    openssl pkey -pubin -in "$key" -pubout 2> /dev/null | cmp -s - "$key" || fail "$key has other bytes than those of its key"
    [ "$name" = log ] && continue
    [ "$(openssl pkey -pubin -in "$key" -outform DER | sha256sum | cut -c 1-64)" = "$name" ] || fail "$key has another name"
done

# Hex to the octal escapes of printf.
bytes() {
    hex=$1; out=
    while [ -n "$hex" ]; do
        two=${hex%"${hex#??}"}; hex=${hex#??}
        out="$out\\$(printf %03o "0x$two")"
    done
    printf "$out"
}

# The id of the key that the body at hand adds.
added() {
    key=$(sed -n 's|.*"public_key":"\([A-Za-z0-9+/=]*\)".*|\1|p' "$work/body")
    { bytes 302a300506032b6570032100; printf %s "$key" | openssl base64 -d -A; } | sha256sum | cut -c 1-64
}

# The base64 of the log key that the body at hand names.
logged() { sed -n 's|.*"'"$1"'":"[^+"]*+[0-9a-f]*+\([A-Za-z0-9+/=]*\)".*|\1|p' "$work/body"; }

base='[A-Za-z0-9+/=]*'
shape="{\"envelope\":{\"payload\":\"$base\",\"payloadType\":\"application/vnd\\.clover\\.event\\+json\","
shape="$shape\"signatures\":\\[{\"keyid\":\"[0-9a-f]{64}\",\"sig\":\"$base\"}]},\"recorded_at\":\"[^\"]*\",\"seq\":[0-9]+}"
withheld='{"withheld":{("id":"[0-9a-f]{64}",)?"leaf":"[0-9a-f]{64}","seq":[0-9]+}}'
shape=$(printf %s "$shape" | sed 's/{"/\\{"/g; s/}/\\}/g; s/{64\\}/{64}/g')
withheld=$(printf %s "$withheld" | sed 's/{"/\\{"/g; s/{(/\\{(/g; s/}/\\}/g; s/{64\\}/{64}/g')
grep -q -v -E "^($shape|$withheld)\$" $lines && fail "a line of $lines is neither an entry nor what is said of one withheld"
mkdir "$work/leaves"; : > "$work/known"
seq=0; shown=0; log=
while IFS= read -r line || [ -n "$line" ]; do
    place=$(printf %09d $seq)
    [ "${line##*\"seq\":}" = "$seq}" ] || [ "${line##*\"seq\":}" = "$seq}}" ] || fail "line $seq has another position"
    case $line in
    '{"withheld":'*)
        [ $seq = 0 ] && fail "the first entry is withheld"
        leaf=${line#*\"leaf\":\"}; bytes "${leaf%%\"*}" > "$work/leaves/$place" ;;
    *)
        payload=${line#*\"payload\":\"}; keyid=${line#*\"keyid\":\"}; sig=${line#*\"sig\":\"}
        keyid=${keyid%%\"*}
        printf %s "${payload%%\"*}" | openssl base64 -d -A > "$work/body"
        printf %s "${sig%%\"*}" | openssl base64 -d -A > "$work/sig"
        author=$(sed -n 's|^{"at":"[^"]*","author":"\([0-9a-f]*\)",.*|\1|p' "$work/body")
        [ "$author" = "$keyid" ] || fail "entry $seq is signed by key $keyid and says that $author wrote it"
        kind=$(sed -n 's|.*,"kind":"\([a-z_.]*\)","ledger":.*|\1|p' "$work/body")
        case $seq:$kind in
        0:ledger.created) added >> "$work/known"; log=$(logged log_vkey) ;;
        0:*) fail "the first entry is no ledger.created" ;;
        esac
        grep -q -x "$keyid" "$work/known" || fail "entry $seq is signed by key $keyid, which no entry before it adds"
        length=$(($(wc -c < "$work/body")))
        { printf 'DSSEv1 33 application/vnd.clover.event+json %d ' $length; cat "$work/body"; } > "$work/pae"
        openssl pkeyutl -verify -pubin -inkey "keys/$keyid.pem" -rawin -in "$work/pae" -sigfile "$work/sig" \
            > /dev/null 2>&1 || fail "entry $seq is not signed by key $keyid"
        case $kind in
        key.added)
            grep -q "\"key_id\":\"$(added)\"" "$work/body" || fail "entry $seq adds a key under another id than its own"
            added >> "$work/known" ;;
        log_key.rotated) log=$(logged vkey) ;;
        esac
        { printf '\0'; printf %s "$line"; } | openssl dgst -sha256 -binary > "$work/leaves/$place"
        shown=$((shown + 1)) ;;
    esac
    seq=$((seq + 1))
done < "$lines"
[ "$seq" = "$size" ] || fail "$seq entries, the checkpoint says $size"
grep -q -x -F "  \"withheld\": $((size - shown))" bundle.json || fail "bundle.json does not say that $((size - shown)) are withheld"

# The keys beside the entries are those that entries add, and the newest log key.
sed 's|$|.pem|; s|^|keys/|' "$work/known" | sort -u > "$work/keys"
grep '^keys/' "$work/listed" | grep -v -x 'keys/log.pem' | cmp -s - "$work/keys" || fail "keys/ has other keys than the entries add"
printf %s "$log" | openssl base64 -d -A | tail -c 32 > "$work/key"
openssl pkey -pubin -in keys/log.pem -outform DER | tail -c 32 | cmp -s - "$work/key" || fail "keys/log.pem is not the log key"

# The tree of RFC 6962: neighbours are hashed in pairs, and one that is left over goes up as it is.
find "$work/leaves" -type f | sort | xargs cat > "$work/level"
count=$size
while [ "$count" -gt 1 ]; do
    : > "$work/next"; at=0
    rm -rf "$work/pairs"; mkdir "$work/pairs"
    split -a 6 -b 64 "$work/level" "$work/pairs/"
    for pair in "$work/pairs"/*; do
        if [ $(($(wc -c < "$pair"))) = 64 ]
        then { printf '\001'; cat "$pair"; } | openssl dgst -sha256 -binary >> "$work/next"
        else cat "$pair" >> "$work/next"; fi
        at=$((at + 1))
    done
    mv "$work/next" "$work/level"; count=$at
done
found=$(openssl base64 -A < "$work/level")
[ "$found" = "$root" ] || fail "root $found over the entries, the checkpoint says $root"
why=; [ "$shown" = "$size" ] || why="why entries are withheld, "
echo "VERIFIED  $shown of $size entries of $origin · root $root · rules, bytes of blobs, earlier checkpoints, keys that ended, ${why}the maker's texts and programs and identity NOT CHECKED"
