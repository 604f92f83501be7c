public import Events
internal import Model

/// The members that tags in force redact or hash whatever rules say: in no data layer, and in no quarantined line.
struct HiddenMembers {
    /// Redacting and hashing, in the order of containers and tags, for members under each name that they may have had.
    let actions: [(paths: [PathSteps], hiding: CompiledTag.Hiding)]
    /// The same members, by their names in a data layer; an empty path is all of it.
    let layerPaths: [PathSteps]
    /// What is taken out of texts, in data layers out of all of them.
    let scrubbers: [Scrubber]

    var isEmpty: Bool { actions.isEmpty }

    /// Which texts may not leave. Patterns that search the whole of a message find in a text what they find in a member.
    let withheldTexts: WithheldTexts
    /// Whether what is remembered of an app has hidden members: what tells its sessions and processes apart, and the names of its events.
    let memory: (sessions: Bool, names: Bool)
    /// Where members are that give the agent nothing: what it copied from them would leave.
    let uncopied: Set<PathSteps>

    init(_ containers: [CompiledContainer]) {
        let lengths = containers.reduce(into: Set()) { $0.formUnion($1.facts.keyLengths) }
        self.init(containers.flatMap { Array($0.tags) }, keyLengths: lengths)
    }

    /// - Parameter keyLengths: to what names of properties may be cut before tags see them.
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
        func hides(_ names: String...) -> Bool { names.contains { name in all.contains { $0.covers([name.bytes]) } } }
        memory = (sessions: hides("session_id", "process", "pid"), names: hides("name"))
        layerPaths = Set(taken.flatMap { HiddenMembers.layerPaths($0) }).sorted { $0.names.count < $1.names.count }
        // What searches all of an event finds it in a copy, too.
        uncopied = all.filter { taken.contains($0) || $0.names != [PathSteps.anyDepth] }
    }

    /// The same path where a name in it may be what a limit leaves of longer ones: those are hidden, too.
    private static func uncut(_ path: PathSteps, _ lengths: Set<Int>) -> PathSteps {
        // A cut is never within a character, so it may leave one unit less.
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

    /// The paths, and the paths that members there may have had before earlier tags renamed them.
    private static func all(
        _ paths: [PathSteps], before renames: [(from: [[UInt8]], to: [[UInt8]])]
    ) -> [PathSteps] {
        var all = paths
        for rename in renames.reversed() {
            for path in all {
                for rest in path.rests(after: rename.to) {
                    let before = rest.with(rename.from + rest.names)
                    if !all.contains(before) { all.append(before) }
                }
            }
        }
        return all
    }

    /// Where a layer may hold it: an event's properties are at its top, those of a push may be named as in an event.
    private static func layerPaths(_ path: PathSteps) -> [PathSteps] {
        switch path.names.first {
        case "properties".bytes, PathSteps.anyName: [path, path.with(Array(path.names.dropFirst()))]
        case WantedMembers.name[0] where path.names.count == 1: [path, path.with(WantedMembers.event)]
        default: [path]
        }
    }
}

extension CompiledContainer {
    /// Whether it hides members by their paths, which are found in JSON objects only.
    public var hidesByPath: Bool { HiddenMembers([self]).withheldTexts == .members }
}

extension RuleEngine {
    /// Which texts of an app may not leave, whether patterns look for parts of texts, and of which members nothing is copied.
    public func hiding(of app: String) -> (withheld: WithheldTexts, isSearched: Bool, paths: HiddenPaths?) {
        let hidden = hidden(of: app)
        let paths: HiddenPaths = (changes, { names in hidden.uncopied.contains { $0.covers(names) } })
        return (hidden.withheldTexts, !hidden.scrubbers.isEmpty, hidden.isEmpty ? nil : paths)
    }

    /// Which of what is remembered of an app is stored nowhere, because tags hide it.
    public func hiddenMemory(of app: String) -> (sessions: Bool, names: Bool) { hidden(of: app).memory }

    /// What may be kept of a line that is not an event, or not to be one: as it came while nothing is redacted or hashed. Else
    /// JSON without its hidden members; and of anything else just its shape, letters and digits as `x`.
    ///
    /// What was changed is never as long as it was: so nobody takes it for the whole line.
    ///
    /// - Parameter isText: whether members are looked for in vain, though it may be JSON: a text is in it.
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

    /// A line's shape: what is a letter, a digit or no ASCII is an `x`. Without its last byte: nobody takes it for the line.
    public static func shape(of content: [UInt8]) -> [UInt8] {
        content.dropLast().map { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x80...: UInt8(ascii: "x")
            default: byte
            }
        }
    }
}
