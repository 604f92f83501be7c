/// A row of the table of settings: one key of a section, and all there is to say of it.
///
/// The default stands nowhere but in the section's struct: it is what the property holds in a new one.
struct Entry<Owner: Sendable>: Sendable {
    let description: EntryDescription
    var use = DestinationUse()
    /// Reads a node into its place, or adds to the problems.
    let read: @Sendable (TOMLNode, String, inout Owner, inout ReadContext) -> Void
    let list: @Sendable (Owner, SectionPlace) -> [EffectiveSetting]

    var name: String { description.name }

    /// The same setting of what holds this one's owner.
    func inside<Holder>(_ place: any WritableKeyPath<Holder, Owner> & Sendable) -> Entry<Holder> {
        Entry<Holder>(
            description: description, use: use, read: { read($0, $1, &$2[keyPath: place], &$3) },
            list: { list($0[keyPath: place], $1) })
    }
}

/// What a key is, for help, the shipped file and the manual.
package indirect enum EntryDescription: Sendable {
    case setting(SettingDescription)
    case section(SectionDescription)

    package var name: String {
        switch self {
        case .setting(let setting): setting.name
        case .section(let section): section.name
        }
    }
}

package struct SettingDescription: Sendable {
    package let name: String
    /// What its value is: `duration`.
    package let type: String
    /// What is allowed: `1s to 1d`; empty when the type says it all.
    package let range: String
    package let defaultValue: SettingValue?
    /// A value to show where there is no default.
    package let example: String?
    /// What it is for and why one would change it, in one line.
    package let why: String
    package let needsRestart: Bool
}

package struct SectionDescription: Sendable {
    package enum Kind: Sendable, Equatable {
        /// Once: `[queue]`.
        case once
        /// Once for each: `[[destination]]`, distinguished by the value of `key`.
        case list(key: String)
        /// Once for each name: `[apps.NAME]`.
        case named
    }

    package let name: String
    package let kind: Kind
    package let why: String
    package let entries: [EntryDescription]

    /// How the section is begun: `[queue]`, `[[destination]]`, `[apps.NAME]`.
    func heading(prefix: String = "") -> String {
        switch kind {
        case .once: "[\(prefix)\(name)]"
        case .list: "[[\(prefix)\(name)]]"
        case .named: "[\(prefix)\(name).NAME]"
        }
    }
}

/// A section as it is in a configuration.
public struct SectionPlace: Sendable, Hashable {
    /// Its path, with the names of what is given more than once: `queue`, `destination.main.tls`; empty for the root.
    public let path: String
    /// How TOML begins it: `[queue]`, `[[destination]]`, `[destination.tls]`.
    public var heading: String { isList ? "[[\(dotted)]]" : "[\(dotted)]" }

    let dotted: String
    let isList: Bool

    static let root = SectionPlace(path: "", dotted: "", isList: false)

    func section(_ name: String) -> SectionPlace {
        SectionPlace(path: joined(path, name), dotted: joined(dotted, name), isList: false)
    }

    func element(_ element: String, of name: String) -> SectionPlace {
        SectionPlace(path: joined(path, "\(name).\(element)"), dotted: joined(dotted, name), isList: true)
    }

    func setting(_ name: String) -> String { joined(path, name) }

    private func joined(_ path: String, _ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }
}

/// A setting and the value in force.
public struct EffectiveSetting: Sendable, Equatable {
    package let name: String
    /// Its name with those of its sections: `queue.max_size`, `destination.main.url`.
    public var path: String { section.setting(name) }
    package let section: SectionPlace
    /// The value in force; nil when it is not set and has no default.
    package let value: SettingValue?
    /// Whether a reload cannot apply it.
    public let needsRestart: Bool
    /// Which destinations have it, and whether it can change their answers; without meaning in other sections.
    public internal(set) var use = DestinationUse()
}

struct ReadContext {
    var sources = SourceLines()
    var problems: [Problem] = []
    /// Where each setting and each section that is set was set.
    var origins: [String: Origin] = [:]
    /// What values without a place come from.
    var origin = Origin.standard

    /// How many errors are listed, and how many warnings: nobody reads more, and each costs a search for what was meant.
    static let mostListed = 100

    /// How many problems of each severity there are beyond those that are listed, and the first of them.
    var unlisted: [Problem.Severity: (count: Int, code: Problem.Code, position: Position?)] = [:]
    var listed: [Problem.Severity: Int] = [:]

    mutating func add(
        _ code: Problem.Code, _ message: @autoclosure () -> String, at position: Position?,
        severity: Problem.Severity = .error
    ) {
        guard listed[severity, default: 0] < ReadContext.mostListed else {
            unlisted[severity, default: (0, code, position)].count += 1
            return
        }
        listed[severity, default: 0] += 1
        problems.append(Problem(code, message(), at: position, sourceLine: sources[position], severity: severity))
    }

    /// Says how many problems are not listed.
    mutating func close() {
        for (severity, rest) in unlisted {
            let what = severity == .error ? "mistake" : "warning"
            problems.append(
                Problem(
                    rest.code, "and \(rest.count) more \(what)\(rest.count == 1 ? "" : "s") from here on, not listed",
                    at: rest.position, severity: severity))
        }
    }

    mutating func note(_ path: String, at position: Position?) {
        origins[path] = position.map { .file($0) } ?? origin
    }

    func position(of path: String) -> Position? {
        guard case .file(let position) = origins[path] else { return nil }
        return position
    }
}

/// A section's struct: its properties hold the values, a new one holds the defaults. What a setting means is said in its entry.
protocol SettingsSection: Sendable, Equatable {
    init()
    /// Its keys, in the order of the shipped file.
    static var entries: [Entry<Self>] { get }
}

extension SettingsSection {
    static func described(_ name: String, _ kind: SectionDescription.Kind, _ why: String) -> EntryDescription {
        .section(SectionDescription(name: name, kind: kind, why: why, entries: entries.map(\.description)))
    }

    /// Reads a table's members into this section. Unknown keys are problems, with the nearest known one.
    mutating func read(_ node: TOMLNode, path: String, context: inout ReadContext) {
        guard case .table(let members) = node.value else {
            context.add(.wrongType, "\(path) must be a section, not \(node.kind)", at: node.position)
            return
        }
        let entries = Self.entries
        for member in members where member.key != TOMLText.unreadableSection {
            guard let entry = entries.first(where: { $0.name == member.key }) else {
                context.add(
                    .unknownKey, unknownKey(member.key, path: path, known: entries.map(\.name)),
                    at: member.keyPosition)
                continue
            }
            let path = path.isEmpty ? member.key : "\(path).\(SettingValue.key(member.key))"
            entry.read(member.node, path, &self, &context)
        }
    }

    func effective(in place: SectionPlace) -> [EffectiveSetting] {
        Self.entries.flatMap { entry in
            entry.list(self, place).map { setting in
                var setting = setting
                setting.use = setting.use.inside(entry.use)
                return setting
            }
        }
    }
}

/// Says that a key does not exist, and what may have been meant: one of this section, or one of another.
private func unknownKey(_ key: String, path: String, known: [String]) -> String {
    let message = "no setting \(key)\(path.isEmpty ? "" : " in [\(path)]"); "
    if let near = nearestName(to: key, among: known) { return "\(message)did you mean \(near)?" }
    let others = Settings.description.filter { $0.name != path }
    if let other = others.first(where: { $0.entries.contains { $0.name == key } }) {
        return "\(message)it belongs in \(other.heading())"
    }
    if path.isEmpty { return "\(message)sections are \(known.joined(separator: ", "))" }
    return "\(message)`spoolship help configuration` lists all"
}
