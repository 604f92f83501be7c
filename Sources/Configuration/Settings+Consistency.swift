internal import Model

/// The checks that need all files: what is missing, and what contradicts. A single value is checked by its
/// `ValueType`.
extension ReadContext {
    /// Makes all checks.
    mutating func checkConsistency(of settings: Settings) {
        checkBatchSize(settings.dispatch.batchSize, of: settings, path: "dispatch")
        noteZeroDelay(settings.dispatch.criticalDelay, path: "dispatch")
        for (name, function) in settings.functions.sorted(by: { $0.key < $1.key }) {
            let path = "functions.\(SettingValue.key(name))"
            require("command", of: path)
            if let program = function.command.first, !program.hasPrefix("/") {
                complain(
                    of: "\(path).command",
                    "begins with \(SettingValue.quote(program)); must be an absolute path",
                    .outOfRange)
            }
        }
        for (number, rule) in settings.country.rules.enumerated() where rule.code.isEmpty {
            require("code", of: "country.rule.\(number + 1)")
        }
        for (number, rule) in settings.priorities.rules.enumerated()
        where rule.app == nil && rule.event == nil && rule.level == nil {
            let what = "has neither app, name nor level: every event is \(rule.priority.name)"
            complain(of: "priorities.rule.\(number + 1)", what, severity: .warning)
        }
        checkApps(of: settings)
        checkDestinations(of: settings)
        checkAges(of: settings)
        checkConsent(of: settings)
        checkDeadlines(of: settings)
        checkContainers(of: settings)
        checkRules(of: settings)
        // Not after other problems: a destination whose heading has a mistake would be reported as missing.
        if settings.destinations.isEmpty && problems.isEmpty {
            add(
                .missing, "no destination: add a [[destination]]; until then events wait in the spool",
                at: nil,
                severity: .warning)
        }
    }

    /// Whether a file has set a setting or section. A value that equals the default counts.
    func isSet(_ path: String) -> Bool { origins[path] != nil }

    /// Adds a problem with a setting or section.
    ///
    /// - Parameters:
    ///   - path: the setting or section; the message begins with it.
    ///   - what: the message after the path.
    ///   - keys: settings of the section; the first one that is set is the place of the problem, otherwise
    ///     the section.
    mutating func complain(
        of path: String, _ what: String, _ code: Problem.Code = .conflict, at keys: String...,
        severity: Problem.Severity = .error
    ) {
        let places = keys.map { "\(path).\($0)" } + [path]
        add(code, "\(path) \(what)", at: places.compactMap { position(of: $0) }.first, severity: severity)
    }

    /// Path of an element of a list: with its name, or with its number if the name is not set.
    private func path(of list: String, _ name: String, _ index: Int) -> String {
        let named = "\(list).\(SettingValue.key(name))"
        return isSet(named) ? named : "\(list).\(index + 1)"
    }

    /// Adds a problem if a key is not set.
    ///
    /// - Parameter half: the value of a pair that must be set; nil for the key itself.
    private mutating func require(_ key: String, of path: String, by half: String? = nil) {
        guard !isSet("\(path).\(half ?? key)") else { return }
        complain(of: path, "has no \(key)", .missing)
    }

    /// Warns of a batch size, of `[dispatch]` or of a destination, that the queue's size does not allow.
    private mutating func checkBatchSize(_ batchSize: Int?, of settings: Settings, path: String) {
        if let batchSize, settings.inForce(batchSize: batchSize) < batchSize, isSet("\(path).batch_size") {
            let least = SizeText.print(settings.inForce(batchSize: batchSize))
            complain(
                of: "\(path).batch_size",
                "is more than a thirty-second of queue.max_size; batches will hold \(least) at most",
                severity: .warning
            )
        }
    }

    /// Says what a delay of zero means: it is allowed, and many critical events make as many requests.
    private mutating func noteZeroDelay(_ delay: Duration?, path: String) {
        guard delay == .zero, isSet("\(path).critical_delay") else { return }
        complain(
            of: "\(path).critical_delay",
            "is 0s: critical events are sent at once, and each may be a request of its own", severity: .note)
    }

