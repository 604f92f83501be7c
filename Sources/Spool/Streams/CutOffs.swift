internal import EventLoops

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
    var at: BootInstant

    var holder: Holder { stream.holder }
}

/// Bytes that were truncated, or whose file was gone, before they could be read: given up once it is known that no copy has
/// them and that no other name leads to them.
struct CutOffs {
    /// A rotated file, or an archive, that turned up a short time ago: what is found truncated or gone next may have been in it.
    private struct Whole: Held {
        var streams: [Stream]
        var length: Int64
        var isNew: Bool
        var at: BootInstant

        var holder: Holder { streams[0].holder }
    }

    /// How long a copy is waited for, in times to settle: it is looked for at once and settles first.
    private static let settleTimes = 30
    /// How many are waited for; beyond them those of whoever has the most are given up at once.
    private static let most = 1024

    private var waiting: [CutOff] = []
    private var wholes: [Whole] = []
    private var givenUp: [CutOff] = []
    /// When the agenda comes back to them.
    private var planned: BootInstant?
    /// How long a copy, or a new name, is waited for.
    private let patience: Duration

    init(_ settleTime: Duration) { patience = settleTime * CutOffs.settleTimes }

    /// What is not waited for any more: to be counted, once.
    mutating func takeGivenUp() -> [CutOff] {
        defer { givenUp = [] }
        return givenUp
    }

    /// When `giveUpOld` is to be called, unless that was told before.
    mutating func plan(_ now: BootInstant) -> BootInstant? {
        guard planned == nil, let oldest = waiting.first else { return nil }
        let due = oldest.at + patience
        planned = due > now ? due : now + patience
        return planned
    }

    mutating func add(_ cut: CutOff) {
        var cut = cut
        // Its copy may have been read before this was noticed, or the file itself under another name.
        if cut.fingerprint.length == 0, cut.gone == nil {
            for whole in wholes where whole.isNew && whole.streams.contains(cut.stream) {
                cut.begin = max(cut.begin, whole.length)
            }
        } else if cut.fingerprint.length == 0,
            let index = wholes.firstIndex(where: { $0.length >= cut.end && $0.streams.contains(cut.stream) })
        {
            wholes.remove(at: index)
            return
        }
        guard cut.begin < cut.end else { return }
        waiting.append(cut)
        givenUp += waiting.makeRoom(for: CutOffs.most)
    }

    /// A file was found that was not known: it may be one that was gone, and goes on where its checkpoint says.
    mutating func found(_ id: FileID) {
        if !waiting.isEmpty { waiting.removeAll { $0.gone == id } }
    }

    /// A copy was recognised by its beginning, or an archive: it is read up to that length.
    mutating func recognised(_ fingerprint: Fingerprint, upTo length: Int64, of streams: [Stream], at now: BootInstant)
    {
        take(upTo: length) { streams.contains($0.stream) && $0.fingerprint == fingerprint }
        turnedUp(Whole(streams: streams, length: length, isNew: false, at: now))
    }

    /// A file under a rotated name, or an archive, is read whole: it may be a copy of one of which nothing had been read.
    mutating func readWhole(_ length: Int64, of streams: [Stream], at now: BootInstant) {
        take(upTo: length) { streams.contains($0.stream) && $0.fingerprint.length == 0 && $0.gone == nil }
        turnedUp(Whole(streams: streams, length: length, isNew: true, at: now))
    }

    /// It is what happened to one file that is gone, and of which nothing had been read; or is kept for one that is found gone next.
    private mutating func turnedUp(_ whole: Whole) {
        let isIts = { (cut: CutOff) in
            cut.gone != nil && cut.fingerprint.length == 0 && cut.end <= whole.length
                && whole.streams.contains(cut.stream)
        }
        if let index = waiting.firstIndex(where: isIts) {
            waiting.remove(at: index)
        } else {
            let window = patience
            wholes.removeAll { whole.at - $0.at > window }
            wholes.append(whole)
            _ = wholes.makeRoom(for: CutOffs.most)
        }
    }

    private mutating func take(upTo length: Int64, where isIts: (CutOff) -> Bool) {
        guard !waiting.isEmpty else { return }
        for index in waiting.indices where isIts(waiting[index]) {
            waiting[index].begin = max(waiting[index].begin, length)
        }
        waiting.removeAll { $0.begin >= $0.end }
    }

    /// The time has come to give up what no copy was found of, but for streams of which there may be copies that were not compared.
    /// While reading waits (`isHeldBack`) that cannot be known.
    mutating func giveUpOld(_ now: BootInstant, isHeldBack: Bool, suspected: Set<Stream>) {
        planned = nil
        guard !isHeldBack else { return }
        let window = patience
        let isOver = { (cut: CutOff) in now - cut.at >= window && !suspected.contains(cut.stream) }
        givenUp += waiting.filter(isOver)
        waiting.removeAll(where: isOver)
    }
}
