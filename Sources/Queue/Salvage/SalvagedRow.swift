/// A row found on a page, recognised by its shape: which columns it has and of which types.
///
/// The schema of a damaged file is not trusted, so a page does not say which table it belongs to. The
/// tables were designed so that no two of them have the same shape in the same kind of tree.
struct SalvagedRow {
    let table: SalvagedTable
    /// The values in the order of the columns, the row id included if it is a column.
    private(set) var values: [RecordValue]

    /// Nil if the values match no table, or contain numbers that we never write.
    init?(_ row: Int64, _ values: [RecordValue], in kind: TreePage.Kind, of tables: [SalvagedTable]) {
        let isTable = kind == .tableLeaf
        guard let fits = tables.first(where: { $0.hasRowID == isTable && $0.matches(values) }) else {
            return nil
        }
        table = fits
        self.values = values
        if let column = fits.columns.firstIndex(where: \.isRowID) {
            self.values[column] = .integer(row)
        }
        guard isPlausible else { return nil }
    }

    /// Range of counts; up to 2^53, so that sums of them cannot overflow.
    private static let counts: ClosedRange<Int64> = 0...1 << 53
    /// Range of times. The upper end is the time of events that never expire: with a lower one, rows of
    /// backfilled files would count as damage and their events as lost.
    private static let times: ClosedRange<Int64> = -(1 << 62)...Int64.max

    /// Ranges of the numeric columns of each table, by column index.
    private static let bounds: [String: [(columns: ClosedRange<Int>, numbers: ClosedRange<Int64>)]] = [
        "destination": [(0...0, 1...1 << 31), (2...3, counts)],
        "chunk": [
            (0...0, counts), (1...1, 1...2), (2...2, 1...1 << 20), (3...4, 0...1 << 32), (5...7, times),
            (8...8, 0...2),
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

    /// Whether all numbers are in their ranges and a row of the ledger balances.
    private var isPlausible: Bool {
        let numbers = values.map { if case .integer(let number) = $0 { number } else { Int64?.none } }
        let isWithinBounds = (SalvagedRow.bounds[table.name] ?? []).allSatisfy { columns, allowed in
            numbers[Range(columns).clamped(to: numbers.indices)].allSatisfy {
                $0.map(allowed.contains) ?? true
            }
        }
        guard isWithinBounds, table.name == "ledger" else { return isWithinBounds }
        // The row of destination 0 holds the copy of the totals, which does not balance.
        let ledger = numbers.map { $0 ?? 0 }
        return ledger[0] == 0 || ledger[2] + ledger[3] == ledger[4...10].reduce(0, +)
    }
}

/// A table of the present schema, with what is needed to recognise its rows.
struct SalvagedTable {
    /// The properties of a column by which a row of its table is recognised.
    struct Column {
        let name: String
        let type: String
        /// Whether the column is an alias of the row id, which SQLite stores beside the record, not in
        /// it.
        let isRowID: Bool
        let mayBeNull: Bool
    }

    let name: String
    /// Whether the rows are in a table tree; otherwise (WITHOUT ROWID) they are in an index tree.
    let hasRowID: Bool
    let columns: [Column]
    /// Number of columns that rows of the oldest schema have; later columns may be missing.
    let least: Int

    /// Whether the types of a record fit the columns.
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

    /// The INSERT statement for a row with the first `count` columns.
    func insert(_ count: Int) -> String {
        let names = columns.prefix(count).map(\.name).joined(separator: ", ")
        let marks = Array(repeating: "?", count: count).joined(separator: ", ")
        return "INSERT OR IGNORE INTO \(name) (\(names)) VALUES (\(marks))"
    }

    /// The tables of a database with the present schema.
    static func all(in database: Database) throws(QueueError) -> [SalvagedTable] {
        let row = try database.prepare(
            "SELECT t.name, t.wr, c.name, c.type, c.\"notnull\", c.pk FROM sqlite_schema AS s "
                + "JOIN pragma_table_list(s.name) AS t JOIN pragma_table_info(s.name) AS c "
                + "WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite_%' ORDER BY s.rowid, c.cid")
        var tables: [(name: String, hasRowID: Bool, columns: [Column])] = []
        while try row.step() {
            let hasRowID = row.integer(1) == 0
            let isKey = row.integer(5) > 0
            if tables.last?.name != row.text(0) {
                tables.append((row.text(0), hasRowID, []))
            }
            tables[tables.count - 1].columns.append(
                Column(
                    name: row.text(2), type: row.text(3),
                    isRowID: hasRowID && isKey && row.text(3) == "INTEGER",
                    mayBeNull: row.integer(4) == 0 && !isKey))
        }
        return tables.map { name, hasRowID, columns in
            let least = columns.count - Migrations.columnsAdded(to: name)
            return SalvagedTable(name: name, hasRowID: hasRowID, columns: columns, least: least)
        }
    }
}
