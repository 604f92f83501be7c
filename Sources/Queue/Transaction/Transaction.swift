internal import EventLoops
internal import Logs
internal import Model

/// A change of the queue: the rows and the store's knowledge of them change together with the COMMIT,
/// or not at all.
///
/// Everything that needs a running transaction is a method of this type, in the files
/// `Transaction+….swift`, so it does not compile without one. A transaction that is dropped rolls back:
/// the rows by `TableWriter`, the state because only a copy was changed. It cannot be copied, and its
/// methods never `await`.
struct Transaction: ~Copyable {
    /// Reads the tables, changes of this transaction included.
    let file: QueueFile
    /// Writes the tables; also the running SQLite transaction.
    var tables: TableWriter
    /// The copy of the store's state that takes effect with the COMMIT.
    var state: QueueState
    /// Messages to log after the COMMIT. Logged earlier, a transaction that fails and is retried would
    /// log them twice.
    private var messages: [(Log) -> Void]

    init(_ file: QueueFile, _ state: QueueState) throws(QueueError) {
        tables = try TableWriter(file)
        self.file = file
        self.state = state
        messages = []
    }

    /// Logs a message after the COMMIT; never, if the transaction fails.
    mutating func note(_ message: @escaping (Log) -> Void) { messages.append(message) }

    /// Makes everything durable and returns the state that is in force from now on, or throws and rolls
    /// back.
    consuming func commit(_ log: Log) throws(QueueError) -> QueueState {
        var figures = state.figures
        try tables.write(&figures)
        state.figures = figures
        // The next process must know about steps of the clock. They are written with a transaction that
        // takes place anyway, so they cost no sync of their own.
        let steps = state.environment.lookAtClock()
        if steps != state.keptSteps {
            try tables.run("REPLACE INTO switch VALUES ('clock.steps', ?)", steps)
        }
        state.keptSteps = steps
        try tables.commit()
        for message in messages { message(log) }
        return state
    }

    var time: any TimeSource { state.environment.time }

    var unpacker: FrameUnpacker { state.environment.unpacker }

    func drawID() -> BatchID { state.environment.drawID() }
}
