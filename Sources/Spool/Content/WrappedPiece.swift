public import Model

/// A line as a container's runtime has wrapped it; offsets are those in the line.
struct WrappedPiece {
    /// Whether the line is of stderr.
    var isError: Bool
    /// Whether the program's line ends with it.
    var isLast: Bool
    /// What the program wrote, without its line feed; with JSON's escapes in Docker's format.
    var text: Range<Int>
}

extension LineWrapper {
    /// The runtime whose wrapper, with its time, at least four in five of the first 100 lines have; otherwise
    /// nil.
    public static func guess(_ lines: UnsafeRawBufferPointer) -> LineWrapper? {
        allCases.first { format in
            var count = 0
            var wrapped = 0
            format.walk(lines) { line, piece in
                count += 1
                let bytes = UnsafeRawBufferPointer(rebasing: lines[line.dropLast()])
                wrapped += piece != nil && format.second(of: bytes) != nil ? 1 : 0
                return count < 100
            }
            return wrapped > 0 && wrapped * 5 >= count * 4
        }
    }

    /// What programs wrote: the pieces of each line joined, with a line feed after it. Lines that are not
    /// wrapped, and those of programs that have not ended, are left out.
    ///
    /// - Parameter most: the most lines that are unwrapped.
    public func unwrapped(_ lines: UnsafeRawBufferPointer, most: Int) -> [UInt8] {
        var text: [UInt8] = []
        var count = 0
        // The unfinished lines of stdout and of stderr.
        var unfinished: [[UInt8]] = [[], []]
        walk(lines) { line, piece in
            guard let piece else { return true }
            let stream = piece.isError ? 1 : 0
            let whole = UnsafeRawBufferPointer(rebasing: lines[line])
            unfinished[stream] += decoded(UnsafeRawBufferPointer(rebasing: whole[piece.text]))
            guard piece.isLast else { return true }
            text += unfinished[stream] + [0x0A]
            unfinished[stream] = []
            count += 1
            return count < most
        }
        return text
    }

    /// The text of a piece without the escapes of its wrapper.
    private func decoded(_ text: UnsafeRawBufferPointer) -> [UInt8] {
        self == .docker ? JSONString.decoded(text.bindMemory(to: UInt8.self)) : Array(text)
    }

    /// Calls `body` for each line, with its range (LF included) and what it wraps; nil if it is not wrapped.
    /// Stops when `body` returns false.
    func walk(_ lines: UnsafeRawBufferPointer, _ body: (_ line: Range<Int>, WrappedPiece?) -> Bool) {
        var end = 0
        while let feed = LineCutter.firstLineFeed(in: UnsafeRawBufferPointer(rebasing: lines[end...])) {
            let line = end..<(end + feed + 1)
            end = line.upperBound
            let piece = piece(UnsafeRawBufferPointer(rebasing: lines[line.dropLast()]))
            guard body(line, piece) else { return }
        }
    }

    /// What a line without its LF wraps; nil if it is not wrapped in this format.
    private func piece(_ line: UnsafeRawBufferPointer) -> WrappedPiece? {
        self == .cri ? criPiece(line) : dockerPiece(line)
    }

    /// Reads `TIME stdout F text`: P marks a part of a record, F its last part (the CRI log format).
    private func criPiece(_ line: UnsafeRawBufferPointer) -> WrappedPiece? {
        guard let blank = LineCutter.first(0x20, in: line), line.count > blank + 9, line[blank + 7] == 0x20
        else { return nil }
        let word = UnsafeRawBufferPointer(rebasing: line[(blank + 1)..<(blank + 7)])
        let isError = word.elementsEqual("stderr".utf8)
        guard isError || word.elementsEqual("stdout".utf8) else { return nil }
        let tag = UnsafeRawBufferPointer(rebasing: line[(blank + 8)...])
        let text = (LineCutter.first(0x20, in: tag) ?? tag.count - 1) + blank + 9
        return WrappedPiece(
            isError: isError, isLast: line[blank + 8] != UInt8(ascii: "P"), text: text..<line.count)
    }

    /// Reads `{"log":"text\n","stream":"stdout","time":"…"}`. A record ends with a text that ends in `\n`.
    private func dockerPiece(_ line: UnsafeRawBufferPointer) -> WrappedPiece? {
        var index = 0
        for token in ["{", "\"log\"", ":", "\""] {
            while index < line.count, line[index] == UInt8(ascii: " ") { index += 1 }
            guard line[index...].starts(with: token.utf8) else { return nil }
            index += token.utf8.count
        }
        let start = index
        // The text ends at the first quote after an even number of backslashes.
        while let quote = LineCutter.first(0x22, in: UnsafeRawBufferPointer(rebasing: line[index...])) {
            index += quote
            guard slashes(before: index, from: start, in: line) % 2 == 1 else { break }
            index += 1
        }
        let isLast =
            index > start && line[index - 1] == UInt8(ascii: "n")
            && slashes(before: index - 1, from: start, in: line) % 2 == 1
        return WrappedPiece(
            isError: line[index...].starts(with: "\",\"stream\":\"stderr\"".utf8), isLast: isLast,
            text: start..<(isLast ? index - 2 : index))
    }

    /// The second of the day at which the runtime received a wrapped line; nil if the line has no time where
    /// the runtime writes it.
    func second(of line: UnsafeRawBufferPointer) -> Int? {
        var start = 0
        if self == .docker {
            // The time is the last member.
            let name = "\"time\":\"".utf8
            guard let end = line.lastIndex(of: 0x22), let quote = line[..<end].lastIndex(of: 0x22),
                line[..<quote].suffix(name.count - 1).elementsEqual(name.dropLast())
            else { return nil }
            start = quote + 1
        }
        // `2026-11-20T10:00:00`
        guard start + 19 < line.count else { return nil }
        func number(_ index: Int) -> Int {
            Int(line[start + index] &- 0x30) * 10 + Int(line[start + index + 1] &- 0x30)
        }
        return (number(11) * 60 + number(14)) * 60 + number(17)
    }

    /// Count of backslashes right before an offset.
    private func slashes(before end: Int, from start: Int, in line: UnsafeRawBufferPointer) -> Int {
        var position = end
        while position > start, line[position - 1] == UInt8(ascii: "\\") { position -= 1 }
        return end - position
    }
}