    /// Most different members that hold names, times and levels, over all apps. Each one found stays in
    /// memory.
    private static let mostMembers = 10_000

    /// Checks settings of apps whose sum over all apps is bounded.
    private mutating func checkApps(of settings: Settings) {
        let own = Set(
            settings.apps.values.flatMap { ($0.time ?? []) + ($0.level ?? []) + [$0.name].compactMap { $0 } })
        if own.count > ReadContext.mostMembers {
            add(
                .outOfRange,
                "apps have \(own.count) different members for name, time and level; at most "
                    + "\(ReadContext.mostMembers) are supported",
                at: nil)
        }
        // Containers and rules can route events to destinations that are not the app's own.
        let areRouted = !settings.containers.isEmpty || settings.rules.contains { $0.sendTo != nil }
        for (name, app) in settings.apps.sorted(by: { $0.key < $1.key }) where app.message != nil {
            let own = areRouted ? settings.destinations : destinations(of: app, in: settings)
            guard !own.isEmpty, !own.contains(where: \.showsMessages) else { continue }
            let isPart = own.count < settings.destinations.count
            let who = isPart ? "none of the app's destinations" : "no destination"
            complain(
                of: "apps.\(SettingValue.key(name)).message",
                "decides nothing: \(who) sends messages apart from their events (format otlp,"
                    + " syslog.message = \"text\", {{text:message}} in a template)",
                severity: .warning)
        }
    }

    /// The destinations of an app: those that it names, otherwise those that are the default.
    private func destinations(of app: AppSettings, in settings: Settings) -> [DestinationSettings] {
        settings.destinations.filter { app.destinations?.contains($0.name) ?? $0.byDefault }
    }

    /// Finds ages of apps that decide nothing.
    private mutating func checkAges(of settings: Settings) {
        let longest = settings.destinations.map { settings.maxAge(for: $0) }.max() ?? settings.queue.maxAge
        for (name, app) in settings.apps.sorted(by: { $0.key < $1.key }) {
            guard let age = app.maxAge, age >= longest else { continue }
            complain(
                of: "apps.\(SettingValue.key(name)).max_age",
                "decides nothing: all events expire after \(DurationText.print(longest))", severity: .warning)
        }
    }

    // MARK: Destinations

    /// Checks destinations one by one, then names that refer to them.
    private mutating func checkDestinations(of settings: Settings) {
        let written = origins.keys.filter { $0.hasPrefix("destination.") }.sorted()
        for (index, destination) in settings.destinations.enumerated() {
            let path = path(of: "destination", destination.name, index)
            require("name", of: path)
            checkPlace(of: destination, path: path)
            checkSpecialSettings(of: destination, path: path, among: written)
            checkRequestTemplates(of: destination, path: path)
            checkFormat(of: destination, path: path)
            checkBatchSize(destination.own.batchSize, of: settings, path: path)
            noteZeroDelay(destination.own.criticalDelay, path: path)
            switch destination.reach {
            case .nats(let nats): destination.check(nats, path: path, &self)
            case .kafka(let kafka): destination.check(kafka, path: path, &self)
            case .http, .s3, .syslog, .file, .stdout: break
            }
            for mistake in destination.syslogMistakes {
                complain(of: "\(path).\(mistake.setting)", mistake.what, severity: mistake.severity)
            }
            // With the old keys a secret can be given in several ways. It would be a guess which of them
            // holds after one was changed. (An old key beside its new one is reported as such.)
            for secret in destination.secretSettings
            where secret.setting.sources.count(where: { if case .inline = $0 { false } else { true } }) > 1 {
                let ways = secret.setting.sources.map { source in
                    switch source {
                    case .inline: secret.name
                    case .file: "\(secret.name)_file"
                    case .credential: "\(secret.name)_credential"
                    }
                }
                complain(of: path, "has \(ways.joined(separator: " and ")); keep one", at: secret.name)
            }
            // Both go into the header Authorization, and a request has only one.
            if destination.user != nil && destination.token.source != nil && destination.kind.isServer {
                complain(of: path, "has user and token; keep one", at: "user")
            }
            // The token was copied together with its scheme. The receiver would get `Bearer Bearer …` and
            // refuse each request.
            if destination.token.inline?.revealed.lowercased().hasPrefix("bearer ") == true {
                complain(
                    of: "\(path).token", "begins with Bearer, which the agent adds itself", severity: .warning
                )
            }
            if destination.token.source != nil, destination.reach.sendsTokenInAuthorization,
                destination.headers.contains(where: { $0.key.lowercased() == "authorization" })
            {
                complain(of: path, "has token and a header Authorization; keep one", at: "headers")
            }
            checkProof(of: destination, path: path)
            if (destination.user == nil) != (destination.password.source == nil) {
                let what =
                    destination.user == nil ? "has a password but no user" : "has a user but no password"
                complain(of: path, what, .missing, at: "user")
            }
            if (destination.tls.certificateFile == nil) != (destination.tls.keyFile == nil) {
                complain(
                    of: "\(path).tls.certificate", "needs file and key_file together", .missing)
            }
        }
        // Containers and rules can route events to destinations that are not the default.
        if settings.containers.isEmpty, !settings.rules.contains(where: { $0.sendTo != nil }),
            let first = settings.destinations.first,
            !settings.destinations.contains(where: \.byDefault)
        {
            let what = "is false everywhere: events of apps that name no destination are discarded"
            complain(of: "destination.\(first.name).by_default", what, severity: .warning)
        }
        let names = settings.destinations.map(\.name)
        for (app, section) in settings.apps.sorted(by: { $0.key < $1.key }) {
            checkNames(
                section.destinations ?? [], among: names, "destination",
                at: "apps.\(SettingValue.key(app)).destinations")
        }
    }

