public import Configuration
public import Events
internal import Intake
internal import Model
internal import TimeZones

extension Settings {
    /// The settings of the pass over each line and of the chunks it fills.
    ///
    /// - Parameters:
    ///   - cap: the storage cap in force, which may differ from the configured one.
    ///   - country: the country set by command, which takes precedence over the configured one.
    func intakeSettings(cap: Int, isCollecting: Bool, country: CountryCode?, host: HostFacts) -> IntakeSettings {
        var events = eventOptions(on: host.name)
        events.countryOverride = country
        events.device = host.device(for: self)
        events.hostName = events.device?.hostName
        events.zone = host.zone ?? .utc
        // However a line comes: what its wrapper hides from tags they would not find.
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
            guard own != routes[0] else { continue }
            routeOfApp[app] = routes.firstIndex(of: own) ?? routes.count
            if !routes.contains(own) { routes.append(own) }
        }
        return IntakeSettings(
            events: events,
            routes: routes, routeOfApp: routeOfApp, table: table, isCollecting: isCollecting, cap: cap,
            countryDatabase: self.country.database)
    }

    /// The same for files read in place and for journals: lines are records, text too, unless the app says otherwise.
    func forPlaces(_ settings: IntakeSettings) -> IntakeSettings {
        var settings = settings
        setPlaces(of: &settings.events)
        return settings
    }

    /// These settings, with what a restart needs to change of how lines are read as it was at the start: files that are read in place
    /// are read on until then, those of an app that is gone by all of its settings.
    func reading(as started: Settings) -> Settings {
        var settings = self
        settings.spool.maxEventSize = started.spool.maxEventSize
        for (name, app) in apps.merging(started.apps, uniquingKeysWith: { new, _ in new }) {
            let old = started.apps[name]
            settings.apps[name] = app
            settings.apps[name]?.read = old?.read
            settings.apps[name]?.journal = old?.journal
            settings.apps[name]?.format = old?.format
        }
        return settings
    }

    private func setPlaces(of events: inout EventOptions) {
        for (name, app) in apps where app.read != nil || app.journal == true {
            if app.kind == nil { events.apps[name]?.kind = .log }
            if app.text == nil { events.apps[name]?.text = .lines }
            events.apps[name]?.isJournal = app.journal == true
        }
    }

    /// How lines are read where a document is tried: with nothing of this machine, nor of the moment.
    public func trialEvents(on host: String) -> EventOptions {
        var events = eventOptions(on: host)
        setPlaces(of: &events)
        return events
    }

    /// The apps whose lines of text are sent, each with the setting that says so.
    public var appsWithText: [(app: String, setting: String)] {
        apps.sorted { $0.key < $1.key }.compactMap { name, app in
            let key = app.journal == true ? "journal" : app.text != nil ? "text" : "read"
            guard app.journal == true || (app.text ?? (app.read == nil ? .quarantine : .lines)) != .quarantine else {
                return nil
            }
            return (name, "apps.\(name).\(key)")
        }
    }

    /// How large chunks grow that go where nothing says otherwise.
    var chunksByDefault: ChunkLimits { standardRoute(by: routeTable(cap: queue.maxSize)).chunks }

    private func standardRoute(by table: RouteTable) -> Route {
        table.route(to: destinations.filter(\.byDefault).map(\.name))
    }

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
            standard: ChunkLimits(batchEvents: dispatch.batchMostEvents, batchBytes: dispatch.batchSize, cap: cap),
            compression: Compression(name: queue.compression.rawValue))
    }

    private func eventOptions(on host: String) -> EventOptions {
        var options = EventOptions()
        // What is too old for some destinations only expires in their lanes of the queue.
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
            let app = apps[name] ?? Configuration.AppSettings()
            var settings = options.defaults
            addRecordSettings(of: app, to: &settings)
            settings.priority = app.priority ?? settings.priority
            settings.mayBeCritical = app.mayBeCritical
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

    /// The configured country of an app's events (nil: of no named app): the first rule that fits, else the host's.
    func countryCode(of app: String?, on host: String) -> CountryCode? {
        let rule = country.rules.first { rule in
            if let app { rule.fits(app: app, host: host) } else { rule.app == nil && rule.fits(app: "", host: host) }
        }
        return (rule?.code ?? country.code).flatMap { CountryCode($0) }
    }

    private func addRecordSettings(of app: Configuration.AppSettings, to settings: inout Events.AppSettings) {
        settings.kind = app.kind ?? .event
        settings.defaultEventName = app.defaultEventName ?? settings.defaultEventName
        settings.nameMembers = app.name.map { [$0] } ?? []
        settings.timeMembers = app.time ?? settings.timeMembers
        settings.levelMembers = app.level ?? settings.levelMembers
        settings.levelScale = app.levelScale ?? .auto
        settings.zone = app.zone
        settings.text = app.text ?? .quarantine
        settings.repairsUTF8 = app.notUTF8.map { $0 == .replace }
    }

    /// To what lengths names of properties are cut.
    public var keyLengths: Set<Int> {
        let all = [limits] + apps.values.map { limits.overridden(by: $0.limits) }
        return Set(all.map { eventLimits($0).propertyKeyLength }.filter { $0.consequence == .cut }.map(\.value))
            .subtracting([0])
    }

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

    /// An app whose time zone this system does not know; the start refuses it.
    var appOfUnknownZone: String? {
        apps.keys.sorted().first { apps[$0]?.timeZone != nil && apps[$0]?.zone == nil }
    }
}

extension Configuration.AppSettings {
    /// The zone of its times that say none; nil for the machine's.
    fileprivate var zone: TimeZoneRules? { timeZone.flatMap { try? TimeZoneLoader().load($0) } }
}

extension LimitSettings {
    /// How far ahead an event's time may be.
    fileprivate var ahead: Duration { maxTimeAhead == .zero ? .seconds(1 << 40) : maxTimeAhead ?? .seconds(3 * 86_400) }
}
