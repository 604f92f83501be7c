package import Events
package import Model

/// How lines become commits. Plain values that `Agent` makes of the configuration, and replaces by
/// `configure`.
package struct IntakeSettings: Sendable, Equatable {
    package var events: EventOptions
    /// Routes of events. The first is for apps without an entry in `routeOfApp`.
    package var routes: [Route]
    /// Index in `routes` for apps with a route of their own.
    package var routeOfApp: [String: Int] = [:]
    /// All destinations, for tags that name some of them.
    package var table: RouteTable
    /// Whether events are collected at all; false after `spoolship disable`.
    package var isCollecting = true
    /// Storage cap of the queue in bytes.
    package var cap: Int
    /// Path of the database of countries by address; nil: no look-up.
    package var countryDatabase: String?
    /// Schemas of events, beside those of containers' documents.
    package var schemas = SchemaRules()
    /// Which events may go to which destinations by consent; nil: all to all.
    package var consent: ConsentRules?
    /// Window in which repeated ids are discarded.
    package var repeats = RepeatSettings()

    package init(
        events: EventOptions, routes: [Route], routeOfApp: [String: Int] = [:], table: RouteTable,
        isCollecting: Bool = true, cap: Int, countryDatabase: String? = nil
    ) {
        self.events = events
        self.routes = routes
        self.routeOfApp = routeOfApp
        self.table = table
        self.isCollecting = isCollecting
        self.cap = cap
        self.countryDatabase = countryDatabase
    }

    /// Stored bytes at which a commit is due. At 2 MiB a byte costs least; an eighth of a small cap always
    /// fits.
    var commitBytes: Int { min(2 << 20, cap / 8) }

    /// Largest event that fits the queue, in bytes; 4 KiB are for its row.
    var largestEvent: Int { cap - 4096 }

    /// Index in `routes` of an app's route.
    func routeIndex(of app: String) -> Int { routeOfApp[app] ?? 0 }
}
