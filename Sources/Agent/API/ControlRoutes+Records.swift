internal import Control
internal import Model
internal import Queue

/// The queue, the dead letters and the quarantine; of a list never the content.
extension ControlRoutes {
    mutating func addRecords(_ records: AgentRecords) {
        for store in RecordStore.allCases {
            let path = "/v1/\(store.rawValue)"
            answer("GET", path, takes: store.filters + ["after", "limit"]) { _, query in
                guard let limit = Int(try query.text("limit") ?? "100"), (1...1000).contains(limit) else {
                    throw ControlRefusal.bad("limit must be 1 to 1000")
                }
                let page = try await records.list(
                    store, try RecordSelection(query), after: try query.text("after"), limit: limit)
                return .json(["records": .array(page.records), "next": JSONValue(page.next)])
            }
            // Before the path of one record, which would take "export" for an id.
            answer("GET", path + "/export", takes: store.filters) { _, query in
                let selection = try RecordSelection(query)
                let first = try await records.queue.export(store, selection)
                return .stream { stream in
                    await ControlRoutes.export(records.queue, store, selection, first, to: stream)
                }
            }
            answer("GET", path + "/{id...}") { request, _ in
                .json(try await records.show(store, request.parameters["id"] ?? ""))
            }
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

    private static func export(
        _ queue: QueueStore, _ store: RecordStore, _ selection: RecordSelection, _ first: RecordLines,
        to stream: ControlStream
    ) async {
        var page = first
        while true {
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
    /// What a request selects by what it says.
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
    /// By what the records of this store can be selected, besides their ids.
    fileprivate var filters: [String] {
        switch self {
        case .queue: ["destination", "priority"]
        case .deadLetters: ["destination", "app", "reason"]
        case .quarantine: ["app", "reason"]
        }
    }
}
