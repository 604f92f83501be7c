internal import Model

/// Which entries are read, by the unit that they are about and their priority.
///
/// An entry is about a unit as `journalctl --unit` has it: the unit wrote it; or the manager, a privileged process or the handler of
/// core dumps wrote about it.
struct JournalFilter: Sendable {
    private let units: [[UInt8]]
    private let priority: Int

    init(_ options: JournalOptions) {
        units = options.units.map { Array(JournalFilter.named($0).utf8) }
        priority = options.priority
    }

    /// A unit's name with its kind: `nginx` is `nginx.service`, as systemctl has it.
    static func named(_ unit: String) -> String {
        unit.contains(".") || unit.contains("*") ? unit : "\(unit).service"
    }

    /// What lets the library find the entries by its index; empty when names have wildcards, or no unit is named.
    var matches: [[String]] {
        guard !units.isEmpty,
            !units.contains(where: { $0.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") } })
        else { return [] }
        return units.flatMap { unit -> [[String]] in
            let unit = String(decoding: unit, as: UTF8.self)
            return [
                ["_SYSTEMD_UNIT=\(unit)"], ["UNIT=\(unit)", "_PID=1"], ["OBJECT_SYSTEMD_UNIT=\(unit)", "_UID=0"],
                ["COREDUMP_UNIT=\(unit)", "_UID=0"],
            ]
        }
    }

    /// What a field of an entry says of it; to the filter those of all its fields together.
    struct Findings: OptionSet {
        let rawValue: UInt8

        static let hasPriority = Findings(rawValue: 1)
        static let isSevere = Findings(rawValue: 2)
        /// A unit that is read: the entry is about it if it was written by the unit itself, by the manager, or by a privileged process.
        static let unit = Findings(rawValue: 4)
        static let managedUnit = Findings(rawValue: 8)
        static let objectUnit = Findings(rawValue: 16)
        static let isManager = Findings(rawValue: 32)
        static let isRoot = Findings(rawValue: 64)
        /// More of the line follows, which journald has split.
        static let goesOn = Findings(rawValue: 128)
    }

    func findings(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) -> Findings {
        func isRead(_ finding: Findings) -> Findings {
            units.contains { Array(value).fits($0, hasMarks: true) } ? finding : []
        }
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

    func passes(_ findings: Findings) -> Bool {
        guard findings.contains(.isSevere) || !findings.contains(.hasPriority) && priority >= 6 else { return false }
        return units.isEmpty || findings.contains(.unit) || findings.isSuperset(of: [.isManager, .managedUnit])
            || findings.isSuperset(of: [.isRoot, .objectUnit])
    }
}
