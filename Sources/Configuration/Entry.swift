/// A row of the table of settings: one key of a section, with everything that can be said about it.
///
/// The default is not in the row: it is what the property holds in a new section.
///
/// What makes, reads and lists rows is not hot. `@_semantics("optimize.sil.specialize.generic.never")` makes
/// the compiler write it once. Otherwise it is written for each section and each type of value, 0.8 MB of
/// the program.
struct Entry<Owner: Sendable>: Sendable {
    /// The key.
    private(set) var name: String
    /// The destinations that the setting is for; without meaning in other sections.
    var use = DestinationUse()
    /// What help, the manual and the shipped file say. Made when it is asked for: a start needs none of it.
    private(set) var describe: @Sendable () -> EntryDescription
    /// Reads a node into its property; mistakes go to the context. The text is the setting's path.
    private(set) var read: @Sendable (TOMLNode, String, inout Owner, inout ReadContext) -> Void
    /// The values in force, for printing and comparing.
    private(set) var list: @Sendable (Owner, SectionPlace) -> [EffectiveSetting]
    /// Sets what only a restart can change to its value at the start.
    let keep: @Sendable (_ started: Owner, _ owner: inout Owner) -> Void
    /// For a key of older configurations: the key that is written instead, as a path in this section
    /// (`limits.max`). Such a row is read and nothing else: help and `check --print` have the new key.
    var renamed: (@Sendable (Owner) -> String)?

    var description: EntryDescription { describe() }

    /// The same row for an owner that holds this row's owner, as `s3` holds AWS settings.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    func inside<Holder>(_ place: any WritableKeyPath<Holder, Owner> & Sendable) -> Entry<Holder> {
        var row = Entry<Holder>(
            name: name, use: use, describe: describe, read: { read($0, $1, &$2[keyPath: place], &$3) },
            list: { list($0[keyPath: place], $1) },
            keep: { keep($0[keyPath: place], &$1[keyPath: place]) })
        if let renamed {
            row.renamed = { renamed($0[keyPath: place]) }
        }
        return row
    }

    /// The same row, which help and the reference leave out because another section lists it.
    func listedElsewhere() -> Entry {
        var row = self
        row.describe = { [describe] in
            switch describe() {
            case .setting(var setting):
                setting.isListedElsewhere = true
                return .setting(setting)
            case .section(var section):
                section.isListedElsewhere = true
                return .section(section)
            }
        }
        return row
    }

    /// The same row for what nobody has to set: read as before, but left out by help and the reference;
    /// `check` says why, or what to write instead.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    func retired(_ why: String) -> Entry {
        var row = listedElsewhere()
        row.read = { [read] node, path, owner, context in
            read(node, path, &owner, &context)
            context.add(.retired, "\(path) is seldom needed: \(why)", at: node.position, severity: .note)
        }
        row.list = { [list] owner, place in
            list(owner, place).map { setting in
                var setting = setting
                setting.isRetired = true
                return setting
            }
        }
        return row
    }

    /// The same row under another key. Only for old keys: the description keeps the name.
    func called(_ name: String) -> Entry {
        var row = self
        row.name = name
        return row
    }

    /// The same row, but another one reads the value if the owner is such that the key means another setting.
    func unless(_ isOther: @escaping @Sendable (Owner) -> Bool, _ other: Entry) -> Entry {
        var row = self
        row.read = { [read] node, path, owner, context in
            (isOther(owner) ? other.read : read)(node, path, &owner, &context)
        }
        return row
    }

    /// This row as the row of an old key, which is read as before but no longer documented.
    ///
    /// - Parameter now: the new key's line for the owner's values; `check` prints it.
    func renamed(to now: @escaping @Sendable (Owner) -> String) -> Entry {
        var row = self
        row.renamed = now
        return row
    }

    /// This row as the row of an old key whose new line does not depend on values.
    func renamed(to now: String) -> Entry { renamed { _ in now } }
}

/// What a key is, for help, the shipped file and the manual.
package indirect enum EntryDescription: Sendable {
    // Either a setting, or a section with further keys.
    case setting(SettingDescription)
    case section(SectionDescription)

    /// The key.
    package var name: String {
        switch self {
        case .setting(let setting): setting.name
        case .section(let section): section.name
        }
    }
}

