#compdef spoolship
# zsh completion for spoolship; made by scripts/generate.
_spoolship() {
    local -a commands
    commands=(
        'run:runs the agent in the foreground; with --once, ships old files'
        'check:reads the configuration and every file it names, and prints each mistake with its place'
        'track:puts one event into the spool, atomically and durably'
        'app:add, list'
        'status:shows the agent'\''s state\: what is sent, what waits, and why'
        'top:shows `status` continuously, with rates and small plots'
        'dispatch:sends what is queued now'
        'interval:changes the dispatch interval of the running agent'
        'drain:sends until nothing is left, an error occurs or time runs out'
        'pause:stops sending until `resume`; collection continues'
        'resume:ends pauses; without --token all of them, and every wait after failures'
        'network:on, off'
        'network-changed:tells the agent that the network has changed; retries begin at once'
        'log-level:changes the log'\''s level until a restart or a change of it'
        'enable:turns collection on, of all apps or of one; survives restarts'
        'disable:turns collection off and deletes queued events; survives restarts'
        'consent:sets or lists consent by app and purpose; survives restarts'
        'session:start'
        'country:set, clear'
        'reload:makes the agent reread its configuration; all changes apply, or none'
        'tap:prints events as they pass, without disturbing them'
        'queue:list, show, export, purge, move, left'
        'dead-letters:list, show, export, retry, purge'
        'quarantine:list, show, export, retry, purge'
        'erase:erases events for which a condition holds, wherever the agent stores them'
        'container:list, show, get, refresh, watch, export, preview, keygen, sign, check, test'
        'privacy:prove'
        'receive:receives batches over HTTPS and prints or stores them, for development'
        'diagnose:collects the facts for a bug report in one text'
        'version:prints version, commit, toolchain and the libraries it is linked with'
        'help:explains the commands and the settings'
    )
    if ((CURRENT == 2)); then
        _describe command commands
        return
    fi
    local command=$words[2] shift=1
    if [[ $command == app ]]; then
        if ((CURRENT == 3)); then
            compadd add list
            return
        fi
        command="$command $words[3]" shift=2
    fi
    if [[ $command == network ]]; then
        if ((CURRENT == 3)); then
            compadd on off
            return
        fi
        command="$command $words[3]" shift=2
    fi
    if [[ $command == session ]]; then
        if ((CURRENT == 3)); then
            compadd start
            return
        fi
        command="$command $words[3]" shift=2
    fi
    if [[ $command == country ]]; then
        if ((CURRENT == 3)); then
            compadd set clear
            return
        fi
        command="$command $words[3]" shift=2
    fi
    if [[ $command == queue ]]; then
        if ((CURRENT == 3)); then
            compadd list show export purge move left
            return
        fi
        command="$command $words[3]" shift=2
    fi
    if [[ $command == dead-letters ]]; then
        if ((CURRENT == 3)); then
            compadd list show export retry purge
            return
        fi
        command="$command $words[3]" shift=2
    fi
    if [[ $command == quarantine ]]; then
        if ((CURRENT == 3)); then
            compadd list show export retry purge
            return
        fi
        command="$command $words[3]" shift=2
    fi
    if [[ $command == container ]]; then
        if ((CURRENT == 3)); then
            compadd list show get refresh watch export preview keygen sign check test
            return
        fi
        command="$command $words[3]" shift=2
    fi
    if [[ $command == privacy ]]; then
        if ((CURRENT == 3)); then
            compadd prove
            return
        fi
        command="$command $words[3]" shift=2
    fi
    shift $shift words
    ((CURRENT -= shift))
    case $command in
    'run')
        _arguments \
            '--once[ship the named files, then exit]' \
            '--app[the app whose events the files hold; default default]:APP: ' \
            '--timeout[give up if nothing can proceed this long after the start]:DURATION: ' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument:_files'
        ;;
    'check')
        _arguments \
            '--connect[also open a connection to each destination]' \
            '--send[with --connect\: also send each destination a test event, and show the answer]' \
            '--sample[show how each line of a file would be read]:FILE:_files' \
            '--print[print the effective configuration, with the origin of each value]' \
            '--user[the agent'\''s user, for root; default spoolship]:USER: ' \
            '--text-only[check only the text, not this machine\: for another machine'\''s files]' \
            '--json[print JSON]' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'track')
        _arguments \
            '*--property[a property; numbers, true and false keep their type]:KEY=VALUE: ' \
            '*-p[a property; numbers, true and false keep their type]:KEY=VALUE: ' \
            '*--text[a property that is text]:KEY=VALUE: ' \
            '*-t[a property that is text]:KEY=VALUE: ' \
            '--critical[give it the priority critical]' \
            '--spool[the spool; default the configuration'\''s]:DIRECTORY:_files' \
            '--app[the event'\''s app\: its directory in the spool; default incoming/ if there is one]:APP: ' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'app add')
        _arguments \
            '--user[who writes there; default the user with the app'\''s name]:USER: ' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'app list')
        _arguments \
            '--json[print JSON]' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'status')
        _arguments \
            '--json[print JSON]' \
            '--destination[one destination in detail]:NAME: ' \
            '--apps[what was read of each app since the start, busiest first]' \
            '--quiet[print nothing\: only the exit code counts]' \
            '-q[print nothing\: only the exit code counts]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'top')
        _arguments \
            '--interval[how often; default 2s]:DURATION: ' \
            '--count[exit after N times; works without a terminal too]:N: ' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'dispatch')
        _arguments \
            '--wait[wait, and report the result of each request]' \
            '--destination[only this destination; default all]:NAME: ' \
            '--json[print JSON]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'interval')
        _arguments \
            '--persist[keep it across restarts; with default, forget what was kept]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument:(off default)'
        ;;
    'drain')
        _arguments \
            '--timeout[how long to keep sending; default 30s]:DURATION: ' \
            '--destination[only this destination; default all]:NAME: ' \
            '--json[print JSON]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'pause')
        _arguments \
            '--token[the pause'\''s token; default manual]:TOKEN: ' \
            '--ttl[release the token after this time]:DURATION: ' \
            '--destination[only this destination; default all]:NAME: ' \
            '--until-restart[a restart releases the token]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'resume')
        _arguments \
            '--token[release only this token, everywhere; an unknown one changes nothing]:TOKEN: ' \
            '--destination[only this destination; default all]:NAME: ' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'network on')
        _arguments \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'network off')
        _arguments \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'network-changed')
        _arguments \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'log-level')
        _arguments \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument:(error warning info debug verbose default)'
        ;;
    'enable')
        _arguments \
            '--app[this app only]:APP: ' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'disable')
        _arguments \
            '--yes[do not ask]' \
            '-y[do not ask]' \
            '--app[this app only]:APP: ' \
            '--all[delete dead letters and quarantined lines, too]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'consent')
        _arguments \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'session start')
        _arguments \
            '--app[the session'\''s app; default default]:APP: ' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'country set')
        _arguments \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'country clear')
        _arguments \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'reload')
        _arguments \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'tap')
        _arguments \
            '--app[only events of this app]:APP: ' \
            '--priority[only normal or only critical ones]:PRIORITY:(normal critical)' \
            '--name[only events of this name]:NAME: ' \
            '--count[exit after N]:N: ' \
            '-n[exit after N]:N: ' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'queue list')
        _arguments \
            '--destination[only of this destination]:NAME: ' \
            '--priority[only normal or only critical ones]:PRIORITY:(normal critical)' \
            '--limit[at most N; default 100]:N: ' \
            '--count[print only how many events they are]' \
            '--json[print JSON]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'queue show')
        _arguments \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'queue export')
        _arguments \
            '--destination[only of this destination]:NAME: ' \
            '--priority[only normal or only critical ones]:PRIORITY:(normal critical)' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'queue purge')
        _arguments \
            '--destination[only of this destination]:NAME: ' \
            '--priority[only normal or only critical ones]:PRIORITY:(normal critical)' \
            '--yes[do not ask]' \
            '-y[do not ask]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'queue move')
        _arguments \
            '--destination[only of this destination]:NAME: ' \
            '--to[the destination to move to]:NAME: ' \
            '--priority[only normal or only critical ones]:PRIORITY:(normal critical)' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'queue left')
        _arguments \
            '--json[print JSON]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'dead-letters list')
        _arguments \
            '--destination[only of this destination]:NAME: ' \
            '--app[only of this app]:APP: ' \
            '--reason[only for this reason]:REASON: ' \
            '--limit[at most N; default 100]:N: ' \
            '--count[print only how many events they are]' \
            '--json[print JSON]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'dead-letters show')
        _arguments \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'dead-letters export')
        _arguments \
            '--destination[only of this destination]:NAME: ' \
            '--app[only of this app]:APP: ' \
            '--reason[only for this reason]:REASON: ' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'dead-letters retry')
        _arguments \
            '--destination[only of this destination]:NAME: ' \
            '--app[only of this app]:APP: ' \
            '--reason[only for this reason]:REASON: ' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'dead-letters purge')
        _arguments \
            '--destination[only of this destination]:NAME: ' \
            '--app[only of this app]:APP: ' \
            '--reason[only for this reason]:REASON: ' \
            '--yes[do not ask]' \
            '-y[do not ask]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'quarantine list')
        _arguments \
            '--app[only of this app]:APP: ' \
            '--reason[only for this reason]:REASON: ' \
            '--limit[at most N; default 100]:N: ' \
            '--count[print only how many events they are]' \
            '--json[print JSON]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'quarantine show')
        _arguments \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'quarantine export')
        _arguments \
            '--app[only of this app]:APP: ' \
            '--reason[only for this reason]:REASON: ' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'quarantine retry')
        _arguments \
            '--app[only of this app]:APP: ' \
            '--reason[only for this reason]:REASON: ' \
            '--files[the bad lines of files that stay in the spool because of them; removed files are forgotten]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'quarantine purge')
        _arguments \
            '--app[only of this app]:APP: ' \
            '--reason[only for this reason]:REASON: ' \
            '--yes[do not ask]' \
            '-y[do not ask]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'erase')
        _arguments \
            '--where[the condition, as in a rule\: "properties.user == '\''4711'\''"]:CONDITION: ' \
            '--dry-run[counts only; changes nothing]' \
            '--yes[do not ask]' \
            '-y[do not ask]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'container list')
        _arguments \
            '--json[print JSON]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'container show')
        _arguments \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'container get')
        _arguments \
            '--type[string (default), integer, double or boolean]:TYPE:(string integer double boolean)' \
            '--container[only of this container]:ID: ' \
            '--json[print JSON]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'container refresh')
        _arguments \
            '--json[print JSON]' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'container watch')
        _arguments \
            '--count[exit after N]:N: ' \
            '-n[exit after N]:N: ' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'container export')
        _arguments \
            '--directory[where to write it; - for standard output]:DIRECTORY:_files' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'container preview')
        _arguments \
            '--end[end the preview of container ID, or of all]' \
            '--ttl[how long it is in force; default 30m, at most 1d]:DURATION: ' \
            '--container[the container that it must be for]:ID: ' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument:_files'
        ;;
    'container keygen')
        _arguments \
            '--public[do not make a key\: print the public key of FILE]' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument:_files'
        ;;
    'container sign')
        _arguments \
            '*--key[a private key'\''s file; may be given twice]:KEY: ' \
            '*-k[a private key'\''s file; may be given twice]:KEY: ' \
            '--output[where to write; default standard output]:FILE:_files' \
            '-o[where to write; default standard output]:FILE:_files' \
            '--preview[sign a draft, for previews only]' \
            '--after[the published document; the version must be higher]:FILE|URL:_files' \
            '--ca-file[certificates to trust for --after URL; default the system'\''s]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument:_files'
        ;;
    'container check')
        _arguments \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument:_files'
        ;;
    'container test')
        _arguments \
            '--events[recorded events to show]:FILE:_files' \
            '*--host[the machine'\''s name for recorded events; with several, the first is used and the share of each in rollouts is shown]:NAME: ' \
            '--app[the app of the recorded events; default their own, else default]:APP: ' \
            '--json[print JSON]' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument:_files'
        ;;
    'privacy prove')
        _arguments \
            '--path[where the value is, as in a tag\: properties.email, \["a.b"\]; id, for patterns]:PATH: ' \
            '*--document[a container'\''s document; default the configuration'\''s]:FILE:_files' \
            '--app[the app of the events; default the first that a container names, else default]:APP: ' \
            '--events[events to plant the marker in; default one named Proof]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'receive')
        _arguments \
            '--listen[where to listen; default 127.0.0.1\:8443, port 0 any]:ADDRESS\:PORT: ' \
            '--certificates[where the certificate is kept; default ~/.local/state/spoolship-receiver]:DIRECTORY:_files' \
            '--plain-http[no TLS]' \
            '--output[append events to FILE instead of printing them]:FILE:_files' \
            '-o[append events to FILE instead of printing them]:FILE:_files' \
            '--sync[events are durable in FILE before they are acknowledged]' \
            '--quiet[only count events\: neither print nor store them]' \
            '-q[only count events\: neither print nor store them]' \
            '--threads[threads that share the connections; default 2]:N: ' \
            '--fail[how the chosen requests fail]:HOW: ' \
            '--probability[the share of requests that is chosen; default 1]:P: ' \
            '--seed[the same seed chooses the same requests; default 1]:N: ' \
            '--first[choose among the first N requests only]:N: ' \
            '--retry-after[the Retry-After of a chosen request that fails]:SECONDS: ' \
            '--delay[how long each answer waits]:DURATION: ' \
            '--largest-body[answer 413 to larger bodies]:SIZE: ' \
            '--marker[answer 400 to batches with an event that contains TEXT]:TEXT: ' \
            '--json[print JSON]' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'diagnose')
        _arguments \
            '--output[write to FILE (mode 0600) instead of printing]:FILE:_files' \
            '-o[write to FILE (mode 0600) instead of printing]:FILE:_files' \
            '--hash-names[show files of the spool by a hash of their names]' \
            '--log[take the log from FILE; default the journal of spoolship.service]:FILE:_files' \
            '--socket[the agent'\''s control socket; default control.socket of the configuration]:FILE:_files' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'version')
        _arguments \
            '--json[print JSON]' \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:argument: '
        ;;
    'help')
        _arguments \
            '--config[the configuration; default /etc/spoolship/spoolship.toml]:FILE:_files' \
            '--help[show this help]' \
            '-h[show this help]' \
            '*:command:(run check track app status top dispatch interval drain pause resume network network-changed log-level enable disable consent session country reload tap queue dead-letters quarantine erase container privacy receive diagnose version help configuration)'
        ;;
    esac
}
_spoolship "$@"
