internal import EventLoops
internal import Glibc

/// The pages of a damaged database as they are on disk: those of the file, replaced by newer versions
/// in the WAL. The file format is described in https://www.sqlite.org/fileformat2.html.
///
/// No byte is trusted: each number is checked before it is used, and what is missing is nil.
final class PageImage {
    /// Size of a page in bytes, from the WAL, the file's header, or a guess.
    let pageSize: Int
    /// Number of pages, including those that are only in the WAL.
    let count: Int
    private let database: Descriptor
    /// The WAL; nil if it does not exist.
    private var wal: Descriptor?
    /// Offset in the WAL of the newest version of each page that it holds.
    private let newer: [Int: Int]
    /// Whether pages may be older than the last COMMIT, because their newest version in the WAL is
    /// damaged.
    let mayBeStale: Bool
    /// The pointer map that was read last, nil if it is not sound. One is enough, because pages are
    /// read in order.
    private var maps: [Int: [UInt8]?] = [:]
    /// Pages on the list of free pages.
    private lazy var freed = listedAsFree()

    /// Opens database and WAL; nil if there is no database.
    init?(_ path: String) {
        guard let file = try? Descriptor(checking: open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), "open")
        else {
            return nil
        }
        let log = WALImage(path)
        let size = max(0, Int(lseek(file.raw, 0, SEEK_END)))
        pageSize = log?.pageSize ?? PageImage.likelySize(of: file, size)
        count = min(
            max(size / pageSize + (size % pageSize > 0 ? 1 : 0), log?.lastPage ?? 0), Int(UInt32.max) - 1)
        newer = log?.pages ?? [:]
        mayBeStale = log?.isDamaged ?? false
        database = file
        wal = try? Descriptor(checking: open(path + "-wal", O_RDONLY | O_CLOEXEC | O_NOFOLLOW), "open")
    }

    /// A page; nil if it does not exist. If the file ends within the page, the rest is zeros.
    func page(_ number: Int) -> [UInt8]? {
        guard number >= 1, number <= count else { return nil }
        var bytes = [UInt8](repeating: 0, count: pageSize)
        let got: Int
        if let offset = newer[number], let log = wal?.raw {
            got = pread(log, &bytes, pageSize, off_t(offset))
        } else {
            got = pread(database.raw, &bytes, pageSize, off_t((number - 1) * pageSize))
        }
        return got > 0 ? bytes : nil
    }

    /// Whether no table uses a page, so that rows on it were deleted long ago. The pointer map decides,
    /// or the list of free pages if the map is damaged.
    ///
    /// According to the map, each page that is neither free nor a root has a parent. The kind alone is
    /// ignored: one wrong bit in it would hide a page of rows or bring deleted rows back.
    func isFree(_ number: Int) -> Bool {
        guard number > 2 else { return false }
        // A map page precedes the `pageSize / 5` pages that it describes, with five bytes for each:
        // kind and parent. https://www.sqlite.org/fileformat2.html#pointer_map_or_ptrmap_pages
        let span = pageSize / 5 + 1
        let mapped = (number - 2) / span * span + 2
        guard mapped != number else { return false }
        guard let map = map(mapped) else { return freed.contains(number) }
        let entry = 5 * (number - mapped - 1)
        return map[entry] == 2 || map[entry] > 2 && map.integer32(at: entry + 1) == 0
    }

    /// A pointer map page; nil if its content cannot be a map.
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

    /// Pages on the list of free pages, which starts in the header: a chain of trunk pages, each with
    /// the numbers of leaf pages. https://www.sqlite.org/fileformat2.html#the_freelist
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

    /// The page size: the header's, or the size with which most pages look like tree pages.
    private static func likelySize(of file: borrowing Descriptor, _ size: Int) -> Int {
        var head = [UInt8](repeating: 0, count: 100)
        _ = pread(file.raw, &head, head.count, 0)
        let said = Int(head[16]) << 8 | Int(head[17])
        var best = (size: 4_096, score: -1)
        for candidate in [said == 1 ? 65_536 : said, 4_096, 16_384, 8_192, 2_048, 1_024]
        where candidate >= 512 && candidate & (candidate - 1) == 0 {
            var bytes = [UInt8](repeating: 0, count: candidate)
            var score = 0
            // The first 16 MiB only: the same bytes are examined for each size.
            for page in 0..<min(size, 16 << 20) / candidate {
                guard pread(file.raw, &bytes, candidate, off_t(page * candidate)) == candidate else { break }
                guard let tree = TreePage(bytes, isFirst: page == 0) else { continue }
                // The cells of an empty page would begin at its end, which tells the page size. Without
                // this check a size twice as large could score more with every second page.
                let begin = bytes.integer16(at: (page == 0 ? 100 : 0) + 5)
                if !tree.cells.isEmpty || begin == candidate % 65_536 {
                    score += candidate
                }
            }
            if score > best.score {
                best = (candidate, score)
            }
        }
        return best.size
    }
}

extension [UInt8] {
    /// A big-endian number of two bytes; 0 beyond the end.
    func integer16(at offset: Int) -> Int {
        guard offset >= 0, offset <= count - 2 else { return 0 }
        return Int(self[offset]) << 8 | Int(self[offset + 1])
    }

    /// A big-endian number of four bytes; 0 beyond the end.
    func integer32(at offset: Int) -> Int {
        integer16(at: offset) << 16 | integer16(at: offset &+ 2)
    }

    /// A number in SQLite's variable-length encoding of one to nine bytes, and the offset behind it;
    /// nil beyond the end. https://www.sqlite.org/fileformat2.html#varint
    func packed(at offset: Int) -> (value: UInt64, next: Int)? {
        var value: UInt64 = 0
        for index in 0..<9 {
            guard offset >= 0, offset <= count - 1 - index else { return nil }
            let byte = self[offset + index]
            if index == 8 { return (value << 8 | UInt64(byte), offset + 9) }
            value = value << 7 | UInt64(byte & 0x7F)
            if byte < 0x80 { return (value, offset + index + 1) }
        }
        return nil
    }
}
