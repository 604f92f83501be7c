internal import Control
internal import Model

/// The routes of the containers: state, refresh, preview, documents and values.
extension ControlRoutes {
    /// How long a draft is in force if the request does not say: half an hour.
    private static let previewTime = Duration.seconds(1800)
    /// The longest preview: a day. A forgotten draft must not stay in force.
    private static let longestPreview = Duration.seconds(86_400)

    /// Registers the routes under `/v1/containers`, and `/v1/values`, `/v1/function-calls` and
    /// `/v1/container-events`.
    mutating func addContainers(_ containers: ContainerKeeper, _ board: CallBoard) {
        add("GET", "/v1/containers") { _ in
            .json(["containers": .array(containers.list())])
        }
        answer("POST", "/v1/containers/refresh", takes: ["id"]) { _, body in
            .json(["refreshes": .array(try await containers.refresh(try body.text("id")))])
        }
        answer("POST", "/v1/containers/preview", takes: ["document", "url", "id", "ttl_ms"]) { _, body in
            let time = try body.duration("ttl_ms") ?? ControlRoutes.previewTime
            guard time > .zero, time <= ControlRoutes.longestPreview else {
                throw ControlRefusal(400, "out_of_range", "a preview must be longer than 0 and at most a day")
            }
            // A draft comes either as a link, which the agent fetches, or as the document itself.
            if let link = try body.text("url") {
                guard link.utf8.count <= 2048 else {
                    throw ControlRefusal.bad("url must have at most 2048 bytes")
                }
                return .json(try await containers.preview(try body.text("id"), link: link, for: time))
            }
            guard let document = body["document"]?.string.map({ Array($0.utf8) }) else {
                throw ControlRefusal.bad("document (the draft as text) or url is required")
            }
            return .json(try await containers.preview(try body.text("id"), document, for: time))
        }
        answer("POST", "/v1/containers/preview/end", takes: ["id"]) { _, body in
            let ended = try await containers.endPreview(try body.text("id"))
            return .json(["ended": .array(ended.map(JSONValue.string))])
        }
        add("GET", "/v1/container-events") { _ in
            .stream { stream in
                // A failed write means that the client has gone.
                for await line in containers.watch() {
                    guard await stream.write(line) else { return }
                }
            }
        }
        answer("GET", "/v1/containers/{id}") { request, _ in
            .json(try containers.show(request.parameters["id"] ?? ""))
        }
        answer("GET", "/v1/containers/{id}/document") { request, _ in
            .json(text: try await containers.document(request.parameters["id"] ?? ""))
        }
        answer("GET", "/v1/values", takes: ["key", "type", "container"]) { _, query in
            guard let key = try query.text("key") else { throw ControlRefusal.bad("key is missing") }
            // The client gets a usable value in any case; `missing` says that the container has none.
            let (value, isMissing) = try containers.value(
                of: key, type: try query.text("type") ?? "string", in: try query.text("container"))
            return .json(["key": .string(key), "value": value, "missing": .bool(isMissing)])
        }
        answer("POST", "/v1/values", takes: ["key", "type", "container", "functions", "answers"]) { _, body in
            .json(try containers.answer(try ValueQuestion(body)))
        }
        answer("POST", "/v1/function-calls", takes: ["app", "container", "functions"]) { _, body in
            let app = try body.required("app", try body.text("app"))
            let container = try body.required("container", try body.text("container"))
            try containers.know(container)
            let functions = try body.functionNames(most: 64)
            guard !functions.isEmpty else { throw ControlRefusal.bad("functions must name at least one") }
            guard board.hasRoom else {
                throw ControlRefusal(503, "busy", "16 clients listen for calls already; end one of them")
            }
            // The stream ends when the client disconnects.
            return .stream { stream in
                await board.send(app: app, container: container, functions: functions, to: stream)
            }
        }
    }
}
