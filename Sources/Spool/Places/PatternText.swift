internal import Model

/// A pattern as it is written in the configuration, with `{a,b}` for one text or the other.
struct PatternText {
    /// Why a text is not a pattern.
    struct Mistake: Error, Equatable {
        let message: String
    }

    /// Longest text of a pattern in bytes, and most patterns without braces that a text may expand to.
    static let (longest, most) = (4096, 256)

    /// The patterns of files that a text stands for, without braces.
    static func patterns(_ text: String) throws(Mistake) -> [String] {
        let patterns = try expanded(text)
        for pattern in patterns {
            let parts = pattern.split(separator: "/")
            guard pattern.hasPrefix("/"), !pattern.hasSuffix("/"), !parts.isEmpty, !parts.contains("."),
                !parts.contains("..")
            else { throw Mistake(message: "must be absolute paths of files, with *, ?, [a-z], {a,b} or **") }
            if let part = parts.first(where: { $0 != "**" && String($0).holds("**") }) {
                throw Mistake(
                    message: "must have ** only as a whole part of a path, not in \(part): write **/*.log")
            }
        }
        return patterns
    }

    /// The texts that a shell makes of one with braces: braces without a comma or without an end stand for
    /// themselves.
    static func expanded(_ text: String) throws(Mistake) -> [String] {
        guard text.utf8.count <= longest else {
            throw Mistake(message: "must be patterns of at most \(longest) bytes")
        }
        var open = [Array(text.utf8)]
        var done = [String]()
        while let text = open.popLast() {
            guard let group = try firstGroup(in: text) else {
                done.append(String(decoding: text, as: UTF8.self))
                continue
            }
            let edges = [group.start] + group.commas + [group.end]
            guard edges.count - 1 + open.count + done.count <= most else {
                throw Mistake(message: "must be patterns of which the braces make at most \(most)")
            }
            for (before, after) in zip(edges, edges.dropFirst()).reversed() {
                open.append(
                    Array(text[..<group.start] + text[(before + 1)..<after] + text[(group.end + 1)...]))
            }
        }
        return done
    }

    private struct Group {
        let start: Int
        var commas: [Int] = []
        var end = 0
    }

    /// The braces to expand first: the leftmost ones, without those around which there are others to expand.
    private static func firstGroup(in text: [UInt8]) throws(Mistake) -> Group? {
        var open = [Group]()
        var first = Group?.none
        var index = 0
        while index < text.count {
            switch text[index] {
            case UInt8(ascii: "\\"): index += 1
            case UInt8(ascii: "{"): open.append(Group(start: index))
            case UInt8(ascii: ",") where !open.isEmpty: open[open.count - 1].commas.append(index)
            case UInt8(ascii: "}"):
                guard var group = open.popLast() else { break }
                group.end = index
                let inside = String(decoding: text[(group.start + 1)..<index], as: UTF8.self)
                if group.commas.isEmpty {
                    if inside.holds("..") {
                        throw Mistake(
                            message:
                                "must not have a sequence such as {\(inside)}: write its members, {a,b,c}")
                    }
                } else if first.map({ group.start < $0.start }) ?? true {
                    first = group
                }
            default: break
            }
            index += 1
        }
        return first
    }
}
