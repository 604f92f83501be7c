public import EventLoops
internal import Model

/// The template of an object's key: what a batch is called in a bucket.
///
/// The key is made from facts that are fixed when a batch is formed, never from the time of an attempt: each attempt,
/// in this process or a later one, writes the same object. The ending shows the content's format and is always added:
/// `.jsonl`, `.jsonl.gz` or `.jsonl.zst`.
public struct ObjectKey: Sendable, Equatable {
    /// What a template may name in braces.
    public enum Field: String, Sendable, CaseIterable {
        /// The day on which the oldest event of the batch was accepted, in UTC: `2026-11-22`.
        case date
        /// The hour of that time: `07`.
        case hour
        /// The installation's id.
        case installID = "install_id"
        /// The destination's name.
        case destination
        /// The batch's priority: `normal` or `critical`.
        case priority
        /// The batch's id. It must be in each template: it is what tells objects apart.
        case batchID = "batch_id"
    }

    enum Piece: Sendable, Equatable {
        case text(String)
        case field(Field)
    }

    let pieces: [Piece]
    /// The template as it was given.
    public let template: String

    /// Reads a template.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`: an unknown field, a brace without its other, no `{batch_id}`, a
    ///   leading slash, a control character, or more than 600 bytes.
    public init(_ template: String) throws(OutputError) {
        var pieces: [Piece] = []
        var rest = template[...]
        while let open = rest.firstIndex(where: { $0 == "{" || $0 == "}" }) {
            if open > rest.startIndex { pieces.append(.text(String(rest[..<open]))) }
            guard rest[open] == "{", let close = rest[open...].firstIndex(of: "}") else {
                throw OutputError(
                    .invalidSetting, "key \"\(template)\": a brace without its other; there is no escape for braces")
            }
            let name = String(rest[rest.index(after: open)..<close])
            guard let field = Field(rawValue: name) else {
                let known = Field.allCases.map { "{\($0.rawValue)}" }.joined(separator: ", ")
                throw OutputError(.invalidSetting, "key \"\(template)\": no field {\(name)}; there are \(known)")
            }
            pieces.append(.field(field))
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { pieces.append(.text(String(rest))) }
        try require(
            pieces.contains(.field(.batchID)), "key \"\(template)\" lacks {batch_id}: batches would replace each other")
        try require(
            !template.hasPrefix("/") && template.utf8.count <= 600
                && template.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F },
            "key \"\(template)\": no leading slash, no control characters, 600 bytes at most")
        // A server, or a proxy before it, may resolve these, and the signature is of what was sent.
        let parts = template.split(separator: "/", omittingEmptySubsequences: false)
        try require(
            !parts.contains { $0.isEmpty || $0 == "." || $0 == ".." },
            "key \"\(template)\": an empty part, \".\" or \"..\" between slashes")
        self.pieces = pieces
        self.template = template
    }

    /// The key of a batch's object, percent-encoded as it goes into the address, slashes as they are.
    func path(of batch: BatchHeader, installID: String, compression: Compression) -> String {
        let time = batch.acceptedAt.description
        var key = ""
        for piece in pieces {
            switch piece {
            case .text(let text): key += text
            case .field(.date): key += time.prefix(10)
            case .field(.hour): key += time.dropFirst(11).prefix(2)
            case .field(.installID): key += installID
            case .field(.destination): key += batch.destination.text
            case .field(.priority): key += batch.priority.name
            case .field(.batchID): key += batch.id.description
            }
        }
        key += ObjectKey.ending(compression)
        return key.split(separator: "/", omittingEmptySubsequences: false).map { HTTPAddress.escape(String($0)) }
            .joined(separator: "/")
    }

    private static func ending(_ compression: Compression) -> String {
        switch compression {
        case .none: ".jsonl"
        case .gzip: ".jsonl.gz"
        case .zstd: ".jsonl.zst"
        }
    }
}
