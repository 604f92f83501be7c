internal import EventLoops
internal import Glibc
internal import Model

extension SpoolReader {
    /// Reads a block of a packed file of lines. True: there is more to read.
    func readLines(_ drop: DropReading) throws(SystemError) -> Bool {
        guard let descriptor = drop.descriptor?.raw else { return false }
        if drop.packed == nil { drop.packed = packed(drop.format) }
        guard let packed = drop.packed else { throw SystemError("malloc", number: ENOMEM) }
        try packed.fill(from: descriptor, atMost: 1 << 20)
        // After a restart: what was taken before.
        if packed.offset < drop.taken.offset {
            packed.take(Int(min(Int64(packed.lines.count), drop.taken.offset - packed.offset)))
            if packed.offset < drop.taken.offset, packed.end == nil { return true }
        }
        if !packed.lines.isEmpty, try takeLines(of: drop, packed) { return true }
        guard let end = packed.end, packed.lines.isEmpty else { return true }
        switch end {
        case .whole:
            if let skipped = drop.skipped { endSkipping(drop, packed, length: skipped.length) }
            finish(drop)
        case .cutShort:
            if drop.isSecondTry {
                try quarantineRest(of: drop, .cutShort, "the archive ends too early", descriptor)
            } else {
                endedEarly(drop)
            }
        case .broken(let detail): try quarantineRest(of: drop, .badArchive, detail, descriptor)
        }
        return false
    }

    /// Hands over what was unpacked. True: more must be unpacked, or the sink wants a commit first.
    private func takeLines(of drop: DropReading, _ packed: PackedLines) throws(SystemError) -> Bool {
        if drop.skipped != nil { return skipLine(of: drop, packed) }
        let lines = packed.lines
        switch LineCutter(longest: options.maxEventSize).piece(of: lines) {
        case .lines(let length):
            let taken = hand(
                UnsafeRawBufferPointer(rebasing: lines[..<length]), from: drop.source, at: packed.offset,
                resume: resumption(of: drop))
            took(taken, of: drop, packed)
            return taken < length || !packed.lines.isEmpty || packed.end == nil
        case .tooLong:
            drop.skipped = (0, packed.offset, Array(lines.prefix(ObjectSplitter.excerpt)))
            return true
        case .partial(let length):
            guard let end = packed.end else { return true }
            guard end == .whole else { return dropPartial(of: drop, packed) }
            packed.seal()
            let taken = hand(
                packed.lines, from: drop.source, at: packed.offset, resume: resumption(of: drop))
            guard taken > length else {
                // Offered again, with its LF, after a commit.
                return true
            }
            took(taken, of: drop, packed)
            return false
        }
    }

    /// A line at the end of an archive that ends badly belongs to what is quarantined.
    private func dropPartial(of drop: DropReading, _ packed: PackedLines) -> Bool {
        packed.take(packed.lines.count)
        return false
    }

    private func skipLine(of drop: DropReading, _ packed: PackedLines) -> Bool {
        guard let skipped = drop.skipped else { return true }
        guard let feed = LineCutter.firstLineFeed(in: packed.lines) else {
            drop.skipped?.length += Int64(packed.lines.count)
            packed.take(packed.lines.count)
            return packed.end == nil
        }
        packed.take(feed + 1)
        endSkipping(drop, packed, length: skipped.length + Int64(feed))
        return true
    }

    private func endSkipping(_ drop: DropReading, _ packed: PackedLines, length: Int64) {
        guard let skipped = drop.skipped else { return }
        drop.skipped = nil
        counters.linesTooLong += 1
        quarantine(
            .tooLong, "the line has \(length) bytes, \(options.maxEventSize) are allowed (spool.max_event_size)",
            from: drop.source, at: skipped.offset, length: length, content: skipped.head)
        drop.taken = .lines(packed.offset)
    }

    private func took(_ count: Int, of drop: DropReading, _ packed: PackedLines) {
        packed.take(count)
        drop.taken = .lines(packed.offset)
    }

    /// Quarantines an archive that cannot be read to its end, as it is.
    private func quarantineRest(
        of drop: DropReading, _ reason: QuarantineRecord.Reason, _ detail: String, _ descriptor: Int32
    ) throws(SystemError) {
        let size = try FileSystem.status(of: descriptor).size
        let length = size <= Int64(options.maxEventSize) ? Int(size) : ObjectSplitter.excerpt
        quarantine(
            reason, detail, from: drop.source, at: drop.taken.offset, length: size,
            content: try bytes(of: descriptor, at: 0, count: length))
        finish(drop)
    }
}
