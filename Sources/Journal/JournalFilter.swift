internal import Model

/// Selects entries by the unit that they are about and by priority.
///
/// An entry is about a unit by the rule of `journalctl --unit`: the unit wrote it; or the manager, a
/// privileged process or the handler of core dumps wrote about it. Without the second part a unit's failures,
/// which systemd reports, were missing.
struct JournalFilter: Sendable {
    /// Names of units with their suffixes, perhaps with wildcards; empty for all entries.
    private let units: [[UInt8]]
    /// The least severe priority that passes.
    private let priority: Int

    /// The filter that the options describe.
    init(_ options: JournalOptions) {
        units = options.units.map { Array(JournalFilter.named($0).utf8) }
        priority = options.priority
    }

    /// A unit's full name: `nginx` is `nginx.service`, as in systemctl.
    static func named(_ unit: String) -> String {
        unit.contains(".") || unit.contains("*") ? unit : "\(unit).service"
    }

    /// Matches for the library, which finds the entries by its index. Empty if no unit is named or a name has
    /// wildcards, which the index cannot match; then all entries are read and `passes` decides.
    var matches: [[String]] {
        guard !units.isEmpty,
            !units.contains(where: { $0.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") } })
        else { return [] }
        return units.flatMap { unit -> [[String]] in
            let unit = String(decoding: unit, as: UTF8.self)
            return [
                ["_SYSTEMD_UNIT=\(unit)"], ["UNIT=\(unit)", "_PID=1"],
                ["OBJECT_SYSTEMD_UNIT=\(unit)", "_UID=0"],
                ["COREDUMP_UNIT=\(unit)", "_UID=0"],
            ]
        }
    }

    /// What one field says about its entry. `passes` gets the union of all fields.
    // The raw value fits in a byte, because each kept text of `JournalEntry` has one.
    struct Findings: OptionSet {
        let rawValue: UInt8

        /// The entry has a valid priority.
        static let hasPriority = Findings(rawValue: 1)
        /// The priority is severe enough.
        static let isSevere = Findings(rawValue: 2)
        /// The entry was written by a unit that is read.
        static let unit = Findings(rawValue: 4)
        /// The entry names such a unit in `UNIT`, which counts if the manager wrote it.
        static let managedUnit = Findings(rawValue: 8)
        /// The entry names such a unit in `OBJECT_SYSTEMD_UNIT` or `COREDUMP_UNIT`, which counts if a
        /// privileged process wrote it.
        static let objectUnit = Findings(rawValue: 16)
        /// Process 1 wrote the entry.
        static let isManager = Findings(rawValue: 32)
        /// A process of root wrote the entry.
        static let isRoot = Findings(rawValue: 64)
        /// journald has split the line here; the next entry of the stream continues it.
        static let goesOn = Findings(rawValue: 128)
    }

    /// What a field says. Called for each new field text, so it first compares lengths.
    func findings(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> Findings {
        /// The finding, if the value is a unit that is read; otherwise none.
        func isRead(_ finding: Findings) -> Findings {
            units.contains { Array(value).fits($0, hasMarks: true) } ? finding : []
        }
        /// Whether the field has a name.
        func isNamed(_ other: String) -> Bool { name.elementsEqual(other.utf8) }
        switch name.count {
        case 8 where value.count == 1 && (0x30...0x37).contains(value[0]) && isNamed("PRIORITY"):
            return Int(value[0]) - 0x30 <= priority ? [.hasPriority, .isSevere] : .hasPriority
        case _ where units.isEmpty: return []
        case 4 where isNamed("UNIT"): return isRead(.managedUnit)
        case 4 where isNamed("_PID"): return value.elementsEqual("1".utf8) ? .isManager : []
        case 4 where isNamed("_UID"): return value.elementsEqual("0".utf8) ? .isRoot : []
        case 13 where isNamed("_SYSTEMD_UNIT"): return isRead(.unit)
        case 13 where isNamed("COREDUMP_UNIT"): return isRead(.objectUnit)
        case 19 where isNamed("OBJECT_SYSTEMD_UNIT"): return isRead(.objectUnit)
        default: return []
        }
    }

    /// Whether an entry passes by what its fields say.
    func passes(_ findings: Findings) -> Bool {
        guard findings.contains(.isSevere) || !findings.contains(.hasPriority) && priority >= 6 else {
            return false
        }
        return units.isEmpty || findings.contains(.unit)
            || findings.isSuperset(of: [.isManager, .managedUnit])
            || findings.isSuperset(of: [.isRoot, .objectUnit])
    }
}
