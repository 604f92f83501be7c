internal import Events
internal import Model

/// What the intake needs of the configuration.
struct IntakeSettings: Equatable {
    /// For the pass over each line.
    var events: EventOptions
    /// Who gets what: the first is for apps that have no route of their own.
    var routes: [Route]
    /// Apps with a route of their own, by place in `routes`.
    var routeOfApp: [String: Int] = [:]
    /// All destinations, for tags that name some.
    var table: RouteTable
    /// Whether events are collected at all (`disable`).
    var isCollecting = true
    /// The storage cap in bytes.
    var cap: Int
    /// The database to look addresses up in; nil looks up none.
    var countryDatabase: String?

    /// A commit is due when so many packed bytes wait for one: 2 MiB, where a transaction costs least for each byte, or
    /// an eighth of a small cap, so that a commit always fits.
    var commitBytes: Int { min(2 << 20, cap / 8) }

    /// A larger event would never fit, its row's figures included.
    var largestEvent: Int { cap - 4096 }

    func routeIndex(of app: String) -> Int { routeOfApp[app] ?? 0 }
}
