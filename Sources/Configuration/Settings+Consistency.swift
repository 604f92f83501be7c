/// What can only be judged when all files have been read: what is missing, and what contradicts what.
extension ReadContext {
    mutating func checkConsistency(of settings: Settings) {
        if settings.dispatch.criticalDelay == .zero && !settings.dispatch.allowZeroDelay {
            add(
                .conflict, "dispatch.critical_delay is 0s; set dispatch.allow_zero_delay = true if you mean it",
                at: position(of: "dispatch.critical_delay"))
        }
        if settings.queue.maxSize / 64 < settings.dispatch.batchSize, isSet("dispatch.batch_size") {
            let least = SizeText.print(settings.queue.maxSize / 64)
            add(
                .conflict,
                "dispatch.batch_size is more than a sixty-fourth of queue.max_size; batches will hold \(least) at most",
                at: position(of: "dispatch.batch_size"), severity: .warning)
        }
        for (name, command) in settings.functions.map({ ($0.key, $0.value.command) }).sorted(by: { $0.0 < $1.0 }) {
            let path = "functions.\(SettingValue.key(name))"
            require("command", of: path)
            if let program = command.first, !program.hasPrefix("/") {
                add(
                    .outOfRange, "\(path).command begins with \(SettingValue.quote(program)); must be an absolute path",
                    at: position(of: "\(path).command"))
            }
        }
        for (number, rule) in settings.country.rules.enumerated() where rule.code.isEmpty {
            require("code", of: "country.rule.\(number + 1)")
        }
        checkDestinations(of: settings)
        checkDeadlines(of: settings)
        checkContainers(of: settings)
        if settings.destinations.isEmpty && problems.isEmpty {
            add(
                .missing, "no destination: add a [[destination]]; until then events wait in the spool", at: nil,
                severity: .warning)
        }
    }

    private func isSet(_ path: String) -> Bool { origins[path] != nil }

    private mutating func require(_ key: String, of path: String) {
        guard !isSet("\(path).\(key)") else { return }
        add(.missing, "\(path) has no \(key)", at: position(of: path))
    }

    // MARK: Destinations

    /// Which keys are for which types and formats only.
    private static let special: [(key: String, wanted: String, fits: @Sendable (DestinationSettings) -> Bool)] = [
        ("index", "format elasticsearch", { $0.kind == .http && $0.format == .elasticsearch }),
        ("labels", "format loki", { $0.kind == .http && $0.format == .loki }),
        ("otlp_encoding", "format otlp", { $0.kind == .http && $0.format == .otlp }),
        ("indexer_acknowledgement", "format splunk_hec", { $0.kind == .http && $0.format == .splunkHEC }),
        ("measurement_id", "format ga4", { $0.kind == .http && $0.format == .ga4 }),
        ("topic", "type kafka", { $0.kind == .kafka }),
        ("subject", "type nats", { $0.kind == .nats }),
        ("path", "type file", { $0.kind == .file }),
        ("headers", "type http", { $0.kind == .http }),
        ("outcomes", "type http", { $0.kind == .http }),
        ("batch_id_parameter", "type http", { $0.kind == .http }),
        ("http_version", "type http", { $0.kind == .http }),
    ]

    /// What concerns destinations that are no servers.
    private static let forWriting: Set<String> = [
        "name", "type", "path", "by_default", "rate_limit", "request_timeout",
        // These have a word of their own below.
        "url", "topic", "subject", "index", "labels", "otlp_encoding", "indexer_acknowledgement", "measurement_id",
        "headers", "outcomes", "batch_id_parameter", "http_version",
    ]

    private mutating func checkDestinations(of settings: Settings) {
        for (number, destination) in settings.destinations.enumerated() {
            let name = destination.name
            let byNumber = "destination.\(number + 1)"
            let path =
                isSet("destination.\(SettingValue.key(name))") ? "destination.\(SettingValue.key(name))" : byNumber
            require("name", of: path)
            checkPlace(of: destination, path: path)
            checkSpecialSettings(of: destination, path: path)
            for secret in ["token", "password"] {
                let set = [secret, "\(secret)_file", "\(secret)_credential"].filter { isSet("\(path).\($0)") }
                if set.count > 1 {
                    add(
                        .conflict, "\(path) has \(set.joined(separator: " and ")); keep one",
                        at: position(of: "\(path).\(set[1])"))
                }
            }
            if destination.user != nil && destination.token != nil && destination.kind == .http {
                add(.conflict, "\(path) has user and token; keep one", at: position(of: "\(path).user"))
            }
            if (destination.user == nil) != (destination.password == nil) {
                add(
                    .missing,
                    destination.user == nil
                        ? "\(path) has a password and no user" : "\(path) has a user and no password_file",
                    at: position(of: "\(path).user") ?? position(of: path))
            }
            if (destination.tls.certificateFile == nil) != (destination.tls.keyFile == nil) {
                add(
                    .missing, "\(path).tls needs certificate_file and key_file together",
                    at: position(of: "\(path).tls.certificate_file") ?? position(of: "\(path).tls.key_file"))
            }
            if destination.connectTimeout > destination.requestTimeout {
                add(
                    .conflict, "\(path).connect_timeout is longer than request_timeout, which includes it",
                    at: position(of: "\(path).connect_timeout") ?? position(of: "\(path).request_timeout"))
            }
        }
        let names = settings.destinations.map(\.name)
        for (app, section) in settings.apps.sorted(by: { $0.key < $1.key }) {
            checkNames(
                section.destinations ?? [], among: names, "destination",
                at: "apps.\(SettingValue.key(app)).destinations")
        }
    }

