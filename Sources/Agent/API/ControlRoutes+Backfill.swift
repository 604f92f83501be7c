internal import Control
internal import Intake
internal import Model

/// Old files, which go through the queue after everything else.
extension ControlRoutes {
    mutating func addBackfill(_ backfill: Backfill) {
        add("GET", "/v1/backfill") { request in
            await .of {
                let state = await backfill.state(of: try request.key(), app: request.query["app"])
                return .json([
                    "place": JSONValue(state.place), "piece_bytes": .integer(state.pieceBytes),
                    "max_event_size": .integer(state.maxEventSize), "format": JSONValue(state.format?.rawValue),
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
    /// An argument of the query; the body is the piece.
    private func text(_ name: String, atMost limit: Int = 1024) throws(ControlRefusal) -> String {
        guard let text = query[name], !text.isEmpty, text.utf8.count <= limit else {
            throw ControlRefusal.bad("\(name) must be a text of 1 to \(limit) bytes")
        }
        return text
    }

    fileprivate func key() throws(ControlRefusal) -> String {
        let key = try text("key", atMost: 256)
        guard key.hasOnlyLettersDigits(and: "") else { throw ControlRefusal.bad("key must be letters and digits") }
        return key
    }

    /// A place in a file, or a length of one: so far from the end of the numbers that no sum with it overflows.
    private func place(_ name: String) throws(ControlRefusal) -> Int64 {
        guard let number = Int64(try text(name)), (0...ControlRequest.longestFile).contains(number) else {
            throw ControlRefusal.bad("\(name) must be a number from 0 to \(ControlRequest.longestFile)")
        }
        return number
    }

    /// 4 EiB; no file system has larger files than 8 EiB.
    private static let longestFile: Int64 = 1 << 62

    fileprivate func piece() throws(ControlRefusal) -> BackfillPiece {
        let offset = try place("offset")
        let app = try text("app", atMost: 255)
        guard !app.hasPrefix("."), !app.utf8.contains(where: { $0 == UInt8(ascii: "/") || $0 < 0x20 || $0 == 0x7F })
        else {
            throw ControlRefusal.bad(
                "app must be the name of an app: no slash, no dot at its beginning, no control character")
        }
        var content = FilePiece(bytes: body, offset: offset, end: try text("end"))
        if let word = query["reason"] {
            guard let reason = QuarantineRecord.Reason(rawValue: word) else {
                throw ControlRefusal.bad("no reason \(word)")
            }
            content.problem = .init(reason: reason, detail: try text("detail"), length: try place("length"))
        } else if body.last != UInt8(ascii: "\n") {
            throw ControlRefusal.bad("the body must be lines, each with its line feed")
        }
        return BackfillPiece(key: try key(), file: try text("file"), app: app, from: query["from"], content: content)
    }
}
