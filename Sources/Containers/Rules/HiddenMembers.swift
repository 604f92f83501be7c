public import Events
internal import Model

/// The members that tags in force redact or hash, regardless of rules: they must be in no data layer and in
/// no quarantined line, for which rules cannot be evaluated (DESIGN.md, "Data at rest").
struct HiddenMembers {
    /// Redacting and hashing, in the order of containers and tags, with all paths at which a member may be
    /// before tags rename it.
    let actions: [(paths: [PathSteps], hiding: CompiledTag.Hiding)]
    /// Paths of the same members in a data layer; an empty path is the whole layer.
    let layerPaths: [PathSteps]
    /// Patterns that are removed from texts, and in data layers from all texts.
    let scrubbers: [Scrubber]

    /// Whether no tag hides anything.
    var isEmpty: Bool { actions.isEmpty }

    /// Which texts (lines that are not JSON) must not be sent. A pattern that searches a whole `message`
    /// finds the same in a text, so if all tags use such patterns, only pieces of lines are withheld.
    let withheldTexts: WithheldTexts
    /// Whether the agent's memory of an app would have hidden members: those that tell its sessions and
    /// processes apart, and the names of its events.
    let memory: (sessions: Bool, names: Bool)
    /// Paths of members from which the agent copies nothing: the copy would be sent.
    let uncopied: Set<PathSteps>

    /// The hidden members of some containers.
    init(_ containers: [CompiledContainer]) {
        let lengths = containers.reduce(into: Set()) { $0.formUnion($1.facts.keyLengths) }
        self.init(containers.flatMap { Array($0.tags) }, keyLengths: lengths)
    }

    /// The hidden members of some tags.
    ///
    /// - Parameter keyLengths: lengths to which names of properties may have been cut before tags see them.
    init(_ tags: [CompiledTag], keyLengths: Set<Int>) {
        var actions: [(paths: [PathSteps], hiding: CompiledTag.Hiding)] = []
        var renames: [(from: [[UInt8]], to: [[UInt8]])] = []
        for tag in tags {
            switch tag.action {
            case .rename(let names, let name): renames.append((names, names.dropLast() + [Array(name.utf8)]))
            case .hide(let paths, let hiding):
                let all = HiddenMembers.all(paths, before: renames)
                actions.append((all.map { HiddenMembers.uncut($0, keyLengths) }, hiding))
            default: break
            }
        }
        self.actions = actions
        let findsInText = actions.allSatisfy { paths, hiding in
            hiding.scrubber != nil && paths.contains { $0.covers(["message".bytes]) }
        }
        withheldTexts = actions.isEmpty ? .none : findsInText ? .pieces : .members
        scrubbers = actions.compactMap(\.hiding.scrubber)
        let taken = Set(actions.filter { $0.hiding.scrubber == nil }.flatMap(\.paths))
        let all = taken.union(actions.flatMap(\.paths))
        func hides(_ names: String...) -> Bool {
            names.contains { name in all.contains { $0.covers([name.bytes]) } }
        }
        memory = (sessions: hides("session_id", "process", "pid"), names: hides("name"))
        layerPaths = Set(taken.flatMap { HiddenMembers.layerPaths($0) }).sorted {
            $0.names.count < $1.names.count
        }
        // A pattern that searches the whole event also finds its match in the copy.
        uncopied = all.filter { taken.contains($0) || $0.names != [PathSteps.anyDepth] }
    }

    /// A path whose names also match names that a limit has cut to them: what is left of a longer name is
    /// hidden too.
    private static func uncut(_ path: PathSteps, _ lengths: Set<Int>) -> PathSteps {
        // A cut is never inside a character, so it may leave one unit less.
        let lengths = lengths.union(lengths.map { $0 - 1 })
        let names = path.names.indices.map { end in
            let isCut = ((path.isDotted ? 0 : end)...end).contains { start in
                let name = Array(path.names[start...end].joined(separator: [PathSteps.dot]))
                return PathSteps.mayBeProperty(start, of: path.names)
                    && lengths.contains(String(decoding: name, as: UTF8.self).utf16.count)
            }
            let name = path.names[end]
            return isCut && name.last ?? 0 < 0xFD ? name + [PathSteps.anyEnd] : name
        }
        return path.with(names)
    }

    /// The paths, and the paths that the members there may have had before earlier tags renamed them.
    private static func all(
        _ paths: [PathSteps], before renames: [(from: [[UInt8]], to: [[UInt8]])]
    ) -> [PathSteps] {
        var all = paths
        for rename in renames.reversed() {
            for path in all {
                for rest in path.rests(after: rename.to) {
                    let before = rest.with(rename.from + rest.names)
                    if !all.contains(before) {
                        all.append(before)
                    }
                }
            }
        }
        return all
    }

    /// Paths in a data layer: an event's properties are at its top, and a push may have the same names as an
    /// event.
    private static func layerPaths(_ path: PathSteps) -> [PathSteps] {
        switch path.names.first {
        case "properties".bytes, PathSteps.anyName: [path, path.with(Array(path.names.dropFirst()))]
        case WantedMembers.name[0] where path.names.count == 1: [path, path.with(WantedMembers.event)]
        default: [path]
        }
    }
}

extension CompiledContainer {
    /// Whether the container hides members by paths, which can be found in JSON objects only.
    public var hidesByPath: Bool { HiddenMembers([self]).withheldTexts == .members }
}

extension RuleEngine {
    /// What is hidden of an app: which texts must not be sent, whether patterns search texts, and from which
    /// members nothing is copied.
    public func hiding(of app: String) -> (withheld: WithheldTexts, isSearched: Bool, paths: HiddenPaths?) {
        let hidden = hidden(of: app)
        let paths: HiddenPaths = (changes, { names in hidden.uncopied.contains { $0.covers(names) } })
        return (hidden.withheldTexts, !hidden.scrubbers.isEmpty, hidden.isEmpty ? nil : paths)
    }

    /// Which parts of the agent's memory of an app must not be stored, because tags hide them.
    public func hiddenMemory(of app: String) -> (sessions: Bool, names: Bool) { hidden(of: app).memory }

    /// What may be kept of a line that is not an event: the line itself if nothing is redacted or hashed;
    /// otherwise JSON without its hidden members; of other lines only the shape.
    ///
    /// What was changed never has the length of the line, so that it cannot be mistaken for the whole line
    /// and read again.
    ///
    /// - Parameter isText: whether the line contains text in which members cannot be found, although it may
    ///   be JSON.
    public func presentable(_ content: [UInt8], of app: String, isText: Bool = false) -> [UInt8] {
        let hidden = hidden(of: app)
        guard !hidden.isEmpty, !content.isEmpty else { return content }
        guard !isText else { return RuleEngine.shape(of: content) }
        var text = content[...]
        while let last = text.last, last <= 0x20 { text.removeLast() }
        while let first = text.first, first <= 0x20 { text.removeFirst() }
        guard text.first == UInt8(ascii: "{"), (try? JSONValue(parsing: Array(text))) != nil,
            let kept = text.withUnsafeBytes({ hideAll(hidden, in: $0) })
        else { return RuleEngine.shape(of: content) }
        guard !kept.elementsEqual(text) else { return content }
        return kept.count == content.count ? kept + [UInt8(ascii: " ")] : kept
    }

    /// The shape of a line: letters, digits and bytes beyond ASCII become `x`. The last byte is dropped, so
    /// that the result cannot be mistaken for the line.
    public static func shape(of content: [UInt8]) -> [UInt8] {
        content.dropLast().map { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x80...: UInt8(ascii: "x")
            default: byte
            }
        }
    }
}
