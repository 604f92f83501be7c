/// A row that was found on a page of its own, told by its shape: which columns it has, and what is in them.
///
/// The tables were made so that no two have the same shape in the same kind of tree.
struct SalvagedRow {
    let table: SalvagedTable
    let row: Int64
    let values: [RecordValue]

    /// Nil for what is no row of ours, or holds what none of ours can.
    init?(_ row: Int64, _ values: [RecordValue], in kind: TreePage.Kind) {
        let isTable = kind == .tableLeaf
        let fits = SalvagedTable.all.first { $0.hasRowID == isTable && $0.matches(values) }
        guard let fits else { return nil }
        table = fits
        self.row = row
        self.values = values
        guard isPlausible else { return nil }
    }

    private var isPlausible: Bool {
        func all(_ range: Range<Int>, in allowed: ClosedRange<Int64>) -> Bool {
            values[range.clamped(to: values.indices)].allSatisfy { value in
                guard case .integer(let number) = value else { return true }
                return allowed.contains(number)
            }
        }
        let counts: ClosedRange<Int64> = 0...1 << 53
        let times: ClosedRange<Int64> = -(1 << 62)...1 << 62
        switch table.name {
        case "destination": return (1...1 << 31).contains(row) && all(2..<4, in: counts)
        case "chunk":
            return counts.contains(row) && all(1..<2, in: 1...2) && all(2..<3, in: 1...1 << 20)
                && all(3..<5, in: 0...1 << 32) && all(5..<8, in: times) && all(8..<9, in: 0...2)
                && all(9..<10, in: 0...1 << 32)
        case "delivery":
            return all(0..<1, in: 1...1 << 31) && all(1..<2, in: 1...2) && all(2..<3, in: counts)
                && all(3..<4, in: 0...1 << 32) && all(4..<5, in: 1...1 << 32) && all(5..<6, in: 0...1 << 40)
                && all(6..<8, in: times) && all(9..<10, in: 0...1)
        case "total": return all(0..<values.count, in: counts)
        case "ledger":
            let numbers = values.map { if case .integer(let number) = $0 { number } else { Int64(0) } }
            guard all(0..<values.count, in: counts) else { return false }
            // The row of no destination is none that balances.
            return numbers[0] == 0 || numbers[2] + numbers[3] == numbers[4...10].reduce(0, +)
        case "discard": return all(3..<4, in: counts)
        default: return true
        }
    }
}

/// A table as rows are known by.
struct SalvagedTable {
    enum Column {
        case rowID
        case integer
        case text
        case blob
        case integerOrNull
        case textOrNull
        case blobOrNull
    }

    let name: String
    let hasRowID: Bool
    let columns: [(name: String, type: Column)]
    /// How many columns the rows of older schemas have.
    let least: Int

    private init(_ name: String, rowID: Bool, least: Int? = nil, _ columns: KeyValuePairs<String, Column>) {
        self.name = name
        hasRowID = rowID
        self.columns = columns.map { ($0.key, $0.value) }
        self.least = least ?? columns.count
    }

    func matches(_ values: [RecordValue]) -> Bool {
        guard values.count >= least, values.count <= columns.count else { return false }
        return zip(values, columns).allSatisfy { value, column in
            switch (column.type, value) {
            case (.rowID, .null), (.integer, .integer), (.text, .text), (.blob, .blob), (.integerOrNull, .integer),
                (.integerOrNull, .null), (.textOrNull, .text), (.textOrNull, .null), (.blobOrNull, .blob),
                (.blobOrNull, .null):
                true
            default: false
            }
        }
    }

    static let all: [SalvagedTable] = [
        SalvagedTable(
            "destination", rowID: true,
            ["id": .rowID, "name": .text, "lease_events": .integer, "lease_bytes": .integer]),
        SalvagedTable(
            "chunk", rowID: true, least: 11,
            [
                "id": .rowID, "priority": .integer, "destinations": .integer, "events": .integer, "bytes": .integer,
                "first_time": .integer, "last_time": .integer, "accepted_at": .integer, "compression": .integer,
                "checksum": .integer, "frame": .blob, "wanted_by": .textOrNull,
                "row_check": .integerOrNull,
            ]),
        SalvagedTable(
            "delivery", rowID: false, least: 10,
            [
                "destination": .integer, "priority": .integer, "chunk": .integer, "first": .integer,
                "events": .integer, "bytes": .integer, "first_time": .integer, "accepted_at": .integer,
                "batch": .blobOrNull, "state": .integer, "deadlines": .textOrNull,
                "row_check": .integerOrNull,
            ]),
        SalvagedTable(
            "ledger", rowID: false, least: 12,
            [
                "destination": .integer, "priority": .integer, "accepted": .integer, "retried": .integer,
                "acknowledged": .integer, "dead_lettered": .integer, "evicted": .integer, "expired": .integer,
                "discarded": .integer, "lost": .integer, "queued": .integer, "queued_bytes": .integer,
                "dead_letters": .integer,
            ]),
        SalvagedTable(
            "discard", rowID: false,
            ["destination": .integer, "priority": .integer, "reason": .text, "events": .integer]),
        SalvagedTable(
            "total", rowID: true, least: 14,
            [
                "id": .rowID, "last_chunk": .integer, "stored_bytes": .integer, "max_size": .integer,
                "read": .integer, "accepted": .integer, "refused": .integer, "quarantined": .integer,
                "dead_letters": .integer, "dead_letter_bytes": .integer, "dead_letters_purged": .integer,
                "quarantine_records": .integer, "quarantine_bytes": .integer, "quarantine_purged": .integer,
                "copy": .text,
            ]),
        SalvagedTable(
            "checkpoint", rowID: false, ["key": .blob, "path": .text, "offset": .integer, "state": .blob]),
        SalvagedTable("done_record", rowID: false, ["claim": .blob, "handle": .blob]),
        SalvagedTable("memory", rowID: false, ["name": .text, "value": .blob]),
        SalvagedTable("switch", rowID: false, ["name": .text, "value": .text]),
        SalvagedTable(
            "container", rowID: true,
            ["id": .text, "version": .integer, "etag": .textOrNull, "confirmed_at": .integer, "file": .blob]),
        SalvagedTable(
            "dead_letter", rowID: true,
            [
                "id": .rowID, "destination": .integer, "priority": .integer, "batch": .blob, "accepted_at": .integer,
                "first_time": .integer, "last_time": .integer, "rejected_at": .integer, "kind": .text,
                "status": .integerOrNull, "message": .text, "excerpt": .text, "event": .blob,
            ]),
        SalvagedTable(
            "quarantine", rowID: true,
            [
                "id": .rowID, "reason": .text, "detail": .text, "app": .text, "path": .text, "offset": .integer,
                "length": .integer, "time": .integer, "content": .blob,
            ]),
    ]
}
