internal import Model

/// A content that was read. A copy (copy-and-truncate) or an archive of it may appear; its lines must not be
/// read again.
struct KnownContent {
    var fingerprint: Fingerprint
    /// The position before which all bytes were taken.
    var taken: Mark
    /// Marks at earlier positions, ascending.
    var marks: [Mark]
    /// The file that has this content and in which it is read on; nil if it is gone or was rewritten.
    var carrier: AppendFile?
    /// Whether the content's file was truncated or rewritten since. Rotation may have copied it shortly
    /// before.
    var isCutOff: Bool
    /// The name that the content was written under.
    var origin: FileName
    /// Whether the name matches that of the subject only without the number before the extension
    /// (`app-1.log`).
    var isOfOtherName: Bool

    /// Whether a match with this content proves nothing: the names differ in a number, the content is short,
    /// and its file has not been rotated. Files such as `worker-1.log` and `worker-2.log` may begin alike; a
    /// file that rotation has copied would have been emptied or renamed.
    var isNoProof: Bool {
        guard isOfOtherName, let carrier else { return false }
        return !carrier.isRotated && taken.offset < Int64(Fingerprint.longest)
    }
}

/// The marks that were found at some offsets of a file, or of the unpacked content of an archive.
struct Sight {
    private var marks: [Int64: (mark: Mark, endsLine: Bool)] = [:]
    /// The end of the content, if it was reached.
    var end: Mark?

    mutating func saw(_ mark: Mark, endsLine: Bool) { marks[mark.offset] = (mark, endsLine) }

    /// Whether a line ends between some bytes and the one behind them, in UTF-8 or UTF-16.
    static func endsLine(_ before: ArraySlice<UInt8>, _ next: UInt8?) -> Bool {
        before.last == 0x0A || before.suffix(2).elementsEqual([0x0A, 0]) || next == 0x0A
    }

    /// Whether the bytes right before a mark are the same as those that were read.
    func holds(_ mark: Mark) -> Bool { marks[mark.offset]?.mark.ends(like: mark) == true }

    /// Whether a line or the file ends at the offset. Otherwise the taken part may be an incomplete line such
    /// as `{"`, with which many files begin.
    func endsLine(at offset: Int64) -> Bool { marks[offset]?.endsLine == true }
}

/// The question which content a file holds: a content that was read (and where reading continues), or a new
/// one.
///
/// Copies, archives, and files that were truncated or rewritten are cases of this question. An inquiry is a
/// value without I/O: `next` names what must be examined before there is an answer; the reader, which has the
/// descriptors, examines it and reports the result. Losing lines is worse than repeating them, so in doubt a
/// file is new.
struct Inquiry {
    /// Whether the subject is still being written.
    enum Recency {
        /// Bytes were added recently.
        case moving
        /// The file has not changed for the settle time.
        case quiet
        /// The file is older than the time that a copy may take. Copies are made in one go, so a file that is
        /// written to from time to time stops being suspected.
        case old
    }

    /// What the inquiry needs next.
    enum Step {
        /// The first bytes of a file. It may hold, unread, the original of the subject.
        case beginning(of: AppendFile)
        /// The marks at these offsets of the subject, and the end of its content if that is before the last
        /// of them.
        case offsets([Int64])
        /// The checksums of all bytes of the changed file before these offsets.
        case sums(of: AppendFile, upTo: [Int64])
        /// Whether a file was read to its end and still holds what was read.
        case end(of: AppendFile)
        /// Whether a file that has changed still holds what was read of it.
        case content(of: AppendFile)
        /// Nothing; the answer is known.
        case answer(Answer)
    }

    /// The answer to the question.
    enum Answer {
        /// Everything before the mark was read; with the content's fingerprint and the name that it was
        /// written under.
        case goOn(at: Mark, Fingerprint, FileName)
        /// The content is new, and is read from its beginning.
        case new
        /// The question cannot be answered yet: time must pass, or the file `first` must be read first.
        case later(first: AppendFile?)
    }

