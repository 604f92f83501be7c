internal import Model

extension ControlAPI {
    /// How long a draft rules when nobody says.
    static let previewTime = Duration.seconds(1800)
    /// How long it may rule at most.
    static let longestPreview = Duration.seconds(86_400)

    static func add(_ containers: any ContainerControl, to routes: inout ControlRoutes) {
        routes.add("GET", "/v1/containers") { _ in
            .json(["containers": .array(await containers.list())])
        }
        routes.answer("POST", "/v1/containers/refresh", takes: ["id"]) { _, body async throws(ControlRefusal) in
            .json(["refreshes": .array(try await containers.refresh(try body.text("id")))])
        }
        routes.answer("POST", "/v1/containers/preview", takes: ["document", "url", "id", "ttl_ms"]) {
            _, body async throws(ControlRefusal) in
            let time = try body.duration("ttl_ms") ?? previewTime
            guard time > .zero, time <= longestPreview else {
                throw ControlRefusal(
                    status: 400, code: "out_of_range", message: "a draft rules for more than 0 and at most a day")
            }
            if let link = try body.text("url") {
                guard link.utf8.count <= 2048 else { throw .bad("url must be of at most 2048 bytes") }
                return .json(try await containers.preview(try body.text("id"), link: link, for: time))
            }
            guard let document = body["document"]?.string.map({ Array($0.utf8) }) else {
                throw .bad("document (the draft as text) or url must be there")
            }
            return .json(try await containers.preview(try body.text("id"), document, for: time))
        }
        routes.answer("POST", "/v1/containers/preview/end", takes: ["id"]) { _, body async throws(ControlRefusal) in
            let ended = try await containers.endPreview(try body.text("id"))
            return .json(["ended": .array(ended.map(JSONValue.string))])
        }
        routes.add("GET", "/v1/container-events") { _ in
            .stream { stream in
                for await line in containers.watch() {
                    guard await stream.write(line) else { return }
                }
            }
        }
        routes.answer("GET", "/v1/containers/{id}") { request, _ async throws(ControlRefusal) in
            .json(try await containers.show(request.parameters["id"] ?? ""))
        }
        routes.answer("GET", "/v1/containers/{id}/document") { request, _ async throws(ControlRefusal) in
            let document = try await containers.document(request.parameters["id"] ?? "")
            return ControlResponse(
                status: 200, headers: [("Content-Type", "application/json")], body: .bytes(document))
        }
        routes.answer("GET", "/v1/values", takes: ["key", "type", "container"]) {
            _, query async throws(ControlRefusal) in
            guard let key = try query.text("key") else { throw .bad("key is missing") }
            let (value, isMissing) = try await containers.value(
                of: key, type: try query.text("type") ?? "string", in: try query.text("container"))
            return .json(["key": .string(key), "value": value, "missing": .bool(isMissing)])
        }
    }
}
