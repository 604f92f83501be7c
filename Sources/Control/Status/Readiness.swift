internal import EventLoops

/// Whether the agent and each of its destinations are ready: the answers of `/readyz` and `/readyz/NAME`.
/// A pure value without event content or secrets, because every client of the stats port may read it.
package struct Readiness: Sendable {
    /// A destination.
    package struct Destination: Sendable {
        fileprivate let name: String
        /// False if it is failing, or if events wait that it is not sending.
        fileprivate let isReady: Bool
        /// The name, the state and its reason, in one line.
        fileprivate let line: String
        /// Since when it has been failing, as part of a sentence (`since 2026-11-30T12:00:00Z`); nil if it
        /// is not failing.
        fileprivate let failing: String?

        package init(name: String, isReady: Bool, line: String, failing: String? = nil) {
            self.name = name
            self.isReady = isReady
            self.line = line
            self.failing = failing
        }
    }

    /// Why the agent is not ready, a sentence each; empty if it is.
    private let obstacles: [String]
    private let destinations: [Destination]

    package init(obstacles: [String] = [], destinations: [Destination] = []) {
        self.obstacles = obstacles
        self.destinations = destinations
    }

    /// The path of the agent's readiness; a destination's is below it.
    static let path = "/readyz"

    /// The answer for a path; nil if the path is not one of readiness.
    func answer(_ path: String) -> ControlResponse? {
        if path == Readiness.path { return whole }
        let parent = Readiness.path + "/"
        guard path.hasPrefix(parent) else { return nil }
        return destination(String(path.dropFirst(parent.count)))
    }

    /// The agent's readiness. A failing destination alone does not change the status code: an orchestrator
    /// must not restart the agent because a receiver is down.
    private var whole: ControlResponse {
        let failing = destinations.compactMap { destination in
            destination.failing.map { "\(destination.name) \($0)" }
        }
        let also = failing.isEmpty ? "" : "; failing: \(failing.joined(separator: ", "))"
        let lines = [(obstacles.isEmpty ? "ready" : "not ready") + also] + obstacles.map { "- \($0)" }
        return Readiness.text(lines, status: obstacles.isEmpty ? 200 : 503)
    }

    /// The readiness of one destination. An unknown name is not repeated in the answer.
    private func destination(_ name: String) -> ControlResponse {
        guard let destination = destinations.first(where: { $0.name == name }) else {
            let names = destinations.map(\.name).joined(separator: ", ")
            let known = names.isEmpty ? "none is configured" : "known are \(names)"
            return Readiness.text(["unknown destination; \(known)"], status: 404)
        }
        let word = destination.isReady ? "ready" : "not ready"
        return Readiness.text(["\(word); \(destination.line)"], status: destination.isReady ? 200 : 503)
    }

    /// An answer of lines. A line feed in a name or reason must not begin another line.
    private static func text(_ lines: [String], status: Int) -> ControlResponse {
        .text(lines.map { "\(PrintableText.escaped($0))\n" }.joined(), status: status)
    }
}
