internal import EventLoops
internal import Model

/// Decides what an answer means for the events that were sent: a pure function of the answer, the settings
/// and the format.
struct AnswerReader: Sendable {
    /// The meaning of statuses, with the settings' own.
    let table: AnswerTable
    /// The format, which may find the fate of single events in the body.
    let encoder: any BatchEncoder
    /// What a success must have besides its status (`accept.status`, `accept.body`).
    var accepted = AcceptSettings()

    /// The outcome of a request that was answered.
    ///
    /// The order of the checks decides which of several contradicting signs counts. A status in the
    /// settings' `outcomes` is a person's word and comes first. Then a web page, an unaccepted success and
    /// a truncated answer are excluded: none of them proves that the events were stored. Only then the
    /// format reads the body, and at last the server's error or the status decides.
    /// - Parameters:
    ///   - wireBytes: size of the body that was sent, from which a split is computed.
    ///   - lines: the batch's lines, unpacked only if the format needs them to find the events.
    func outcome(
        of answer: HTTPAnswer, for header: BatchHeader, wireBytes: Int, now: Timestamp,
        lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome {
        let status = answer.status
        // Precedence: the settings, then the format, then ClickHouse's error code, then the table of
        // statuses.
        let override = table.override(of: status)
        let engine = answer.clickHouseCode.map(ClickHouseError.init)
        if override == nil {
            if (200...299).contains(status), AnswerReader.isWebPage(answer.body) {
                return .held(
                    answer.failure(
                        "this is a web page: a login page, portal or proxy answers instead of the receiver"))
            }
            if (200...299).contains(status), let failure = unaccepted(answer) { return .retry(failure) }
            // The format's answers list the fate of the events, and part of that list is missing.
            if encoder.traits.readsAnswers, (200...299).contains(status), answer.extent != .whole {
                return partlyRead(answer)
            }
            if let said = encoder.outcome(ofAnswer: answer, for: header, lines: lines) { return said }
        }
        // A function, because building the message costs work and most answers are good.
        func failure() -> Failure {
            answer.failure(
                engine?.message(for: status)
                    ?? AnswerTable.message(for: status) + hint(for: status) + code(in: answer.body))
        }
        let meaning = table.meaning(of: status)
        switch override ?? engine?.meaning(beside: meaning) ?? meaning {
        case .acknowledge: return .acknowledged
        case .split: return .tooLarge(wireBytes: wireBytes, failure())
        case .bisect: return .rejected(failure())
        case .hold: return .held(failure())
        case .retry:
            return answer.wait(at: now).map { .retryAfter($0, failure()) } ?? .retry(failure())
        }
    }

    /// Why a success does not satisfy `accept`; nil if it does. The texts are compared without blanks,
    /// because servers format JSON differently.
    private func unaccepted(_ answer: HTTPAnswer) -> Failure? {
        guard accepted.statuses.isEmpty || accepted.statuses.contains(answer.status) else {
            return answer.failure("answered \(answer.status), which is not in accept.status")
        }
        guard let wanted = accepted.body else { return nil }
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
        let body = String(decoding: answer.body.lazy.filter { !blanks.contains($0) }, as: UTF8.self)
        let text = String(decoding: wanted.utf8.lazy.filter { !blanks.contains($0) }, as: UTF8.self)
        return body.holds(text)
            ? nil : answer.failure("answered \(answer.status), but its body lacks the text of accept.body")
    }

    /// The outcome of a success whose body was not read completely.
    ///
    /// If the agent itself stopped reading, because the answer exceeded the limit, the same request would
    /// get the same answer. Formats whose answers have an item for each event get shorter answers for
    /// smaller batches, so the batch is bisected; for other formats only a retry is left.
    private func partlyRead(_ answer: HTTPAnswer) -> Outcome {
        guard answer.extent == .cutHere else {
            return .retry(
                Failure(
                    kind: .connection, status: answer.status,
                    message: "the answer broke off or did not end: the result is unknown"))
        }
        let failure = answer.failure(
            "its answer was longer than \(answer.body.count) bytes: the agent stopped reading",
            .protocolViolation)
        return encoder.traits.answerBytes.each > 0 ? .rejected(failure) : .retry(failure)
    }

    /// The server's name for its error, if it is a known word. Other text of the answer may quote an event,
    /// and event content never goes to a log.
    private func code(in body: [UInt8]) -> String {
        ErrorWords.found(in: body).map { "; its error is \($0)" } ?? ""
    }

    /// A hint for receivers that reject NDJSON by its content type.
    private func hint(for status: Int) -> String {
        guard [400, 415, 422].contains(status), encoder.traits.contentType == NDJSONEncoder.usualContentType
        else {
            return ""
        }
        return "; some receivers want another content_type, such as application/json"
    }

    /// Whether an answer begins like a web page. Login pages and captive portals answer 200, and would
    /// otherwise acknowledge events that no receiver has.
    static func isWebPage(_ body: [UInt8]) -> Bool {
        let start = body.prefix(512).drop { $0 <= 0x20 || $0 >= 0x80 }
        guard start.first == UInt8(ascii: "<") else { return false }
        let text = String(decoding: start.prefix(32), as: UTF8.self).lowercased()
        return ["<!doctype html", "<html", "<head", "<meta", "<title", "<script", "<body"].contains {
            text.hasPrefix($0)
        }
    }

    /// The beginning of a body as text, at most 1 KiB. Invalid UTF-8 is replaced, no character is cut in
    /// two, and control characters, which could control a terminal, become spaces.
    static func excerpt(_ body: [UInt8]) -> String {
        var text = ""
        for scalar in String(decoding: body.prefix(1100), as: UTF8.self).unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
            let shown = isControl ? " " : scalar
            guard text.utf8.count + UTF8.width(shown) <= 1024 else { break }
            text.unicodeScalars.append(shown)
        }
        return text
    }
}
