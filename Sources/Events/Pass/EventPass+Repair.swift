internal import Glibc
internal import Model

/// Lines that are not JSON objects as they are: where the app's settings say so, they become one.
extension EventPass {
    /// What some programs write whenever they open a file: at the beginning of any line. It is no content.
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Reads the line again with its bytes replaced that are not UTF-8, or as the text of a record; else says what is wrong with it.
    @inline(never)
    mutating func repair(_ start: Int, _ next: Int, _ end: Int) -> Verdict {
        let marks = EventPass.marks(before: UnsafeBufferPointer(start: base + start, count: next - start))
        guard marks == 0 else {
            let (next, isObject) = scanner.scanLine(base, from: start + marks, to: end)
            return isObject ? judge(next) : repair(start + marks, next, end)
        }
        let code = scanner.failureCode
        // Zeros are no text: a power cut left them, or a writer that will fill them.
        guard code != .blank, let settings = state?.settings, base[start] != 0 else { return unreadable(start, next) }
        let line = UnsafeBufferPointer(start: base + start, count: next - start)
        if code == .notUTF8, settings.repairsUTF8 ?? true, let verdict = readRepaired(line, settings, next) {
            return verdict
        }
        guard settings.text != .quarantine else {
            // The scanner has read the repaired line since: what is wrong is said of the line as it is.
            _ = scanner.scanLine(base, from: start, to: next)
            return unreadable(start, next)
        }
        let last = settings.text == .blocks ? endOfBlock(start, next, end) : next
        let text = UnsafeBufferPointer(start: base + start, count: last - start)
        let trimmed = text.lastIndex { $0 != .lineFeed && $0 != 0x0D } ?? 0
        return judgeText(UnsafeBufferPointer(rebasing: text[...trimmed]), last)
    }

    /// How many bytes of byte order marks are before a text.
    private static func marks(before text: UnsafeBufferPointer<UInt8>) -> Int {
        var count = 0
        while text.dropFirst(count).starts(with: byteOrderMark) { count += byteOrderMark.count }
        return count
    }

    /// Where the block of text ends whose first line ends at `next`: before a line that begins an object, or zeros.
    private func endOfBlock(_ start: Int, _ next: Int, _ end: Int) -> Int {
        var position = next
        while position < end, base[position] != .openBrace, base[position] != 0,
            let feed = memchr(base + position, 0x0A, end - position)
        {
            let after = UnsafePointer(feed.assumingMemoryBound(to: UInt8.self)) - base + 1
            guard after - start <= TextHandling.mostBlockBytes else { break }
            position = after
        }
        return position
    }

    /// Makes a text the message of a record, unless it is withheld.
    ///
    /// - Parameters:
    ///   - stream: the runtime's; nil for a line that nothing has wrapped.
    ///   - isPiece: whether it is a piece of a line.
    private mutating func judgeText(
        _ content: UnsafeBufferPointer<UInt8>, _ next: Int, stream: [UInt8]? = nil, isPiece: Bool = false
    ) -> Verdict {
        if withheld != .none || !unfinished.isEmpty {
            note(content, endsBeforeValueOf: producer + (stream ?? []), forgets: stream == nil)
        }
        guard !withheld.include(content, isPiece: isPiece) else { return withhold(next) }
        repaired.removeAll(keepingCapacity: 1 << 16)
        let valid = String(decoding: content, as: UTF8.self)
        let more = stream.map { Array(",\"stream\":\"".utf8) + $0 + [.quote] } ?? []
        let text = Array("{\"message\":".utf8) + JSONText.quoted(valid) + more + [.closeBrace, .lineFeed]
        text.withUnsafeBytes { repaired.append($0) }
        counts[.wrappedText] += 1
        if !content.elementsEqual(valid.utf8) { counts[.repairedUTF8] += 1 }
        return judgeRepaired(next) ?? unreadable(0, next)
    }

