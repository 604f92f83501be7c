internal import Control
internal import Intake
internal import Model

/// The routes for old files, which go through the queue after everything else. The client reads a file and
/// sends it in pieces.
extension ControlRoutes {
    /// `GET /v1/backfill` says where reading of a file continues after an interruption; `POST` takes the next
    /// piece of it.
    mutating func addBackfill(_ backfill: Backfill) {
        add("GET", "/v1/backfill") { request in
            await .of {
                let state = await backfill.state(of: try request.key(), app: request.query["app"])
                return .json([
                    "place": JSONValue(state.place), "piece_bytes": .integer(state.pieceBytes),
                    "max_event_size": .integer(state.maxEventSize),
                    "format": JSONValue(state.format?.rawValue),
                    "encoding": JSONValue(state.encoding?.rawValue),
                ])
            }
        }
        add("POST", "/v1/backfill") { request in
            await .of {
                let result = try await backfill.take(try request.piece())
                return .json([
                    "read": .integer(result.read), "refused": .integer(result.refused),
                    "quarantined": .integer(result.quarantined),
                ])
            }
        }
    }
}

extension ControlRequest {
    /// A required argument of the query. Arguments are in the query because the body is the piece itself.
    private func text(_ name: String, atMost limit: Int = 1024) throws(ControlRefusal) -> String {
        guard let text = query[name], !text.isEmpty, text.utf8.count <= limit else {
            throw ControlRefusal.bad("\(name) must be a text of 1 to \(limit) bytes")
        }
        return text
    }

    /// The file's identity, by which its progress is stored.
    fileprivate func key() throws(ControlRefusal) -> String {
        let key = try text("key", atMost: 256)
        guard key.hasOnlyLettersDigits(and: "") else {
            throw ControlRefusal.bad("key must be letters and digits")
        }
        return key
    }

    /// An offset or a length in a file, from the query.
    private func place(_ name: String) throws(ControlRefusal) -> Int64 {
        guard let number = Int64(try text(name)), (0...ControlRequest.longestFile).contains(number) else {
            throw ControlRefusal.bad("\(name) must be a number from 0 to \(ControlRequest.longestFile)")
        }
        return number
    }

    /// Largest offset or length that is accepted: 4 EiB, half of what a signed 64-bit offset can say. The sum
    /// of two such numbers cannot overflow, which would end the process.
    private static let longestFile: Int64 = 1 << 62

    /// The piece of a file in the request: whole lines or, with `reason`, one line that is no valid event.
    fileprivate func piece() throws(ControlRefusal) -> BackfillPiece {
        let offset = try place("offset")
        let app = try text("app", atMost: 255)
        // An app is a directory of the spool, so its name must be one that a directory there can have.
        guard !app.hasPrefix("."),
            !app.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 < 0x20 || $0 == 0x7F })
        else {
            throw ControlRefusal.bad(
                "app must be the name of an app: no slash, no dot at its beginning, no control character")
        }
        var content = FilePiece(bytes: body, offset: offset, end: try text("end"))
        if let word = query["reason"] {
            guard let reason = QuarantineRecord.Reason(rawValue: word) else {
                let known = QuarantineRecord.Reason.allCases.map(\.rawValue).joined(separator: ", ")
                throw ControlRefusal.bad("reason must be one of \(known)")
            }
            content.problem = .init(reason: reason, detail: try text("detail"), length: try place("length"))
        } else if body.last != UInt8(ascii: "\n") {
            throw ControlRefusal.bad("the body must be lines, each with its line feed")
        }
        return BackfillPiece(
            key: try key(), file: try text("file"), app: app, from: query["from"], content: content)
    }
}
