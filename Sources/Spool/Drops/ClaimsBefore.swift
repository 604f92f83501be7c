internal import Model

/// Names of drop files of earlier runs that are in the queue and whose removal was not known to be durable.
/// They may still exist, under the claim or under the original name.
struct ClaimsBefore {
    private var names: [FileName: Set<FileName>] = [:]

    init(_ done: [DoneRecord] = []) {
        for record in done {
            let claim = FileName(record.claim).last
            names[FileName(record.claim).parent, default: []].formUnion([claim, claim.claimed ?? claim])
        }
    }

    /// The names to look at in a directory. Each directory gets them once.
    mutating func takeNames(in directory: FileName) -> [FileName] {
        names.removeValue(forKey: directory)?.sorted() ?? []
    }
}

/// A drop file that is in the queue and still exists, because it has to stay or could not be removed.
struct StuckFile {
    let records: [DoneRecord]
    let directory: SpoolDirectory
    let name: FileName
    /// The app or owner to whose bound on such files it counts.
    let share: String

    var path: FileName { directory.path(of: name) }
}