    /// Finds apps that need consent for what no destination does, and destinations that no app's consent
    /// decides about.
    private mutating func checkConsent(of settings: Settings) {
        let known = Set(settings.destinations.flatMap { $0.purposes ?? [] })
        for (app, section) in settings.apps.sorted(by: { $0.key < $1.key }) {
            guard let needed = section.consent else { continue }
            let path = "apps.\(SettingValue.key(app)).consent"
            guard !known.isEmpty else {
                complain(
                    of: path, "decides nothing: no destination has a purpose; its events go to all",
                    severity: .warning)
                continue
            }
            for purpose in needed where purpose != ConsentSettings.all && !known.contains(purpose) {
                // A typing mistake here would send what was to be withheld, so it is not only a warning.
                let hint =
                    nearestName(to: purpose, among: known.sorted()).map { "; did you mean \"\($0)\"?" } ?? ""
                complain(
                    of: path, "has \(SettingValue.quote(purpose)), but no destination has this purpose\(hint)"
                )
            }
            // Without `all`, a purpose that is not listed is not protected; that is only allowed on purpose.
            let reached = Set(destinations(of: section, in: settings).flatMap { $0.purposes ?? [] })
            let served = needed.contains(ConsentSettings.all) ? known : Set(needed)
            if reached.isDisjoint(with: served), settings.containers.isEmpty,
                !settings.rules.contains(where: { $0.sendTo != nil })
            {
                complain(
                    of: path, "decides nothing: none of the app's destinations has such a purpose",
                    severity: .warning)
            }
        }
        let needs = Set(settings.apps.values.compactMap(\.consent).flatMap { $0 })
        for (index, destination) in settings.destinations.enumerated() {
            guard let purposes = destination.purposes else { continue }
            guard !needs.contains(ConsentSettings.all), needs.isDisjoint(with: purposes) else { continue }
            complain(
                of: "\(path(of: "destination", destination.name, index)).purpose",
                "is needed by no app ([apps.NAME] consent): events go here unless somebody refused",
                severity: .warning)
        }
    }