    /// What is set for another type or format than this one's was meant for another destination, or the format is wrong.
    private mutating func checkSpecialSettings(of destination: DestinationSettings, path: String) {
        let standard = DestinationSettings().effective(in: .root)
        let changed = zip(destination.effective(in: .root), standard).filter { $0.value != $1.value }.map(\.0.name)
        if destination.kind == .file || destination.kind == .stdout {
            for key in changed where !ReadContext.forWriting.contains(key) {
                add(
                    .conflict, "\(path).\(key) is not for type \(destination.kind.name), which writes plain lines",
                    at: position(of: "\(path).\(key)"))
            }
        }
        for special in ReadContext.special where changed.contains(special.key) && !special.fits(destination) {
            add(
                .conflict, "\(path).\(special.key) is for \(special.wanted) only",
                at: position(of: "\(path).\(special.key)"))
        }
    }

    private mutating func checkPlace(of destination: DestinationSettings, path: String) {
        let schemes: [String]
        switch destination.kind {
        case .http: schemes = ["https", "http"]
        case .nats: schemes = ["nats", "tls"]
        case .kafka: schemes = ["kafka"]
        case .file, .stdout: schemes = []
        }
        if destination.kind == .kafka { require("topic", of: path) }
        if destination.kind == .nats { require("subject", of: path) }
        if destination.kind == .file { require("path", of: path) }
        if destination.kind == .http && destination.format == .ga4 { require("measurement_id", of: path) }
        guard !schemes.isEmpty else {
            if isSet("\(path).url") {
                add(.conflict, "\(path).url is not for type \(destination.kind.name)", at: position(of: "\(path).url"))
            }
            return
        }
        require("url", of: path)
        guard let url = destination.url else { return }
        if !schemes.contains(url.scheme) {
            let wanted = schemes.map { $0 + "://" }.joined(separator: " or ")
            add(
                .conflict, "\(path).url begins with \(url.scheme)://; type \(destination.kind.name) needs \(wanted)",
                at: position(of: "\(path).url"))
        } else if url.scheme == "http" && !url.isLoopback && !destination.allowPlainHTTP {
            add(
                .conflict,
                "\(path).url is plain http to another machine; use https, or set allow_plain_http = true if you mean it",
                at: position(of: "\(path).url"))
        }
    }

    private mutating func checkNames(_ names: [String], among known: [String], _ what: String, at path: String) {
        for name in names where !known.contains(name) {
            let hint = nearestName(to: name, among: known).map { "; did you mean \"\($0)\"?" } ?? ""
            add(
                .conflict, "\(path) has \(SettingValue.quote(name)), but there is no such \(what)\(hint)",
                at: position(of: path))
        }
    }

    // MARK: Deadlines, containers

    private mutating func checkDeadlines(of settings: Settings) {
        for (number, deadline) in settings.deadlines.enumerated() {
            let named = "deadline.\(SettingValue.key(deadline.name))"
            let path = isSet(named) ? named : "deadline.\(number + 1)"
            require("name", of: path)
            require("time_zone", of: path)
            checkNames(
                deadline.destinations, among: settings.destinations.map(\.name), "destination",
                at: "\(path).destinations")
        }
    }

    private mutating func checkContainers(of settings: Settings) {
        // Only sections that stand once: `dispatch.interval`, not what belongs to one destination or app.
        let settable = Dictionary(
            settings.effective.filter { !$0.section.path.isEmpty && !$0.section.path.utf8.contains(UInt8(ascii: ".")) }
                .map { ($0.path, $0.needsRestart) }, uniquingKeysWith: { first, _ in first })
        for (number, container) in settings.containers.enumerated() {
            let named = "container.\(SettingValue.key(container.id))"
            let path = isSet(named) ? named : "container.\(number + 1)"
            require("id", of: path)
            if let url = container.url {
                require("public_key", of: path)
                if url.scheme == "http" && !url.isLoopback {
                    add(
                        .conflict, "\(path).url is plain http to another machine; use https",
                        at: position(of: "\(path).url"))
                }
            } else if container.defaultFile == nil {
                add(.missing, "\(path) has neither default_file nor url", at: position(of: path))
            }
            checkNames(container.mayCall, among: settings.functions.keys.sorted(), "function", at: "\(path).may_call")
            checkNames(container.maySet, among: settable.keys.sorted(), "setting", at: "\(path).may_set")
            for setting in container.maySet where settable[setting] == true {
                add(
                    .conflict, "\(path).may_set has \(setting), which only a restart changes",
                    at: position(of: "\(path).may_set"))
            }
        }
    }
}
