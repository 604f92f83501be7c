extension QueueStore {
    /// All durable switches by name: pause tokens, disabled collection, intervals, Retry-After times.
    public func switches() throws(QueueError) -> [String: String] {
        try reading { file throws(QueueError) in
            let rows = try file.statement("SELECT name, value FROM switch").all { ($0.text(0), $0.text(1)) }
            return Dictionary(rows) { _, last in last }
        }
    }

    /// Sets a switch, or removes it if `value` is nil; durable when it returns.
    public func setSwitch(_ name: String, _ value: String?) async throws(QueueError) {
        try await write { transaction throws(QueueError) in
            if let value {
                try transaction.tables.run("REPLACE INTO switch (name, value) VALUES (?, ?)", name, value)
            } else {
                try transaction.tables.run("DELETE FROM switch WHERE name = ?", name)
            }
        }
    }
}
