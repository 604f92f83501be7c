internal import Control
internal import Model
internal import Queue

/// The routes of the agent as a whole: status, switches, reload, the tap.
extension ControlRoutes {
    /// `GET /v1/status`: the report as JSON, and with `text` also as the text that `spoolship status` prints.
    mutating func addStatus(_ status: @escaping @Sendable () async -> StatusReport) {
        answer("GET", "/v1/status", takes: ["text", "styles", "destination"]) { _, query in
            let report = await status()
            let words = StatusText(report, marks: query["styles"]?.string.flatMap { StyleMarks(key: $0) })
            switch query["text"] {
            case nil: return .json(report.json)
            case "screen": return .json(report.json.adding("text", .string(words.screen)))
            // The refusal lists the known names, because the usual cause is a mistyped one.
            case "destination":
                let name = query["destination"]?.string ?? ""
                guard let text = words.screen(of: name) else {
                    let known = report.destinations.map(\.name).joined(separator: ", ")
                    throw ControlRefusal(
                        404, "unknown_destination",
                        "there is no destination \"\(name)\"; the configuration has: \(known)")
                }
                return .json(report.json.adding("text", .string(text)))
            case "apps": return .json(report.json.adding("text", .string(words.apps)))
            default: throw ControlRefusal.bad("text must be screen, destination or apps")
            }
        }
    }

    /// Collection on and off, sessions, the country, the log level, and reload.
    mutating func addSwitches(of agent: AgentService) {
        answer("GET", "/v1/collection", takes: ["app"]) { _, query in
            let app = try query.required("app", try query.text("app"))
            let queued = try await agent.countQueued(of: app)
            let count: JSONValue = ["queued": .integer(queued)]
            return .json(count.adding(try await agent.know(app)))
        }
        answer("PUT", "/v1/collection", takes: ["enabled", "app"]) { _, body in
            if let app = try body.text("app") {
                let off = try await agent.setEnabled(
                    try body.required("enabled", body["enabled"]?.bool), app: app)
                return .json([
                    "discarded": .integer(off.withheld), "in_flight": .integer(off.inFlight),
                ])
            }
            // Switching off deletes queued events. `in_flight` counts events whose batch had no answer after
            // ten seconds: nobody knows whether they arrived.
            let discarded = try await agent.setEnabled(try body.required("enabled", body["enabled"]?.bool))
            return .json(["discarded": .integer(discarded.all), "in_flight": .integer(discarded.inFlight)])
        }
        answer("POST", "/v1/session", takes: ["app"]) { _, body in
            .json(["message": .string(await agent.startSession(app: try body.text("app")))])
        }
        answer("PUT", "/v1/country", takes: ["code"]) { _, body in
            // Null ends the override.
            try await agent.setCountry(body["code"] == .null ? nil : try body.text("code"))
            return .json([:])
        }
        answer("GET", "/v1/consent") { _, _ in
            let states = await agent.consent
            let consent = states.all.map { key, isGiven -> JSONValue in
                ["app": .string(key.app), "purpose": .string(key.purpose), "on": .bool(isGiven)]
            }
            return .json([
                "consent": .array(consent), "disabled": .strings(states.disabled.sorted()),
            ])
        }
        answer("PUT", "/v1/consent", takes: ["app", "purpose", "on"]) { _, body in
            // Null: nothing is set, so the events and the settings decide.
            let app = try body.required("app", body["app"]?.string)
            let found = try await agent.setConsent(
                of: app, to: try body.required("purpose", body["purpose"]?.string),
                body["on"] == .null ? nil : try body.required("on", body["on"]?.bool))
            let counts: JSONValue = [
                "withheld": .integer(found.withheld), "in_flight": .integer(found.inFlight),
            ]
            return .json(counts.adding(try await agent.know(app)))
        }
        answer("PUT", "/v1/log-level", takes: ["level"]) { _, body in
            try await agent.setLogLevel(try body.required("level", body["level"]?.string))
            return .json([:])
        }
        answer("POST", "/v1/reload") { _, _ in
            let result = try await agent.reload()
            return .json([
                "changed": .array(result.changed.map(JSONValue.string)),
                "need_restart": .array(result.needRestart.map(JSONValue.string)),
                "warnings": .array(result.warnings.map(JSONValue.string)),
            ])
        }
    }

    /// `GET /v1/tap`: shows events as they are read, until the client closes the connection.
    mutating func addTap(_ tap: EventTap) {
        answer("GET", "/v1/tap", takes: ["app", "priority", "name"]) { _, query in
            let app = try query.text("app")
            let priority = try query.priority()
            let name = try query.text("name")
            // The stream ends when the client disconnects; a slow client misses events.
            return .stream { stream in await tap.send(app: app, priority: priority, name: name, to: stream) }
        }
    }
}

extension JSONValue {
    /// With what is known of an app: a command on a name that nobody has used is most likely mistyped.
    fileprivate func adding(_ app: (isKnown: Bool, nearest: String?)) -> JSONValue {
        adding("known", .bool(app.isKnown)).adding("nearest", app.nearest.map(JSONValue.string) ?? .null)
    }
}
