internal import EventLoops
internal import Glibc

/// What a WAL holds, also behind damage, where SQLite stops reading.
struct WALImage {
    /// The page size that its head names; nil if that is damaged.
    private(set) var pageSize: Int?
    /// Where the newest version of each page begins in the file.
    private(set) var pages: [Int: Int] = [:]
    private(set) var lastPage = 0
    /// Whether complete transactions follow a damaged place: SQLite would silently drop them.
    private(set) var isDamaged = false

    /// A frame's head, and whether its own bytes are as they were written.
    private struct Frame {
        let page: Int
        /// How many pages the database has after the transaction that it ends; 0: it ends none.
        let size: Int
        let state: State

        var isCommit: Bool { size > 0 }
    }

    private enum State {
        case sound
        case damaged
        /// The frame before it, which its checksum continues, is damaged.
        case unknown
    }

    /// Reads a database's WAL; nil if there is none.
    init?(_ database: String) {
        guard let file = try? Descriptor(checking: open(database + "-wal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW), "open")
        else { return nil }
        let size = Int(lseek(file.raw, 0, SEEK_END))
        var head = [UInt8](repeating: 0, count: 32)
        guard size > 32, pread(file.raw, &head, 32, 0) == 32 else { return nil }
        let isBigEndian = head[3] & 1 == 1
        var sum = Checksum(isBigEndian: isBigEndian)
        sum.add(head[0..<24])
        let isSound =
            head.integer32(at: 0) | 1 == 0x377F_0683 && sum == Checksum(isBigEndian: isBigEndian, stored: head[24..<32])
        let said = head.integer32(at: 8)
        if isSound, said >= 512, said <= 65_536, said & (said - 1) == 0 { pageSize = said }
        for candidate in pageSize.map({ [$0] }) ?? [4_096, 16_384] {
            read(file, size, candidate, isSound ? head : nil)
            if !pages.isEmpty {
                pageSize = candidate
                break
            }
        }
    }

    private mutating func read(_ file: borrowing Descriptor, _ size: Int, _ pageSize: Int, _ head: [UInt8]?) {
        let length = pageSize + 24
        var bytes = [UInt8](repeating: 0, count: length)
        // Without a head: the salt of the first frames, which are the newest.
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
        take(frames, length)
    }

    private mutating func take(_ frames: [Frame], _ length: Int) {
        let broken = frames.firstIndex { $0.state != .sound } ?? frames.count
        // Behind the damaged transaction a whole one begins: that was made durable before, so this is no power cut's tail.
        var end = (frames[..<broken].lastIndex { $0.isCommit }).map { $0 + 1 } ?? 0
        if broken < frames.count,
            let first = frames[broken...].firstIndex(where: { $0.isCommit && $0.state != .damaged }),
            let last = frames[(first + 1)...].lastIndex(where: { $0.isCommit && $0.state == .sound })
        {
            isDamaged = true
            end = last + 1
        }
        // A page beyond all that transactions name is a damaged number.
        let most = frames[..<end].filter { $0.state == .sound }.map(\.size).max() ?? 0
        for (index, frame) in frames[..<end].enumerated()
        where frame.state != .damaged && frame.page > 0 && frame.page <= most {
            pages[frame.page] = 32 + index * length + 24
            lastPage = max(lastPage, frame.page)
        }
    }

    /// Whether SQLite would leave out complete transactions: behind damage, or of an empty database, whose WAL it deletes.
    func isCutOff(_ database: String) -> Bool {
        let isEmpty = FileStatus(database)?.size ?? 0 == 0
        return isDamaged || isEmpty && !pages.isEmpty
    }

    /// SQLite's checksum over pairs of words.
    private struct Checksum: Equatable {
        let isBigEndian: Bool
        private var first: UInt32 = 0
        private var second: UInt32 = 0

        init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

        /// The one that eight bytes say, to be compared, or gone on with.
        init(isBigEndian: Bool, stored bytes: ArraySlice<UInt8>) {
            self.isBigEndian = isBigEndian
            first = UInt32(Array(bytes).integer32(at: 0))
            second = UInt32(Array(bytes).integer32(at: 4))
        }

        mutating func add(_ bytes: ArraySlice<UInt8>) {
            bytes.withUnsafeBytes { raw in
                for place in stride(from: 0, to: raw.count - 7, by: 8) {
                    let one = raw.loadUnaligned(fromByteOffset: place, as: UInt32.self)
                    let other = raw.loadUnaligned(fromByteOffset: place + 4, as: UInt32.self)
                    first &+= (isBigEndian ? UInt32(bigEndian: one) : UInt32(littleEndian: one)) &+ second
                    second &+= (isBigEndian ? UInt32(bigEndian: other) : UInt32(littleEndian: other)) &+ first
                }
            }
        }
    }
}
