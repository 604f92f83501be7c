#!/bin/sh
# Tracks one event: sh track.sh DIRECTORY NAME
# The name must need no escapes: no quotes, backslashes or control characters.
set -eu
directory=$1 name=$2
for state in "$directory/.spoolship/state" "$directory/../.spoolship/state"; do
    [ ! -r "$state" ] || case $(head -n 1 "$state") in critical | none) exit 75 ;; esac
done
hidden=$(mktemp "$directory/.event-XXXXXXXXXX.tmp")
printf '{"name":"%s","timestamp":"%s","pid":%d,"properties":{"language":"shell","number":1.5}}' \
    "$name" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$$" >"$hidden"
chmod 640 "$hidden" # The agent reads as the group.
sync "$hidden"
final=${hidden##*/.}
mv -n "$hidden" "$directory/${final%.tmp}.json"
sync -f "$directory/${final%.tmp}.json" # The new name survives a power cut as well.