    /// Checks that a login by OAuth2 or AWS is complete, and is the only one.
    private mutating func checkProof(of destination: DestinationSettings, path: String) {
        let signing: (name: String, aws: AWSSettings)? =
            switch destination.reach {
            case .http(let http): ("aws", http.aws)
            case .s3(let s3): ("s3", s3.aws)
            case .nats, .kafka, .syslog, .file, .stdout: nil
            }
        var sections = [("oauth2", destination.oauth2 != OAuth2Settings(), destination.oauth2.missing)]
        if case .http(let http) = destination.reach {
            sections.append(("aws", http.aws != AWSSettings(), http.aws.missing))
        }
        sections.removeAll { !$0.1 }
        for (name, _, missing) in sections where !missing.isEmpty {
            // Found here, because an incomplete login fails only with the first request.
            let keys = missing.map { "\(name).\($0)" }.joined(separator: " and no ")
            complain(of: path, "has no \(keys)", .missing, at: name)
        }
        for key in destination.oauth2.useless {
            complain(
                of: "\(path).oauth2.\(key)", "is not for grant \(destination.oauth2.grant.rawValue)")
        }
        if let (name, aws) = signing, aws.externalID != nil, aws.assumeRole == nil {
            complain(
                of: path, "has \(name).assume_role with an external_id but no role", .missing,
                at: "\(name).assume_role")
        }
        let others = [("user", destination.user != nil), ("token", destination.token.source != nil)].filter(
            \.1)
        let proofs = others.map(\.0) + sections.map(\.0)
        if !sections.isEmpty, proofs.count > 1 {
            complain(of: path, "has \(proofs.joined(separator: " and ")); keep one", at: proofs[1])
        }
    }

    /// Finds settings for another type or format than the destination's: they were meant for another
    /// destination, or the destination's type or format is wrong.
    ///
    /// - Parameter written: the paths of all destinations' settings that are written somewhere, sorted.
    private mutating func checkSpecialSettings(
        of destination: DestinationSettings, path: String, among written: [String]
    ) {
        // What was set nowhere has its default, and most was: to print all values would be a tenth of the
        // work of a start.
        let prefix = "\(path)."
        let first = written.partitioningIndex { $0 >= prefix }
        let keys = Set(
            written[first...].prefix { $0.hasPrefix(prefix) }.map {
                $0.dropFirst(prefix.count).prefix { $0 != "." }
            })
        let unset = DestinationSettings()
        for row in DestinationSettings.entries where row.renamed == nil && keys.contains(row.name[...]) {
            for (setting, unset) in zip(row.list(destination, .root), row.list(unset, .root)) {
                let scope = setting.use.inside(row.use).scope
                // A setting that is written with its default value does no harm, so values are compared.
                guard setting.value != unset.value, !scope.includes(destination) else { continue }
                complain(
                    of: "\(path).\(setting.path)",
                    !destination.kind.isServer && scope.isOfServers
                        ? "is not for type \(destination.kind.rawValue), which writes plain lines"
                        : "is for \(scope.text) only")
            }
        }
    }

    /// Checks placeholders in the URL and the headers. Only requests over HTTP fill them in a URL.
    private mutating func checkRequestTemplates(of destination: DestinationSettings, path: String) {
        var texts = [("url", destination.url?.text ?? "")]
        texts += destination.headers.sorted { $0.key < $1.key }.map { ("headers", $0.value.revealed) }
        for (setting, text) in texts where Template.hasPlaceholders(text) {
            guard destination.kind == .http || setting == "headers" else {
                complain(of: "\(path).\(setting)", "has a placeholder in braces; only type http fills it in")
                continue
            }
            // Events are not trusted. With a host from an event, the destination's secrets would go to
            // whatever host an app writes.
            if setting == "url", destination.url?.place.contains("{") == true {
                complain(of: "\(path).url", "has a placeholder in the host; only path and query may have one")
            }
            let place: Template.Place = setting == "url" ? .address : .request
            do throws(Template.Mistake) { _ = try Template(text, for: place) } catch {
                complain(of: "\(path).\(setting)", error.message)
            }
        }
    }

