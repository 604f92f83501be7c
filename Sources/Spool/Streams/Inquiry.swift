internal import Model

/// A content that was read, of which a copy (copy-and-truncate) or an archive may turn up: its lines must not be taken again.
struct KnownContent {
    var fingerprint: Fingerprint
    /// All bytes before it were taken.
    var place: Mark
    /// Earlier places, ascending.
    var marks: [Mark]
    /// The file that still has this content, and in which it is read on.
    var carrier: AppendFile?
    /// Whether the file was emptied or written anew since: rotation may have copied it shortly before.
    var isCutOff: Bool
    var origin: FileName
    /// Whether its name says that it may have been in the file that is judged only by what stands before the extension.
    var isOfOtherName: Bool

    /// Whether it is still where it was written and so short that another file may well hold the same: what rotation copies is emptied
    /// or renamed, and then it is known by that.
    var isNoProof: Bool {
        guard isOfOtherName, let carrier else { return false }
        return !carrier.isRotated && place.offset < Int64(Fingerprint.longest)
    }
}

/// What is before some places of a file, or of what is unpacked from it.
struct Sight {
    private var places: [Int64: (mark: Mark, endsLine: Bool)] = [:]
    /// Where its content ends, if it was looked so far.
    var end: Mark?

    mutating func saw(_ mark: Mark, endsLine: Bool) { places[mark.offset] = (mark, endsLine) }

    /// Whether the bytes before a place are those that were read.
    func holds(_ mark: Mark) -> Bool { places[mark.offset]?.mark.ends(like: mark) == true }

    /// Whether a line ends before the offset, or the file does. What was taken of a torn line (`{"`) is the beginning of many files.
    func endsLine(at offset: Int64) -> Bool { places[offset]?.endsLine == true }
}

/// What does a file hold: something that was read, and where does reading go on, or something new?
///
/// Copies, archives, and files that became others under their readers' eyes are cases of this one question. It is a value without I/O:
/// `next` says what must be looked at before there is an answer, and whoever has the descriptors looks and says what was seen.
/// Losing is worse than repeating, so doubt makes a file new.
struct Inquiry {
    /// Whether the subject is still being made.
    enum Rest {
        case moving
        case quiet
        /// A copy is made at one go. What is written to now and then, under whatever name, is none for ever.
        case old
    }

    enum Step {
        /// Which bytes a file begins with: it may hold what the subject is a copy of, unread.
        case beginning(of: AppendFile)
        /// What is before these places of the subject, and where that ends if it ends before the last of them.
        case places([Int64])
        /// What all bytes of the changed file before these places sum up to.
        case sums(of: AppendFile, upTo: [Int64])
        /// Whether a file was read to its end, and is still what it holds.
        case end(of: AppendFile)
        case answer(Answer)
    }

    enum Answer {
        /// All before this place was read. The name that it was written under.
        case goOn(at: Mark, Fingerprint, FileName)
        case new
        /// That cannot be told yet; a file that is to be read first, if it is for that.
        case later(first: AppendFile?)
    }

    /// Whether it is about a file that is or was shorter than what was read of it, or holds other bytes; else about a copy or an archive.
    private let isChanged: Bool
    let streams: [Stream]
    private let head: Head
    /// How long it is; nil where only looking through it tells.
    let size: Int64?
    private let rest: Rest
    /// Files that may hold, unread, what the subject is a copy of.
    private var twins: [AppendFile]
    private var contents: [KnownContent] = []
    private var sight: Sight?
    private var sums: [Int64: UInt32]?
    private var readToTheEnd: Set<AppendFile> = []
    private var answer: Answer?

    /// - Parameters:
    ///   - contents: those that the subject begins with; the changed file's own.
    ///   - mayGrow: whether, with more bytes, it may begin with another.
    init(
        aboutChanged isChanged: Bool, head: Head, size: Int64?, _ rest: Rest, of streams: [Stream],
        twins: [AppendFile], contents: [KnownContent], mayGrow: Bool = false
    ) {
        (self.isChanged, self.head, self.size, self.rest) = (isChanged, head, size, rest)
        (self.streams, self.twins) = (streams, twins)
        // The rest of a short copy may be on its way: a busy machine or disk holds it up for seconds.
        let isShort = contents.contains { $0.place.offset > size ?? .max }
        let isEarly = rest == .moving && (mayGrow || !contents.isEmpty) || rest == .quiet && isShort
        if !isChanged, isEarly { answer = .later(first: nil) } else { self.contents = contents }
    }

