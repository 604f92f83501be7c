internal import Model

/// Members that may hold a record's name, time or severity, in order of preference.
///
/// The scanner finds the first name of each path on its way; `EventPass.value(at:of:)` looks for the rest of
/// a path in the value, and only if it is asked for.
struct Candidates {
    /// One member or path.
    struct Path {
        /// The path as the settings spell it, for people.
        let name: String
        /// Slot of its first name in `JSONScanner.members`.
        let slot: Int
        /// The names below the first one, outermost first; empty for a top-level member.
        let below: [[UInt8]]
        /// How the value is read if the path is one of a severity.
        let reading: Severity.Reading
    }

    private(set) var paths: [Path] = []
    /// Scanner bits of all first names. If `JSONScanner.present` has none of them, no path needs a look: this
    /// check makes candidates cheap for lines without them.
    private(set) var mask: UInt64 = 0

    static let none = Candidates([], WatchedNames.none)

    /// Candidates for paths with dots, without those that tags hide. For each path, a member whose own name
    /// contains the dots comes before the nested one: loggers write either form.
    init(_ names: [String], _ watched: WatchedNames, hiding: HiddenPaths? = nil) {
        for name in names {
            let parts = name.utf8.split(separator: UInt8(ascii: ".")).map { Array($0) }
            for whole in parts.count > 1 ? [true, false] : [true] {
                let path = whole ? [Array(name.utf8)] : parts
                guard let slot = watched.slot(of: path[0]), hiding?.hides(path) != true else { continue }
                paths.append(
                    Path(
                        name: name, slot: slot, below: Array(path.dropFirst()),
                        reading: Severity.reading(of: name)))
                mask |= JSONScanner.bit(of: slot)
            }
        }
    }
}

/// Names of members that the scanner looks for beside those of `MemberName`. Slots of `MemberName` come
/// first, then these names in order.
struct WatchedNames {
    /// The names; no name is empty, repeated, or one of `MemberName`.
    let names: [[UInt8]]
    /// The table with which a scanner finds them, and those of `MemberName`.
    let known: KnownNames

    /// No names beside those of `MemberName`.
    nonisolated(unsafe) static let none = WatchedNames([])

    /// The names that are needed for paths with dots: each path as one name, and its first part.
    init(_ paths: some Sequence<String>) {
        let known = Set(MemberName.allCases.map(\.spelling))
        var names: [[UInt8]] = []
        var seen: Set<[UInt8]> = []
        for path in paths {
            for name in Set([Array(path.utf8), Array(path.utf8.prefix { $0 != UInt8(ascii: ".") })])
            where !name.isEmpty && !known.contains(name) && seen.insert(name).inserted {
                names.append(name)
            }
        }
        self.names = names
        self.known = KnownNames(names)
    }

    /// The slot of a name; nil if the scanner does not look for it.
    func slot(of name: [UInt8]) -> Int? {
        if let own = MemberName.allCases.first(where: { $0.spelling == name && !name.isEmpty }) {
            return own.rawValue
        }
        return names.firstIndex(of: name).map { $0 + MemberName.allCases.count }
    }
}

/// The names that passes with the same settings look for. All passes of a loop share them: the names and
/// their tables take 7 KB, and making them takes time for each app of the configuration.
///
/// One thread at a time uses it: that of the start, which makes the passes, and then the loop's.
package final class SharedNames: @unchecked Sendable {
    /// The names made last, and what they were made of.
    private var made: (defaults: AppOptions, apps: [String: AppOptions], names: WatchedNames)?

    package init() {}

    /// The names that any app's settings look for.
    func names(_ options: EventOptions) -> WatchedNames {
        if let made, made.defaults == options.defaults, made.apps == options.apps { return made.names }
        let apps = [options.defaults] + options.apps.sorted { $0.key < $1.key }.map(\.value)
        let names = WatchedNames(apps.flatMap(\.paths))
        made = (options.defaults, options.apps, names)
        return names
    }
}