    /// Whether the subject is a known file that was truncated or rewritten; otherwise it is a possible copy
    /// or an archive.
    private let isChanged: Bool
    /// The streams to which the subject may belong.
    let streams: [Stream]
    /// The first bytes of the subject.
    private let head: Head
    /// Length of the subject; nil for an archive, which must be unpacked to find out.
    let size: Int64?
    private let recency: Recency
    /// Files that may hold, unread, the original of the subject.
    private var twins: [AppendFile]
    /// The contents with which the subject may be identical.
    private var contents: [KnownContent] = []
    /// The marks that were found in the subject; nil until they were reported.
    private var sight: Sight?
    /// The checksums of the changed file; nil until they were reported.
    private var sums: [Int64: UInt32]?
    /// Carriers that were found to be read to their ends.
    private var readToTheEnd: Set<AppendFile> = []
    /// Changed carriers that were found to hold what was read of them.
    private var notRewritten: Set<AppendFile> = []
    /// An answer that does not depend on marks.
    private var answer: Answer?

    /// - Parameters:
    ///   - contents: the contents with which the subject begins; for a changed file its own.
    ///   - mayGrow: whether the subject may begin with a further content once it has more bytes.
    init(
        aboutChanged isChanged: Bool, head: Head, size: Int64?, _ recency: Recency, of streams: [Stream],
        twins: [AppendFile], contents: [KnownContent], mayGrow: Bool = false
    ) {
        self.isChanged = isChanged
        self.head = head
        self.size = size
        self.recency = recency
        self.streams = streams
        self.twins = twins
        // A copy that is shorter than the content may still be growing: a busy machine or disk can pause the
        // copying for seconds.
        let isShort = contents.contains { $0.taken.offset > size ?? .max }
        let isEarly = recency == .moving && (mayGrow || !contents.isEmpty) || recency == .quiet && isShort
        if !isChanged, isEarly {
            answer = .later(first: nil)
        } else {
            self.contents = contents
        }
    }

    /// The next thing to examine, or the answer. The reader asks again after each report (`saw`).
    var next: Step {
        if let twin = twins.last { return .beginning(of: twin) }
        if let answer { return .answer(answer) }
        guard let sight else {
            let offsets = Set(contents.flatMap { self.offsets(of: $0) })
            return offsets.isEmpty ? .answer(.new) : .offsets(offsets.sorted())
        }
        return isChanged ? judgeChanged(sight) : judge(sight)
    }

    /// The offsets at which marks of a content are compared. For a copy that is shorter than the content, its
    /// last mark within the copy and the end of the copy.
    private func offsets(of content: KnownContent) -> [Int64] {
        let marks = content.marks.map(\.offset).filter { $0 > 0 }
        guard let size else { return marks + [content.taken.offset] }
        if isChanged {
            return (marks + [content.taken.offset]).filter { $0 > 0 && $0 <= size }
        }
        guard content.taken.offset > size else { return [content.taken.offset] }
        return marks.last { $0 <= size }.map { [$0, size] } ?? []
    }

    /// Judges a copy or an archive. Of several matching contents the one with the most proven bytes is
    /// chosen: what a file held before a truncation may be the beginning of what it held next.
    private func judge(_ sight: Sight) -> Step {
        var best = (proven: Int64(0), mark: Mark.start, content: KnownContent?.none)
        for content in contents {
            var mark = content.taken
            var proven = content.taken.offset
            if let end = sight.end, content.taken.offset > end.offset {
                // The copy was made before all of the content was written. An equal beginning alone proves
                // nothing, because many files begin alike; a mark must match.
                guard let proof = content.marks.last(where: { $0.offset <= end.offset }), sight.holds(proof)
                else {
                    if let carrier = mayBeRewritten(content) { return .content(of: carrier) }
                    continue
                }
                // The carrier may have been truncated since it was last examined.
                if let carrier = content.carrier, !readToTheEnd.contains(carrier) { return .end(of: carrier) }
                // Only a file that was truncated or rewritten has been copied. A file with the same beginning
                // as a renamed or deleted one is another start of the program, of which only the proven part
                // was read.
                mark = content.isCutOff ? end : proof
                proven = proof.offset
            } else {
                guard sight.holds(mark), sight.endsLine(at: mark.offset) else {
                    if let carrier = mayBeRewritten(content) { return .content(of: carrier) }
                    continue
                }
                if let carrier = content.carrier {
                    // The unread part is read in the carrier, or in the copy once the carrier is truncated,
                    // but never in both.
                    guard readToTheEnd.contains(carrier) else { return .end(of: carrier) }
                    // A copy is never longer than its original.
                    if let size, carrier.size < size { continue }
                    if content.isNoProof {
                        guard recency == .old else { return .answer(.later(first: nil)) }
                        continue
                    }
                }
            }
            // Of two that are proven equally the one that was read less far counts, so that no line is lost.
            if proven > best.proven || proven == best.proven && mark.offset < best.mark.offset {
                best = (proven, mark, content)
            }
        }
        guard let content = best.content else { return .answer(.new) }
        return .answer(.goOn(at: best.mark, content.fingerprint, content.origin))
    }

