internal import EventLoops
internal import Glibc

/// The pages of a damaged database as they are on the disk: those of the file, and above them what the WAL holds.
///
/// Nothing that it reads is trusted: numbers are checked before they are used, and what is missing is nil.
final class PageImage {
    /// The size of a page, in bytes.
    let pageSize: Int
    /// How many pages there are.
    let count: Int
    private let database: Descriptor
    private var wal: Descriptor?
    private let newer: [Int: Int]
    /// Whether pages may be older than what was committed: their newest version in the WAL is damaged.
    let mayBeStale: Bool
    /// The map that was read last, for pages are asked for in their order; nil for one that is not sound.
    private var maps: [Int: [UInt8]?] = [:]
    private lazy var freed = listedAsFree()

    /// Opens both files; nil if there is no database to read.
    init?(_ path: String) {
        guard let file = try? Descriptor(checking: open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), "open") else {
            return nil
        }
        let log = WALImage(path)
        let size = max(0, Int(lseek(file.raw, 0, SEEK_END)))
        pageSize = log?.pageSize ?? PageImage.likelySize(of: file, size)
        count = min(max(size / pageSize + (size % pageSize > 0 ? 1 : 0), log?.lastPage ?? 0), Int(UInt32.max) - 1)
        newer = log?.pages ?? [:]
        mayBeStale = log?.isDamaged ?? false
        database = file
        wal = try? Descriptor(checking: open(path + "-wal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW), "open")
    }

    /// A page; nil where there is none. One that the file ends in is filled up with zeros.
    func page(_ number: Int) -> [UInt8]? {
        guard number >= 1, number <= count else { return nil }
        var bytes = [UInt8](repeating: 0, count: pageSize)
        let got: Int
        if let place = newer[number], let log = wal?.raw {
            got = pread(log, &bytes, pageSize, off_t(place))
        } else {
            got = pread(database.raw, &bytes, pageSize, off_t((number - 1) * pageSize))
        }
        return got > 0 ? bytes : nil
    }

    /// Whether nothing uses a page, so that rows on it are old ones; as the list of free pages says where the map is damaged.
    ///
    /// By the map, what is neither free nor a root has a parent: a bit that is wrong in its kind hides no rows and brings none back.
    func isFree(_ number: Int) -> Bool {
        guard number > 2 else { return false }
        let span = pageSize / 5 + 1
        let mapped = (number - 2) / span * span + 2
        guard mapped != number else { return false }
        guard let map = map(mapped) else { return freed.contains(number) }
        let entry = 5 * (number - mapped - 1)
        return map[entry] == 2 || map[entry] > 2 && map.integer32(at: entry + 1) == 0
    }

    /// A page that says of each of the next ones what it is; nil if it cannot be one.
    private func map(_ number: Int) -> [UInt8]? {
        if let known = maps[number] { return known }
        let entries = max(0, min(pageSize / 5, count - number))
        let map = page(number).flatMap { bytes in
            let isSound = (0..<entries).allSatisfy { entry in
                (1...5).contains(bytes[5 * entry]) && bytes.integer32(at: 5 * entry + 1) <= count
            }
            return isSound ? bytes : nil
        }
        maps = [number: map]
        return map
    }

    /// The list of free pages, for where a map is damaged.
    private func listedAsFree() -> Set<Int> {
        guard let first = page(1) else { return [] }
        var free: Set<Int> = []
        var trunk = first.integer32(at: 32)
        while trunk > 1, trunk <= count, free.insert(trunk).inserted, let bytes = page(trunk) {
            let leaves = min(bytes.integer32(at: 4), pageSize / 4 - 2)
            for leaf in 0..<leaves { free.insert(bytes.integer32(at: 8 + 4 * leaf)) }
            trunk = bytes.integer32(at: 0)
        }
        return free
    }

    /// The size in the head, or the one under which most pages make sense.
    private static func likelySize(of file: borrowing Descriptor, _ size: Int) -> Int {
        var head = [UInt8](repeating: 0, count: 100)
        _ = pread(file.raw, &head, head.count, 0)
        let said = Int(head[16]) << 8 | Int(head[17])
        var best = (size: 4_096, score: -1)
        for candidate in [said == 1 ? 65_536 : said, 4_096, 16_384, 8_192, 2_048, 1_024]
        where candidate >= 512 && candidate & (candidate - 1) == 0 {
            var bytes = [UInt8](repeating: 0, count: candidate)
            var score = 0
            // Of the first pages: the same bytes are looked at whatever the size.
            for page in 0..<min(size, 16 << 20) / candidate {
                guard pread(file.raw, &bytes, candidate, off_t(page * candidate)) == candidate else { break }
                guard let tree = TreePage(bytes, isFirst: page == 0) else { continue }
                // Where an empty page's cells would begin, at its end, tells its size; without them a size twice as large could
                // score more by every second page.
                let begin = bytes.integer16(at: (page == 0 ? 100 : 0) + 5)
                if !tree.cells.isEmpty || begin == candidate % 65_536 { score += candidate }
            }
            if score > best.score { best = (candidate, score) }
        }
        return best.size
    }
}

extension [UInt8] {
    /// A number of two bytes, the high one first; 0 beyond the end.
    func integer16(at place: Int) -> Int {
        guard place >= 0, place <= count - 2 else { return 0 }
        return Int(self[place]) << 8 | Int(self[place + 1])
    }

    /// A number of four bytes, the highest first; 0 beyond the end.
    func integer32(at place: Int) -> Int {
        integer16(at: place) << 16 | integer16(at: place &+ 2)
    }

    /// A number as SQLite packs it, in one to nine bytes, and where the next thing begins; nil beyond the end.
    func packed(at place: Int) -> (value: UInt64, next: Int)? {
        var value: UInt64 = 0
        for index in 0..<9 {
            guard place >= 0, place <= count - 1 - index else { return nil }
            let byte = self[place + index]
            if index == 8 { return (value << 8 | UInt64(byte), place + 9) }
            value = value << 7 | UInt64(byte & 0x7F)
            if byte < 0x80 { return (value, place + index + 1) }
        }
        return nil
    }
}
