internal import EventLoops
internal import Model

/// Turns an answer into an outcome: a pure function of the table, the format and the headers.
struct AnswerReader: Sendable {
    let table: AnswerTable
    let encoder: any BatchEncoder

    func outcome(
        of answer: HTTPAnswer, for header: BatchHeader, wireBytes: Int, now: Timestamp,
        lines: () throws(OutputError) -> [UInt8]
    ) -> Outcome {
        let status = answer.status
        // A configured outcome overrides the format's, the format's the engine's, and the engine's the table's.
        let override = table.override(of: status)
        let engine = answer.clickHouseCode.map(ClickHouseError.init)
        if override == nil {
            if (200...299).contains(status), AnswerReader.isWebPage(answer.body) {
                return .held(
                    answer.failure("this is a web page: a login page, portal or proxy answers instead of the receiver"))
            }
            // A format whose answers say what happened to the events has been told nothing by half an answer.
            if encoder.traits.readsAnswers, (200...299).contains(status), answer.extent != .whole {
                return partlyRead(answer)
            }
            if let said = encoder.outcome(ofAnswer: answer, for: header, lines: lines) { return said }
        }
        // Made only for bad answers: most are good.
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

    /// What follows from an answer of success that was read in part. With an item an event, pieces have shorter ones.
    private func partlyRead(_ answer: HTTPAnswer) -> Outcome {
        guard answer.extent == .cutHere else {
            return .retry(
                Failure(
                    kind: .connection, status: answer.status,
                    message: "the answer broke off or did not end: the result is unknown"))
        }
        let failure = answer.failure(
            "its answer was longer than \(answer.body.count) bytes: the agent stopped reading", .protocolViolation)
        return encoder.traits.answerBytes.each > 0 ? .rejected(failure) : .retry(failure)
    }

    /// What the server calls its error, if that is a known word: others may quote an event.
    private func code(in body: [UInt8]) -> String { ErrorWords.found(in: body).map { "; its error is \($0)" } ?? "" }

    private func hint(for status: Int) -> String {
        guard [400, 415, 422].contains(status), encoder.traits.contentType == NDJSONEncoder.usualContentType else {
            return ""
        }
        return "; some receivers want another content_type, such as application/json"
    }

    /// Whether an answer begins as a web page does: no receiver of events acknowledges so.
    static func isWebPage(_ body: [UInt8]) -> Bool {
        let start = body.prefix(512).drop { $0 <= 0x20 || $0 >= 0x80 }
        guard start.first == UInt8(ascii: "<") else { return false }
        let text = String(decoding: start.prefix(32), as: UTF8.self).lowercased()
        return ["<!doctype html", "<html", "<head", "<meta", "<title", "<script", "<body"].contains {
            text.hasPrefix($0)
        }
    }

    /// The beginning of an answer as text, at most 1 KiB: bytes that are not UTF-8 are replaced, none is cut in two, and
    /// control characters, which could play with a terminal, become spaces.
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
