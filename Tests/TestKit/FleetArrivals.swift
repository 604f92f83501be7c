internal import Glibc

/// Requests of a fleet at one server, counted by the second of virtual time.
///
/// `SPOOLSHIP_FLEET=10000` says how many agents a simulation has, `SPOOLSHIP_FLEET_OUTPUT=DIRECTORY` where the counts are written
/// as `NAME.csv`: `scripts/fleet` draws them.
public struct FleetArrivals: Sendable {
    /// How many agents a simulation has.
    ///
    /// - Parameter short: where nobody asks for another number.
    public static func size(short: Int) -> Int {
        getenv("SPOOLSHIP_FLEET").flatMap { Int(String(cString: $0)) } ?? short
    }

    /// Requests in each second.
    public private(set) var counts: [Int]

    /// No requests in so many seconds.
    public init(seconds: Int) { counts = Array(repeating: 0, count: seconds) }

    /// Counts a request; those before and after the time that is looked at are left out.
    public mutating func add(second: Int) {
        if counts.indices.contains(second) { counts[second] += 1 }
    }

    /// The most requests in ten seconds that follow each other, of those that begin in that range.
    public func mostInTenSeconds(of range: Range<Int>) -> Int {
        range.clamped(to: 0..<(counts.count - 9)).map { counts[$0..<$0 + 10].reduce(0, +) }.max() ?? 0
    }

    /// Requests in that range.
    public func total(of range: Range<Int>) -> Int { counts[range.clamped(to: counts.indices)].reduce(0, +) }

    /// Writes the counts where `SPOOLSHIP_FLEET_OUTPUT` says, if it does: a line of facts, then one count a line.
    public func save(as name: String, facts: String) {
        guard let directory = getenv("SPOOLSHIP_FLEET_OUTPUT"),
            let file = fopen("\(String(cString: directory))/\(name).csv", "w")
        else { return }
        fputs("# \(facts)\n" + counts.map { "\($0)\n" }.joined(), file)
        fclose(file)
    }
}
