public import Configuration
public import Events
internal import Intake
internal import Model
internal import TimeZones

extension Settings {
    /// The settings for reading lines and for the chunks that they fill.
    ///
    /// - Parameters:
    ///   - cap: the storage cap in force, which may differ from the configured one.
    ///   - country: the country set by command, which takes precedence over the configured one.
    ///   - consent: what commands have set about consent.
    ///   - host: facts about the machine, for the members that are added to events.
    func intakeSettings(
        cap: Int, isCollecting: Bool, country: CountryCode?, consent: ConsentStates = ConsentStates(),
        host: HostFacts
    ) -> IntakeSettings {
        var events = eventOptions(on: host.name)
        events.countryOverride = country
        events.device = host.device(for: self)
        events.hostName = events.device?.hostName
        events.zone = host.zone ?? .utc
        // For all sources of the app, because a wrapper around the line would hide members from tags.
        for (name, app) in apps { events.apps[name]?.format = app.format }
        let table = routeTable(cap: cap)
        var routes = [standardRoute(by: table)]
        var routeOfApp: [String: Int] = [:]
        for app in Set(apps.keys).union(deadlines.flatMap(\.apps)) {
            var own = routes[0]
            if let names = apps[app]?.destinations {
                own = table.route(to: names)
            }
            own.deadlines = DeadlineNames(deadlines.filter { $0.apps.contains(app) }.map(\.name))
            // Apps without a route of their own share the default route, so that their events share chunks.
            guard own != routes[0] else { continue }
            routeOfApp[app] = routes.firstIndex(of: own) ?? routes.count
            if !routes.contains(own) {
                routes.append(own)
            }
        }
        var intake = IntakeSettings(
            events: events,
            routes: routes, routeOfApp: routeOfApp, table: table, isCollecting: isCollecting, cap: cap,
            countryDatabase: self.country.database)
        // Hashes of 8 bytes: the ids take a sixteenth of the cap at most.
        intake.repeats = RepeatSettings(window: dedup.window, most: min(dedup.maxIDs, cap / 128))
        intake.consent = ConsentRules(self, consent)
        return intake
    }

    /// The settings for files that are read in place and for journals: lines are records, and text is
    /// accepted, unless the app says otherwise.
    func forPlaces(_ settings: IntakeSettings) -> IntakeSettings {
        var settings = settings
        setPlaces(of: &settings.events)
        return settings
    }

    /// The settings for reading until a restart. Settings that a reload cannot apply stay as at the start,
    /// and files of an app that was removed are read on with the app's old settings.
    func reading(as started: Settings) -> Settings {
        var settings = untilRestart(since: started)
        settings.apps.merge(started.apps) { kept, _ in kept }
        return settings
    }

    /// Sets the defaults of apps that read files in place or a journal.
    private func setPlaces(of events: inout EventOptions) {
        for (name, app) in apps where app.read != nil || app.journal.read == true {
            if app.kind == nil {
                events.apps[name]?.kind = .log
            }
            if app.text == nil {
                events.apps[name]?.text = .lines
            }
            events.apps[name]?.isJournal = app.journal.read == true
            events.apps[name]?.addsFilePath = app.read != nil && app.filePath != false
        }
    }

    /// The settings for reading lines when a document is tried: without anything that depends on this machine
    /// or on the time.
    public func trialEvents(on host: String) -> EventOptions {
        var events = eventOptions(on: host)
        setPlaces(of: &events)
        return events
    }

    /// The apps whose lines of text are sent, each with the setting that causes it.
    public var appsWithText: [(app: String, setting: String)] {
        apps.sorted { $0.key < $1.key }.compactMap { name, app in
            let key = app.journal.read == true ? "journal" : app.text != nil ? "text" : "read"
            guard
                app.journal.read == true
                    || (app.text ?? (app.read == nil && !app.isParsed ? .quarantine : .lines)) != .quarantine
            else {
                return nil
            }
            return (name, "apps.\(name).\(key)")
        }
    }

    /// The limits of chunks on the default route.
    var chunksByDefault: ChunkLimits { standardRoute(by: routeTable(cap: queue.maxSize)).chunks }

    /// The route of events whose app names no destinations.
    private func standardRoute(by table: RouteTable) -> Route {
        table.route(to: destinations.filter(\.byDefault).map(\.name))
    }

    /// The destinations with their batch limits, from which routes are made.
    private func routeTable(cap: Int) -> RouteTable {
        RouteTable(
            destinations: destinations.map { destination in
                let dispatch = dispatch(for: destination)
                return RouteTable.Destination(
                    name: destination.name, compression: destination.compression,
                    batches: ChunkLimits(
                        batchEvents: dispatch.batchMostEvents,
                        batchBytes: destination.own.batchSize ?? self.dispatch.batchSize, cap: cap),
                    due: min(dispatch.batchEvents, dispatch.batchMostEvents))
            },
            standard: ChunkLimits(
                batchEvents: dispatch.batchMostEvents, batchBytes: dispatch.batchSize, cap: cap),
            compression: Compression(name: queue.compression.rawValue))
    }

