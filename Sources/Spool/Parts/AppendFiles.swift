/// The append files that are there or still open, and which of them are to be read.
struct AppendFiles {
    /// All of them.
    private(set) var known = FileTable<ByID>()
    private var streams = StreamIndex<AppendFile>()
    /// Those with something to read, by app.
    var ready = FairQueue<AppendFile>()
    /// Those with bytes that are not in the queue.
    var unread = FileTable<ByID>()
    /// Those that lost their name and are not read to the end.
    var nameless = FileTable<ByID>()
    /// How many may be copies and were not compared yet.
    var suspects = 0
    /// What was truncated before it was read, and is looked for in copies.
    var cutOffs: [CutOff] = []
    /// Files under rotated names that were read whole a short time ago: they may be copies of what is found truncated next.
    var readWhole: [WholeFile] = []

    mutating func add(_ file: AppendFile) {
        known[file.id] = file
        streams.add(file, to: file.stream)
    }

    mutating func remove(_ file: AppendFile) {
        known[file.id] = nil
        streams.remove(file, from: file.stream)
    }

    /// Changes what tells of which stream a file is.
    mutating func change(_ file: AppendFile, _ body: (AppendFile) -> Void) {
        guard known[file.id] === file else { return body(file) }
        streams.remove(file, from: file.stream)
        body(file)
        streams.add(file, to: file.stream)
    }

    /// The files of a stream.
    func files(of stream: Stream) -> [AppendFile] { streams[stream].filter { $0.stream == stream } }

    /// Files of which nothing is known but that they are there: copies that are still to be told apart, and files that nothing
    /// was read of yet.
    func undecided(of stream: Stream) -> [AppendFile] {
        files(of: stream).filter { $0.isCopySuspect || $0.trace.fingerprint.length == 0 }
    }
}
