extension QueueStore {
    /// The durable switches by name: pause tokens, disabled collection, intervals, Retry-After times.
    public func switches() throws(QueueError) -> [String: String] {
        try reading { file throws(QueueError) in
            var found: [String: String] = [:]
            let rows = try file.statement("SELECT name, value FROM switch")
            while try rows.step() { found[rows.text(0)] = rows.text(1) }
            return found
        }
    }

    /// Sets a switch, or removes it with nil; durable when it returns.
    public func setSwitch(_ name: String, _ value: String?) async throws(QueueError) {
        try await write { transaction throws(QueueError) in
            let change = try transaction.tables.statement(
                value == nil
                    ? "DELETE FROM switch WHERE name = ?" : "REPLACE INTO switch (name, value) VALUES (?, ?)")
            change.bind(1, name)
            if let value { change.bind(2, value) }
            try change.run()
        }
    }
}
