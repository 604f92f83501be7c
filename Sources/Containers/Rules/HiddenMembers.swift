public import Events
internal import Model

/// The members that tags in force redact or hash, whatever their rules say: they are in no data layer, and in no line that
/// goes to the quarantine.
struct HiddenMembers {
    /// Redacting and hashing, in the order of containers and tags, for members under each name that they may have had.
    let actions: [CompiledTag.Action]
    /// The same members, by their names in a data layer; an empty path is all of it.
    let layerPaths: [[[UInt8]]]
    /// What is taken out of texts, in data layers out of all of them.
    let scrubbers: [Scrubber]

    var isEmpty: Bool { actions.isEmpty }

    /// Which texts may not leave. Patterns that search the whole of a message find in a text what they find in a member.
    let withheldTexts: WithheldTexts
    /// Whether what is remembered of an app has hidden members: what tells its sessions and processes apart, and the names of its events.
    let memory: (sessions: Bool, names: Bool)

    init(_ containers: [CompiledContainer]) {
        let lengths = containers.reduce(into: Set()) { $0.formUnion($1.facts.keyLengths) }
        self.init(containers.flatMap { Array($0.tags) }, keyLengths: lengths)
    }

    /// - Parameter keyLengths: to what names of properties may be cut before tags see them.
    init(_ tags: [CompiledTag], keyLengths: Set<Int>) {
        func all(_ names: [[[UInt8]]], _ renames: [(from: [[UInt8]], to: [[UInt8]])]) -> [[[UInt8]]] {
            HiddenMembers.all(names, before: renames).map { HiddenMembers.uncut($0, keyLengths) }
        }
        var scrubbers: [Scrubber] = []
        var actions: [CompiledTag.Action] = []
        var renames: [(from: [[UInt8]], to: [[UInt8]])] = []
        var paths: Set<[[UInt8]]> = []
        var searched: Set<[[UInt8]]> = []
        for tag in tags {
            switch tag.action {
            case .rename(let names, let name): renames.append((names, names.dropLast() + [Array(name.utf8)]))
            case .redact(let names, let text):
                let all = all(names, renames)
                paths.formUnion(all)
                actions.append(.redact(names: all, with: text))
            case .hash(let names, let hashing):
                let all = all(names, renames)
                paths.formUnion(all)
                actions.append(.hash(names: all, hashing))
            case .scrub(let names, let scrubber):
                let all = all(names, renames)
                searched.formUnion(all)
                actions.append(.scrub(names: all, scrubber))
                scrubbers.append(scrubber)
            default: break
            }
        }
        self.actions = actions
        let findsInText = actions.allSatisfy { action in
            guard case .scrub(let paths, _) = action else { return false }
            return paths.contains { PathSteps.rests(of: $0, after: ["message".bytes]).contains([]) }
        }
        withheldTexts = actions.isEmpty ? .none : findsInText ? .pieces : .members
        self.scrubbers = scrubbers
        func hides(_ names: String...) -> Bool {
            names.contains { name in
                paths.union(searched).contains { PathSteps.rests(of: $0, after: [name.bytes]).contains([]) }
            }
        }
        memory = (sessions: hides("session_id", "process", "pid"), names: hides("name"))
        layerPaths = Set(paths.flatMap { HiddenMembers.layerPaths($0) }).sorted { $0.count < $1.count }
    }

    /// The same path where a name in it may be what a limit leaves of longer ones: those are hidden, too.
    private static func uncut(_ names: [[UInt8]], _ lengths: Set<Int>) -> [[UInt8]] {
        names.indices.map { place in
            guard PathSteps.mayBeProperty(place, of: names) else { return names[place] }
            let length = String(decoding: names[place], as: UTF8.self).utf16.count
            // A cut is never within a character, so it may leave one unit less.
            guard lengths.contains(length) || lengths.contains(length + 1) else { return names[place] }
            return names[place] + [RawJSON.anyEnd]
        }
    }

    /// The paths, and the paths that members there may have had before earlier tags renamed them.
    private static func all(
        _ paths: [[[UInt8]]], before renames: [(from: [[UInt8]], to: [[UInt8]])]
    ) -> [[[UInt8]]] {
        var all = paths
        for rename in renames.reversed() {
            for path in all {
                for rest in PathSteps.rests(of: path, after: rename.to) where !all.contains(rename.from + rest) {
                    all.append(rename.from + rest)
                }
            }
        }
        return all
    }

    /// Where a layer may hold it: an event's properties are at its top, those of a push may be named as in an event.
    private static func layerPaths(_ names: [[UInt8]]) -> [[[UInt8]]] {
        switch names.first {
        case "properties".bytes, PathSteps.anyName: [names, Array(names.dropFirst())]
        case WantedMembers.name[0] where names.count == 1: [names, WantedMembers.event]
        default: [names]
        }
    }
}

extension CompiledContainer {
    /// Whether it hides members by their paths, which are found in JSON objects only.
    public var hidesByPath: Bool { HiddenMembers([self]).withheldTexts == .members }
}

extension RuleEngine {
    /// Which texts of an app may not leave, and whether patterns look for parts of texts.
    public func hidingTexts(of app: String) -> (withheld: WithheldTexts, isSearched: Bool) {
        let hidden = hidden(of: app)
        return (hidden.withheldTexts, !hidden.scrubbers.isEmpty)
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
