/// A row that was found on some page, recognised by its shape: which columns it has, and what is in them.
///
/// The tables were made so that no two have the same shape in the same kind of tree.
struct SalvagedRow {
    let table: SalvagedTable
    let row: Int64
    let values: [RecordValue]

    /// Nil for what is no row of ours, or holds what none of ours can.
    init?(_ row: Int64, _ values: [RecordValue], in kind: TreePage.Kind, of tables: [SalvagedTable]) {
        let isTable = kind == .tableLeaf
        let fits = tables.first { $0.hasRowID == isTable && $0.matches(values) }
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
        case "holding": return all(0..<1, in: counts) && all(1..<2, in: 1...2) && all(2..<3, in: counts)
        default: return true
        }
    }
}

/// A table as rows are known by.
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