/// A setting, for help and manuals.
package struct SettingDescription: Sendable {
    /// The key.
    package let name: String
    /// Kind of its value: `duration`.
    package let type: String
    /// The allowed values: `1s to 1d`; empty if the kind says it all.
    package let range: String
    /// The default; nil if the setting has none.
    package let defaultValue: SettingValue?
    /// A value to show if there is no default.
    package let example: String?
    /// What the setting is for and why one would change it, in one line.
    package let why: String
    /// Whether a reload cannot apply it.
    package let needsRestart: Bool
    /// The names of the two values of a pair, the one that may be written alone first; empty for others.
    var halves: [String] = []
    /// Whether another section lists it, as this one's text says.
    package fileprivate(set) var isListedElsewhere = false
}

/// A section, for help and manuals.
package struct SectionDescription: Sendable {
    /// How often the section may occur.
    package enum Kind: Sendable, Equatable {
        /// Once: `[queue]`.
        case once
        /// Any number of times: `[[destination]]`, distinguished by the value of `key`.
        case list(key: String)
        /// Once for each name: `[apps.NAME]`.
        case named
    }

    /// Name of the section.
    package let name: String
    /// How often it may occur.
    package let kind: Kind
    /// The purpose, in one line.
    package let why: String
    /// The section's keys, in order.
    package let entries: [EntryDescription]
    /// Keys of older configurations, which only reading knows, with the keys that are written instead.
    var oldKeys: [(name: String, now: String)] = []
    /// The section that lists the same keys: `[limits]` for `[apps.NAME.limits]`.
    var sameKeysAs: String?
    /// Whether no help lists the section.
    fileprivate(set) var isListedElsewhere = false

    /// The keys that help, the manual and the reference list: those that no other section lists.
    package var listed: [EntryDescription] {
        if sameKeysAs != nil { return [] }
        return entries.filter { entry in
            switch entry {
            case .setting(let setting): !setting.isListedElsewhere
            case .section(let section): !section.isListedElsewhere
            }
        }
    }

    /// What the section is for, and where its keys are listed if that is in another section.
    package var explanation: String {
        sameKeysAs.map { "\(why) Its keys are those of \($0)." } ?? why
    }

    /// The heading in TOML: `[queue]`, `[[destination]]`, `[apps.NAME]`.
    func heading(prefix: String = "") -> String {
        switch kind {
        case .once: "[\(prefix)\(name)]"
        case .list: "[[\(prefix)\(name)]]"
        case .named: "[\(prefix)\(name).NAME]"
        }
    }
}

/// A section with its place in a configuration.
public struct SectionPlace: Sendable, Hashable {
    /// Path with the names of elements: `queue`, `destination.main.tls`; empty for the root.
    public let path: String
    /// The heading in TOML: `[queue]`, `[[destination]]`, `[destination.tls]`.
    public var heading: String { isList ? "[[\(dotted)]]" : "[\(dotted)]" }

    /// Path without the names of elements, as headings have it.
    let dotted: String
    /// Whether the section is an element of a list.
    let isList: Bool

    /// The root of the configuration.
    static let root = SectionPlace(path: "", dotted: "", isList: false)

    /// A section in this one.
    func section(_ name: String) -> SectionPlace {
        SectionPlace(path: joined(path, name), dotted: joined(dotted, name), isList: false)
    }

    /// An element of a list in this section.
    func element(_ element: String, of name: String) -> SectionPlace {
        SectionPlace(path: joined(path, "\(name).\(element)"), dotted: joined(dotted, name), isList: true)
    }

    /// Path of a setting in this section.
    func setting(_ name: String) -> String { joined(path, name) }

    /// A path with one more name.
    private func joined(_ path: String, _ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }
}

/// A setting with its value in force.
public struct EffectiveSetting: Sendable, Equatable {
    /// The key.
    package let name: String
    /// Path with the names of sections and elements: `queue.max_size`, `destination.main.url`.
    public var path: String { section.setting(name) }
    /// The section that it is in.
    package let section: SectionPlace
    /// The value in force; nil if it is not set and has no default.
    package let value: SettingValue?
    /// Whether a reload cannot apply it.
    public let needsRestart: Bool
    /// The destinations that the setting is for, and whether it can change their answers; without meaning in
    /// other sections.
    public internal(set) var use = DestinationUse()
    /// Whether the key is one that nobody has to set: reading it gives a note.
    package internal(set) var isRetired = false
    /// Whether the setting is for another type or format than its destination has.
    package internal(set) var isForeign = false
}

