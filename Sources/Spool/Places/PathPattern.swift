/// A pattern of paths: a pattern for each name, and `**` for any number of directories, none included.
///
/// `**` at the end stands for all files below. A hidden directory is entered only if a part of the pattern
/// names it.
struct PathPattern: Sendable, Hashable {
    /// A part of a pattern, between two slashes.
    enum Part: Sendable, Hashable {
        case name(NamePattern)
        case anyDirectories

        var text: String {
            switch self {
            case .name(let pattern): pattern.text
            case .anyDirectories: "**"
            }
        }

        /// The name, if the part matches only one.
        var literal: [UInt8]? { if case .name(let pattern) = self { pattern.literal } else { nil } }
    }

    /// The last part is always that of a name.
    let parts: [Part]
    /// Whether wildcards match hidden names too.
    let isForHidden: Bool

    init(_ parts: [Part], isForHidden: Bool = false) {
        precondition(parts.last != .anyDirectories)
        self.parts = parts
        self.isForHidden = isForHidden
    }

    /// The parts of a path, which is not empty.
    init(path: String, isForHidden: Bool = false) {
        var parts: [Part] = []
        for part in path.split(separator: "/") {
            guard part == "**" else {
                parts.append(.name(NamePattern(String(part))))
                continue
            }
            if parts.last != .anyDirectories {
                parts.append(.anyDirectories)
            }
        }
        if parts.last == .anyDirectories {
            parts.append(.name(NamePattern("*")))
        }
        self.init(parts, isForHidden: isForHidden)
    }

    var text: String { parts.map(\.text).joined(separator: "/") }

    /// The pattern of the last name.
    var last: NamePattern {
        guard case .name(let pattern)? = parts.last else {
            preconditionFailure("\(text) ends with a directory")
        }
        return pattern
    }

    /// The parts of a pattern that a path may have reached; several, because `**` may stand for any number of
    /// directories.
    struct Progress: Sendable, Hashable {
        fileprivate var reached: [Bool]
        /// Whether no path with this beginning can fit.
        var isOver: Bool { !reached.contains(true) }
        /// Whether a longer path may fit.
        var mayGoOn: Bool { reached.dropLast().contains(true) }
        var isWhole: Bool { reached.last == true }
    }

    var start: Progress {
        var start = Progress(reached: Array(repeating: false, count: parts.count + 1))
        start.reached[0] = true
        passDirectories(&start)
        return start
    }

    /// `**` may also match no directory.
    private func passDirectories(_ progress: inout Progress) {
        for (index, part) in parts.enumerated() where part == .anyDirectories && progress.reached[index] {
            progress.reached[index + 1] = true
        }
    }

    func advanced(_ progress: Progress, over name: [UInt8]) -> Progress {
        let isHidden = name.first == UInt8(ascii: ".") && !isForHidden
        return advanced(progress) { part in
            switch part {
            case .anyDirectories: !isHidden
            case .name(let pattern): pattern.fits(name, hidden: isForHidden)
            }
        }
    }

    func advanced(_ progress: Progress, over path: some Sequence<[UInt8]>) -> Progress {
        path.reduce(progress) { $0.isOver ? $0 : advanced($0, over: $1) }
    }

    private func advanced(_ progress: Progress, where fits: (Part) -> Bool) -> Progress {
        var next = Progress(reached: Array(repeating: false, count: parts.count + 1))
        for (index, part) in parts.enumerated() where progress.reached[index] && fits(part) {
            next.reached[part == .anyDirectories ? index : index + 1] = true
        }
        passDirectories(&next)
        return next
    }

    /// Whether all files below a directory fit, whose path was passed.
    func isForAllBelow(_ progress: Progress) -> Bool {
        parts.count > 1 && parts[parts.count - 2] == .anyDirectories && last.isAny
            && progress.reached[parts.count - 2]
    }

    /// Whether every path that fits another pattern fits this one too. Only simple cases are recognised;
    /// false in doubt.
    func covers(_ other: PathPattern) -> Bool {
        other.parts.reduce(start) { progress, otherPart in
            advanced(progress) { part in
                switch (part, otherPart) {
                case (.anyDirectories, _): true
                case (.name(let pattern), .name(let other)): pattern.covers(other)
                case (.name, .anyDirectories): false
                }
            }
        }.isWhole
    }

    /// Whether a path can fit both, before or after rotation.
    func meets(_ other: PathPattern) -> Bool {
        let mine = parts
        let theirs = other.parts
        // Pairs of parts that a path can reach in both.
        var reached = Array(repeating: Array(repeating: false, count: theirs.count), count: mine.count)
        reached[0][0] = true
        for (index, part) in mine.enumerated() {
            for (otherIndex, otherPart) in theirs.enumerated() where reached[index][otherIndex] {
                if part == .anyDirectories {
                    reached[index + 1][otherIndex] = true
                }
                if otherPart == .anyDirectories {
                    reached[index][otherIndex + 1] = true
                }
                switch (part, otherPart) {
                case (.name(let pattern), .name(let other)):
                    let isLast = (index == mine.count - 1, otherIndex == theirs.count - 1)
                    if isLast == (true, true), pattern.meetsAsLast(other) { return true }
                    guard isLast == (false, false), pattern.overlaps(other) else { continue }
                    reached[index + 1][otherIndex + 1] = true
                case (.name(let pattern), .anyDirectories) where index < mine.count - 1:
                    if pattern.overlaps(NamePattern.any) {
                        reached[index + 1][otherIndex] = true
                    }
                case (.anyDirectories, .name(let pattern)) where otherIndex < theirs.count - 1:
                    if pattern.overlaps(NamePattern.any) {
                        reached[index][otherIndex + 1] = true
                    }
                default: continue
                }
            }
        }
        return false
    }
}

extension NamePattern {
    fileprivate static let any = NamePattern("*")

    /// Whether one file can match both patterns, with its name or with the name that it had before rotation
    /// (`app.log.1` was `app.log`).
    fileprivate func meetsAsLast(_ other: NamePattern) -> Bool {
        withStem.contains { mine in other.withStem.contains { mine.overlaps($0) } }
    }

    /// This pattern, and the pattern without a rotation's suffix if it has one.
    private var withStem: [NamePattern] {
        let stem = FileName(text).anyStem.text
        return stem == text ? [self] : [self, NamePattern(stem)]
    }
}
