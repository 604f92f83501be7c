internal import EventLoops
internal import Glibc

/// What a WAL holds, also behind damage, where SQLite stops reading.
struct WALImage {
    /// The page size that its head names; nil if that is damaged.
    private(set) var pageSize: Int?
    /// Where the newest version of each page begins in the file.
    private(set) var pages: [Int: Int] = [:]
    /// The highest page in it.
    private(set) var lastPage = 0
    /// Whether complete transactions follow a damaged place: SQLite would silently drop them.
    private(set) var isDamaged = false

    /// A frame's head, and whether its own bytes are as they were written.
    private struct Frame {
        let page: Int
        let isCommit: Bool
        let state: State
    }

    private enum State {
        case sound
        case damaged
        /// The frame before it, which its checksum continues, is damaged.
        case unknown
    }

    /// Reads a database's WAL; nil if there is none.
    init?(_ database: String) {
        guard
            let file = try? Descriptor(
                checking: open(database + "-wal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW), "open")
        else { return nil }
        let size = Int(lseek(file.raw, 0, SEEK_END))
        var head = [UInt8](repeating: 0, count: 32)
        guard size > 32, pread(file.raw, &head, 32, 0) == 32 else { return nil }
        var sum = Checksum(isBigEndian: head[3] & 1 == 1)
        sum.add(head[0..<24])
        let magic = head.integer32(at: 0)
        let isSound =
            (magic == 0x377F_0682 || magic == 0x377F_0683) && sum.first == UInt32(head.integer32(at: 24))
            && sum.second == UInt32(head.integer32(at: 28))
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
        let count = (size - 32) / length
        guard count > 0 else { return }
        var bytes = [UInt8](repeating: 0, count: length)
        // Without a head: the salt of the first frames, which are the newest.
        var salt = head.map { Array($0[16..<24]) }
        if salt == nil {
            guard count > 1, pread(file.raw, &bytes, length, off_t(32 + length)) == length else { return }
            salt = Array(bytes[8..<16])
        }
        var frames: [Frame] = []
        var previous = head.map { (UInt32($0.integer32(at: 24)), UInt32($0.integer32(at: 28))) }
        var isBigEndian = head.map { $0[3] & 1 == 1 } ?? false
        if head == nil { isBigEndian = false }
        for index in 0..<count {
            guard pread(file.raw, &bytes, length, off_t(32 + index * length)) == length else { break }
            let isOfThis = salt.map { bytes[8..<16].elementsEqual($0) } ?? false
            var state = State.damaged
            let stored = (UInt32(bytes.integer32(at: 16)), UInt32(bytes.integer32(at: 20)))
            if let seed = previous {
                var sum = Checksum(isBigEndian: isBigEndian, first: seed.0, second: seed.1)
                sum.add(bytes[0..<8])
                sum.add(bytes[24...])
                if isOfThis, sum.first == stored.0, sum.second == stored.1 {
                    state = .sound
                } else if isOfThis, frames.last.map({ $0.state != .sound }) ?? false {
                    state = .unknown
                }
            } else if isOfThis {
                state = .unknown
            }
            frames.append(
                Frame(
                    page: bytes.integer32(at: 0), isCommit: isOfThis && bytes.integer32(at: 4) > 0, state: state))
            previous = stored
        }
        take(frames, length)
    }

    private mutating func take(_ frames: [Frame], _ length: Int) {
        let broken = frames.firstIndex { $0.state != .sound } ?? frames.count
        // Behind the transaction with the damage a whole one begins: it was made durable first, so that this is no tail of a
        // power cut.
        var end = (frames[..<broken].lastIndex { $0.isCommit }).map { $0 + 1 } ?? 0
        if broken < frames.count,
            let first = frames[broken...].firstIndex(where: { $0.isCommit && $0.state != .damaged }),
            let last = frames[(first + 1)...].lastIndex(where: { $0.isCommit && $0.state == .sound })
        {
            isDamaged = true
            end = last + 1
        }
        for (index, frame) in frames[..<end].enumerated() where frame.state != .damaged && frame.page > 0 {
            pages[frame.page] = 32 + index * length + 24
            lastPage = max(lastPage, frame.page)
        }
        // A page far beyond all others is a damaged number.
        if lastPage > 1 << 28 { lastPage = 0 }
    }

    /// Whether SQLite would leave out transactions that were complete: behind damage, or because the database is empty, for
    /// which it deletes the WAL.
    func isCutOff(_ database: String) -> Bool {
        var information = stat()
        // bounded: compared only.
        let isEmpty = stat(database, &information) != 0 || information.st_size == 0
        return isDamaged || isEmpty && !pages.isEmpty
    }

    /// SQLite's checksum over pairs of words.
    private struct Checksum {
        let isBigEndian: Bool
        var first: UInt32 = 0
        var second: UInt32 = 0

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