    /// The carrier of a content that does not match, if it has changed and may hold something else by now:
    /// the subject may be a copy of that. Without this question the lines of a file that was cut in the
    /// middle, written to and compressed before it was looked at would come twice.
    private func mayBeRewritten(_ content: KnownContent) -> AppendFile? {
        guard let carrier = content.carrier, carrier.isReady || carrier.stage == .cut,
            !notRewritten.contains(carrier)
        else { return nil }
        return carrier
    }

    /// Judges a changed file: it continues at the last mark before which every byte is the same. The checksum
    /// is needed because lines may begin and end alike.
    private func judgeChanged(_ sight: Sight) -> Step {
        guard let content = contents.first, let file = content.carrier else { return .answer(.new) }
        let earlier = content.marks.filter { $0.offset < content.taken.offset }
        let held = (earlier + [content.taken]).filter { sight.holds($0) }
        // The file may be restored: bytes that are cut off and put back are not read again.
        guard held.isEmpty || recency != .moving else { return .answer(.later(first: nil)) }
        let provable = held.filter { $0.sum != 0 }
        guard !provable.isEmpty else { return .answer(.new) }
        guard let sums else { return .sums(of: file, upTo: provable.map(\.offset)) }
        guard let mark = provable.last(where: { $0.sum == sums[$0.offset] }) else { return .answer(.new) }
        return .answer(.goOn(at: mark, content.fingerprint, content.origin))
    }

    /// Reports the first bytes of the file that `next` named; empty if the file is gone or cannot be read.
    mutating func saw(beginning bytes: [UInt8]) {
        guard let twin = twins.popLast(), !bytes.isEmpty, !head.bytes.isEmpty,
            head.bytes.prefix(bytes.count).elementsEqual(bytes.prefix(head.bytes.count))
        else { return }
        let known = twin.trace.fingerprint
        guard known.length == 0 || !known.begins(bytes) else { return }
        twins = []
        answer = .later(first: twin)
    }

    /// Reports the marks that `next` asked for.
    mutating func saw(_ sight: Sight) { self.sight = sight }

    /// Reports the checksums that `next` asked for.
    mutating func saw(sums: [Int64: UInt32]) { self.sums = sums }

    /// Reports whether the file that `next` named was read to its end. If not, it must be read first.
    mutating func saw(_ carrier: AppendFile, isReadToItsEnd: Bool) {
        if isReadToItsEnd {
            readToTheEnd.insert(carrier)
        } else {
            answer = .later(first: carrier)
        }
    }

    /// Reports whether the file that `next` named still holds what was read of it. If not, it must be read
    /// first.
    mutating func saw(_ carrier: AppendFile, holdsWhatWasRead: Bool) {
        if holdsWhatWasRead {
            notRewritten.insert(carrier)
        } else {
            answer = .later(first: carrier)
        }
    }

    /// The fingerprint of the subject up to an offset, at most of the bytes in `head`.
    func fingerprint(upTo offset: Int64) -> Fingerprint { head.fingerprint(of: Int(clamping: offset)) }
}