/// State while a configuration is read: problems, and where settings were set.
struct ReadContext {
    /// The lines of the files, for problems.
    var sources = SourceLines()
    /// The problems so far.
    var problems: [Problem] = []
    /// Where each setting and each section was set, by path.
    var origins: [String: Origin] = [:]
    /// Origin of values without a position, which come from a container or a command.
    var origin = Origin.standard

    /// Most problems of each severity that are listed. Each costs a search for what was meant, and more are
    /// not read anyway.
    static let mostListed = 100

    /// Problems beyond those that are listed, by severity: their number, and the first one's code.
    var unlisted: [Problem.Severity: (count: Int, code: Problem.Code, position: Position?)] = [:]
    /// Number of listed problems.
    var listed: [Problem.Severity: Int] = [:]

    /// Adds a problem with its source line.
    mutating func add(
        _ code: Problem.Code, _ message: @autoclosure () -> String, at position: Position?,
        severity: Problem.Severity = .error
    ) {
        guard listed[severity, default: 0] < ReadContext.mostListed else {
            unlisted[severity, default: (0, code, position)].count += 1
            return
        }
        listed[severity, default: 0] += 1
        problems.append(
            Problem(code, message(), at: position, sourceLine: sources[position], severity: severity))
    }

    /// Adds a mistake at the line of its setting, or of the section that it is in.
    mutating func add(_ mistake: SettingMistake) {
        var holder = Substring(mistake.path)
        while position(of: String(holder)) == nil, let dot = holder.lastIndex(of: ".") {
            holder = holder[..<dot]
        }
        var place = position(of: String(holder))
        var message = mistake.message
        if let column = mistake.column {
            if let found = place.flatMap({ sources.place(ofColumn: column, in: $0) }) {
                place = found
            } else {
                message = "column \(column): \(message)"
            }
        }
        add(
            .outOfRange, "\(mistake.path): \(message)", at: place,
            severity: mistake.isWarning ? .warning : .error)
    }

    /// Adds the problem with a value. The value of a variable may be a secret in the wrong place, so it is
    /// not quoted.
    mutating func refuse(
        _ node: TOMLNode, _ path: String, _ problem: Problem, _ allowed: @autoclosure () -> String
    ) {
        let message =
            node.isFromEnvironment
            ? "is invalid (its value comes from the environment and is not shown); must be \(allowed())"
            : problem.message
        add(problem.code, "\(path) \(message)", at: problem.position ?? node.position)
    }

    /// Adds a problem that says how many are not listed.
    mutating func close() {
        for (severity, rest) in unlisted {
            let what = severity == .error ? "mistake" : severity.rawValue
            problems.append(
                Problem(
                    rest.code,
                    "and \(rest.count) more \(what)\(rest.count == 1 ? "" : "s") from here on, not listed",
                    at: rest.position, severity: severity))
        }
    }

    /// A setting was set under an old key: it counts as set under the new one, a path in the section.
    mutating func moveOrigin(of key: String, to now: String, path: String) {
        let prefix = path.isEmpty ? "" : "\(path)."
        origins[prefix + now] = origins.removeValue(forKey: prefix + key)
    }

    /// Notes how the line of an old key is written now.
    ///
    /// Of a pair only the values that are set are in the new line: with the other one's default it would mean
    /// more than the old line, for example for destinations whose type has another default.
    ///
    /// - Parameters:
    ///   - now: the new key, as a path in the section.
    ///   - whole: the new keys of all old ones: of a pair in it the first value is set.
    ///   - settings: the section's values in force.
    ///   - path: the section's path.
    mutating func noteRenaming(
        of member: TOMLNode.Member, to now: String, whole: Set<String>, beside members: [TOMLNode.Member],
        in settings: [EffectiveSetting], path: String
    ) {
        let prefix = path.isEmpty ? "" : "\(path)."
        // The new key may be a table of which the old one was a part: `name_length.beyond`.
        let table = now.lastIndex(of: ".").map { String(now[..<$0]) }
        guard
            let setting = settings.first(where: { $0.path == now })
                ?? settings.first(where: { $0.path == table })
        else { return }
        origins[prefix + setting.path] = origins[prefix + setting.path] ?? origins[prefix + now]
        guard var value = setting.value else { return }
        if setting.path != now, case .table(let halves) = value {
            let set = halves.filter {
                origins["\(prefix)\(setting.path).\($0.name)"] != nil
                    || $0 == halves.first && whole.contains(setting.path)
            }
            // `batch_on_size` is now a value of the first half, and neither half's name.
            let isNeither = !halves.contains { now == "\(setting.path).\($0.name)" }
            value = .table(isNeither && set.first != halves.first ? halves.prefix(1) + set : set)
        }
        // The value of a variable may be a secret in the wrong place.
        let text = member.node.isFromEnvironment ? "…" : value.toml
        // `journal = true` and `journal.units = …` cannot be in one table.
        let switched = members.first { other in
            guard case .boolean = other.node.value else { return false }
            return setting.path.hasPrefix("\(other.key).")
        }
        let instead = switched.map { "; it stands for \($0.key) = true, too" } ?? ""
        add(
            .renamed, "\(prefix)\(member.key) is now written: \(setting.path) = \(text)\(instead)",
            at: member.keyPosition, severity: .note)
    }

