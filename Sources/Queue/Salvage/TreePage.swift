/// A page of a b-tree that holds rows, read without trusting any byte.
/// https://www.sqlite.org/fileformat2.html#b_tree_pages
struct TreePage {
    /// Kinds of pages that hold rows. Inner pages of index trees do, those of table trees (5) do not.
    enum Kind: UInt8 {
        /// An inner page of an index tree, whose cells hold rows besides child pages. The numbers are
        /// those of the file format.
        case indexInterior = 2
        case indexLeaf = 10
        /// A leaf page of a table tree, with a row id for each row.
        case tableLeaf = 13
    }

    let kind: Kind
    /// Offsets of the cells that are within the page.
    let cells: [Int]

    /// Nil if the content cannot be such a page. On the first page the tree begins behind the file's
    /// header of 100 bytes.
    init?(_ page: [UInt8], isFirst: Bool) {
        let head = isFirst ? 100 : 0
        guard page.count >= 512, let kind = Kind(rawValue: page[head]) else { return nil }
        self.kind = kind
        let count = page.integer16(at: head + 3)
        let array = head + (kind == .indexInterior ? 12 : 8)
        guard array + 2 * count <= page.count else { return nil }
        var cells: [Int] = []
        for index in 0..<count {
            let cell = page.integer16(at: array + 2 * index)
            if cell >= array + 2 * count, cell <= page.count - 4 {
                cells.append(cell)
            }
        }
        self.cells = cells
    }

    /// The row id and the values of a cell, including those on overflow pages; nil if any part is
    /// missing.
    func record(_ cell: Int, _ page: [UInt8], _ image: PageImage) -> (row: Int64, values: [RecordValue])? {
        var offset = kind == .indexInterior ? cell + 4 : cell
        guard let length = page.packed(at: offset) else { return nil }
        offset = length.next
        var row: Int64 = 0
        if kind == .tableLeaf {
            guard let id = page.packed(at: offset) else { return nil }
            row = Int64(bitPattern: id.value)
            offset = id.next
        }
        guard length.value <= UInt64(1 << 28), Int(length.value) <= image.count * image.pageSize else {
            return nil
        }
        let total = Int(length.value)
        let usable = image.pageSize
        // How much of a record is in the cell: the formulas for overflow pages in the file format.
        // https://www.sqlite.org/fileformat2.html#cell_payload_overflow_pages
        let most = kind == .tableLeaf ? usable - 35 : (usable - 12) * 64 / 255 - 23
        var local = total
        if total > most {
            let least = (usable - 12) * 32 / 255 - 23
            local = least + (total - least) % (usable - 4)
            if local > most {
                local = least
            }
        }
        guard offset + local + (local < total ? 4 : 0) <= page.count else { return nil }
        var payload = Array(page[offset..<offset + local])
        var next = local < total ? page.integer32(at: offset + local) : 0
        while payload.count < total {
            // An overflow page begins with the number of the next one; a page that begins with the kind
            // of a tree page is not part of a chain.
            guard let bytes = image.page(next), next > 2, ![2, 5, 10, 13].contains(bytes[0]) else {
                return nil
            }
            payload += bytes[4..<min(usable, 4 + total - payload.count)]
            next = bytes.integer32(at: 0)
        }
        return RecordValue.values(of: payload).map { (row, $0) }
    }
}

/// A value of a record. Our tables have no REAL columns, so a real number is kept without its value.
enum RecordValue: SQLValue {
    case null
    case integer(Int64)
    case real
    /// Bytes in the database's encoding, UTF-8, which may be invalid after damage.
    case text([UInt8])
    case blob([UInt8])

    /// The values of a record; nil if the bytes cannot be a record.
    /// https://www.sqlite.org/fileformat2.html#record_format
    static func values(of payload: [UInt8]) -> [RecordValue]? {
        guard let head = payload.packed(at: 0), head.value <= UInt64(payload.count) else { return nil }
        var values: [RecordValue] = []
        var type = head.next
        var offset = Int(head.value)
        while type < Int(head.value) {
            guard values.count < 64, let next = payload.packed(at: type) else { return nil }
            type = next.next
            guard next.value <= UInt64(1 << 32), let value = value(Int(next.value), payload, &offset) else {
                return nil
            }
            values.append(value)
        }
        return type == Int(head.value) && offset == payload.count ? values : nil
    }

    /// Binds the value to a parameter. Rows with real numbers match no table, so they never come here.
    func bind(to statement: OpaquePointer, at index: Int32) {
        switch self {
        case .null, .real: Int?.none.bind(to: statement, at: index)
        case .integer(let number): number.bind(to: statement, at: index)
        case .text(let bytes): String(decoding: bytes, as: UTF8.self).bind(to: statement, at: index)
        case .blob(let bytes): bytes.bind(to: statement, at: index)
        }
    }

    /// The value with a serial type at `offset`, which moves behind it; nil if it would exceed the
    /// record.
    private static func value(_ type: Int, _ payload: [UInt8], _ offset: inout Int) -> RecordValue? {
        let sizes = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0]
        let size = type >= 12 ? (type - 12) / 2 : type < 10 ? sizes[type] : -1
        guard size >= 0, size <= payload.count - offset else { return nil }
        let bytes = payload[offset..<offset + size]
        // bounded: compared with what is left of the page.
        offset += size
        switch type {
        case 0: return .null
        case 1...6:
            var value: Int64 = bytes.first.map { $0 >= 0x80 } ?? false ? -1 : 0
            for byte in bytes { value = value << 8 | Int64(byte) }
            return .integer(value)
        case 7: return .real
        case 8: return .integer(0)
        case 9: return .integer(1)
        default: return type % 2 == 0 ? .blob(Array(bytes)) : .text(Array(bytes))
        }
    }
}
