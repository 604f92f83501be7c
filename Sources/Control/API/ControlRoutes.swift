/// Which function answers which request.
package struct ControlRoutes: Sendable {
    /// Answers a request; cancelled when its client goes away.
    package typealias Handler = @Sendable (ControlRequest) async -> ControlResponse

    private struct Route: Sendable {
        let method: String
        let path: [Substring]
        let handler: Handler

        /// What stands where the route has names in braces; nil when the path is another one.
        func parameters(of path: [Substring]) -> [String: String]? {
            let takesRest = self.path.last?.hasSuffix("...}") == true
            guard path.count == self.path.count || takesRest && path.count > self.path.count else { return nil }
            var parameters: [String: String] = [:]
            for (place, (pattern, part)) in zip(self.path, path).enumerated() {
                if pattern.hasSuffix("...}") {
                    parameters[String(pattern.dropFirst().dropLast(4))] = path[place...].joined(separator: "/")
                } else if pattern.hasPrefix("{") {
                    parameters[String(pattern.dropFirst().dropLast())] = String(part)
                } else if pattern != part {
                    return nil
                }
            }
            return parameters
        }
    }

    private var routes: [Route] = []

    /// No routes: every request is answered with 404.
    package init() {}

    /// Registers a function for a method (that of `GET` answers `HEAD`, too) and a path: a part in braces
    /// (`/v1/batches/{id}`) stands for any one part, `{id...}` at the end for all that follow.
    package mutating func add(_ method: String, _ path: String, _ handler: @escaping Handler) {
        routes.append(Route(method: method, path: ControlRoutes.parts(path), handler: handler))
    }

    package var list: [(method: String, path: String)] {
        routes.map { ($0.method, "/" + $0.path.joined(separator: "/")) }
    }

    /// Answers a request: the server's way in, and that of a command that does without a server.
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
            let response = ControlRefusal(405, "method_not_allowed", "\(request.path) takes \(allowed) only").response
            return ControlResponse(status: 405, headers: response.headers + [("Allow", allowed)], body: response.body)
        }
        var request = request
        request.parameters = parameters
        return await route.handler(request)
    }

    private static func parts(_ path: String) -> [Substring] { path.split(separator: "/") }
}
