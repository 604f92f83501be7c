internal import EventLoops
internal import Logs
internal import Model

/// What an append file was seen to hold beyond the place that was read when it was truncated, or when it was gone: a copy
/// that rotation made may have it, or the file has another name by now.
struct CutOff: Held {
    var path: FileName
    /// The file that is gone, which may turn up under another name; nil if it was truncated.
    var gone: FileID?
    /// What the file and its copies share.
    var stream: Stream
    /// The beginning of what the file held; empty if nothing of it was read, and no copy is known by it.
    var fingerprint: Fingerprint
    /// From here on nothing was read, neither here nor in a copy.
    var begin: Int64
    /// So far the file was seen to reach.
    var end: Int64
    /// When that was noticed.
    var at: BootInstant

    var holder: Holder { stream.holder }
}

/// A file under a rotated name, in which nothing was known from before.
struct WholeFile: Held {
    /// Those that it may belong to.
    var streams: [Stream]
    var length: Int64
    /// When it was looked at.
    var at: BootInstant

    var holder: Holder { streams[0].holder }
}

/// Bytes that were truncated, or whose file was gone, before they could be read: counted once it is known that no copy has
/// them and that no other name leads to them.
extension SpoolReader {
    /// How long a copy is waited for, in times to settle: it is looked for at once and settles first.
    private static let patienceForCopies = 30
    /// How many are waited for; beyond them those of whoever has the most are counted at once.
    private static let mostCutOffs = 1024

    /// A file is shorter than it was. What was seen of it, and not read, is looked for in copies.
    func cutOff(_ file: AppendFile, from begin: Int64) {
        let end = file.reached
        file.reached = 0
        guard end > begin else { return }
        var cut = CutOff(
            path: file.path, gone: nil, stream: file.streams[0], fingerprint: file.trace.fingerprint, begin: begin,
            end: end, at: now)
        if cut.fingerprint.length == 0 {
            // Its copy may have been read before this was noticed.
            for whole in appends.readWhole where whole.streams.contains(cut.stream) {
                cut.begin = max(cut.begin, whole.length)
            }
        }
        guard cut.begin < cut.end else { return }
        lookFor(cut)
    }

    /// A file is gone, and no descriptor of it is left: it was deleted, or renamed and not seen under its new name yet.
    func vanished(_ file: AppendFile) {
        let end = max(file.size, file.reached)
        file.reached = 0
        guard end > file.taken.offset else { return }
        lookFor(
            CutOff(
                path: file.path, gone: file.id, stream: file.streams[0], fingerprint: file.trace.fingerprint,
                begin: file.taken.offset, end: end, at: now))
    }

    /// A file was found that was not known: it may be one that was gone, and goes on where its checkpoint says.
    func foundAgain(_ id: FileID) {
        guard !appends.cutOffs.isEmpty else { return }
        appends.cutOffs.removeAll { $0.gone == id }
    }

    private func lookFor(_ cut: CutOff) {
        if appends.cutOffs.isEmpty { remember(.lookForCopies, after: patience) }
        appends.cutOffs.append(cut)
        for cut in appends.cutOffs.makeRoom(for: SpoolReader.mostCutOffs) { giveUp(cut) }
    }

    /// A copy was recognised by its beginning, or an archive: it is read up to that length.
    func recognised(_ fingerprint: Fingerprint, upTo length: Int64, of streams: [Stream]) {
        guard !appends.cutOffs.isEmpty else { return }
        for index in appends.cutOffs.indices
        where streams.contains(appends.cutOffs[index].stream) && appends.cutOffs[index].fingerprint == fingerprint {
            appends.cutOffs[index].begin = max(appends.cutOffs[index].begin, length)
        }
        appends.cutOffs.removeAll { $0.begin >= $0.end }
    }

    /// A file under a rotated name is read whole: it may be a copy of one of which nothing had been read.
    func readWhole(_ length: Int64, of streams: [Stream]) {
        let (now, window) = (now, patience)
        appends.readWhole.removeAll { now - $0.at > window }
        appends.readWhole.append(WholeFile(streams: streams, length: length, at: now))
        _ = appends.readWhole.makeRoom(for: SpoolReader.mostCutOffs)
        guard !appends.cutOffs.isEmpty else { return }
        for index in appends.cutOffs.indices
        where streams.contains(appends.cutOffs[index].stream) && appends.cutOffs[index].fingerprint.length == 0
            && appends.cutOffs[index].gone == nil
        {
            appends.cutOffs[index].begin = max(appends.cutOffs[index].begin, length)
        }
        appends.cutOffs.removeAll { $0.begin >= $0.end }
    }

    /// The time has come to give up what no copy was found of. While reading waits, or there are files that may be copies,
    /// that cannot be known.
    func lookForCopies() {
        if !isHeldBack {
            let suspected = appends.suspected
            var left: [CutOff] = []
            for cut in appends.cutOffs {
                if now - cut.at < patience || suspected.contains(cut.stream) {
                    left.append(cut)
                } else {
                    giveUp(cut)
                }
            }
            appends.cutOffs = left
            publish()
        }
        guard let oldest = appends.cutOffs.first else { return }
        let due = oldest.at + patience
        remember(.lookForCopies, at: due > now ? due : now + patience)
    }

    /// How long a copy, or a new name, is waited for.
    private var patience: Duration { options.settleTime * SpoolReader.patienceForCopies }

    private func giveUp(_ cut: CutOff) {
        counters.bytesGivenUp += ByteCount(cut.end - cut.begin)
        log.error(
            cut.gone == nil ? "file was truncated before it was read" : "file vanished before it was read",
            ["path": cut.path.text, "offset": cut.begin, "bytes": cut.end - cut.begin])
    }
}
