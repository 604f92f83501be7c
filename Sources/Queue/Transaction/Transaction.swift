internal import EventLoops
internal import Logs
internal import Model

/// A change of the queue: its rows and what the store knows of them change together with the COMMIT, or not at all.
///
/// What needs a running transaction is a method of it, in the files `Transaction+….swift`; without one it cannot be
/// called. Letting go of a transaction rolls it back: the rows by `TableWriter`, the state because only a copy was changed.
struct Transaction: ~Copyable {
    /// Reads what the tables hold, changes of this transaction included.
    let file: QueueFile
    var tables: TableWriter
    /// What takes the place of the store's own state with the COMMIT.
    var state: QueueState
    /// What is to be logged once it is true.
    private var messages: [(Log) -> Void]

    init(_ file: QueueFile, _ state: QueueState) throws(QueueError) {
        tables = try TableWriter(file)
        self.file = file
        self.state = state
        messages = []
    }

    /// Logs once everything is durable; nothing if it never is.
    mutating func note(_ message: @escaping (Log) -> Void) { messages.append(message) }

    /// Makes everything durable and returns the state that holds from now on, or throws and rolls back.
    consuming func commit(_ log: Log) throws(QueueError) -> QueueState {
        var figures = state.figures
        try tables.write(&figures)
        state.figures = figures
        // With what is written anyway goes what the next process has to know of the clock.
        let steps = state.environment.lookAtClock()
        if steps != state.keptSteps { try tables.run("REPLACE INTO switch VALUES ('clock.steps', ?)", steps) }
        state.keptSteps = steps
        try tables.commit()
        for message in messages { message(log) }
        return state
    }

    var time: any TimeSource { state.environment.time }

    var unpacker: FrameUnpacker { state.environment.unpacker }

    func drawID() -> BatchID { state.environment.drawID() }
}
