package import Events

package struct IntakeSettings: Sendable, Equatable {
    package var events: EventOptions
    /// The routes: the first is for apps without their own.
    package var routes: [Route]
    /// Apps with their own route, by place in `routes`.
    package var routeOfApp: [String: Int] = [:]
    /// All destinations, for tags that name some.
    package var table: RouteTable
    /// Whether events are collected at all (`disable`).
    package var isCollecting = true
    /// The storage cap in bytes.
    package var cap: Int
    /// The database to look addresses up in; nil looks up none.
    package var countryDatabase: String?

    package init(
        events: EventOptions, routes: [Route], routeOfApp: [String: Int] = [:], table: RouteTable,
        isCollecting: Bool = true, cap: Int, countryDatabase: String? = nil
    ) {
        (self.events, self.routes, self.routeOfApp, self.table) = (events, routes, routeOfApp, table)
        (self.isCollecting, self.cap, self.countryDatabase) = (isCollecting, cap, countryDatabase)
    }

    /// So many packed bytes make a commit due: 2 MiB costs least for each byte; an eighth of a small cap always fits.
    var commitBytes: Int { min(2 << 20, cap / 8) }

    /// A larger event would never fit, its row's figures included.
    var largestEvent: Int { cap - 4096 }

    func routeIndex(of app: String) -> Int { routeOfApp[app] ?? 0 }
}
