# bash completion for spoolship; made by scripts/generate.
_spoolship() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} first=2 options=""
    if [[ $previous == --config ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    fi
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "run check track app status top dispatch interval drain pause resume network network-changed log-level enable disable consent session country reload tap queue dead-letters quarantine erase container privacy receive diagnose version help" -- "$word")
        return
    fi
    case $command in
    app)
        if ((COMP_CWORD == 2)); then
            mapfile -t COMPREPLY < <(compgen -W "add list" -- "$word")
            return
        fi
        command="$command ${COMP_WORDS[2]}" first=3
        ;;
    network)
        if ((COMP_CWORD == 2)); then
            mapfile -t COMPREPLY < <(compgen -W "on off" -- "$word")
            return
        fi
        command="$command ${COMP_WORDS[2]}" first=3
        ;;
    session)
        if ((COMP_CWORD == 2)); then
            mapfile -t COMPREPLY < <(compgen -W "start" -- "$word")
            return
        fi
        command="$command ${COMP_WORDS[2]}" first=3
        ;;
    country)
        if ((COMP_CWORD == 2)); then
            mapfile -t COMPREPLY < <(compgen -W "set clear" -- "$word")
            return
        fi
        command="$command ${COMP_WORDS[2]}" first=3
        ;;
    queue)
        if ((COMP_CWORD == 2)); then
            mapfile -t COMPREPLY < <(compgen -W "list show export purge move left" -- "$word")
            return
        fi
        command="$command ${COMP_WORDS[2]}" first=3
        ;;
    dead-letters)
        if ((COMP_CWORD == 2)); then
            mapfile -t COMPREPLY < <(compgen -W "list show export retry purge" -- "$word")
            return
        fi
        command="$command ${COMP_WORDS[2]}" first=3
        ;;
    quarantine)
        if ((COMP_CWORD == 2)); then
            mapfile -t COMPREPLY < <(compgen -W "list show export retry purge" -- "$word")
            return
        fi
        command="$command ${COMP_WORDS[2]}" first=3
        ;;
    container)
        if ((COMP_CWORD == 2)); then
            mapfile -t COMPREPLY < <(compgen -W "list show get refresh watch export preview keygen sign check test" -- "$word")
            return
        fi
        command="$command ${COMP_WORDS[2]}" first=3
        ;;
    privacy)
        if ((COMP_CWORD == 2)); then
            mapfile -t COMPREPLY < <(compgen -W "prove" -- "$word")
            return
        fi
        command="$command ${COMP_WORDS[2]}" first=3
        ;;
    esac
    case $command in
    "run") options="--once --app --timeout --config --help -h" ;;
    "check") options="--connect --send --sample --print --user --text-only --json --config --help -h" ;;
    "track") options="--property -p --text -t --critical --spool --app --config --help -h" ;;
    "app add") options="--user --config --help -h" ;;
    "app list") options="--json --config --help -h" ;;
    "status") options="--json --destination --apps --quiet -q --socket --config --help -h" ;;
    "top") options="--interval --count --socket --config --help -h" ;;
    "dispatch") options="--wait --destination --json --socket --config --help -h" ;;
    "interval") options="--persist --socket --config --help -h" ;;
    "drain") options="--timeout --destination --json --socket --config --help -h" ;;
    "pause") options="--token --ttl --destination --until-restart --socket --config --help -h" ;;
    "resume") options="--token --destination --socket --config --help -h" ;;
    "network on") options="--socket --config --help -h" ;;
    "network off") options="--socket --config --help -h" ;;
    "network-changed") options="--socket --config --help -h" ;;
    "log-level") options="--socket --config --help -h" ;;
    "enable") options="--app --socket --config --help -h" ;;
    "disable") options="--yes -y --app --all --socket --config --help -h" ;;
    "consent") options="--socket --config --help -h" ;;
    "session start") options="--app --socket --config --help -h" ;;
    "country set") options="--socket --config --help -h" ;;
    "country clear") options="--socket --config --help -h" ;;
    "reload") options="--socket --config --help -h" ;;
    "tap") options="--app --priority --name --count -n --socket --config --help -h" ;;
    "queue list") options="--destination --priority --limit --count --json --socket --config --help -h" ;;
    "queue show") options="--socket --config --help -h" ;;
    "queue export") options="--destination --priority --socket --config --help -h" ;;
    "queue purge") options="--destination --priority --yes -y --socket --config --help -h" ;;
    "queue move") options="--destination --to --priority --socket --config --help -h" ;;
    "queue left") options="--json --socket --config --help -h" ;;
    "dead-letters list") options="--destination --app --reason --limit --count --json --socket --config --help -h" ;;
    "dead-letters show") options="--socket --config --help -h" ;;
    "dead-letters export") options="--destination --app --reason --socket --config --help -h" ;;
    "dead-letters retry") options="--destination --app --reason --socket --config --help -h" ;;
    "dead-letters purge") options="--destination --app --reason --yes -y --socket --config --help -h" ;;
    "quarantine list") options="--app --reason --limit --count --json --socket --config --help -h" ;;
    "quarantine show") options="--socket --config --help -h" ;;
    "quarantine export") options="--app --reason --socket --config --help -h" ;;
    "quarantine retry") options="--app --reason --files --socket --config --help -h" ;;
    "quarantine purge") options="--app --reason --yes -y --socket --config --help -h" ;;
    "erase") options="--where --dry-run --yes -y --socket --config --help -h" ;;
    "container list") options="--json --socket --config --help -h" ;;
    "container show") options="--socket --config --help -h" ;;
    "container get") options="--type --container --json --socket --config --help -h" ;;
    "container refresh") options="--json --socket --config --help -h" ;;
    "container watch") options="--count -n --socket --config --help -h" ;;
    "container export") options="--directory --socket --config --help -h" ;;
    "container preview") options="--end --ttl --container --socket --config --help -h" ;;
    "container keygen") options="--public --config --help -h" ;;
    "container sign") options="--key -k --output -o --preview --after --ca-file --config --help -h" ;;
    "container check") options="--config --help -h" ;;
    "container test") options="--events --host --app --json --config --help -h" ;;
    "privacy prove") options="--path --document --app --events --config --help -h" ;;
    "receive") options="--listen --certificates --plain-http --output -o --sync --quiet -q --threads --fail --probability --seed --first --retry-after --delay --largest-body --marker --json --config --help -h" ;;
    "diagnose") options="--output -o --hash-names --log --socket --config --help -h" ;;
    "version") options="--json --config --help -h" ;;
    "help") options="--config --help -h" ;;
    esac
    case "$command $previous" in
    *" --socket") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "run --app") COMPREPLY=(); return ;;
    "run --timeout") COMPREPLY=(); return ;;
    "check --sample") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "check --user") COMPREPLY=(); return ;;
    "track --property" | "track -p") COMPREPLY=(); return ;;
    "track --text" | "track -t") COMPREPLY=(); return ;;
    "track --spool") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "track --app") COMPREPLY=(); return ;;
    "app add --user") COMPREPLY=(); return ;;
    "status --destination") COMPREPLY=(); return ;;
    "top --interval") COMPREPLY=(); return ;;
    "top --count") COMPREPLY=(); return ;;
    "dispatch --destination") COMPREPLY=(); return ;;
    "drain --timeout") COMPREPLY=(); return ;;
    "drain --destination") COMPREPLY=(); return ;;
    "pause --token") COMPREPLY=(); return ;;
    "pause --ttl") COMPREPLY=(); return ;;
    "pause --destination") COMPREPLY=(); return ;;
    "resume --token") COMPREPLY=(); return ;;
    "resume --destination") COMPREPLY=(); return ;;
    "enable --app") COMPREPLY=(); return ;;
    "disable --app") COMPREPLY=(); return ;;
    "session start --app") COMPREPLY=(); return ;;
    "tap --app") COMPREPLY=(); return ;;
    "tap --priority") mapfile -t COMPREPLY < <(compgen -W "normal critical" -- "$word"); return ;;
    "tap --name") COMPREPLY=(); return ;;
    "tap --count" | "tap -n") COMPREPLY=(); return ;;
    "queue list --destination") COMPREPLY=(); return ;;
    "queue list --priority") mapfile -t COMPREPLY < <(compgen -W "normal critical" -- "$word"); return ;;
    "queue list --limit") COMPREPLY=(); return ;;
    "queue export --destination") COMPREPLY=(); return ;;
    "queue export --priority") mapfile -t COMPREPLY < <(compgen -W "normal critical" -- "$word"); return ;;
    "queue purge --destination") COMPREPLY=(); return ;;
    "queue purge --priority") mapfile -t COMPREPLY < <(compgen -W "normal critical" -- "$word"); return ;;
    "queue move --destination") COMPREPLY=(); return ;;
    "queue move --to") COMPREPLY=(); return ;;
    "queue move --priority") mapfile -t COMPREPLY < <(compgen -W "normal critical" -- "$word"); return ;;
    "dead-letters list --destination") COMPREPLY=(); return ;;
    "dead-letters list --app") COMPREPLY=(); return ;;
    "dead-letters list --reason") COMPREPLY=(); return ;;
    "dead-letters list --limit") COMPREPLY=(); return ;;
    "dead-letters export --destination") COMPREPLY=(); return ;;
    "dead-letters export --app") COMPREPLY=(); return ;;
    "dead-letters export --reason") COMPREPLY=(); return ;;
    "dead-letters retry --destination") COMPREPLY=(); return ;;
    "dead-letters retry --app") COMPREPLY=(); return ;;
    "dead-letters retry --reason") COMPREPLY=(); return ;;
    "dead-letters purge --destination") COMPREPLY=(); return ;;
    "dead-letters purge --app") COMPREPLY=(); return ;;
    "dead-letters purge --reason") COMPREPLY=(); return ;;
    "quarantine list --app") COMPREPLY=(); return ;;
    "quarantine list --reason") COMPREPLY=(); return ;;
    "quarantine list --limit") COMPREPLY=(); return ;;
    "quarantine export --app") COMPREPLY=(); return ;;
    "quarantine export --reason") COMPREPLY=(); return ;;
    "quarantine retry --app") COMPREPLY=(); return ;;
    "quarantine retry --reason") COMPREPLY=(); return ;;
    "quarantine purge --app") COMPREPLY=(); return ;;
    "quarantine purge --reason") COMPREPLY=(); return ;;
    "erase --where") COMPREPLY=(); return ;;
    "container get --type") mapfile -t COMPREPLY < <(compgen -W "string integer double boolean" -- "$word"); return ;;
    "container get --container") COMPREPLY=(); return ;;
    "container watch --count" | "container watch -n") COMPREPLY=(); return ;;
    "container export --directory") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "container preview --ttl") COMPREPLY=(); return ;;
    "container preview --container") COMPREPLY=(); return ;;
    "container sign --key" | "container sign -k") COMPREPLY=(); return ;;
    "container sign --output" | "container sign -o") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "container sign --after") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "container sign --ca-file") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "container test --events") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "container test --host") COMPREPLY=(); return ;;
    "container test --app") COMPREPLY=(); return ;;
    "privacy prove --path") COMPREPLY=(); return ;;
    "privacy prove --document") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "privacy prove --app") COMPREPLY=(); return ;;
    "privacy prove --events") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "receive --listen") COMPREPLY=(); return ;;
    "receive --certificates") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "receive --output" | "receive -o") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "receive --threads") COMPREPLY=(); return ;;
    "receive --fail") COMPREPLY=(); return ;;
    "receive --probability") COMPREPLY=(); return ;;
    "receive --seed") COMPREPLY=(); return ;;
    "receive --first") COMPREPLY=(); return ;;
    "receive --retry-after") COMPREPLY=(); return ;;
    "receive --delay") COMPREPLY=(); return ;;
    "receive --largest-body") COMPREPLY=(); return ;;
    "receive --marker") COMPREPLY=(); return ;;
    "diagnose --output" | "diagnose -o") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "diagnose --log") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    "diagnose --socket") mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    elif [[ $command == help ]] && ((COMP_CWORD == first)); then
        mapfile -t COMPREPLY < <(compgen -W "run check track app status top dispatch interval drain pause resume network network-changed log-level enable disable consent session country reload tap queue dead-letters quarantine erase container privacy receive diagnose version help configuration" -- "$word")
    else
        case $command in
        "run") mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        "check") COMPREPLY=() ;;
        "track") COMPREPLY=() ;;
        "app add") COMPREPLY=() ;;
        "app list") COMPREPLY=() ;;
        "status") COMPREPLY=() ;;
        "top") COMPREPLY=() ;;
        "dispatch") COMPREPLY=() ;;
        "interval") mapfile -t COMPREPLY < <(compgen -W "off default" -- "$word") ;;
        "drain") COMPREPLY=() ;;
        "pause") COMPREPLY=() ;;
        "resume") COMPREPLY=() ;;
        "network on") COMPREPLY=() ;;
        "network off") COMPREPLY=() ;;
        "network-changed") COMPREPLY=() ;;
        "log-level") mapfile -t COMPREPLY < <(compgen -W "error warning info debug verbose default" -- "$word") ;;
        "enable") COMPREPLY=() ;;
        "disable") COMPREPLY=() ;;
        "consent") COMPREPLY=() ;;
        "session start") COMPREPLY=() ;;
        "country set") COMPREPLY=() ;;
        "country clear") COMPREPLY=() ;;
        "reload") COMPREPLY=() ;;
        "tap") COMPREPLY=() ;;
        "queue list") COMPREPLY=() ;;
        "queue show") COMPREPLY=() ;;
        "queue export") COMPREPLY=() ;;
        "queue purge") COMPREPLY=() ;;
        "queue move") COMPREPLY=() ;;
        "queue left") COMPREPLY=() ;;
        "dead-letters list") COMPREPLY=() ;;
        "dead-letters show") COMPREPLY=() ;;
        "dead-letters export") COMPREPLY=() ;;
        "dead-letters retry") COMPREPLY=() ;;
        "dead-letters purge") COMPREPLY=() ;;
        "quarantine list") COMPREPLY=() ;;
        "quarantine show") COMPREPLY=() ;;
        "quarantine export") COMPREPLY=() ;;
        "quarantine retry") COMPREPLY=() ;;
        "quarantine purge") COMPREPLY=() ;;
        "erase") COMPREPLY=() ;;
        "container list") COMPREPLY=() ;;
        "container show") COMPREPLY=() ;;
        "container get") COMPREPLY=() ;;
        "container refresh") COMPREPLY=() ;;
        "container watch") COMPREPLY=() ;;
        "container export") COMPREPLY=() ;;
        "container preview") mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        "container keygen") mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        "container sign") mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        "container check") mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        "container test") mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        "privacy prove") COMPREPLY=() ;;
        "receive") COMPREPLY=() ;;
        "diagnose") COMPREPLY=() ;;
        "version") COMPREPLY=() ;;
        esac
    fi
}
complete -o filenames -F _spoolship spoolship
