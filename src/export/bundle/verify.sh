#!/bin/sh
# Checks a bundle with sha256sum, openssl and a POSIX shell alone: its files, the tree over all entries, the checkpoint, and the
# signature of each entry shown. Rules are not checked: `python3 verify.py` or `clover verify` do that.
# A thousand entries take about half a minute.
set -u
cd "$(dirname "$0")" || exit 4
work=$(mktemp -d) || exit 4
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED  $*"; exit 3; }

sha256sum --check --quiet SHA256SUMS || fail "a file is not the one that SHA256SUMS names"

# The checkpoint: its text up to the empty line, then the signature after the four bytes of the key's hash.
sed '/^$/,$d' checkpoint > "$work/text"
origin=$(sed -n 1p checkpoint); size=$(sed -n 2p checkpoint); root=$(sed -n 3p checkpoint)
verified=no
for line in $(sed -n "s|^— $origin ||p" checkpoint); do
    printf %s "$line" | openssl base64 -d -A | tail -c +5 > "$work/sig"
    if openssl pkeyutl -verify -pubin -inkey keys/log.pem -rawin -in "$work/text" -sigfile "$work/sig" > /dev/null 2>&1
    then verified=yes; fi
done
[ $verified = yes ] || fail "the checkpoint is not signed by keys/log.pem"

# Keys are named by the SHA-256 of their DER.
for key in keys/*.pem; do
    name=$(basename "$key" .pem)
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

lines=ledger.jsonl; [ -f entries.jsonl ] && lines=entries.jsonl
mkdir "$work/leaves"
seq=0; shown=0
while IFS= read -r line || [ -n "$line" ]; do
    place=$(printf %09d $seq)
    case $line in
    '{"withheld":'*)
        leaf=${line#*\"leaf\":\"}; bytes "${leaf%%\"*}" > "$work/leaves/$place" ;;
    *)
        payload=${line#*\"payload\":\"}; keyid=${line#*\"keyid\":\"}; sig=${line#*\"sig\":\"}
        keyid=${keyid%%\"*}
        printf %s "${payload%%\"*}" | openssl base64 -d -A > "$work/body"
        printf %s "${sig%%\"*}" | openssl base64 -d -A > "$work/sig"
        length=$(($(wc -c < "$work/body")))
        { printf 'DSSEv1 33 application/vnd.clover.event+json %d ' $length; cat "$work/body"; } > "$work/pae"
        openssl pkeyutl -verify -pubin -inkey "keys/$keyid.pem" -rawin -in "$work/pae" -sigfile "$work/sig" \
            > /dev/null 2>&1 || fail "entry $seq is not signed by key $keyid"
        { printf '\0'; printf %s "$line"; } | openssl dgst -sha256 -binary > "$work/leaves/$place"
        shown=$((shown + 1)) ;;
    esac
    seq=$((seq + 1))
done < "$lines"
[ "$seq" = "$size" ] || fail "$seq entries, the checkpoint says $size"

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
echo "VERIFIED  $shown of $size entries of $origin · root $root · rules, blobs and identity NOT CHECKED"
