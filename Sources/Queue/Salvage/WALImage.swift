internal import EventLoops
internal import Glibc

/// What a WAL holds, including transactions behind damage, which SQLite does not read.
/// https://www.sqlite.org/fileformat2.html#walformat
struct WALImage {
    /// Page size in bytes, from the header, or the size with which frames were found if the header is
    /// damaged.
    private(set) var pageSize: Int?
    /// Offset in the WAL of the newest version of each page.
    private(set) var pages: [Int: Int] = [:]
    /// Highest page number in the WAL.
    private(set) var lastPage = 0
    /// Whether complete transactions follow a damaged frame. SQLite would silently drop them.
    private(set) var isDamaged = false

    /// The header of a frame, and whether its content is what was written.
    private struct Frame {
        /// Number of the page that the frame contains.
        let page: Int
        /// Number of pages of the database after the transaction that the frame ends; 0 if it ends no
        /// transaction.
        let size: Int
        let state: State

        /// Whether the frame is the last one of a transaction.
        var isCommit: Bool { size > 0 }
    }

    /// What a frame's checksum says.
    private enum State {
        /// The checksum is right: it continues the one stored in the frame before.
        case sound
        /// The checksum is wrong, or the frame belongs to an earlier run of the WAL.
        case damaged
        /// The checksum continues that of the previous frame, which is damaged.
        case unknown
    }

    /// Reads the WAL of a database; nil if it does not exist or has no frames.
    init?(_ database: String) {
        guard
            let file = try? Descriptor(
                checking: open(database + "-wal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW), "open")
        else { return nil }
        let size = Int(lseek(file.raw, 0, SEEK_END))
        var head = [UInt8](repeating: 0, count: 32)
        guard size > 32, pread(file.raw, &head, 32, 0) == 32 else { return nil }
        let isBigEndian = head[3] & 1 == 1
        var sum = Checksum(isBigEndian: isBigEndian)
        sum.add(head[0..<24])
        // The magic number, whose last bit is the byte order of the checksums.
        let isSound =
            head.integer32(at: 0) | 1 == 0x377F_0683
            && sum == Checksum(isBigEndian: isBigEndian, stored: head[24..<32])
        let said = head.integer32(at: 8)
        if isSound, said >= 512, said <= 65_536, said & (said - 1) == 0 {
            pageSize = said
        }
        // With a damaged header the sizes that the queue uses are tried.
        for candidate in pageSize.map({ [$0] }) ?? [4_096, 16_384] {
            read(file, size, candidate, isSound ? head : nil)
            if !pages.isEmpty {
                pageSize = candidate
                break
            }
        }
    }

    /// Reads the frames and checks each one's checksum against that of the frame before it.
    private mutating func read(_ file: borrowing Descriptor, _ size: Int, _ pageSize: Int, _ head: [UInt8]?) {
        let length = pageSize + 24
        var bytes = [UInt8](repeating: 0, count: length)
        // Without a header the salt of the second frame decides which frames are valid: the newest frames are
        // at the beginning of the file.
        if head == nil, pread(file.raw, &bytes, length, off_t(32 + length)) != length { return }
        let salt = head.map { $0[16..<24] } ?? bytes[8..<16]
        var frames: [Frame] = []
        var sum = head.map { Checksum(isBigEndian: $0[3] & 1 == 1, stored: $0[24..<32]) }
        for index in 0..<(size - 32) / length {
            guard pread(file.raw, &bytes, length, off_t(32 + index * length)) == length else { break }
            let isOfThis = bytes[8..<16].elementsEqual(salt)
            let stored = Checksum(isBigEndian: sum?.isBigEndian ?? false, stored: bytes[16..<24])
            let isFirstOrBehindDamage = frames.last.map { $0.state != .sound } ?? (sum == nil)
            sum?.add(bytes[0..<8])
            sum?.add(bytes[24...])
            let state: State =
                !isOfThis ? .damaged : sum == stored ? .sound : isFirstOrBehindDamage ? .unknown : .damaged
            let size = isOfThis ? bytes.integer32(at: 4) : 0
            frames.append(Frame(page: bytes.integer32(at: 0), size: size, state: state))
            sum = stored
        }
        chooseFrames(frames, length)
    }

    /// Chooses the frames up to the last complete transaction and records their pages.
    private mutating func chooseFrames(_ frames: [Frame], _ length: Int) {
        let broken = frames.firstIndex { $0.state != .sound } ?? frames.count
        // If a complete transaction begins behind the damaged one, the damaged one was made durable
        // before it. So the damage is not the tail that a power cut leaves.
        var end = (frames[..<broken].lastIndex { $0.isCommit }).map { $0 + 1 } ?? 0
        if broken < frames.count,
            let first = frames[broken...].firstIndex(where: { $0.isCommit && $0.state != .damaged }),
            let last = frames[(first + 1)...].lastIndex(where: { $0.isCommit && $0.state == .sound })
        {
            isDamaged = true
            end = last + 1
        }
        // A page number above that of all committed sizes is damaged.
        let most = frames[..<end].filter { $0.state == .sound }.map(\.size).max() ?? 0
        for (index, frame) in frames[..<end].enumerated()
        where frame.state != .damaged && frame.page > 0 && frame.page <= most {
            pages[frame.page] = 32 + index * length + 24
            lastPage = max(lastPage, frame.page)
        }
    }

    /// Whether SQLite would drop complete transactions: those behind damage, or the whole WAL of an
    /// empty database, which it deletes.
    func isCutOff(_ database: String) -> Bool {
        let isEmpty = FileStatus(database)?.size ?? 0 == 0
        return isDamaged || isEmpty && !pages.isEmpty
    }

    /// SQLite's cumulative checksum over pairs of 32-bit words.
    /// https://www.sqlite.org/fileformat2.html#checksum_algorithm
    private struct Checksum: Equatable {
        let isBigEndian: Bool
        private var first: UInt32 = 0
        private var second: UInt32 = 0

        init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

        /// A stored checksum, to compare with or to continue from.
        init(isBigEndian: Bool, stored bytes: ArraySlice<UInt8>) {
            self.isBigEndian = isBigEndian
            first = UInt32(Array(bytes).integer32(at: 0))
            second = UInt32(Array(bytes).integer32(at: 4))
        }

        /// Adds bytes, whose number must be a multiple of eight.
        mutating func add(_ bytes: ArraySlice<UInt8>) {
            bytes.withUnsafeBytes { raw in
                for offset in stride(from: 0, to: raw.count - 7, by: 8) {
                    let one = raw.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
                    let other = raw.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
                    first &+= (isBigEndian ? UInt32(bigEndian: one) : UInt32(littleEndian: one)) &+ second
                    second &+= (isBigEndian ? UInt32(bigEndian: other) : UInt32(littleEndian: other)) &+ first
                }
            }
        }
    }
}