    /// Reads what a container's runtime has wrapped: one record, of one line or of several that belong together.
    @inline(never)
    mutating func readWrapped(_ format: LineFormat, from start: Int, to end: Int) -> Verdict {
        let block = base
        outerTime = nil
        var content: [UInt8] = []
        var stream: [UInt8]?
        var next = start
        var isPiece = true
        while next < end, isPiece {
            guard let line = wrappedLine(format, block, from: next, to: end),
                stream == nil || stream == line.stream
            else { break }
            if stream == nil { outerTime = line.time.withUnsafeBufferPointer { times.parse($0) } }
            stream = line.stream
            content += line.text
            next = line.next
            isPiece = !line.isLast
        }
        guard let stream else {
            // It is no such line: it is taken as it is.
            base = block
            let (next, isObject) = scanner.scanLine(base, from: start, to: end)
            return isObject ? judge(next) : repair(start, next, next)
        }
        if content.last == 0x0D { content.removeLast() }
        isPiece = notePiece(of: stream, goesOn: isPiece)
        return content.withUnsafeBufferPointer { content in
            let content = UnsafeBufferPointer(rebasing: content.dropFirst(EventPass.marks(before: content)))
            if isPiece, withheld != .none { return judgeText(content, next, stream: stream, isPiece: true) }
            repaired.removeAll(keepingCapacity: 1 << 16)
            repaired.append(UnsafeRawBufferPointer(content))
            withUnsafeBytes(of: UInt8.lineFeed) { repaired.append($0) }
            if let verdict = judgeRepaired(next) { return verdict }
            guard let settings = state?.settings, settings.text != .quarantine else { return unreadable(0, next) }
            if scanner.failureCode == .notUTF8, settings.repairsUTF8 ?? true,
                let verdict = readRepaired(content, settings, next)
            {
                return verdict
            }
            return judgeText(content, next, stream: stream)
        }
    }

    /// Notes whether more of a stream's line is to come; returns whether what was read of it is a piece.
    private mutating func notePiece(of stream: [UInt8], goesOn: Bool) -> Bool {
        guard goesOn || !unfinished.isEmpty else { return false }
        guard goesOn else { return unfinished.remove(producer + stream) != nil }
        note(unfinished: producer + stream)
        return true
    }

    /// Notes whether the next line of a stream may be the value of a member that a text ends with.
    mutating func note(
        _ text: UnsafeBufferPointer<UInt8>, endsBeforeValueOf stream: [UInt8], forgets: Bool = true
    ) {
        if withheld.endsBeforeValue(text) { note(unfinished: stream) } else if forgets { unfinished.remove(stream) }
    }

    private mutating func note(unfinished key: [UInt8]) {
        // The rest of a file that is gone never comes.
        if unfinished.count >= 4096 { unfinished.removeFirst() }
        unfinished.insert(key)
    }

    private mutating func wrappedLine(
        _ format: LineFormat, _ block: UnsafePointer<UInt8>, from start: Int, to end: Int
    ) -> WrappedLine? {
        guard format == .docker else {
            let feed = memchr(block + start, 0x0A, end - start).map {
                UnsafePointer($0.assumingMemoryBound(to: UInt8.self)) - block
            }
            return feed.flatMap {
                WrappedLine(cri: UnsafeBufferPointer(start: block + start, count: $0 - start), next: $0 + 1)
            }
        }
        let (next, isObject) = scanner.scanLine(block, from: start, to: end)
        return isObject ? WrappedLine(docker: block, scanner.open..<scanner.close + 1, next: next) : nil
    }

    /// The line with its bytes replaced, if that makes an object of it; of an event only where that was asked for.
    private mutating func readRepaired(
        _ line: UnsafeBufferPointer<UInt8>, _ settings: AppSettings, _ next: Int
    ) -> Verdict? {
        repaired.removeAll(keepingCapacity: 1 << 16)
        var valid = String(decoding: line, as: UTF8.self)
        if line.last != .lineFeed { valid += "\n" }
        valid.withUTF8 { repaired.append(UnsafeRawBufferPointer($0)) }
        let before = base
        if let verdict = judgeRepaired(next), isRecord || settings.repairsUTF8 == true {
            counts[.repairedUTF8] += 1
            return verdict
        }
        base = before
        return nil
    }

    private mutating func judgeRepaired(_ next: Int) -> Verdict? {
        base = UnsafePointer(repaired.start)
        let (end, isObject) = scanner.scanLine(base, from: 0, to: repaired.count)
        guard isObject, end == repaired.count else { return nil }
        return judge(next)
    }
}
