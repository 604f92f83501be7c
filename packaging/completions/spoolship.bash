# bash completion for spoolship; made by scripts/generate.
_spoolship() {
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} first=2 options=""
    if [[ $previous == --config ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
    fi
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "run check track app status top dispatch interval drain pause resume network network-changed log-level enable disable session country reload tap queue dead-letters quarantine container receive diagnose version help" -- "$word")
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
            mapfile -t COMPREPLY < <(compgen -W "list show export purge move" -- "$word")
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
            mapfile -t COMPREPLY < <(compgen -W "list show get refresh watch export preview keygen sign test" -- "$word")
            return
        fi
        command="$command ${COMP_WORDS[2]}" first=3
        ;;
    esac
    case $command in
    "run") options="--once --app --timeout --config --help -h" ;;
    "check") options="--connect --print --user --text-only --json --config --help -h" ;;
    "track") options="--property -p --text -t --critical --spool --app --config --help -h" ;;
    "app add") options="--user --config --help -h" ;;
    "app list") options="--json --config --help -h" ;;
    "status") options="--json --quiet -q --socket --config --help -h" ;;
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
    "enable") options="--socket --config --help -h" ;;
    "disable") options="--yes -y --socket --config --help -h" ;;
    "session start") options="--app --socket --config --help -h" ;;
    "country set") options="--socket --config --help -h" ;;
    "country clear") options="--socket --config --help -h" ;;
    "reload") options="--socket --config --help -h" ;;
    "tap") options="--app --priority --name --count -n --socket --config --help -h" ;;
    "queue list") options="--destination --priority --limit --json --socket --config --help -h" ;;
    "queue show") options="--socket --config --help -h" ;;
    "queue export") options="--destination --priority --socket --config --help -h" ;;
    "queue purge") options="--destination --priority --yes -y --socket --config --help -h" ;;
    "queue move") options="--destination --to --priority --socket --config --help -h" ;;
    "dead-letters list") options="--destination --reason --limit --json --socket --config --help -h" ;;
    "dead-letters show") options="--socket --config --help -h" ;;
    "dead-letters export") options="--destination --reason --socket --config --help -h" ;;
    "dead-letters retry") options="--destination --reason --socket --config --help -h" ;;
    "dead-letters purge") options="--destination --reason --yes -y --socket --config --help -h" ;;
    "quarantine list") options="--app --reason --limit --json --socket --config --help -h" ;;
    "quarantine show") options="--socket --config --help -h" ;;
    "quarantine export") options="--app --reason --socket --config --help -h" ;;
    "quarantine retry") options="--app --reason --socket --config --help -h" ;;
    "quarantine purge") options="--app --reason --yes -y --socket --config --help -h" ;;
    "container list") options="--json --socket --config --help -h" ;;
    "container show") options="--socket --config --help -h" ;;
    "container get") options="--type --container --json --socket --config --help -h" ;;
    "container refresh") options="--json --socket --config --help -h" ;;
    "container watch") options="--count -n --socket --config --help -h" ;;
    "container export") options="--directory --socket --config --help -h" ;;
    "container preview") options="--end --ttl --container --socket --config --help -h" ;;
    "container keygen") options="--public --config --help -h" ;;
    "container sign") options="--key -k --output -o --preview --after --ca-file --config --help -h" ;;
    "container test") options="--events --app --json --config --help -h" ;;
    "receive") options="--listen --certificates --plain-http --output -o --sync --quiet -q --threads --fail --probability --seed --first --retry-after --delay --largest-body --marker --json --config --help -h" ;;
    "diagnose") options="--output -o --hash-names --log --socket --config --help -h" ;;
    "version") options="--json --config --help -h" ;;
    "help") options="--config --help -h" ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    elif [[ $command == help ]] && ((COMP_CWORD == first)); then
        mapfile -t COMPREPLY < <(compgen -W "run check track app status top dispatch interval drain pause resume network network-changed log-level enable disable session country reload tap queue dead-letters quarantine container receive diagnose version help configuration" -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -o filenames -F _spoolship spoolship
