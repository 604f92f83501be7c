/// The append files that are there or still open, and which of them are to be read.
struct AppendFiles {
    /// All of them.
    private(set) var known = FileTable<ByID>()
    private(set) var streams = StreamIndex<AppendFile>()
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
        streams.add(file, to: file.streams)
    }

    mutating func remove(_ file: AppendFile) {
        known[file.id] = nil
        streams.remove(file, from: file.streams)
    }

    /// Changes what tells of which stream a file is.
    mutating func change(_ file: AppendFile, _ body: (AppendFile) -> Void) {
        guard known[file.id] === file else { return body(file) }
        streams.remove(file, from: file.streams)
        body(file)
        streams.add(file, to: file.streams)
    }

    /// Gives a file another place.
    mutating func move(_ file: AppendFile, to directory: SpoolDirectory, _ name: FileName, origin: FileName) {
        change(file) {
            $0.directory = directory
            $0.name = name
            $0.origin = origin
        }
    }

    /// The files of some streams.
    func files(of streams: [Stream]) -> [AppendFile] {
        let all = Set(streams.flatMap { self.streams[$0] })
        return all.filter { $0.streams.contains(where: streams.contains) }
    }

    /// The streams of which there may be copies that were not compared yet.
    var suspected: Set<Stream> {
        guard suspects > 0 else { return [] }
        return Set(known.values.lazy.filter(\.isCopySuspect).flatMap { Stream.asked($0.holder, $0.name) })
    }
}