    var next: Step {
        if let twin = twins.last { return .beginning(of: twin) }
        if let answer { return .answer(answer) }
        guard let sight else {
            let places = Set(contents.flatMap { self.places(of: $0) })
            return places.isEmpty ? .answer(.new) : .places(places.sorted())
        }
        return isChanged ? judgeChanged(sight) : judge(sight)
    }

    private func places(of content: KnownContent) -> [Int64] {
        let marks = content.marks.map(\.offset).filter { $0 > 0 }
        guard let size else { return marks + [content.place.offset] }
        if isChanged { return (marks + [content.place.offset]).filter { $0 > 0 && $0 <= size } }
        guard content.place.offset > size else { return [content.place.offset] }
        return marks.last { $0 <= size }.map { [$0, size] } ?? []
    }

    /// The one counts of which most is proven: what a file held when it was truncated may be the beginning of what it held next.
    private func judge(_ sight: Sight) -> Step {
        var best = (proven: Int64(0), place: Mark.start, content: KnownContent?.none)
        for content in contents {
            var (place, proven) = (content.place, content.place.offset)
            if let end = sight.end, content.place.offset > end.offset {
                // Copied before all of it was written. An equal beginning alone is no proof: many files have one.
                guard let proof = content.marks.last(where: { $0.offset <= end.offset }), sight.holds(proof) else {
                    continue
                }
                // It may have been truncated since it was last looked at.
                if let carrier = content.carrier, !readToTheEnd.contains(carrier) { return .end(of: carrier) }
                // A file that was renamed or deleted has no copies: one that has its beginning only is another program's start.
                (place, proven) = (content.isCutOff ? end : proof, proof.offset)
            } else {
                guard sight.holds(place), sight.endsLine(at: place.offset) else { continue }
                if let carrier = content.carrier {
                    // What is not read of it yet is read there, or here once it is truncated: never in both.
                    guard readToTheEnd.contains(carrier) else { return .end(of: carrier) }
                    // A copy is never longer than what it was copied from.
                    if let size, carrier.size < size { continue }
                    if content.isNoProof {
                        guard rest == .old else { return .answer(.later(first: nil)) }
                        continue
                    }
                }
            }
            if proven > best.proven { best = (proven, place, content) }
        }
        guard let content = best.content else { return .answer(.new) }
        return .answer(.goOn(at: best.place, content.fingerprint, content.origin))
    }

    /// A changed file goes on at the last mark before which every byte is the same: lines may begin and end alike.
    private func judgeChanged(_ sight: Sight) -> Step {
        guard let content = contents.first, let file = content.carrier else { return .answer(.new) }
        let earlier = content.marks.filter { $0.offset < content.place.offset }
        let held = (earlier + [content.place]).filter { sight.holds($0) }
        // It may become what it was: what is cut off and put back is not read again.
        guard held.isEmpty || rest != .moving else { return .answer(.later(first: nil)) }
        let provable = held.filter { $0.sum != 0 }
        guard !provable.isEmpty else { return .answer(.new) }
        guard let sums else { return .sums(of: file, upTo: provable.map(\.offset)) }
        guard let mark = provable.last(where: { $0.sum == sums[$0.offset] }) else { return .answer(.new) }
        return .answer(.goOn(at: mark, content.fingerprint, content.origin))
    }

    /// The bytes that the file begins with which `next` named; none if it is gone, or out of reach: reading finds out which.
    mutating func saw(beginning bytes: [UInt8]) {
        guard let twin = twins.popLast(), !bytes.isEmpty, !head.bytes.isEmpty,
            head.bytes.prefix(bytes.count).elementsEqual(bytes.prefix(head.bytes.count))
        else { return }
        let known = twin.trace.fingerprint
        guard known.length == 0 || !known.begins(bytes) else { return }
        twins = []
        answer = .later(first: twin)
    }

    mutating func saw(_ sight: Sight) { self.sight = sight }

    mutating func saw(sums: [Int64: UInt32]) { self.sums = sums }

    /// Whether the file that `next` named was read to its end; if it was not, it is read first.
    mutating func saw(_ carrier: AppendFile, isReadToItsEnd: Bool) {
        if isReadToItsEnd { readToTheEnd.insert(carrier) } else { answer = .later(first: carrier) }
    }

    /// What the subject begins with, as far as it covers so much.
    func fingerprint(upTo offset: Int64) -> Fingerprint { head.fingerprint(of: Int(clamping: offset)) }
}