    /// The options that depend on the configuration and on the host name only.
    private func eventOptions(on host: String) -> EventOptions {
        var options = EventOptions()
        // The longest age counts here; an event that is too old for another destination expires in the queue.
        options.maxAge = destinations.map { maxAge(for: $0) }.max() ?? queue.maxAge
        options.defaults.priority = priorities.standard
        options.defaults.country = countryCode(of: nil, on: host)
        options.defaults.maxAhead = limits.ahead
        options.defaults.limits = eventLimits(limits)
        options.session = session
        options.addressMember = country.database == nil ? "" : country.addressMember
        options.removesAddress = country.removeAddress
        options.priorityRules = priorities.rules
        for name in Set(apps.keys).union(country.rules.compactMap(\.app)) {
            let app = apps[name] ?? AppSettings()
            var settings = options.defaults
            addRecordSettings(of: app, to: &settings)
            settings.priority = app.priority ?? settings.priority
            settings.mayBeCritical = app.mayBeCritical
            settings.maxAge = app.maxAge
            settings.version = app.version
            settings.build = app.build
            settings.country = app.country.flatMap { CountryCode($0) } ?? countryCode(of: name, on: host)
            let own = limits.overridden(by: app.limits)
            settings.maxAhead = own.ahead
            settings.limits = eventLimits(own)
            options.apps[name] = settings
        }
        return options
    }

    /// The country of an app's events by the configuration: the first rule that matches, else the host's
    /// country.
    ///
    /// - Parameter app: nil for apps without settings, to which only rules without an app apply.
    func countryCode(of app: String?, on host: String) -> CountryCode? {
        let rule = country.rules.first { rule in
            if let app {
                rule.fits(app: app, host: host)
            } else {
                rule.app == nil && rule.fits(app: "", host: host)
            }
        }
        return (rule?.code ?? country.code).flatMap { CountryCode($0) }
    }

    /// Adds the app's settings for records and lines of text.
    private func addRecordSettings(of app: AppSettings, to settings: inout AppOptions) {
        settings.kind = app.kind ?? .event
        settings.defaultEventName = app.defaultEventName ?? settings.defaultEventName
        settings.nameMembers = app.name.map { [$0] } ?? []
        settings.timeMembers = app.time ?? settings.timeMembers
        settings.levelMembers = app.level ?? settings.levelMembers
        settings.levelScale = app.levelScale ?? .auto
        settings.zone = app.zone
        settings.textFormat = app.textFormat.format
        settings.quarantinesUnmatched = app.unmatched == .quarantine
        settings.text = app.text ?? (settings.textFormat == nil ? .quarantine : .lines)
        settings.repairsUTF8 = app.notUTF8.map { $0 == .replace }
    }

    /// The lengths to which limits cut the names of properties. A rule that redacts a property must also hide
    /// the name that such a cut leaves.
    public var keyLengths: Set<Int> {
        let all = [limits] + apps.values.map { limits.overridden(by: $0.limits) }
        return Set(
            all.map { eventLimits($0).propertyKeyLength }.filter { $0.consequence == .cut }.map(\.value)
        )
        .subtracting([0])
    }

    /// The limits as the pass over events needs them; the configuration overrides single ones.
    private func eventLimits(_ own: LimitSettings) -> EventLimits {
        func set(_ limit: inout Limit, _ own: LimitSetting) {
            limit = Limit(own.value ?? limit.value, own.beyond ?? limit.consequence)
        }
        var result = own.like == .appCenter ? EventLimits.appCenter : EventLimits()
        set(&result.eventNames, own.eventNames)
        set(&result.nameLength, own.nameLength)
        set(&result.properties, own.properties)
        set(&result.propertyKeyLength, own.propertyKeyLength)
        set(&result.propertyValueLength, own.propertyValueLength)
        return result
    }

    /// The first app whose time zone this system does not know; the start refuses it.
    var appOfUnknownZone: String? {
        apps.keys.sorted().first { apps[$0]?.timeZone != nil && apps[$0]?.zone == nil }
    }
}

extension AppSettings {
    /// The zone of times that name none; nil for the machine's zone.
    fileprivate var zone: TimeZoneRules? { timeZone.flatMap { try? TimeZoneLoader().load($0) } }
}

extension LimitSettings {
    /// How far ahead of the clock an event's time may be: 3 days by default. A configured 0 means without a
    /// bound.
    fileprivate var ahead: Duration {
        maxTimeAhead == .zero ? .seconds(1 << 40) : maxTimeAhead ?? .seconds(3 * 86_400)
    }
}
