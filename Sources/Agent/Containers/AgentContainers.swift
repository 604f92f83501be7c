internal import Containers
internal import Control
internal import EventLoops
internal import Model

/// What the control API asks of the containers.
struct AgentContainers: ContainerControl {
    let keeper: ContainerKeeper
    let time: any TimeSource

    func list() async -> [JSONValue] {
        let now = time.wallTime
        return keeper.states.map { $0.json(at: now) }
    }

    func show(_ id: String) async throws(ControlRefusal) -> JSONValue {
        let state = try state(id)
        return .object(
            (state.json(at: time.wallTime).members ?? []) + [
                .init("values", .object(state.values)), .init("contents", state.contents),
            ])
    }

    func value(
        of key: String, type: String, in id: String?
    ) async throws(ControlRefusal) -> (value: JSONValue, isMissing: Bool) {
        guard let type = TypedValue(rawValue: type) else {
            let names = TypedValue.allCases.map(\.rawValue).joined(separator: ", ")
            throw ControlRefusal(status: 400, code: "out_of_range", message: "the type is one of \(names)")
        }
        let members: [JSONValue.Member]
        if let id { members = try state(id).values } else { members = keeper.states.flatMap(\.values) }
        let value = members.last { $0.key == key }.flatMap { type.convert($0.value) }
        return (value ?? type.standard, value == nil)
    }

    func refresh(_ id: String?) async throws(ControlRefusal) -> [JSONValue] {
        let ids: [String]
        if let id { ids = [try state(id).id] } else { ids = keeper.states.filter(\.hasAddress).map(\.id) }
        var results: [JSONValue] = []
        for id in ids {
            let end = try await asked(of: id, try await keeper.refresh(id))
            results.append([
                "id": .string(id), "result": .string(end.result.rawValue), "message": .string(end.message),
                "version": JSONValue(keeper.states.first { $0.id == id }?.version),
            ])
        }
        return results
    }

    func document(_ id: String) async throws(ControlRefusal) -> [UInt8] {
        if let document = try await asked(of: id, try await keeper.document(id)) { return document }
        throw ControlRefusal(
            status: 404, code: "empty",
            message: "\(id) has no complete document: it is empty, or a default file of values only")
    }

    func preview(_ id: String?, _ document: [UInt8], for time: Duration) async throws(ControlRefusal) -> JSONValue {
        let draft = try await asked(of: id, try await keeper.preview(id, document, for: time))
        return ["id": .string(draft.id), "version": .integer(draft.version)]
    }

    func preview(_ id: String?, link: String, for time: Duration) async throws(ControlRefusal) -> JSONValue {
        let draft = try await asked(of: id, try await keeper.preview(id, link: link, for: time))
        return ["id": .string(draft.id), "version": .integer(draft.version)]
    }

    func endPreview(_ id: String?) async throws(ControlRefusal) -> [String] {
        try await asked(of: id, try await keeper.endPreview(id))
    }

    func watch() -> AsyncStream<JSONValue> { keeper.watch.lines() }

    /// What the keeper gives; its mistake is the refusal.
    private func asked<Value>(
        of id: String?, _ work: @autoclosure () async throws(ContainerKeeper.Mistake) -> Value
    ) async throws(ControlRefusal) -> Value {
        do throws(ContainerKeeper.Mistake) { return try await work() } catch { throw ControlRefusal(error, id ?? "") }
    }

    private func state(_ id: String) throws(ControlRefusal) -> ContainerState {
        guard let state = keeper.states.first(where: { $0.id == id }) else { throw ControlRefusal(.unknown, id) }
        return state
    }
}

extension ControlRefusal {
    fileprivate init(_ mistake: ContainerKeeper.Mistake, _ id: String) {
        switch mistake {
        case .unknown:
            self.init(
                status: 404, code: "not_found", message: "there is no container \(id); `spoolship container list`")
        case .noAddress:
            self.init(status: 400, code: "no_url", message: "\(id) has no url: its default file serves for ever")
        case .document(let error):
            self.init(status: 400, code: "bad_document", message: "no container document: \(error)")
        case .several:
            self.init(
                status: 400, code: "which_container", message: "say for which container the link is: --container ID")
        case .link(let message):
            self.init(status: 503, code: "not_fetched", message: "the link was not fetched: \(message)")
        case .other(let other):
            self.init(
                status: 422, code: "other_container",
                message: id.isEmpty
                    ? "the document is for the container \(other), which this agent has not"
                    : "the document is for the container \(other), not for \(id)")
        }
    }
}

extension ContainerState {
    /// How the container stands, without its values.
    func json(at now: Timestamp) -> JSONValue {
        let refreshes = RefreshType.allCases.flatMap { type in
            (results[type] ?? [:]).sorted { $0.key.rawValue < $1.key.rawValue }.map { result, count -> JSONValue in
                ["type": .string(type.rawValue), "result": .string(result.rawValue), "count": .integer(count)]
            }
        }
        let refusals = refused.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .string($0.value)) }
        return [
            "id": .string(id), "open": .bool(isOpen), "source": .string(source.rawValue), "version": JSONValue(version),
            "held_back_version": JSONValue(heldBack),
            "confirmed_ms": JSONValue(confirmed.map { Int($0.milliseconds) }), "fresh": .bool(isFresh(at: now)),
            "expires_ms": JSONValue(expires.map { Int($0.milliseconds) }),
            "preview_ends_ms": JSONValue(previewEnd.map { Int($0.milliseconds) }),
            "required": .bool(isRequired), "awaited": .bool(isAwaited),
            "last_fetch": JSONValue(lastFetch?.rawValue), "problem": JSONValue(problem),
            "refreshes": .array(refreshes), "settings_refused": .object(refusals),
        ]
    }

    /// How much of what is in it.
    var contents: JSONValue {
        guard let document = current?.document else { return .null }
        return [
            "values": .integer(document.values.count), "macros": .integer(document.macros.count),
            "rules": .integer(document.rules.count), "tags": .integer(document.tags.count),
        ]
    }
}
