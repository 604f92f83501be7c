internal import Events
package import Model

/// Writes `_bulk` requests, for Elasticsearch, OpenSearch, Quickwit and ZincSearch.
///
/// Each event is a `create` with the event's own id: a repeat is answered as existing (409) and is not
/// stored twice. `@timestamp`, which data streams require, is added from the event's time. Source:
/// Elasticsearch reference, "Bulk API".
package struct ElasticsearchEncoder: BatchEncoder {
    /// Template of the index; nil if the address names the index.
    package let templates: EventTemplates?
    /// Whether documents get the names of the Elastic Common Schema.
    private let mapsToECS: Bool

    /// - Parameters:
    ///   - index: the index or data stream; nil if the address names it.
    ///   - ecs: whether the agent's members get the names of the Elastic Common Schema.
    package init(index: Template? = nil, ecs: Bool = false, _ scope: TemplateScope = TemplateScope()) {
        templates = index.map { EventTemplates([$0], scope) }
        mapsToECS = ecs
    }

    /// The answer has an item for each event: about 200 bytes if stored, 400 if it already existed, more
    /// with a reason that quotes the event. An answer beyond the limit costs further attempts, so the limit
    /// is generous.
    package var traits: FormatTraits {
        FormatTraits(
            contentType: NDJSONEncoder.usualContentType, answerBytes: (1 << 20, 1024), readsAnswers: true,
            tokenPlace: .authorization(scheme: "ApiKey"), namesOwners: mapsToECS)
    }

    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let index = try templates?.fill(for: header) { () throws(OutputError) in try EventView.all(lines) }
        guard !mapsToECS else { return try schemaDocuments(lines, header, index) }
        return try BodyBuffer.array(capacity: lines.count + header.events * 128) { out throws(OutputError) in
            var body = BulkBody(header, out)
            try EventScan.forEach(lines) { event, position in
                body.add(event, at: position, index: index?[position][0])
            }
            return body.written()
        }
    }

    /// The documents with the names of the Elastic Common Schema.
    private func schemaDocuments(
        _ lines: [UInt8], _ header: BatchHeader, _ index: FilledTemplates?
    ) throws(OutputError) -> [UInt8] {
        let events = try EventView.all(lines)
        var text = JSONText(capacity: lines.count + events.count * 128)
        var times = TimestampWriter()
        for (position, event) in events.enumerated() {
            text.raw(#"{"create":{"#)
            if let index {
                text.member("_index", index[position][0])
            }
            text.member("_id", event.stableID(in: header.id, at: position))
            text.close("}}\n")
            let known = header.apps.indices.contains(position) ? header.apps[position] : ""
            ECSDocument(event, service: event.owner(known)).write(to: &text, &times)
            text.raw("\n")
        }
        return text.bytes
    }

    /// The fate of each event.
    ///
    /// An item that already exists (409) is acknowledged; a temporary failure is retried; an item that is
    /// refused is rejected alone. If the answer breaks off, the whole batch is sent again, and if it is too
    /// long, the batch in pieces: harmless, because the ids are the same.
    package func outcome(
        ofAnswer answer: HTTPAnswer, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome? {
        guard (200...299).contains(answer.status) else { return nil }
        // Read once: an answer has an item for each event.
        guard let body = JSONSlice(answer.body[...])?.members else { return unreadable(answer) }
        func member(_ name: String) -> JSONSlice? { body.last { $0.key == name }?.value }
        guard let hasErrors = member("errors")?.boolean else {
            // Quickwit and ZincSearch answer with a number of accepted documents instead of items.
            let taken = (member("num_docs_for_processing") ?? member("record_count"))?.integer ?? -1
            let namesOthers = member("items") != nil || member("errors") != nil
            return taken >= Int64(header.events) && !namesOthers ? .acknowledged : unreadable(answer)
        }
        // `filter_path` in the address may leave out the items; if the answer has items, it has all of
        // them.
        guard let given = member("items") else { return hasErrors ? unreadable(answer) : .acknowledged }
        guard given.elementCount == header.events else { return unreadable(answer) }
        // Servers that imitate `_bulk` may claim "no errors" whatever happened: the claim counts only if no
        // item contains an error.
        guard hasErrors || given.contains(#""error""#) else { return .acknowledged }
        guard let items = given.elements else { return unreadable(answer) }
        let outcomes = items.map { outcome(of: $0, hasErrors: hasErrors) }
        // No event was stored or rejected, and at least one needs a person: an index is missing, read-only
        // or not allowed. The destination is held, instead of retrying for ever.
        let isOpen = outcomes.allSatisfy {
            if case .held = $0 {
                true
            } else if case .retry = $0 {
                true
            } else {
                false
            }
        }
        let held = outcomes.first { if case .held = $0 { true } else { false } }
        return isOpen ? held ?? Outcome(of: outcomes) : Outcome(of: outcomes)
    }

    /// Positions of the events that existed already.
    package func repeats(inAnswer answer: HTTPAnswer) -> [Int] {
        guard let body = JSONSlice(answer.body[...]), body["errors"]?.boolean == true else { return [] }
        let items = body["items"]?.elements ?? []
        return items.indices.filter { items[$0].members?.first?.value["status"]?.integer == 409 }
    }

    /// The outcome of one item, by the table of statuses: `{"create": {"status": 400, "error": {"type": …,
    /// "reason": …}}}`. An item without a status counts as 500 if there was any error.
    private func outcome(of item: JSONSlice, hasErrors: Bool) -> Outcome {
        let result = item.members?.first?.value
        let error = result?["error"].flatMap { $0.kind == .null ? nil : $0 }
        let unsaid = hasErrors || error != nil ? 500 : 200
        let status = result?["status"]?.integer.map { Int(clamping: $0) } ?? unsaid
        let meaning = AnswerTable().meaning(of: status)
        guard status != 409, meaning != .acknowledge else { return .acknowledged }
        let word = error?["type"]?.scalar.map { ": \(ErrorWords.known($0))" } ?? ""
        let failure = Failure(
            kind: .status, status: status, message: "the answer for an event was \(status)\(word)",
            excerpt: AnswerReader.excerpt(Array((error?["reason"]?.string ?? error?.string ?? "").utf8)))
        switch meaning {
        case .acknowledge: return .acknowledged
        // If an event's value names a missing index, only that event is affected: it is rejected, and the
        // destination is not held.
        case .hold where status == 404 && templates?.areOfEvents == true, .bisect, .split:
            return .partial(rejected: [RejectedEvent(index: 0, failure: failure)], retry: [])
        case .retry: return .retry(failure)
        case .hold: return .held(failure)
        }
    }

    /// A retry for an answer that does not say what happened to each event: it may come from another
    /// program.
    private func unreadable(_ answer: HTTPAnswer) -> Outcome {
        .retry(
            answer.failure(
                "the answer does not report the result of each event: is this the address of _bulk?",
                .protocolViolation
            ))
    }
}