    /// Finds what receivers of a format are known to refuse.
    private mutating func checkFormat(of destination: DestinationSettings, path: String) {
        guard case .http(let http) = destination.reach else { return }
        let format = "format \(http.format.name.rawValue)"
        let hasHeader = { (name: String) in destination.headers.contains { $0.key.lowercased() == name } }
        // Each case is one that a receiver of the format refuses for every request, or a path that is almost
        // certainly wrong.
        switch http.format.name {
        case .splunkHEC
        where destination.token.source == nil && destination.user == nil && !hasHeader("authorization"):
            complain(of: path, "has no token; \(format) accepts nothing without one", .missing)
        case .appCenter where destination.token.source == nil && !hasHeader("app-secret"):
            complain(of: path, "has no token; \(format) accepts nothing without the app secret", .missing)
        case .ga4 where destination.token.source == nil && destination.url?.text.holds("api_secret=") != true:
            complain(of: path, "has no token; \(format) accepts nothing without the API secret", .missing)
        case .otlp:
            guard let url = destination.url, !url.path.hasSuffix("/v1/logs") else { break }
            complain(
                of: "\(path).url", "does not end with /v1/logs, where OTLP receivers accept logs",
                severity: .warning)
        case .elasticsearch:
            if let url = destination.url, !url.path.hasSuffix("/_bulk") {
                complain(
                    of: "\(path).url",
                    "does not end with /_bulk, where Elasticsearch and OpenSearch accept events",
                    severity: .warning)
            }
            // The longest name that the template can become, as far as it is fixed.
            guard let index = http.format.index, let mistake = elasticsearchIndexMistake(index.longest) else {
                break
            }
            complain(of: "\(path).elasticsearch.index", mistake, .outOfRange)
        default: break
        }
    }

    /// Checks URL or path: required, of the right scheme, and encrypted unless it leads to this machine.
    private mutating func checkPlace(of destination: DestinationSettings, path: String) {
        let schemes = destination.kind.schemes
        for key in destination.missing {
            // `bucket = { path_style = true }` names none, and is set all the same.
            require(key, of: path, by: key == "s3.bucket" ? "s3.bucket.name" : key)
        }
        guard !schemes.isEmpty else {
            if isSet("\(path).url") {
                complain(of: "\(path).url", "is not for type \(destination.kind.rawValue)")
            }
            return
        }
        guard let url = destination.url else { return }
        if !schemes.contains(url.scheme) {
            let wanted = schemes.map { $0 + "://" }.joined(separator: " or ")
            complain(
                of: "\(path).url",
                "begins with \(url.scheme)://; type \(destination.kind.rawValue) needs \(wanted)")
        } else if url.scheme == "http" && !url.isLoopback && !destination.allowPlainHTTP {
            complain(
                of: "\(path).url",
                "is plain http to another machine; use https, or set allow_plain_http = true if you mean it")
        }
        // A fragment is for the client only (RFC 3986, section 3.5).
        if url.text.contains("#") {
            complain(of: "\(path).url", "has a fragment (#…), which is never sent", severity: .warning)
        }
        if url.scheme == "http" && destination.tls != TLSOptions() {
            complain(of: "\(path).tls", "has no effect: the url is plain http", severity: .warning)
        }
    }

    /// Finds names that do not exist, with the name that may have been meant.
    private mutating func checkNames(
        _ names: [String], among known: [String], _ what: String, at path: String
    ) {
        for name in names where !known.contains(name) {
            let hint = nearestName(to: name, among: known).map { "; did you mean \"\($0)\"?" } ?? ""
            complain(of: path, "has \(SettingValue.quote(name)), but there is no such \(what)\(hint)")
        }
    }

    // MARK: Rules, deadlines, containers

    /// Checks rules as far as possible without compiling them: names of destinations, the key of `hash`.
    private mutating func checkRules(of settings: Settings) {
        let names = settings.destinations.map(\.name)
        for (index, rule) in settings.rules.enumerated() {
            let path = path(of: "rule", rule.name ?? "", index)
            checkNames(rule.sendTo ?? [], among: names, "destination", at: "\(path).send_to")
            if rule.hash != nil, settings.agent.hashKey == nil {
                complain(
                    of: "\(path).hash", "needs a key; set agent.hash_key = \"file:/etc/spoolship/hash.key\"",
                    .missing)
            }
        }
        // All `[[rule]]` sections together are compiled as one container with the id `rule`. Status and
        // metrics could not distinguish another one of that id.
        if !settings.rules.isEmpty, settings.containers.contains(where: { $0.id == "rule" }) {
            complain(
                of: "container.rule", "has the id that [[rule]] sections use; give one of them up", at: "id")
        }
    }

