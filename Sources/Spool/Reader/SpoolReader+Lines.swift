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
        while true {
            switch packed.next() {
            case .more: return true
            case .lines(let count):
                let lines = UnsafeRawBufferPointer(rebasing: packed.lines[..<count])
                packed.take(hand(lines, from: drop.source, at: packed.offset, resume: resumption(of: drop)))
            case .tooLong(let line):
                tooLong("line", line.length, from: drop.source, at: line.offset, content: line.head)
            case .end(.cutShort) where !drop.isSecondTry:
                endedEarly(drop)
                return false
            case .end(let end):
                if let (reason, detail) = end.problem {
                    try quarantineRest(of: drop, reason, detail)
                } else {
                    finish(drop)
                }
                return false
            }
            drop.taken = .lines(packed.offset)
            guard packed.lines.isEmpty, packed.end != nil else { return true }
        }
    }
}
