/// A row that was found on some page, recognised by its shape: which columns it has, and what is in them.
///
/// The tables were made so that no two have the same shape in the same kind of tree.
struct SalvagedRow {
    let table: SalvagedTable
    /// The row's number included, where it is a column.
    private(set) var values: [RecordValue]

    /// Nil for what is no row of ours, or holds what none of ours can.
    init?(_ row: Int64, _ values: [RecordValue], in kind: TreePage.Kind, of tables: [SalvagedTable]) {
        let isTable = kind == .tableLeaf
        guard let fits = tables.first(where: { $0.hasRowID == isTable && $0.matches(values) }) else { return nil }
        table = fits
        self.values = values
        if let place = fits.columns.firstIndex(where: \.isRowID) { self.values[place] = .integer(row) }
        guard isPlausible else { return nil }
    }

    private static let counts: ClosedRange<Int64> = 0...1 << 53
    private static let times: ClosedRange<Int64> = -(1 << 62)...1 << 62

    private static let bounds: [String: [(columns: ClosedRange<Int>, numbers: ClosedRange<Int64>)]] = [
        "destination": [(0...0, 1...1 << 31), (2...3, counts)],
        "chunk": [
            (0...0, counts), (1...1, 1...2), (2...2, 1...1 << 20), (3...4, 0...1 << 32), (5...7, times), (8...8, 0...2),
            (9...9, 0...1 << 32),
        ],
        "delivery": [
            (0...0, 1...1 << 31), (1...1, 1...2), (2...2, counts), (3...3, 0...1 << 32), (4...4, 1...1 << 32),
            (5...5, 0...1 << 40), (6...7, times), (9...9, 0...1),
        ],
        "total": [(1...13, counts)],
        "ledger": [(0...12, counts)],
        "discard": [(3...3, counts)],
        "holding": [(0...0, counts), (1...1, 1...2), (2...2, counts)],
    ]

    private var isPlausible: Bool {
        let numbers = values.map { if case .integer(let number) = $0 { number } else { Int64?.none } }
        let isWithinBounds = (SalvagedRow.bounds[table.name] ?? []).allSatisfy { columns, allowed in
            numbers[Range(columns).clamped(to: numbers.indices)].allSatisfy { $0.map(allowed.contains) ?? true }
        }
        guard isWithinBounds, table.name == "ledger" else { return isWithinBounds }
        // The row of no destination is none that balances.
        let ledger = numbers.map { $0 ?? 0 }
        return ledger[0] == 0 || ledger[2] + ledger[3] == ledger[4...10].reduce(0, +)
    }
}

struct SalvagedTable {
    struct Column {
        let name: String
        let type: String
        /// Whether it is the row's number, which stands beside its values.
        let isRowID: Bool
        let mayBeNull: Bool
    }

    let name: String
    let hasRowID: Bool
    let columns: [Column]
    /// How many columns the rows of older schemas have.
    let least: Int

    func matches(_ values: [RecordValue]) -> Bool {
        guard values.count >= least, values.count <= columns.count else { return false }
        return zip(values, columns).allSatisfy { value, column in
            switch value {
            case .null: column.isRowID || column.mayBeNull
            case .integer: column.type == "INTEGER" && !column.isRowID
            case .text: column.type == "TEXT"
            case .blob: column.type == "BLOB"
            case .real: false
            }
        }
    }

    /// The statement for a row with so many of the columns.
    func insert(_ count: Int) -> String {
        let names = columns.prefix(count).map(\.name).joined(separator: ", ")
        let marks = Array(repeating: "?", count: count).joined(separator: ", ")
        return "INSERT OR IGNORE INTO \(name) (\(names)) VALUES (\(marks))"
    }

    /// The tables of a database that was made just now.
    static func all(in database: Database) throws(QueueError) -> [SalvagedTable] {
        let row = try database.prepare(
            "SELECT t.name, t.wr, c.name, c.type, c.\"notnull\", c.pk FROM sqlite_schema AS s "
                + "JOIN pragma_table_list(s.name) AS t JOIN pragma_table_info(s.name) AS c "
                + "WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite_%' ORDER BY s.rowid, c.cid")
        var tables: [(name: String, hasRowID: Bool, columns: [Column])] = []
        while try row.step() {
            let hasRowID = row.integer(1) == 0
            let isKey = row.integer(5) > 0
            if tables.last?.name != row.text(0) { tables.append((row.text(0), hasRowID, [])) }
            tables[tables.count - 1].columns.append(
                Column(
                    name: row.text(2), type: row.text(3), isRowID: hasRowID && isKey && row.text(3) == "INTEGER",
                    mayBeNull: row.integer(4) == 0 && !isKey))
        }
        return tables.map { name, hasRowID, columns in
            let least = columns.count - Migrations.columnsAdded(to: name)
            return SalvagedTable(name: name, hasRowID: hasRowID, columns: columns, least: least)
        }
    }
}
