/// Looks for damage at a start: in the small tables completely, at both ends of the large ones, and in each
/// delivery.
struct TableCheck {
    private let file: QueueFile

    init(_ file: QueueFile) { self.file = file }

    /// Throws `corrupt` if anything is damaged.
    ///
    /// Reading the ends takes milliseconds however large the tables are. Checking all deliveries takes
    /// half a second of CPU a million rows. It is needed, because a delivery that a search cannot find
    /// later would lose its chunk: a chunk is deleted with the last delivery that is found.
    func run() throws(QueueError) {
        for table in [
            "destination", "total", "ledger", "discard", "switch", "memory", "checkpoint", "done_record",
            "container",
            "delivery",
        ] {
            // `integrity_check` also compares the indexes, which hold a second copy of a destination's
            // name, and checks the order of the deliveries.
            // https://www.sqlite.org/pragma.html#pragma_integrity_check
            let check = ["destination", "delivery"].contains(table) ? "integrity_check" : "quick_check"
            let answer = try file.statement("PRAGMA \(check)('\(table)')").all { $0.text(0) }
            guard answer.first == "ok" else { throw file.database.damage("table \(table)") }
        }
        let deliveries = try file.database.prepare("SELECT \(DeliveryRow.columns) FROM delivery")
        while try deliveries.step() { _ = try file.readRow(deliveries) }
        for end in ["", "DESC"] {
            _ = try file.database.integer("SELECT length(frame) FROM chunk ORDER BY id \(end) LIMIT 1")
            for table in ["dead_letter", "quarantine"] {
                _ = try file.database.integer("SELECT id FROM \(table) ORDER BY id \(end) LIMIT 1")
            }
        }
    }
}
