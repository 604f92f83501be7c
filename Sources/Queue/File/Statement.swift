internal import CSQLite
internal import EventLoops
internal import Model

/// A prepared statement. Parameters are numbered from 1, columns from 0, as in SQLite's C interface.
/// Used on the database's loop only.
final class Statement {
    /// SQLite's statement; freed with this object.
    private let handle: OpaquePointer
    private unowned let database: Database

    /// Compiles a statement. SQLITE_PREPARE_PERSISTENT tells SQLite that it will be reused often.
    init(_ sql: String, in database: Database) throws(QueueError) {
        var made: OpaquePointer?
        let code = sqlite3_prepare_v3(database.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &made, nil)
        guard code == SQLITE_OK, let made else { throw database.error(code) }
        handle = made
        self.database = database
    }

    deinit { sqlite3_finalize(handle) }

    /// Sets one parameter.
    func bind(_ index: Int32, _ value: some SQLValue) { value.bind(to: handle, at: index) }

    /// Sets the parameter after `index`.
    private func bindNext(_ index: inout Int32, _ value: some SQLValue) {
        index += 1
        bind(index, value)
    }

    /// Sets the parameters in order, starting with the first.
    @discardableResult
    func with<each Value: SQLValue>(_ values: repeat each Value) -> Statement {
        var index: Int32 = 0
        // Not a `for` over the pack: with it Debian's build of Swift 6.2.3 fails its own verification.
        repeat bindNext(&index, each values)
        assert(index <= sqlite3_bind_parameter_count(handle), "a statement has fewer parameters than values")
        return self
    }

    /// Sets parameters to numbers, in order, starting with the first.
    func with(_ numbers: [Int]) {
        assert(numbers.count <= sqlite3_bind_parameter_count(handle), "a statement has fewer parameters")
        for (index, number) in numbers.enumerated() { bind(Int32(index + 1), number) }
    }

    /// Moves to the next row; false after the last one, and then the statement is ready for another
    /// run.
    func step() throws(QueueError) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE:
            sqlite3_reset(handle)
            return false
        case let code:
            let error = database.error(code, isReading: sqlite3_stmt_readonly(handle) != 0)
            sqlite3_reset(handle)
            throw error
        }
    }

    /// Runs a statement that returns no rows.
    func run() throws(QueueError) {
        while try step() {}
    }

    /// Sets the parameters and runs a statement that returns no rows.
    func run<each Value: SQLValue>(_ values: repeat each Value) throws(QueueError) {
        with(repeat each values)
        try run()
    }

    /// Sets a large parameter without copying it, and runs a statement that returns no rows.
    func run(_ bytes: [UInt8], at index: Int32) throws(QueueError) {
        guard !bytes.isEmpty else {
            bind(index, bytes)
            return try run()
        }
        let failure = bytes.withUnsafeBytes { raw in
            // No destructor: SQLite reads the bytes during the step, and the parameter is cleared
            // before the array can be freed.
            sqlite3_bind_blob64(handle, index, raw.baseAddress, UInt64(raw.count), nil)
            let code = sqlite3_step(handle)
            // The error is built before the parameter is cleared, because clearing replaces SQLite's
            // message.
            let failure = code == SQLITE_DONE ? nil : database.error(code)
            sqlite3_reset(handle)
            sqlite3_bind_null(handle, index)
            return failure
        }
        if let failure { throw failure }
    }

    /// The results of `read` for all rows, in order.
    func all<Value>(_ read: (Statement) throws(QueueError) -> Value) throws(QueueError) -> [Value] {
        defer { reset() }
        var values: [Value] = []
        while try step() { values.append(try read(self)) }
        return values
    }

    /// The result of `read` for the first row; nil if there is no row.
    func first<Value>(_ read: (Statement) throws(QueueError) -> Value) throws(QueueError) -> Value? {
        defer { reset() }
        return try step() ? try read(self) : nil
    }

    /// Ends a run of which not all rows were read.
    func reset() { sqlite3_reset(handle) }

    /// A column as a number; 0 for NULL.
    func integer(_ column: Int32) -> Int { Int(sqlite3_column_int64(handle, column)) }

    /// A column with nanoseconds since 1970 as a time.
    func time(_ column: Int32) -> Timestamp { Timestamp(nanoseconds: sqlite3_column_int64(handle, column)) }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    /// A column as text; empty for NULL. Invalid UTF-8 is replaced.
    func text(_ column: Int32) -> String {
        guard let base = sqlite3_column_text(handle, column) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, column))
        return String(decoding: UnsafeBufferPointer(start: base, count: count), as: UTF8.self)
    }

    /// The bytes of a column in SQLite's memory: valid until the next step or reset.
    func raw(_ column: Int32) -> UnsafeRawBufferPointer {
        let base = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(start: base, count: Int(sqlite3_column_bytes(handle, column)))
    }

    /// A copy of a column's bytes.
    func bytes(_ column: Int32) -> [UInt8] { Array(raw(column)) }
}

// SQLITE_TRANSIENT, a macro that Swift cannot import: SQLite copies the value during the call.
private var transient: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

/// A value that a parameter can take; nil stands for NULL.
protocol SQLValue {
    func bind(to statement: OpaquePointer, at index: Int32)
}

extension Int64: SQLValue {
    func bind(to statement: OpaquePointer, at index: Int32) { sqlite3_bind_int64(statement, index, self) }
}

extension Int: SQLValue {
    func bind(to statement: OpaquePointer, at index: Int32) {
        sqlite3_bind_int64(statement, index, Int64(self))
    }
}

extension String: SQLValue {
    func bind(to statement: OpaquePointer, at index: Int32) {
        // The text is copied, because it need not outlive the call. An empty text may have no address,
        // which SQLite would read as NULL.
        guard !isEmpty else {
            sqlite3_bind_text(statement, index, "", 0, transient)
            return
        }
        var text = self
        text.withUTF8 { utf8 in
            utf8.withMemoryRebound(to: CChar.self) { characters in
                _ = sqlite3_bind_text64(
                    statement, index, characters.baseAddress, UInt64(characters.count), transient,
                    UInt8(SQLITE_UTF8))
            }
        }
    }
}

extension [UInt8]: SQLValue {
    func bind(to statement: OpaquePointer, at index: Int32) {
        // An empty array may have no address, which SQLite would read as NULL.
        if isEmpty {
            sqlite3_bind_zeroblob(statement, index, 0)
        } else {
            sqlite3_bind_blob64(statement, index, self, UInt64(count), transient)
        }
    }
}

extension UUIDv7: SQLValue {
    /// Binds the id as a blob of sixteen bytes, without allocating an array.
    func bind(to statement: OpaquePointer, at index: Int32) {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { bytes in
            _ = sqlite3_bind_blob64(statement, index, bytes.baseAddress, UInt64(bytes.count), transient)
        }
    }
}

extension Priority: SQLValue {
    func bind(to statement: OpaquePointer, at index: Int32) { Int64(rawValue).bind(to: statement, at: index) }
}

extension Timestamp: SQLValue {
    func bind(to statement: OpaquePointer, at index: Int32) { nanoseconds.bind(to: statement, at: index) }
}

extension Optional: SQLValue where Wrapped: SQLValue {
    func bind(to statement: OpaquePointer, at index: Int32) {
        if let self {
            self.bind(to: statement, at: index)
        } else {
            sqlite3_bind_null(statement, index)
        }
    }
}
