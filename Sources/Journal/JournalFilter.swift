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

    /// What the filter looks at in an entry.
    struct Subject {
        var unit: [UInt8]?
        var objectUnit: [UInt8]?
        var managedUnit: [UInt8]?
        var coredumpUnit: [UInt8]?
        var isManager = false
        var isRoot = false
        var priority: Int?
    }

    /// Whether an entry passes.
    func passes(_ subject: Subject) -> Bool {
        guard subject.priority ?? 6 <= priority else { return false }
        guard !units.isEmpty else { return true }
        let names = [
            subject.unit, subject.isManager ? subject.managedUnit : nil, subject.isRoot ? subject.objectUnit : nil,
            subject.isRoot ? subject.coredumpUnit : nil,
        ]
        return names.contains { name in
            name.map { name in units.contains { name.fits($0, hasMarks: true) } } ?? false
        }
    }
}