    /// Notes where a setting or section was set.
    mutating func note(_ path: String, at position: Position?) {
        origins[path] = position.map { .file($0) } ?? origin
    }

    /// Position of a setting or section; nil if no file set it.
    func position(of path: String) -> Position? {
        guard case .file(let position) = origins[path] else { return nil }
        return position
    }
}

/// The struct of a section. Its properties hold the values, and a new one holds the defaults. What a setting
/// means is said in its row.
protocol SettingsSection: Sendable, Equatable {
    /// A section with the defaults.
    init()
    /// The rows, in the order of the shipped file.
    static var entries: [Entry<Self>] { get }
    /// Keys that decide what the others are: read before them, in this order, wherever they are written.
    static var decidingKeys: [String] { get }
}

extension SettingsSection {
    /// Most sections are what they are.
    static var decidingKeys: [String] { [] }

    /// The description of this section.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    static func described(
        _ name: String, _ kind: SectionDescription.Kind, _ why: String,
        sameKeysAs: String? = nil
    ) -> EntryDescription {
        var rows: [EntryDescription] = []
        var oldKeys: [(name: String, now: String)] = []
        for row in entries {
            if let now = row.renamed {
                oldKeys.append((row.name, now(Self())))
            } else {
                rows.append(row.description)
            }
        }
        return .section(
            SectionDescription(
                name: name, kind: kind, why: why, entries: rows, oldKeys: oldKeys, sameKeysAs: sameKeysAs))
    }

    /// Reads the members of a table. An unknown key is a problem, with the nearest known key.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    mutating func read(_ node: TOMLNode, path: String, context: inout ReadContext) {
        let rows = Self.entries
        let keys = rows.map { SectionMembers.Row(name: $0.name, isOld: $0.renamed != nil) }
        guard var members = SectionMembers(node, path, keys, first: Self.decidingKeys, &context) else {
            return
        }
        for member in members.current {
            if let row = member.row {
                let problems = context.problems.count
                rows[row].read(member.node, member.path, &self, &context)
                members.judge(member, after: problems, context)
            } else {
                members.refuse(member, &context)
            }
        }
        // Old keys are read last, because their meaning may depend on other keys, and one new line may
        // replace several of them.
        var renamed: [(member: Int, now: String)] = []
        for member in members.old {
            guard let row = member.row else { continue }
            let problems = context.problems.count
            rows[row].read(member.node, member.path, &self, &context)
            // A value that was refused has no new line.
            guard context.problems.count == problems, let now = rows[row].renamed?(self) else { continue }
            renamed.append((member.index, now))
        }
        if !renamed.isEmpty {
            members.note(renamed, in: effective(in: .root), &context)
        }
    }

    /// This section, but with the values of `started` for settings that a reload cannot change.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    func keeping(_ started: Self) -> Self {
        var kept = self
        for entry in Self.entries where entry.renamed == nil { entry.keep(started, &kept) }
        return kept
    }

    /// The values in force of all settings in this section, or of those that its rows are asked for.
    @_semantics("optimize.sil.specialize.generic.never") @inline(never)
    func effective(
        in place: SectionPlace, where isAsked: (DestinationUse) -> Bool = { _ in true }
    ) -> [EffectiveSetting] {
        var all: [EffectiveSetting] = []
        for entry in Self.entries where entry.renamed == nil && isAsked(entry.use) {
            for var setting in entry.list(self, place) {
                setting.use = setting.use.inside(entry.use)
                all.append(setting)
            }
        }
        return all
    }
}
