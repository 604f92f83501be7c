internal import Events
internal import Model

/// The members that tags in force redact or hash, regardless of rules: they must be in no data layer and in
/// no quarantined line, for which rules cannot be evaluated (DESIGN.md, "Data at rest").
struct HiddenMembers {
    /// Actions that redact or hash, in the order of containers and tags, with all paths that a member may
    /// have before tags rename it.
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
    /// Whether the agent's memory of an app would contain hidden members: those that identify its sessions
    /// and processes, and the names of its events.
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
        // A member that is hidden only because a pattern searches the whole event may be copied: the pattern
        // searches the copy, too.
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
        let paths =
            switch path.names.first {
            case "properties".bytes, PathSteps.anyName: [path, path.with(Array(path.names.dropFirst()))]
            case WantedMembers.name[0] where path.names.count == 1: [path, path.with(WantedMembers.event)]
            default: [path]
            }
        // A layer has `consent.x` as `x` in `consent`.
        let dotted = "consent.".bytes
        return paths
            + paths.filter { !$0.isDotted && $0.names.first?.starts(with: dotted) == true }.map { path in
                let purpose = Array(path.names[0].dropFirst(dotted.count))
                return path.with(["consent".bytes, purpose] + path.names.dropFirst())
            }
    }
}

/// What the containers in force hide in events of each app.
struct HiddenMembersByApp {
    /// The containers.
    private var containers: [CompiledContainer] = []
    /// Whether any of them hides anything.
    private var hidesAnything = false
    /// Hidden members, by the set of containers that concern an app; computed when first needed.
    private var known: [[Bool]: HiddenMembers] = [:]
    /// Number of changes of the containers; a change means that an app may have other hidden members.
    private(set) var changes = 0

    /// Puts containers in force.
    mutating func use(_ containers: [CompiledContainer]) {
        self.containers = containers
        hidesAnything = containers.contains(where: \.hides)
        known = [:]
        changes += 1
    }

    /// What is hidden in events of an app.
    mutating func members(of app: String) -> HiddenMembers {
        guard hidesAnything else { return HiddenMembers([]) }
        let key = containers.map { $0.concerns(app) }
        if let members = known[key] { return members }
        // There are few sets of containers that concern an app. The bound is for many apps with different
        // sets.
        let made = HiddenMembers(containers.filter { $0.concerns(app) })
        if known.count >= 256 {
            known = [:]
        }
        known[key] = made
        return made
    }
}
