internal import Control
internal import Model

/// The agent as a whole.
extension ControlRoutes {
    mutating func addStatus(_ status: @escaping @Sendable () async -> StatusReport) {
        answer("GET", "/v1/status", takes: ["text", "colours"]) { _, query in
            let report = await status()
            let words = StatusText(report, hasColours: query["colours"] == "true")
            switch query["text"] {
            case nil: return .json(report.json)
            case "screen": return .json(report.json.adding("text", .string(words.screen)))
            case "apps": return .json(report.json.adding("text", .string(words.apps)))
            default: throw ControlRefusal.bad("text must be screen or apps")
            }
        }
    }

    mutating func addSwitches(of agent: AgentService) {
        answer("PUT", "/v1/collection", takes: ["enabled"]) { _, body in
            let discarded = try await agent.setEnabled(try body.required("enabled", body["enabled"]?.bool))
            return .json(["discarded": .integer(discarded.all), "in_flight": .integer(discarded.inFlight)])
        }
        answer("POST", "/v1/session", takes: ["app"]) { _, body in
            .json(["message": .string(await agent.startSession(app: try body.text("app")))])
        }
        answer("PUT", "/v1/country", takes: ["code"]) { _, body in
            try await agent.setCountry(body["code"] == .null ? nil : try body.text("code"))
            return .json([:])
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

    mutating func addTap(_ tap: EventTap) {
        answer("GET", "/v1/tap", takes: ["app", "priority", "name"]) { _, query in
            let (app, priority, name) = (try query.text("app"), try query.priority(), try query.text("name"))
            return .stream { stream in await tap.send(app: app, priority: priority, name: name, to: stream) }
        }
    }
}
