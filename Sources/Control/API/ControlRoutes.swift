/// Finds the handler of a request by method and path.
package struct ControlRoutes: Sendable {
    /// Answers a request; cancelled when its client disconnects.
    package typealias Handler = @Sendable (ControlRequest) async -> ControlResponse

    /// A method and a pattern of paths with their handler.
    private struct Route: Sendable {
        let method: String
        let path: [Substring]
        let handler: Handler

        /// The parts of a path for which the pattern has names in braces; nil if the pattern does not
        /// match.
        func parameters(of path: [Substring]) -> [String: String]? {
            let takesRest = self.path.last?.hasSuffix("...}") == true
            guard path.count == self.path.count || takesRest && path.count > self.path.count else {
                return nil
            }
            var parameters: [String: String] = [:]
            for (index, (pattern, part)) in zip(self.path, path).enumerated() {
                if pattern.hasSuffix("...}") {
                    parameters[String(pattern.dropFirst().dropLast(4))] = path[index...].joined(
                        separator: "/")
                } else if pattern.hasPrefix("{") {
                    parameters[String(pattern.dropFirst().dropLast())] = String(part)
                } else if pattern != part {
                    return nil
                }
            }
            return parameters
        }
    }

    /// The routes in the order of `add`; the first match counts.
    private var routes: [Route] = []

    /// Without routes, every request is answered with 404.
    package init() {}

    /// Registers a handler for a method and a path. A handler of `GET` also answers `HEAD`. A part in
    /// braces (`/v1/batches/{id}`) matches one part of a path, `{id...}` at the end all that follow.
    package mutating func add(_ method: String, _ path: String, _ handler: @escaping Handler) {
        routes.append(Route(method: method, path: ControlRoutes.parts(path), handler: handler))
    }

    /// All routes, for the documentation's test.
    package var list: [(method: String, path: String)] {
        routes.map { ($0.method, "/" + $0.path.joined(separator: "/")) }
    }

    /// Answers a request: 404 for an unknown path, 405 with `Allow` for another method. Called by the
    /// server, and by commands that run without one.
    package func answer(_ request: ControlRequest) async -> ControlResponse {
        let path = ControlRoutes.parts(request.path)
        let matching = routes.compactMap { route in route.parameters(of: path).map { (route, $0) } }
        let method = request.method == "HEAD" ? "GET" : request.method
        guard let (route, parameters) = matching.first(where: { $0.0.method == method }) else {
            guard !matching.isEmpty else {
                let message = "there is no \(request.path); docs/control-api.md lists the paths"
                return ControlRefusal(404, "not_found", message).response
            }
            let allowed = Set(matching.map(\.0.method)).sorted().joined(separator: ", ")
            let response = ControlRefusal(405, "method_not_allowed", "\(request.path) takes \(allowed) only")
                .response
            return ControlResponse(
                status: 405, headers: response.headers + [("Allow", allowed)], body: response.body)
        }
        var request = request
        request.parameters = parameters
        return await route.handler(request)
    }

    /// The parts of a path between slashes.
    private static func parts(_ path: String) -> [Substring] { path.split(separator: "/") }
}
