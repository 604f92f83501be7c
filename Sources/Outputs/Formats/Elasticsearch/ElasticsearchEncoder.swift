internal import Events
internal import Glibc
package import Model

/// `_bulk`, for Elasticsearch, OpenSearch, Quickwit and ZincSearch.
///
/// Every event is a `create` with the event's own id, so that a repeated one is answered as existing and is not stored
/// twice. `@timestamp`, which data streams require, is added from the event's time.
/// Source: Elasticsearch reference, "Bulk API".
package struct ElasticsearchEncoder: BatchEncoder {
    package let templates: EventTemplates?

    /// - Parameter index: the index or data stream; nil when the address names it.
    package init(index: Template? = nil, _ scope: TemplateScope = TemplateScope()) {
        templates = index.map { EventTemplates([$0], scope) }
    }

    /// An item for each event: some 200 bytes if taken, 400 if there already, more with a reason that quotes the event.
    package var traits: FormatTraits {
        FormatTraits(
            contentType: NDJSONEncoder.usualContentType, answerBytes: (1 << 20, 1024), readsAnswers: true,
            tokenPlace: .authorization(scheme: "ApiKey"))
    }

    package func encode(_ lines: [UInt8], of header: BatchHeader) throws(OutputError) -> [UInt8] {
        let events = try EventView.all(lines)
        let index = try templates?.fill(for: header) { events }
        var text = JSONText(capacity: lines.count + events.count * 128)
        for (place, event) in events.enumerated() {
            text.raw(#"{"create":{"#)
            if let index { text.member("_index", index[place][0]) }
            text.member("_id", event.stableID(in: header.id, at: place))
            text.close("}}\n")
            write(event, to: &text)
            text.raw("\n")
        }
        return text.bytes
    }

    private func write(_ event: EventView, to text: inout JSONText) {
        guard event["@timestamp"] == nil, let time = event.time,
            let brace = event.line.firstIndex(of: UInt8(ascii: "{"))
        else { return text.raw(event.line) }
        text.raw(#"{"@timestamp":"#, string: "\(time)")
        if !event.members.isEmpty { text.raw(",") }
        text.raw(event.line[(brace + 1)...])
    }

    /// What happened to each event.
    ///
    /// An item that is there already (409) is acknowledged; one that may be taken later goes again; one that is not wanted
    /// is rejected by itself. An answer that breaks off sends the batch again, one that is too long its pieces: harmless, by its ids.
    package func outcome(
        ofAnswer answer: HTTPAnswer, for header: BatchHeader, lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome? {
        guard (200...299).contains(answer.status) else { return nil }
        guard let body = JSONSlice(answer.body[...]) else { return unreadable(answer) }
        guard let hasErrors = body["errors"]?.boolean else {
            // The words of Quickwit and of ZincSearch for so many events that were taken.
            let taken = (body["num_docs_for_processing"] ?? body["record_count"])?.integer ?? -1
            let namesOthers = body["items"] != nil || body["errors"] != nil
            return taken >= Int64(header.events) && !namesOthers ? .acknowledged : unreadable(answer)
        }
        // Items may be left out of an answer on request (`filter_path`); where they are given, they are all of them.
        guard let given = body["items"] else { return hasErrors ? unreadable(answer) : .acknowledged }
        guard let items = given.elements, items.count == header.events else { return unreadable(answer) }
        // The word of what imitates `_bulk` may be "no errors" whatever became of the events: it counts only where no item names one.
        let namesError = given.text.withCString { strstr($0, #""error""#) != nil }
        guard hasErrors || namesError else { return .acknowledged }
        let outcomes = items.map { outcome(of: $0, hasErrors: hasErrors) }
        // Nothing of it was settled, and a person must look: at an index that is missing, read-only, or not allowed.
        let isOpen = outcomes.allSatisfy {
            if case .held = $0 { true } else if case .retry = $0 { true } else { false }
        }
        let held = outcomes.first { if case .held = $0 { true } else { false } }
        return isOpen ? held ?? Outcome(of: outcomes) : Outcome(of: outcomes)
    }

    package func repeats(inAnswer answer: HTTPAnswer) -> [Int] {
        guard let body = JSONSlice(answer.body[...]), body["errors"]?.boolean == true else { return [] }
        let items = body["items"]?.elements ?? []
        return items.indices.filter { items[$0].members?.first?.value["status"]?.integer == 409 }
    }

    /// What happened to one event, by the table of statuses: `{"create": {"status": 400, "error": {"type": …, "reason": …}}}`.
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
        // An index that an event names and that is not there is nobody else's trouble.
        case .hold where status == 404 && templates?.areOfEvents == true, .bisect, .split:
            return .partial(rejected: [RejectedEvent(index: 0, failure: failure)], retry: [])
        case .retry: return .retry(failure)
        case .hold: return .held(failure)
        }
    }

    private func unreadable(_ answer: HTTPAnswer) -> Outcome {
        .retry(
            answer.failure(
                "the answer does not report the result of each event: is this the address of _bulk?", .protocolViolation
            ))
    }
}
