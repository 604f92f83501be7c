/// The append files that are there or still open, and which of them are to be read.
struct AppendFiles {
    /// All of them.
    var known = FileTable<ByID>()
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
}
