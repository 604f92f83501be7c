internal import Configuration
internal import Containers
internal import Control
internal import EventLoops
internal import Model

/// What a person asks of the containers, through the control API.
extension ContainerKeeper {
    /// The state of all containers, in configuration order.
    nonisolated func list() -> [JSONValue] { states.map { $0.json(by: time) } }

    nonisolated func show(_ id: String) throws(ControlRefusal) -> JSONValue {
        let state = try state(id)
        return .object(
            (state.json(by: time).members ?? []) + [
                .init("values", .object(state.values)), .init("contents", state.contents),
            ])
    }

    /// A value by its key, as a type, of one container or of the last one that has it; the type's standard one where it is missing.
    nonisolated func value(
        of key: String, type: String, in id: String?
    ) throws(ControlRefusal) -> (value: JSONValue, isMissing: Bool) {
        guard let type = TypedValue(rawValue: type) else {
            let names = TypedValue.allCases.map(\.rawValue).joined(separator: ", ")
            throw ControlRefusal(400, "out_of_range", "the type must be one of \(names)")
        }
        let members = try id.map { id throws(ControlRefusal) in try state(id).values } ?? states.flatMap(\.values)
        let value = members.last { $0.key == key }.flatMap { type.convert($0.value) }
        return (value ?? type.standard, value == nil)
    }

    nonisolated func watch() -> AsyncStream<JSONValue> { watchers.lines() }

    private nonisolated func state(_ id: String) throws(ControlRefusal) -> ContainerState {
        guard let state = states.first(where: { $0.id == id }) else { throw .noContainer(id) }
        return state
    }

    private func slot(_ id: String) throws(ControlRefusal) -> ContainerSlot {
        guard let slot = slots.first(where: { $0.settings.id == id }) else { throw .noContainer(id) }
        return slot
    }

    /// Fetches containers now; returns when the fetches have ended, within their timeouts.
    func refresh(_ id: String?) async throws(ControlRefusal) -> [JSONValue] {
        var results: [JSONValue] = []
        for id in id.map({ [$0] }) ?? slots.map(\.settings).filter({ $0.url != nil }).map(\.id) {
            let slot = try slot(id)
            guard slot.settings.url != nil else {
                throw ControlRefusal(400, "no_url", "\(id) has no url: it has only its default file")
            }
            let end = await withCheckedContinuation { continuation in
                slot.waiters.append(continuation)
                feed(slot, .refresh)
            }
            results.append([
                "id": .string(id), "result": .string(end.result.rawValue), "message": .string(end.message),
                "version": JSONValue(slot.state.version),
            ])
        }
        return results
    }

    /// Lets a draft of any version rule for a time (tm16). It is not kept: a restart ends it.
    func preview(_ id: String?, _ content: [UInt8], for time: Duration) throws(ControlRefusal) -> JSONValue {
        // A signed file is a draft too; here a person vouches for it.
        let draft = SignedDocument.document(in: content)
        let document = try relaying(try ContainerDocument(reading: draft), ControlRefusal.badDocument)
        guard let slot = slots.first(where: { $0.settings.id == document.id }), id == nil || id == document.id else {
            throw .otherContainer(document.id, id)
        }
        let copy = try relaying(try slot.remember(document, content), ControlRefusal.badDocument)
        feed(slot, .preview(copy, time))
        return ["id": .string(document.id), "version": .integer(document.version)]
    }