    /// Checks deadlines.
    private mutating func checkDeadlines(of settings: Settings) {
        for (index, deadline) in settings.deadlines.enumerated() {
            let path = path(of: "deadline", deadline.name, index)
            require("name", of: path)
            // A zone under its old key that was refused has its own message.
            if !isSet("\(path).time_zone") {
                require("time.zone", of: path)
            }
            checkNames(
                deadline.destinations, among: settings.destinations.map(\.name), "destination",
                at: "\(path).for.destinations")
        }
    }

    /// Checks containers, also what they may set and call.
    private mutating func checkContainers(of settings: Settings) {
        guard !settings.containers.isEmpty else { return }
        // Only settings of sections that occur once may be set by a container, not those of a destination or
        // app.
        let settable = Dictionary(
            Settings().effective.filter { !$0.section.path.isEmpty && !$0.section.path.contains(".") }
                .map { ($0.path, $0.needsRestart) }, uniquingKeysWith: { first, _ in first })
        for (index, container) in settings.containers.enumerated() {
            let path = path(of: "container", container.id, index)
            require("id", of: path)
            if let url = container.url {
                // Without a key, the server or a machine in its place could decide what is hidden and what is
                // sent.
                require("public_key", of: path)
                if url.scheme == "http" && !url.isLoopback {
                    complain(of: "\(path).url", "is plain http to another machine; use https")
                }
            } else if container.defaultFile == nil {
                complain(of: path, "has neither default_file nor url", .missing)
            }
            if container.hashKeyFile != nil && container.hashKeyCredential != nil {
                complain(of: path, "has hash_key_file and hash_key_credential; keep one", at: "hash_key")
            }
            checkNames(
                container.mayCall, among: settings.functions.keys.sorted(), "function", at: "\(path).may_call"
            )
            checkNames(
                container.maySet.map { Settings.listedPath(of: $0) }, among: settable.keys.sorted(),
                "setting",
                at: "\(path).may_set")
            // Containers change while the agent runs, so they cannot set what needs a restart.
            for setting in container.maySet where settable[Settings.listedPath(of: setting)] == true {
                complain(of: "\(path).may_set", "has \(setting), which needs a restart")
            }
        }
    }
}

extension DestinationSettings {
    /// Whether it takes the message out of events.
    fileprivate var showsMessages: Bool {
        switch reach {
        case .http(let http):
            switch http.format {
            case .otlp: true
            case .template(let body): body.event?.pieces.contains(.field(.text("message"))) == true
            case .ndjson, .json, .elasticsearch, .loki, .splunkHEC, .ga4, .appCenter: false
            }
        case .syslog(let syslog): syslog.message == .text
        case .s3, .nats, .kafka, .file, .stdout: false
        }
    }
}

extension DestinationSettings.Reach {
    /// Whether a token is sent in the header Authorization. The formats of App Center and GA4 have other
    /// places for it.
    fileprivate var sendsTokenInAuthorization: Bool {
        guard case .http(let http) = self else { return true }
        return http.tokenIn == .header && ![.appCenter, .ga4].contains(http.format.name)
    }
}

/// Why Elasticsearch refuses a name of an index; nil if it accepts it. Source: its reference, "Create index
/// API".
private func elasticsearchIndexMistake(_ index: String) -> String? {
    if index.contains(where: \.isUppercase) { return "has capital letters, which Elasticsearch refuses" }
    if index.contains(where: { $0.isWhitespace || "\\/*?\"<>|,#:".contains($0) }) {
        return "has a blank or one of \\ / * ? \" < > | , # :, which Elasticsearch refuses"
    }
    if let first = index.first, "-_+".contains(first) {
        return "begins with \(first), which Elasticsearch refuses"
    }
    if index.isEmpty || index == "." || index == ".." || index.utf8.count > 255 {
        return "must have 1 to 255 bytes and be neither . nor .."
    }
    return nil
}

extension [String] {
    /// Index of the first element that is beyond, in a sorted array; its end if none is.
    fileprivate func partitioningIndex(_ isBeyond: (String) -> Bool) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if isBeyond(self[middle]) {
                high = middle
            } else {
                low = middle + 1
            }
        }
        return low
    }
}
