internal import Configuration
internal import Containers
internal import Control
internal import EventLoops
internal import Model

/// The commands of the control API.
extension ContainerKeeper {
    /// The states of all containers, in the order of the configuration.
    nonisolated func list() -> [JSONValue] { states.map { $0.json(by: time) } }

    /// The state of one container with its values.
    nonisolated func show(_ id: String) throws(ControlRefusal) -> JSONValue {
        let state = try state(id)
        return .object(
            (state.json(by: time).members ?? []) + [
                .init("values", .object(state.values)), .init("contents", state.contents),
            ])
    }

    /// A value by its key, converted to a type; if it is missing, the default of the type.
    ///
    /// - Parameter id: the container; nil for the last container that has the key.
    nonisolated func value(
        of key: String, type: String, in id: String?
    ) throws(ControlRefusal) -> (value: JSONValue, isMissing: Bool) {
        let type = try TypedValue(named: type)
        let members =
            try id.map { id throws(ControlRefusal) in try state(id).values } ?? states.flatMap(\.values)
        let value = members.last { $0.key == key }.flatMap { type.convert($0.value) }
        return (value ?? type.standard, value == nil)
    }

    /// The value that an app asks for, or the call of its function that the value needs.
    nonisolated func answer(_ question: ValueQuestion) throws(ControlRefusal) -> JSONValue {
        let state = try state(question.container)
        return try question.answer(by: state.current, known: state.answers)
    }

    /// Checks that there is a container of this id.
    nonisolated func know(_ id: String) throws(ControlRefusal) { _ = try state(id) }

    /// Events of the containers from now on.
    nonisolated func watch() -> AsyncStream<JSONValue> { watchers.lines() }

    /// The published state of a container, or the refusal for an unknown id.
    private nonisolated func state(_ id: String) throws(ControlRefusal) -> ContainerState {
        guard let state = states.first(where: { $0.id == id }) else { throw .noContainer(id) }
        return state
    }

    /// The slot of a container, or the refusal for an unknown id.
    private func slot(_ id: String) throws(ControlRefusal) -> ContainerSlot {
        guard let slot = slots.first(where: { $0.settings.id == id }) else { throw .noContainer(id) }
        return slot
    }

    /// Fetches one container, or all that have a `url`. Returns when the fetches have ended, within their
    /// timeouts.
    func refresh(_ id: String?) async throws(ControlRefusal) -> [JSONValue] {
        var results: [JSONValue] = []
        for id in id.map({ [$0] }) ?? slots.map(\.settings).filter({ $0.url != nil }).map(\.id) {
            let slot = try slot(id)
            guard slot.settings.url != nil else {
                throw ControlRefusal(400, "no_url", "\(id) has no url: it has only its default file")
            }
            // Join first: `feed` may end the refresh at once.
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

    /// Puts a draft of any version in force for a time. It is not saved: a restart ends it.
    func preview(_ id: String?, _ content: [UInt8], for time: Duration) throws(ControlRefusal) -> JSONValue {
        // A signed file is accepted too, but the signature is not checked: the person has access to the
        // control socket.
        let draft = SignedDocument.document(in: content)
        let document = try relaying(try ContainerDocument(reading: draft), ControlRefusal.badDocument)
        guard let slot = slots.first(where: { $0.settings.id == document.id }), id == nil || id == document.id
        else {
            throw .otherContainer(document.id, id)
        }
        let copy = try relaying(try slot.remember(document, content), ControlRefusal.badDocument)
        feed(slot, .preview(copy, time))
        return ["id": .string(document.id), "version": .integer(document.version)]
    }

    /// Fetches a draft and puts it in force for a time. Anybody may have sent the link, so the draft needs a
    /// signature for previews by a key of the container, and its `expires` ends a link that is passed on.
    func preview(_ id: String?, link: String, for span: Duration) async throws(ControlRefusal) -> JSONValue {
        guard id != nil || slots.count == 1, let name = id ?? slots.first?.settings.id else {
            throw ControlRefusal(
                400, "which_container", "name the container that the link is for: --container ID")
        }
        let slot = try slot(name)
        let file = try await sources.fetched(link, for: slot)
        let document: ContainerDocument
        let content: [UInt8]
        do throws(ContainerError) {
            let signed = try SignedDocument(file, for: .preview)
            try signed.verify(by: slot.keys)
            content = signed.document
            document = try ContainerDocument(reading: content)
            // Checked even if the clock is not trusted: refusing a draft does no harm.
            if let expires = document.expires, time.wallTime >= expires {
                throw ContainerError(.expired, "the draft has expired; sign one with a later expiry date")
            }
        } catch {
            throw .badDocument(error)
        }
        guard document.id == name else { throw .otherContainer(document.id, id) }
        return try preview(name, content, for: span)
    }

    /// Ends the preview of a container, or of all; returns the ids of those that had one.
    func endPreview(_ id: String?) throws(ControlRefusal) -> [String] {
        let chosen = try id.map { id throws(ControlRefusal) in [try slot(id)] } ?? slots
        let previewed = chosen.filter { $0.state.machine.previewEnd != nil }
        for slot in previewed { feed(slot, .endPreview) }
        return previewed.map(\.settings.id)
    }

    /// The bytes of the document in force, without signatures.
    func document(_ id: String) throws(ControlRefusal) -> [UInt8] {
        let slot = try slot(id)
        // Version 0 is a document that the agent has made itself from a file of values.
        guard let container = slot.current, container.document.version > 0,
            let content = slot.state.machine.inForce?.copy.content
        else {
            throw ControlRefusal(
                404, "empty", "\(id) has no complete document: it is empty, or a default file of values only")
        }
        // A default file may be signed.
        return SignedDocument.document(in: content)
    }
}

extension ControlRefusal {
    /// The refusal for an unknown id.
    fileprivate static func noContainer(_ id: String) -> ControlRefusal {
        ControlRefusal(404, "not_found", "there is no container \(id); `spoolship container list`")
    }

    /// The refusal for an invalid document.
    fileprivate static func badDocument(_ error: ContainerError) -> ControlRefusal {
        ControlRefusal(400, "bad_document", "not a container document: \(error)")
    }

    /// The refusal for a document of another container than the one asked for, or of one that is not
    /// configured.
    fileprivate static func otherContainer(_ other: String, _ id: String?) -> ControlRefusal {
        let wanted = id.map { "not for \($0)" } ?? "which this agent does not have"
        return ControlRefusal(422, "other_container", "the document is for the container \(other), \(wanted)")
    }

    /// The refusal for a link that cannot be fetched; 503, because a later try may succeed.
    static func notFetched(_ message: String) -> ControlRefusal {
        ControlRefusal(503, "not_fetched", "cannot fetch the link: \(message)")
    }
}

extension ContainerState {
    /// The state without the values.
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

    /// How many values, macros, rules and tags the document in force has.
    var contents: JSONValue {
        guard let document = current?.document else { return .null }
        return [
            "values": .integer(document.values.count), "macros": .integer(document.macros.count),
            "rules": .integer(document.rules.count), "tags": .integer(document.tags.count),
        ]
    }
}
