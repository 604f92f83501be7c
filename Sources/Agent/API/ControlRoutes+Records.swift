internal import Control
internal import Model
internal import Queue

/// The routes of the queue, the dead letters and the quarantine, the same for each store. A list never
/// contains content: only `show` and `export` do.
extension ControlRoutes {
    /// Registers the routes of all three stores, and `/v1/erase`.
    mutating func addRecords(_ records: AgentRecords) {
        answer("POST", "/v1/erase", takes: ["where", "dry_run"]) { _, body in
            let text = try body.required("where", try body.text("where"))
            return .json(try await records.erase(where: text, isTrial: try body.flag("dry_run")))
        }
        // Registered before the route of one record, which would take "left" for an id.
        answer("GET", "/v1/queue/left") { _, _ in .json(try await records.left()) }
        for store in RecordStore.allCases {
            let path = "/v1/\(store.rawValue)"
            answer("GET", path, takes: store.filters + ["after", "limit"]) { _, query in
                // Bounded, because the page is made in memory.
                guard let limit = Int(try query.text("limit") ?? "100"), (1...1000).contains(limit) else {
                    throw ControlRefusal.bad("limit must be 1 to 1000")
                }
                let page = try await records.list(
                    store, try RecordSelection(query), after: try query.text("after"), limit: limit)
                return .json(["records": .array(page.records), "next": JSONValue(page.next)])
            }
            // Registered before the route of one record, which would take "export" for an id.
            answer("GET", path + "/export", takes: store.filters) { _, query in
                let selection = try RecordSelection(query)
                // Read the first page before the stream begins: after that an error could no longer be a
                // status code.
                let first = try await records.queue.export(store, selection)
                return .stream { stream in
                    await ControlRoutes.export(records.queue, store, selection, first, to: stream)
                }
            }
            answer("GET", path + "/{id...}") { request, _ in
                .json(try await records.show(store, request.parameters["id"] ?? ""))
            }
            // Queued events are tried without a command, so the queue has `move` instead of `retry`.
            if store != .queue {
                answer("POST", path + "/retry", takes: store.filters + ["ids", "files"]) { _, body in
                    .json(["retried": .integer(try await records.retry(store, try RecordSelection(body)))])
                }
            } else {
                answer("POST", path + "/move", takes: ["destination", "to", "priority"]) { _, body in
                    guard let source = try body.text("destination"), let target = try body.text("to") else {
                        throw ControlRefusal.bad("destination and to are required")
                    }
                    let result = try await records.move(from: source, to: target, try body.priority())
                    return .json(["moved": .integer(result.moved), "kept": .integer(result.kept)])
                }
            }
            answer("POST", path + "/purge", takes: store.filters + ["ids"]) { _, body in
                .json(["purged": .integer(try await records.purge(store, try RecordSelection(body)))])
            }
        }
    }

    /// Streams the pages of an export. The last line is `end`, or an error: without it the client would take
    /// a broken connection for the end.
    private static func export(
        _ queue: QueueStore, _ store: RecordStore, _ selection: RecordSelection, _ first: RecordLines,
        to stream: ControlStream
    ) async {
        var page = first
        while true {
            // A page may be empty although others follow. A failed write means that the client has gone.
            guard page.lines.isEmpty ? true : await stream.write(page.lines) else { return }
            guard let next = page.next else {
                _ = await stream.write(["end": true])
                return
            }
            do throws(QueueError) {
                page = try await queue.export(store, selection, after: next)
            } catch {
                _ = await stream.write(ControlRefusal(queue: error).json)
                return
            }
        }
    }
}

extension RecordSelection {
    /// The selection that a query or a body describes.
    init(_ said: JSONValue) throws(ControlRefusal) {
        self.init()
        destination = try said.destination()
        app = try said.text("app")
        reason = try said.text("reason")
        priority = try said.priority()
        isOfFiles = try said.flag("files")
        if let ids = said["ids"] {
            guard let list = ids.array, list.count <= 10_000,
                list.allSatisfy({ ($0.string?.utf8.count ?? .max) <= 1024 })
            else { throw .bad("ids must be at most 10000 texts of at most 1024 bytes") }
            self.ids = list.compactMap(\.string)
        }
    }
}

extension RecordStore {
    /// The filters that the records of this store can be selected with, besides ids.
    fileprivate var filters: [String] {
        switch self {
        case .queue: ["destination", "priority"]
        case .deadLetters: ["destination", "app", "reason"]
        case .quarantine: ["app", "reason"]
        }
    }
}
