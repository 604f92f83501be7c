#!/bin/sh
# Tracks one event: sh track.sh DIRECTORY NAME
# The name must need no escapes: no quotes, backslashes or control characters.
set -eu
directory=$1 name=$2
up=$directory # The spool is the nearest directory above in which the agent says what it accepts. Where anybody may write, it says nothing.
for level in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    case $(ls -ld "$up/.") in d???????w*) shared=yes ;; *) shared=no ;; esac
    if [ $shared = no ] && [ -r "$up/.spoolship/state" ]; then
        case $(head -n 1 "$up/.spoolship/state") in critical | none) exit 75 ;; esac
        break
    fi
    up=$up/..
done
hidden=$(mktemp "$directory/.event-XXXXXXXXXX.tmp")
printf '{"name":"%s","timestamp":"%s","pid":%d,"properties":{"language":"shell","number":1.5}}' \
    "$name" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$$" >"$hidden"
chmod 640 "$hidden" # The agent reads as the group.
sync "$hidden"
final=${hidden##*/.}
final=$directory/${final%.tmp}.json
mv -n "$hidden" "$final"
# The new name survives a power cut as well. What is gone the agent has taken.
sync -f "$final" 2>/dev/null || [ ! -e "$final" ] || exit 74
