package import Model

extension ControlAPI {
    static func add(_ records: any RecordControl, to routes: inout ControlRoutes) {
        for store in RecordStore.allCases {
            let path = "/v1/\(store.rawValue)"
            routes.answer("GET", path, takes: store.filters + ["after", "limit"]) {
                _, query async throws(ControlRefusal) in
                guard let limit = Int(try query.text("limit") ?? "100"), (1...1000).contains(limit) else {
                    throw .bad("limit must be 1 to 1000")
                }
                let (found, next) = try await records.list(
                    store, try filter(query), after: try query.text("after"), limit: limit)
                return .json(["records": .array(found), "next": JSONValue(next)])
            }
            // Before the path of one record, which would take "export" for an id.
            routes.answer("GET", path + "/export", takes: store.filters) { _, query async throws(ControlRefusal) in
                let filter = try filter(query)
                let first = try await records.export(store, filter, after: nil)
                return .stream { stream in await export(records, store, filter, first, to: stream) }
            }
            routes.answer("GET", path + "/{id...}") { request, _ async throws(ControlRefusal) in
                .json(try await records.show(store, id: request.parameters["id"] ?? ""))
            }
            if store != .queue {
                routes.answer("POST", path + "/retry", takes: store.filters + ["ids", "files"]) {
                    _, body async throws(ControlRefusal) in
                    .json(["retried": .integer(try await records.retry(store, try filter(body)))])
                }
            }
            if store == .queue {
                routes.answer("POST", path + "/move", takes: ["destination", "to", "priority"]) {
                    _, body async throws(ControlRefusal) in
                    guard let source = try body.text("destination"), let target = try body.text("to") else {
                        throw .bad("destination and to are needed: from where, and to where")
                    }
                    let result = try await records.move(
                        from: source, to: target, try body.priority())
                    return .json(["moved": .integer(result.moved), "kept": .integer(result.kept)])
                }
            }
            routes.answer("POST", path + "/purge", takes: store.filters + ["ids"]) {
                _, body async throws(ControlRefusal) in
                .json(["purged": .integer(try await records.purge(store, try filter(body)))])
            }
        }
    }

    static func add(_ tap: EventTap, to routes: inout ControlRoutes) {
        routes.answer("GET", "/v1/tap", takes: ["app", "priority", "name"]) { _, query async throws(ControlRefusal) in
            let filter = EventTap.Filter(
                app: try query.text("app"), priority: try query.priority(),
                name: try query.text("name"))
            return .stream { stream in await tap.send(filter, to: stream) }
        }
    }

    private static func export(
        _ records: any RecordControl, _ store: RecordStore, _ filter: RecordSelection,
        _ first: (lines: [UInt8], next: String?), to stream: ControlStream
    ) async {
        var page = first
        while true {
            guard page.lines.isEmpty ? true : await stream.write(page.lines) else { return }
            guard let next = page.next else {
                _ = await stream.write(["end": true])
                return
            }
            do throws(ControlRefusal) {
                page = try await records.export(store, filter, after: next)
            } catch {
                _ = await stream.write(error.json)
                return
            }
        }
    }

    /// What a request selects by what it says.
    package static func filter(_ body: JSONValue) throws(ControlRefusal) -> RecordSelection {
        var filter = RecordSelection()
        filter.destination = try body.destination()
        filter.app = try body.text("app")
        filter.reason = try body.text("reason")
        filter.priority = try body.priority()
        filter.isOfFiles = body["files"]?.bool ?? false
        if let ids = body["ids"] {
            guard let list = ids.array, list.count <= 10_000,
                list.allSatisfy({ ($0.string?.utf8.count ?? .max) <= 1024 })
            else { throw .bad("ids must be at most 10000 texts of at most 1024 bytes") }
            filter.ids = list.compactMap(\.string)
        }
        return filter
    }
}

extension JSONValue {
    fileprivate func priority() throws(ControlRefusal) -> Priority? {
        guard let name = try text("priority") else { return nil }
        if let priority = Priority(name: name) { return priority }
        throw ControlRefusal(status: 400, code: "out_of_range", message: "priority must be normal or critical")
    }
}

extension RecordStore {
    /// By what the records of this store can be selected, besides their ids.
    fileprivate var filters: [String] {
        switch self {
        case .queue: ["destination", "priority"]
        case .deadLetters: ["destination", "reason"]
        case .quarantine: ["app", "reason"]
        }
    }
}
