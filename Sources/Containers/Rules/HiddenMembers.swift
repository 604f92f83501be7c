internal import Events
internal import Model

/// The members that tags in force redact or hash, whatever their rules say: they are in no data layer, and in no line that
/// goes to the quarantine.
struct HiddenMembers {
    /// Redacting and hashing, in the order of containers and tags, for members under each name that they may have had.
    let actions: [CompiledTag.Action]
    /// The same members, by their names in a data layer; an empty path is all of it.
    let layerPaths: [[[UInt8]]]

    /// Whether nothing is hidden.
    var isEmpty: Bool { actions.isEmpty }

    init(_ containers: [CompiledContainer]) {
        var actions: [CompiledTag.Action] = []
        var renames: [(from: [[UInt8]], to: [[UInt8]])] = []
        var paths: Set<[[UInt8]]> = []
        for tag in containers.lazy.flatMap(\.tags) {
            switch tag.action {
            case .rename(let names, let name): renames.append((names, names.dropLast() + [Array(name.utf8)]))
            case .redact(let names, let text):
                let all = HiddenMembers.all(names, before: renames)
                paths.formUnion(all)
                actions.append(.redact(names: all, with: text))
            case .hash(let names, let salt):
                let all = HiddenMembers.all(names, before: renames)
                paths.formUnion(all)
                actions.append(.hash(names: all, salt: salt))
            default: break
            }
        }
        self.actions = actions
        layerPaths = paths.map { HiddenMembers.layerPath($0) }.sorted { $0.count < $1.count }
    }

    /// The paths, and those from which earlier tags may have renamed what stands there.
    private static func all(
        _ paths: [[[UInt8]]], before renames: [(from: [[UInt8]], to: [[UInt8]])]
    ) -> [[[UInt8]]] {
        var all = paths
        for rename in renames.reversed() {
            for path in all where path.starts(with: rename.to) {
                let earlier = rename.from + path.dropFirst(rename.to.count)
                if !all.contains(earlier) { all.append(earlier) }
            }
        }
        return all
    }

    private static func layerPath(_ names: [[UInt8]]) -> [[UInt8]] {
        switch names.first {
        case "properties".bytes: Array(names.dropFirst())
        case WantedMembers.name[0] where names.count == 1: WantedMembers.event
        default: names
        }
    }
}

extension RuleEngine {
    /// What may be kept of a line that is no event, or not to be one: as it came while nothing is redacted or hashed. Else
    /// JSON without its hidden members; and of anything else just its shape, letters and digits as `x`.
    ///
    /// What was changed is never as long as it was: so nobody takes it for the whole line.
    public func presentable(_ content: [UInt8], of app: String) -> [UInt8] {
        let hidden = hidden(of: app)
        guard !hidden.isEmpty, !content.isEmpty else { return content }
        var text = content[...]
        while let last = text.last, last <= 0x20 { text.removeLast() }
        while let first = text.first, first <= 0x20 { text.removeFirst() }
        guard text.first == UInt8(ascii: "{"), let value = try? JSONValue(parsing: Array(text)), value.members != nil
        else { return RuleEngine.shape(of: content) }
        let kept = text.withUnsafeBytes { hideAll(hidden, in: $0) }
        return kept.elementsEqual(text) ? content : RuleEngine.otherLength(kept, than: content.count)
    }

    /// A line's shape: what is a letter, a digit or no ASCII is an `x`. Without its last byte: nobody takes it for the line.
    public static func shape(of content: [UInt8]) -> [UInt8] {
        let shape = content.map { byte -> UInt8 in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x80...: UInt8(ascii: "x")
            default: byte
            }
        }
        return Array(shape.dropLast())
    }

    private static func otherLength(_ kept: [UInt8], than count: Int) -> [UInt8] {
        kept.count == count ? kept + [UInt8(ascii: " ")] : kept
    }
}