    /// Fetches a draft that is signed for previews and lets it rule for a time (tm16). Nobody vouches for what a link leads to
    /// but its signature, by a key of the container; a link that is passed on for too long ends by the draft's `expires`.
    func preview(_ id: String?, link: String, for span: Duration) async throws(ControlRefusal) -> JSONValue {
        guard id != nil || slots.count == 1, let name = id ?? slots.first?.settings.id else {
            throw ControlRefusal(400, "which_container", "name the container that the link is for: --container ID")
        }
        let slot = try slot(name)
        let file = try await fetched(link, for: slot)
        let document: ContainerDocument
        let content: [UInt8]
        do throws(ContainerError) {
            let signed = try SignedDocument(file, for: .preview)
            try signed.verify(by: slot.keys)
            content = signed.document
            document = try ContainerDocument(reading: content)
            // By any clock: to refuse a draft does no harm, whatever the time.
            if let expires = document.expires, time.wallTime >= expires {
                throw ContainerError(.expired, "the draft has expired; sign one with a later expiry date")
            }
        } catch {
            throw .badDocument(error)
        }
        guard document.id == name else { throw .otherContainer(document.id, id) }
        return try preview(name, content, for: span)
    }

    /// Ends the preview of a container, or of all; gives the ids of those that were previewed.
    func endPreview(_ id: String?) throws(ControlRefusal) -> [String] {
        let chosen = try id.map { id throws(ControlRefusal) in [try slot(id)] } ?? slots
        let previewed = chosen.filter { $0.state.machine.previewEnd != nil }
        for slot in previewed { feed(slot, .endPreview) }
        return previewed.map(\.settings.id)
    }

    /// The exact bytes of the document in force.
    func document(_ id: String) throws(ControlRefusal) -> [UInt8] {
        let slot = try slot(id)
        guard let container = slot.current, container.document.version > 0,
            let content = slot.state.machine.inForce?.copy.content
        else {
            throw ControlRefusal(
                404, "empty", "\(id) has no complete document: it is empty, or a default file of values only")
        }
        // A default file may be a signed one.
        return SignedDocument.document(in: content)
    }
}

extension ControlRefusal {
    fileprivate static func noContainer(_ id: String) -> ControlRefusal {
        ControlRefusal(404, "not_found", "there is no container \(id); `spoolship container list`")
    }

    fileprivate static func badDocument(_ error: ContainerError) -> ControlRefusal {
        ControlRefusal(400, "bad_document", "not a container document: \(error)")
    }

    fileprivate static func otherContainer(_ other: String, _ id: String?) -> ControlRefusal {
        let wanted = id.map { "not for \($0)" } ?? "which this agent does not have"
        return ControlRefusal(422, "other_container", "the document is for the container \(other), \(wanted)")
    }

    static func notFetched(_ message: String) -> ControlRefusal {
        ControlRefusal(503, "not_fetched", "cannot fetch the link: \(message)")
    }
}

extension ContainerState {
    /// The container's state, without its values.
    func json(by time: any TimeSource) -> JSONValue {
        let refreshes = refreshes.map { type, result, count -> JSONValue in
            ["type": .string(type.rawValue), "result": .string(result.rawValue), "count": .integer(count)]
        }
        let refusals = refused.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .string($0.value)) }
        return [
            "id": .string(id), "open": .bool(machine.isOpen), "source": .string(source.rawValue),
            "version": JSONValue(version), "held_back_version": JSONValue(machine.heldBack),
            "confirmed_ms": JSONValue(confirmed.map { Int($0.milliseconds) }),
            "fresh": .bool(isFresh(at: time.wallTime)),
            "expires_ms": JSONValue(machine.inForce?.copy.expires.map { Int($0.milliseconds) }),
            "preview_ends_ms": JSONValue(previewEnd(by: time).map { Int($0.milliseconds) }),
            "required": .bool(!settings.required.isEmpty), "awaited": .bool(lack != nil),
            "last_fetch": JSONValue(lastFetch?.rawValue), "problem": JSONValue(problem),
            "refreshes": .array(refreshes), "settings_refused": .object(refusals),
        ]
    }

    var contents: JSONValue {
        guard let document = current?.document else { return .null }
        return [
            "values": .integer(document.values.count), "macros": .integer(document.macros.count),
            "rules": .integer(document.rules.count), "tags": .integer(document.tags.count),
        ]
    }
}
